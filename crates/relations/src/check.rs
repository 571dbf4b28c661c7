//! Checks every rule of the format for a relation.

use crate::layout::StoredIndex;
use crate::parts::{ROWS, SCHEMA, index_key};
use crate::read::RelationReader;
use crate::row_ref::RowRef;
use crate::rows::primary_key;
use tidalite_pager::{PageRead, Result};

/// Callback that receives the description of each violation of a rule.
pub(crate) type OnProblem<'a> = dyn FnMut(String) + 'a;

impl<R: PageRead> RelationReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads all rows and indexes, with a descent for each row and index.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        self.check_parts(problem)?;
        let rows = self.rows_part()?;
        let mut indexes = Vec::new();
        for index in &self.layout.indexes {
            indexes.push((index, self.index_part(index.number)?));
        }
        let mut cursor = rows.cursor(&self.r)?;
        let mut there = cursor.first()?;
        while there {
            let key = cursor.key();
            let shown = key.escape_ascii();
            let value = cursor.value()?;
            let value = value.bytes()?;
            let row = RowRef::open(&self.layout, key, &value).ok();
            let Some(row) = row.and_then(|row| row.whole_cells()) else {
                problem(format!("row {shown}: its bytes are no row"));
                there = cursor.next()?;
                continue;
            };
            for (column, cell) in self.layout.schema.columns.iter().zip(&row) {
                if column.not_null && cell.is_null() {
                    problem(format!("row {shown}: column {} is null", column.name));
                }
            }
            if !self.layout.has_hidden_key() && self.layout.key_of(&row) != key {
                problem(format!("row {shown}: another key than its columns give"));
            }
            for (index, entries) in &indexes {
                let entry = [&self.layout.index_prefix(index, &row)[..], key].concat();
                if !entries.contains(&self.r, &entry)? {
                    let number = index.number;
                    problem(format!("row {shown}: no entry in index {number}"));
                }
            }
            there = cursor.next()?;
        }
        drop(cursor);
        if self.layout.has_hidden_key() {
            let mut cursor = rows.cursor(&self.r)?;
            let next = rows.sequence().to_be_bytes();
            if cursor.last()? && *cursor.key() >= next[..] {
                problem("a hidden key that is not taken yet".into());
            }
        }
        for ((described, index), (_, entries)) in self.layout.each_index().zip(&indexes) {
            let (found, expected) = (entries.len(), rows.len());
            if found != expected {
                let number = index.number;
                problem(format!("index {number}: {found} entries, {expected} rows"));
            }
            self.check_entries(index, described.unique, problem)?;
        }
        Ok(())
    }

    /// Checks that the root has no parts other than the schema, the rows and the indexes.
    fn check_parts(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut parts = vec![SCHEMA.to_vec(), ROWS.to_vec()];
        let numbers = self.layout.indexes.iter().map(|index| index.number);
        parts.extend(numbers.map(|number| index_key(number).to_vec()));
        let mut cursor = self.root.cursor(&self.r);
        let mut there = cursor.first()?;
        while there {
            let key = cursor.key();
            if !parts.iter().any(|part| part == key) || (key != SCHEMA) != cursor.is_nested() {
                problem(format!("part {}, which cannot be", key.escape_ascii()));
            }
            there = cursor.next()?;
        }
        Ok(())
    }

    fn check_entries(
        &self,
        index: &StoredIndex,
        is_unique: bool,
        problem: &mut OnProblem<'_>,
    ) -> Result<()> {
        let number = index.number;
        let mut pieces = self.layout.index_pieces(index);
        pieces.truncate(index.columns.len());
        let rows = self.rows_part()?;
        let mut cursor = self.index_part(number)?.cursor(&self.r)?;
        let mut there = cursor.first()?;
        let mut last: Option<Vec<u8>> = None;
        while there {
            let entry = cursor.key();
            let shown = entry.escape_ascii();
            if !cursor.value()?.is_empty() {
                problem(format!("index {number}: entry {shown} has a value"));
            }
            match primary_key(entry, &pieces) {
                Err(_) => problem(format!("index {number}: {shown} is no entry")),
                Ok(key) => {
                    if !rows.contains(&self.r, key)? {
                        problem(format!("index {number}: entry {shown} has no row"));
                    }
                    let columns = &entry[..entry.len() - key.len()];
                    let has_null = self.has_null(index, columns);
                    if is_unique && !has_null && last.as_deref() == Some(columns) {
                        problem(format!("index {number}: entry {shown} is not unique"));
                    }
                    last = Some(columns.to_vec());
                }
            }
            there = cursor.next()?;
        }
        Ok(())
    }

    /// Whether one of the columns at the beginning of an index entry is null.
    fn has_null(&self, index: &StoredIndex, mut columns: &[u8]) -> bool {
        for &at in &index.columns {
            let kind = self.layout.schema.columns[at].kind;
            match crate::key::len_nullable(kind, columns) {
                Some(len) if columns[0] != crate::key::NULL => columns = &columns[len..],
                _ => return true,
            }
        }
        false
    }
}
