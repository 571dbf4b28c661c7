//! SQL over a Tidalite database, with results as Arrow.
//!
//! ```text
//! types, leaf, slot, work, pieces   used by all nodes of plans
//! files                             files of rows
//! functions                         functions for time series
//! metric, aggregate                 series as tables; aggregates from their trees
//! ordered, relational               ordered tables and relations as tables
//! joins                             joins on time
//! catalog                           names of tables
//! statement, session                kinds of statements; planning
//! definition                        CREATE statements for existing relations
//! write                             statements that change the database
//! direct, plans                     statements that need no plan; cached plans
//! rows, connection                  results; running statements
//! returning                         the RETURNING clause of changes
//! changes, control, prepared        statements of a connection that are not queries
//! ```

mod aggregate;
mod catalog;
mod changes;
mod connection;
mod control;
mod definition;
mod direct;
mod error;
mod files;
mod functions;
mod joins;
mod leaf;
mod metric;
mod options;
mod ordered;
mod pieces;
mod plans;
mod prepared;
mod relational;
mod returning;
mod rows;
mod session;
mod slot;
mod statement;
mod types;
mod work;
mod write;

pub use arrow;
pub use connection::{Connection, TableKind, TableName};
pub use datafusion::common::ScalarValue;
pub use error::{Error, ErrorKind, Result};
pub use files::format::{FileFormat, FileOptions};
pub use files::read::FileRows;
pub use files::write::FileSink;
pub use options::ConnectionOptions;
pub use rows::{CancelHandle, Rows};
