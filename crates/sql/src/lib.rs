//! SQL over a Tidalite database, with results as Arrow.

mod aggregate;
mod catalog;
mod connection;
mod error;
mod functions;
mod leaf;
mod metric;
mod options;
mod ordered;
mod pieces;
mod plans;
mod session;
mod slot;
mod types;
mod work;

pub use arrow;
pub use connection::{CancelHandle, Connection, Rows, TableKind, TableName};
pub use error::{Error, ErrorKind, Result};
pub use options::ConnectionOptions;
