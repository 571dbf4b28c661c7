//! Transactions: the snapshot and the write transaction, their memory, and the state kept between them.
//!
//! Series and tables are opened by the folders above, which extend `ReadTxn` and `WriteTxn`.
//!
//! ```text
//! pages                                        pages visible to a transaction
//! read                                         ReadTxn: state shared by the snapshots of one commit
//! catalog_cache, series_cache, table_cache     objects that snapshots have decoded
//! tags                                         metrics, tag keys and values of a snapshot
//! write                                        WriteTxn: change, commit
//! open_series, known_times, open_table, open_hash  objects that a write transaction has open
//! hashes                                       hash tables with records that are not stored yet
//! leaves                                       the trees of the changed series, destination of the delta's rows
//! flush, clock                                 flush of the write buffer; the clock of the commit
//! savepoint, uncommitted                       rollback to a savepoint; reads of uncommitted data
//! shared, compaction_pass                      state shared by the transactions of a database
//! ```

pub(crate) mod catalog_cache;
pub(crate) mod clock;
pub(crate) mod compaction_pass;
pub(crate) mod flush;
pub(crate) mod hashes;
pub(crate) mod known_times;
pub(crate) mod leaves;
pub(crate) mod open_hash;
pub(crate) mod open_series;
pub(crate) mod open_table;
pub(crate) mod pages;
pub(crate) mod read;
pub(crate) mod savepoint;
pub(crate) mod series_cache;
pub(crate) mod shared;
pub(crate) mod table_cache;
pub(crate) mod tags;
pub(crate) mod uncommitted;
pub(crate) mod write;
