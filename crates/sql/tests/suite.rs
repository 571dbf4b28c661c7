//! The tests of SQL over a database, in one program: linked once.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod attached;
mod changes;
mod fixtures;
mod returning;
mod slt;
mod statements;
mod statistics;
