//! Determines to which nested table of a hash table or a buffered table the rows of an unreferenced leaf belong.
//!
//! Pages do not contain this information, but the rows of each nested table have a form that is checked here. In case
//! of doubt a leaf belongs to no table.

use crate::block::Block;
use crate::buffered::recover::run_of_block;
use crate::hash::entry::RECORDS_MAX;
use crate::hash::record;
use crate::parts::Part;
use crate::runs::state::Runs;

/// A row of a leaf: its key and its value.
pub type LeafRow = (Vec<u8>, Vec<u8>);

/// The key, in the root table of a hash table, of the nested table to which the rows belong. Only the table of records
/// is recognised, because a hash table is rebuilt from its records alone; `None` for all other tables.
///
/// The other tables hold blocks, sets or filters. Their keys or first bytes do not occur in records.
#[must_use]
pub fn part_of_hash_rows(rows: &[LeafRow]) -> Option<[u8; 1]> {
    let is_record = |(key, value): &LeafRow| {
        let number = record::number_of(key);
        number.is_ok_and(|number| number < RECORDS_MAX && record::decode(number, value).is_ok())
    };
    let is_block = |(_, value): &LeafRow| Block::parse(value).is_ok();
    // In a table of blocks all rows are blocks, and a single value may look like a block by chance.
    let are_records = rows.iter().all(is_record) && !rows.iter().all(is_block);
    are_records.then_some(Part::Records.key())
}

/// The same for a buffered table with this state. It recognises the rows and the runs in the state's list.
///
/// Without a state no leaf is assigned to the runs, because it could belong to a run that was merged into the rows long
/// ago. Rows that look like blocks of runs, or like filters, belong to no table.
#[must_use]
pub fn part_of_buffered_rows(rows: &[LeafRow], state: Option<&[u8]>) -> Option<[u8; 1]> {
    let numbers: Option<Vec<u64>> = rows
        .iter()
        .map(|(key, value)| run_of_block(key, value))
        .collect();
    if let Some(numbers) = numbers {
        let runs = Runs::decode(state?).ok()?;
        let is_listed = |number: &u64| runs.list.iter().any(|run| run.number == *number);
        let are_listed = !numbers.is_empty() && numbers.iter().all(is_listed);
        return are_listed.then_some(Part::Runs.key());
    }
    let looks_like_filter =
        |(key, value): &LeafRow| key.len() == 12 && value.len().is_multiple_of(64);
    let are_filters = rows.iter().all(looks_like_filter);
    (!are_filters).then_some(Part::Main.key())
}
