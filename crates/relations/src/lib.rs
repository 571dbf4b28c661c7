//! Relations: tables with a schema of typed columns, a primary key, and secondary indexes. The SQL statement
//! `CREATE TABLE` creates them.
//!
//! ```text
//! kind             types of columns
//! cell             values of columns
//! error            Error, Conflict
//! schema           columns, primary key and indexes, as the user describes them
//! key              cells as pieces of keys, which sort like the cells
//! fields           cells as fields of a row's value
//! layout           the schema, with the places of columns and indexes
//! stored           the encoded schema
//! parts            the tables of a relation
//! bounds           ranges of keys
//! row_ref, rows    a row whose cells are decoded on request; iterating over rows
//! read             RelationReader
//!  └ conflict          checks a new row against the stored rows
//! write            RelationWriter: insert, update, remove
//!  ├ batch             inserting many rows at once
//!  └ alter             adds and drops columns and indexes
//! check            compares rows and indexes
//! recover, leaves  rebuilding everything that is derived from the rows; recognising rows in an unreferenced leaf
//! ```
//!
//! ```text
//! root table ─┬─ 0 schema
//!             ├─ 1 rows:       primary key -> fields
//!             └─ 2 index no.:  columns, primary key -> nothing
//! ```
//!
//! Like the other structures, a relation is identified by the root of its table (`Tree`): functions take the root and a
//! page reader or page writer, and the caller stores the root.

mod alter;
mod batch;
mod bounds;
mod cell;
mod check;
mod conflict;
mod error;
mod fields;
mod key;
mod kind;
mod layout;
mod leaves;
mod parts;
mod read;
mod recover;
mod row_ref;
mod rows;
mod schema;
mod stored;
mod write;

pub use bounds::KeyBounds;
pub use cell::{Cell, CellRef};
pub use error::{Conflict, Error, Result};
pub use kind::{ColumnType, DECIMAL_DIGITS_MAX, TimeUnit};
pub use layout::{FIELDS_MAX, Layout, ROW_BYTES_MAX};
pub use leaves::part_of_relation_rows;
pub use parts::relation_rows;
pub use read::RelationReader;
pub use recover::{RelationRecovery, recover_relation};
pub use row_ref::{RowKey, RowRef};
pub use rows::Rows;
pub use schema::{
    COLUMNS_MAX, Column, DEFAULT_BYTES_MAX, INDEXES_MAX, Index, KEY_COLUMNS_MAX,
    RELATION_NAME_BYTES_MAX, Schema,
};
pub use write::RelationWriter;

#[cfg(test)]
mod tests;
