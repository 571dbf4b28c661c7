//! The pairs of a buffered table, read in every way.

use super::pairs::Pairs;
use super::reading::Reading;
use std::collections::BTreeMap;
use tidalite::{ReadTxn, Result};

/// The pairs of a buffered table in a snapshot. If its answers contradict each other, the result contains pairs that no
/// model has.
///
/// # Errors
/// An error of the database.
pub(crate) fn buffered_of(snap: &ReadTxn, name: &str, reading: Reading) -> Result<Pairs> {
    let Some(table) = snap.buffered_table::<[u8], [u8]>(name)? else {
        return Ok(Pairs::new());
    };
    let pairs = table.range(..)?.collect::<Result<Pairs>>()?;
    if !reading.asks_again {
        return Ok(pairs);
    }
    let keys: Vec<&Vec<u8>> = pairs.keys().collect();
    let by_key = table.get_many(&keys)?;
    let agree = table.count()? == pairs.len() as u64
        && table.range_reversed(..)?.collect::<Result<Pairs>>()? == pairs
        && by_key
            .iter()
            .map(Option::as_ref)
            .eq(pairs.values().map(Some));
    Ok(match agree {
        true => pairs,
        false => BTreeMap::from([(b"answers".to_vec(), b"that contradict each other".to_vec())]),
    })
}
