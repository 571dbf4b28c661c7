//! Operations on a whole database.
//!
//! ```text
//! watch                  progress, rate limit, cancelling
//! check                  verifies everything reachable
//! salvage                recovers intact data of a damaged file
//! copy, read_ahead       a packed copy, as a file or a stream; read-ahead of leaves for it
//! backup                 backups and images: streams of pages; restoring
//! compact, close         shortening the file
//! retention, policies    retention policies; removing expired data
//! cold, old_leaves       old leaves in cold form, and the search for them
//! diff                   changes between two versions
//! stat, page_map         statistics; use of pages by structure
//! ```

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod close;
pub(crate) mod cold;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod old_leaves;
pub(crate) mod page_map;
pub(crate) mod policies;
pub(crate) mod read_ahead;
pub(crate) mod retention;
pub(crate) mod salvage;
pub(crate) mod stat;
pub(crate) mod watch;

pub use backup::{Backup, BackupInfo, Image, Restore};
pub use check::{CheckReport, Finding, HitSeries, Place};
pub use cold::Cooled;
pub use compact::Compaction;
pub use copy::DatabaseCopy;
pub use diff::Change;
pub use page_map::{PageDump, PageRange, Weight};
pub use salvage::{Salvage, SalvageReport, Saved};
pub use stat::Stat;
pub use tidalite_kv::TableShape;
pub use tidalite_pager::{LossCause, LostCommits};
pub use watch::{Progress, Watch};
