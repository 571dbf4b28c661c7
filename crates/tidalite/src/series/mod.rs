//! Time series: intervals and aggregates; inserting and deleting rows.
//!
//! ```text
//! open_read, open_write, opener, lifecycle     series of a snapshot, of a write transaction; renaming and removing
//! read                                         Series
//! intervals, query, filter                     queries of an interval: figures, filters, windows
//! vectors, vector_scan, row_walk               their rows, by vectors or one by one
//! cursor, nearest                              a cursor; a row at or near a time
//! aggregate, figures                           statistics of intervals and windows
//! from_rows, row_figures                       figures that are computed from rows; value_at: a value between rows
//! parallel, helpers                            large queries, distributed over threads
//! columns, record                              values of rows; structs as rows
//! write, own_reads                             SeriesMut; reads of its own rows
//! owned                                        a series that holds its snapshot
//! duplicates, keep_all, distinct               rows at an occupied time
//! of_container                                 series that only their container changes
//! annotations, retag                           texts about a series; tags of many series
//! appender                                     several threads append to one transaction
//! ```

pub(crate) mod aggregate;
pub(crate) mod annotations;
pub(crate) mod appender;
pub(crate) mod columns;
pub(crate) mod cursor;
pub(crate) mod distinct;
pub(crate) mod duplicates;
pub(crate) mod figures;
pub(crate) mod filter;
pub(crate) mod from_rows;
pub(crate) mod helpers;
pub(crate) mod intervals;
pub(crate) mod keep_all;
pub(crate) mod lifecycle;
pub(crate) mod nearest;
pub(crate) mod of_container;
pub(crate) mod open_read;
pub(crate) mod open_write;
pub(crate) mod opener;
pub(crate) mod own_reads;
pub(crate) mod owned;
pub(crate) mod parallel;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod retag;
pub(crate) mod row_figures;
pub(crate) mod row_walk;
pub(crate) mod value_at;
pub(crate) mod vector_scan;
pub(crate) mod vectors;
pub(crate) mod write;
