//! Work on the whole file: check, salvage, backup, copy, compaction, retention, differences, statistics.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod close;
pub(crate) mod cold;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod page_map;
pub(crate) mod policies;
pub(crate) mod read_ahead;
pub(crate) mod retention;
pub(crate) mod salvage;
pub(crate) mod stat;
pub(crate) mod watch;
