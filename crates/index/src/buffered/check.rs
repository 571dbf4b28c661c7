//! Checks the rules of the format of a buffered table.

use crate::buffered::read::BufferedReader;
use crate::buffered::{REMOVE, value_of};
use crate::parts::Part;
use crate::runs::check::{OnProblem, RunParts, check_root};
use crate::runs::merge::{Group, Merge};
use crate::runs::state::Runs;
use tidalite_pager::{PageRead, Result};

impl<R: PageRead> BufferedReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, an entry that cannot be decoded.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let tables = [Part::Main, Part::Runs, Part::Filters];
        check_root(&self.root, &self.r, (&[Part::State], &tables), problem)?;
        self.prepare_filters(u32::MAX)?;
        let parts = RunParts {
            runs: &self.runs,
            blocks: self.blocks()?,
            filters: &self.filters,
            filter_table: self.filter_table()?,
            r: &self.r,
        };
        parts.check(
            &mut |placed, problem| {
                let (what, entry) = (placed.what, placed.entry);
                let has_action = value_of(entry.payload).is_some() || entry.payload == [REMOVE];
                if placed.of_key > 1 || !has_action {
                    let key = entry.key.escape_ascii();
                    problem(format!("{what}: {key} has an entry that cannot be"));
                }
                Ok(())
            },
            problem,
        )?;
        self.check_merged(problem)
    }

    /// The entries of merging runs below the watermark must agree with the rows.
    fn check_merged(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let all = Runs {
            list: self.runs.list[..self.runs.merging].to_vec(),
            ..Runs::default()
        };
        let (blocks, main) = (self.blocks()?, self.main()?);
        let mut merge = Merge::of_runs(&all, 0..all.list.len(), &blocks, &self.r, b"")?;
        let mut group = Group::default();
        while merge.next(&mut group)? && group.key < self.runs.watermark {
            let row = main.get(&self.r, &group.key)?;
            let row = row.map(|row| row.to_vec()).transpose()?;
            if row.as_deref() != group.payloads().next_back().and_then(value_of) {
                let key = group.key.escape_ascii();
                problem(format!("the row of {key} is not what was merged into it"));
            }
        }
        Ok(())
    }
}
