//! Keys and values in order.

use std::collections::BTreeMap;

/// The keys and values of a table.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
