//! Buffered tables: ordered tables that collect random writes in sorted runs and later merge them into their rows.
//!
//! ```text
//! write       stores and removes keys; merges runs into the rows
//! read        lookups
//! range       keys in order, ascending and descending
//! recover     rebuilds a damaged table
//! check       checks every rule of the format
//! ```
//!
//! The parts of a buffered table (`parts.rs`): `State` is the list of the runs, `Main` has a row for each key, `Runs`
//! has blocks whose payloads are 1 and a value, or 0 for a key that was removed.

pub(crate) mod check;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod write;

use crate::runs::merge::PUT;

/// First byte of the payload of a key that was removed.
const REMOVE: u8 = 0;

/// The value in a payload; `None` if the payload records a removal.
fn value_of(payload: &[u8]) -> Option<&[u8]> {
    match payload.split_first() {
        Some((&PUT, value)) => Some(value),
        _ => None,
    }
}
