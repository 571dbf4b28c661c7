//! Parts that the commands for topics, queues, objects and containers share.
//!
//! ```text
//! place     the table that a command names: opening it, its errors
//! bytes     payloads and times as text and as JSON
//! given     payloads from the command line, from files and from standard input
//! ```

mod bytes;
mod given;
mod place;

pub(super) use bytes::{bytes_of_json, pairs_json, put_bytes, shown, time_text};
pub(super) use given::{given, reading_failed};
pub(super) use place::{Altered, Place, alter, told};
