//! SQL over a Tidalite database, with results as Arrow.

mod connection;
mod error;

pub use arrow;
pub use connection::{CancelHandle, Connection, ConnectionOptions, Rows, TableKind, TableName};
pub use error::{Error, ErrorKind, Result};
