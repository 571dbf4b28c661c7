//! Rebuilding relations from the rows that a salvage has found.

use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_relations::recover_relation;

impl WriteTxn {
    /// Removes rows that cannot be kept, and rebuilds all indexes of a relation. If the schema is lost, the table
    /// becomes a table of bytes with the same content. Passes a description of each loss to `problem`.
    pub(crate) fn recover_relation(
        &mut self,
        name: &str,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let Some(index) = self.open_table(name, Some(false))? else {
            return Ok(());
        };
        let Some(recovered) = self.change_table(index, recover_relation)? else {
            self.open_with(name, false, None)?;
            problem(
                "the schema of the relation is lost: its rows are in a table of bytes".to_owned(),
            );
            return Ok(());
        };
        self.note_relations();
        for (count, lost) in [
            (recovered.removed, "rows could not be decoded"),
            (
                recovered.conflicts,
                "rows conflicted with others in a unique index",
            ),
        ] {
            if count > 0 {
                problem(format!("{count} {lost}"));
            }
        }
        Ok(())
    }
}
