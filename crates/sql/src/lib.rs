//! SQL over a Tidalite database, with results as Arrow.

mod connection;
mod error;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the session registers the functions in a later commit"
    )
)]
mod functions;

pub use arrow;
pub use connection::{CancelHandle, Connection, ConnectionOptions, Rows, TableKind, TableName};
pub use error::{Error, ErrorKind, Result};
