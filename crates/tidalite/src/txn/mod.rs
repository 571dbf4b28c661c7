//! Transactions: a snapshot, and the write transaction; what they keep in memory, and from one to the next.
//!
//! Series and tables are opened by the folders above, which extend `ReadTxn` and `WriteTxn`.
//!
//! ```text
//! pages                                        pages as a transaction sees them
//! read                                         ReadTxn: what the snapshots of one commit share
//! catalog_cache, series_cache, table_cache     what snapshots have decoded
//! write                                        WriteTxn: change, commit
//! open_series, known_times, open_table         what a write transaction has open
//! leaves                                       the trees of the series that it changes, where the front's rows go
//! flush, clock                                 staged rows go to their places; the clock of the commit
//! savepoint, uncommitted                       going back; reading what is not committed
//! shared, compaction_pass                      what the transactions of a database share
//! ```

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
