//! Determines whether the rows of an unreferenced leaf are rows of a relation.

use crate::parts::ROWS;

/// The key, in the root table, of the nested table to which the rows of a leaf belong, if they are rows of a relation;
/// `None` for entries of an index, which have no values. A value is `None` if it is lost, or large; only rows have
/// large values.
#[must_use]
pub fn part_of_relation_rows(rows: &[(Vec<u8>, Option<Vec<u8>>)]) -> Option<[u8; 1]> {
    let has_value = |(_, value): &(Vec<u8>, Option<Vec<u8>>)| {
        value.as_ref().is_none_or(|value| !value.is_empty())
    };
    (!rows.is_empty() && rows.iter().all(has_value)).then_some(ROWS)
}
