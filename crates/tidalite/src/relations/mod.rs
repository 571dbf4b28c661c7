//! Relations: tables with typed columns, a primary key and secondary indexes. Each is a table with a special layout
//! instead of plain rows.
//!
//! ```text
//! refusal      converts errors of relations to errors of this library
//! rows         Rows, RowRef: rows in the order of a key or an index
//! relation     Relation: lookups, ranges
//! relation_mut RelationMut: insert, update, remove
//! alter        RelationMut: adds and drops columns and indexes
//! open         opens and creates relations, in a snapshot or a write transaction
//! recover      rebuilds relations for salvage
//! ```
//!
//! `Roots::relations` counts the changes of schemas: it changes when a relation is created, altered, renamed or
//! dropped, and [`catalog_version`](crate::ReadTxn::catalog_version) changes with it.

pub(crate) mod alter;
pub(crate) mod open;
pub(crate) mod recover;
pub(crate) mod refusal;
pub(crate) mod relation;
pub(crate) mod relation_mut;
pub(crate) mod rows;
