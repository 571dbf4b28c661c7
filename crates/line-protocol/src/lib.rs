//! Parser of the line protocol of InfluxDB: one line for each set of fields measured at one time.
//!
//! ```text
//! weather,site=north,floor=2 temp=21.5,open=t,note="fine" 1401581400000000000
//! |-----| |----------------| |--------------------------| |-----------------|
//! measurement   tags               fields                    timestamp
//!
//! fields      1.5  1e3  7         floats               t  true  F  FALSE   booleans
//!             7i  -7i             signed integers      "fine"              strings
//!             7u                  unsigned integers
//! escapes     measurement         \,  \<blank>
//!             keys, tag values    \,  \=  \<blank>
//!             strings             \"  \\
//! ```
//!
//! ```text
//! error       errors, with the column of the line
//! split       divides a text into lines: a string may contain line feeds
//! escape      removes escapes, and finds the end of a name
//! line        the parts of a line
//! field       the fields: keys and values
//! ```
//!
//! The parser borrows from its input and knows nothing of a database. The part of a line before its first blank
//! ([`Line::key`]) is the same for all lines of the same series, so a caller can parse it once and then look it up.
//!
//! Other backslashes stand for themselves, and a line that begins with `#` is a comment, as in InfluxDB. NaN and
//! infinities are not values of the protocol.

mod error;
mod escape;
mod field;
mod line;
mod split;

pub use error::{Error, Problem};
pub use field::{Field, Fields, Value};
pub use line::{Line, Series};
pub use split::{Lines, Scanner, lines};
