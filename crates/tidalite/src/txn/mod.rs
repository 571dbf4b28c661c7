//! Transactions: a snapshot, and the write transaction; what they keep in memory and from one to the next.

pub(crate) mod catalog_cache;
pub(crate) mod clock;
pub(crate) mod compaction_pass;
pub(crate) mod flush;
pub(crate) mod known_times;
pub(crate) mod leaves;
pub(crate) mod open_series;
pub(crate) mod open_table;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod savepoint;
pub(crate) mod series_cache;
pub(crate) mod shared;
pub(crate) mod table_cache;
pub(crate) mod uncommitted;
pub(crate) mod write;
