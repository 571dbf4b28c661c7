//! Points in time: nanoseconds since 1970, with arithmetic, as text, and converted from and to the times of other
//! crates. Depends on no other crate of the project, so that every crate with times in its interface can use it.
//!
//! ```text
//! error      TimestampError   a text that is not a time, or a time out of range
//! timestamp  Timestamp        nanoseconds since 1970
//! foreign                     times of `jiff` and `chrono`, if their features are on
//! ```

mod error;
mod foreign;
mod timestamp;

pub use error::TimestampError;
pub use timestamp::Timestamp;
