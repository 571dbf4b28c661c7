//! The rows of the root table of topics, queues, objects and containers (sections 9.11 to 9.14 of docs/format.md): the
//! options, the state, and nested tables.

use crate::bytes::Fields;
use crate::error::Result;
use crate::runs::{PlainRows, broken, plain, require};
use crate::table::{Rows, Value};
use std::collections::BTreeMap;

/// The expected content of rows that are derived from other rows.
pub(crate) type Expected = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key and value of a row.
type Row<'r> = (&'r [u8], &'r [u8]);

/// The parts of a root table.
pub(crate) struct Parts<'r> {
    options: &'r [u8],
    state: &'r [u8],
    tables: BTreeMap<u8, Vec<Row<'r>>>,
}

impl<'r> Parts<'r> {
    /// Splits the rows of a root table, whose keys are 0 to `last`.
    pub(crate) fn new(root: &'r Rows, last: u8) -> Result<Self> {
        let (mut options, mut state, mut tables) = (None, None, BTreeMap::new());
        for (key, value) in &root.rows {
            match (key.as_slice(), value) {
                ([0], Value::Bytes(bytes)) => options = Some(bytes.as_slice()),
                ([1], Value::Bytes(bytes)) => state = Some(bytes.as_slice()),
                ([part], Value::Table(rows)) if (2..=last).contains(part) => {
                    tables.insert(*part, plain(rows)?);
                }
                _ => return Err(broken("a row of a root table")),
            }
        }
        Ok(Self {
            options: options.ok_or_else(|| broken("a root table without options"))?,
            state: state.ok_or_else(|| broken("a root table without a state"))?,
            tables,
        })
    }

    pub(crate) fn options(&self) -> Fields<'r> {
        Fields::new(self.options, 0)
    }

    pub(crate) fn state(&self) -> Fields<'r> {
        Fields::new(self.state, 0)
    }

    /// The rows of a nested table; none if it is missing.
    pub(crate) fn rows(&self, part: u8) -> &PlainRows<'r> {
        self.tables.get(&part).map_or(&[], Vec::as_slice)
    }

    /// Checks that a nested table has exactly the expected rows.
    pub(crate) fn has(&self, part: u8, expected: &Expected, reason: &'static str) -> Result<()> {
        let expected = expected.iter();
        let expected = expected.map(|(key, value)| (key.as_slice(), value.as_slice()));
        require(self.rows(part).iter().copied().eq(expected), reason)
    }
}

/// Checks that all fields were read.
pub(crate) fn end(fields: &Fields<'_>, reason: &'static str) -> Result<()> {
    fields.require(fields.left() == 0, reason)
}

/// Concatenates the pieces of a key.
pub(crate) fn key(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}
