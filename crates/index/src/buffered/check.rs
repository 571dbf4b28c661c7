//! Checks the rules of the format of a buffered table.

use crate::block::Block;
use crate::buffered::read::BufferedReader;
use crate::buffered::{REMOVE, value_of};
use crate::runs::filter;
use tidalite_pager::{PageRead, Result};

impl<R: PageRead> BufferedReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, an entry that cannot be decoded.
    pub fn check(&self, problem: &mut dyn FnMut(String)) -> Result<()> {
        let blocks = self.blocks()?;
        let mut listed = 0;
        self.prepare_filters(u32::MAX)?;
        let mut filter_rows = 0;
        for (index, run) in self.runs.list.iter().enumerate() {
            filter_rows += filter::rows_of(run);
            let what = format!("run {}", run.number);
            let prefix = run.number.to_be_bytes();
            let mut rows = blocks.cursor(&self.r)?;
            let mut there = rows.seek_ge(&prefix)?;
            let (mut entries, mut bytes) = (0, 0);
            let mut last: Option<Vec<u8>> = None;
            while there && rows.key().starts_with(&prefix) {
                let value = rows.value()?.to_vec()?;
                let block = Block::parse(&value)?;
                for place in 0..block.len() {
                    let entry = block.entry(place)?;
                    let is_first = place == 0;
                    if !self.filters.may_have(index, entry.key, &self.r)? {
                        let key = entry.key.escape_ascii();
                        problem(format!("{what}: {key} is not in its filter"));
                    }
                    let in_order = last.as_deref().is_none_or(|last| last < entry.key);
                    if !in_order || is_first && entry.key != &rows.key()[prefix.len()..] {
                        problem(format!(
                            "{what}: {} is out of order",
                            entry.key.escape_ascii()
                        ));
                    }
                    if value_of(entry.payload).is_none() && entry.payload != [REMOVE] {
                        problem(format!(
                            "{what}: {} has no action",
                            entry.key.escape_ascii()
                        ));
                    }
                    last = Some(entry.key.to_vec());
                }
                entries += block.len() as u64;
                bytes += value.len() as u64;
                listed += 1;
                there = rows.next()?;
            }
            if (entries, bytes) != (run.entries, run.bytes) {
                let noted = format!("{} entries in {} bytes are noted", run.entries, run.bytes);
                problem(format!(
                    "{what}: {entries} entries in {bytes} bytes, {noted}"
                ));
            }
        }
        let filters = self.filter_table()?.len();
        if filter_rows != filters {
            problem(format!(
                "filters: {filter_rows} rows of listed runs, {filters} in all"
            ));
        }
        if listed != blocks.len() {
            problem(format!(
                "runs: {listed} blocks of listed runs, {} in all",
                blocks.len()
            ));
        }
        Ok(())
    }
}
