//! SQL over a Tidalite database, with results as Arrow.

mod aggregate;
mod catalog;
mod connection;
mod definition;
mod error;
mod files;
mod functions;
mod leaf;
mod metric;
mod options;
mod ordered;
mod pieces;
mod plans;
mod relational;
mod rows;
mod session;
mod slot;
mod statement;
mod types;
mod work;
mod write;

pub use arrow;
pub use connection::{Connection, TableKind, TableName};
pub use error::{Error, ErrorKind, Result};
pub use files::format::{FileFormat, FileOptions};
pub use files::read::FileRows;
pub use files::write::FileSink;
pub use options::ConnectionOptions;
pub use rows::{CancelHandle, Rows};
