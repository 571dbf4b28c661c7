//! Transactions: snapshots, the write transaction with its changed pages and its commit, and the writer state.

mod checkpoint;
mod commit;
mod commit_plan;
pub(crate) mod dirty;
mod durability;
pub(crate) mod inner;
mod large_values;
mod logged;
mod pin_changes;
mod pins;
pub(crate) mod published;
mod reading;
mod savepoints;
pub(crate) mod snapshot;
mod ticket;
mod uncommitted;
mod wakers;
mod write;
mod write_txn;
pub(crate) mod writer;

pub use durability::{CommitInfo, Durability};
pub use large_values::SecondFile;
pub use savepoints::Savepoint;
pub use ticket::Ticket;
pub(crate) use ticket::make_durable;
pub use uncommitted::UncommittedRead;
pub use write_txn::WriteTxn;
