//! Time series of a transaction: intervals, aggregates, windows; inserting and deleting rows.

pub(crate) mod aggregate;
pub(crate) mod annotations;
pub(crate) mod appender;
pub(crate) mod columns;
pub(crate) mod cursor;
pub(crate) mod distinct;
pub(crate) mod duplicates;
pub(crate) mod figures;
pub(crate) mod helpers;
pub(crate) mod intervals;
pub(crate) mod keep_all;
pub(crate) mod lifecycle;
pub(crate) mod nearest;
pub(crate) mod open_read;
pub(crate) mod open_write;
pub(crate) mod own_reads;
pub(crate) mod parallel;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod write;
