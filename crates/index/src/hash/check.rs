//! Checks the rules of the format of a hash table.

use crate::block::Block;
use crate::hash::entry::Action;
use crate::hash::read::HashReader;
use crate::hash::record::{self, Kind};
use crate::hash::settle::{DEAD, PLAIN_MAX};
use crate::postings::{check, sets};
use crate::runs::cursor::BlockCursor;
use crate::runs::filter;
use crate::runs::lookup::in_table;
use crate::runs::state::Run;
use roaring::RoaringTreemap;
use tidalite_kv::TableReader;
use tidalite_pager::{PageRead, Result};

/// Callback that receives a problem as text.
type OnProblem<'f> = dyn FnMut(String) + 'f;

impl<R: PageRead> HashReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, an entry that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole table; a few bits of memory for each record.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let (keys, bytes) = self.check_blocks("main table", &self.main()?, b"", true, problem)?;
        if bytes != self.state.main_bytes {
            let counted = self.state.main_bytes;
            problem(format!(
                "main table: {bytes} bytes of blocks, {counted} are noted"
            ));
        }
        if keys != self.state.main_keys {
            let counted = self.state.main_keys;
            problem(format!("main table: {keys} keys, {counted} are noted"));
        }
        let mut rows = 0;
        let mut filter_rows = 0;
        for (index, run) in self.state.runs.list.iter().enumerate() {
            let what = format!("run {}", run.number);
            let prefix = run.number.to_be_bytes();
            let (_, bytes) = self.check_blocks(&what, &self.runs()?, &prefix, false, problem)?;
            if bytes != run.bytes {
                problem(format!(
                    "{what}: {bytes} bytes of blocks, {} are noted",
                    run.bytes
                ));
            }
            rows += self.rows_of_run(run.number)?;
            filter_rows += filter::rows_of(run);
            self.check_filter(index, run, problem)?;
        }
        if rows != self.runs()?.len() {
            let all = self.runs()?.len();
            problem(format!("runs: {rows} blocks of listed runs, {all} in all"));
        }
        if filter_rows != self.filter_table()?.len() {
            let all = self.filter_table()?.len();
            problem(format!(
                "filters: {filter_rows} rows of listed runs, {all} in all"
            ));
        }
        self.check_records(problem)
    }

    /// Every key of a run must be in its filter.
    fn check_filter(&self, index: usize, run: &Run, problem: &mut OnProblem<'_>) -> Result<()> {
        self.prepare_filters(u32::MAX)?;
        let mut entries = BlockCursor::of_run(&self.runs()?, &self.r, run.number, b"")?;
        let mut missing = 0;
        while !entries.is_at_end() {
            let key = entries.entry()?.key;
            missing += u64::from(!self.filters.may_have(index, key, &self.r)?);
            entries.step()?;
        }
        if missing > 0 {
            problem(format!(
                "run {}: {missing} keys are not in its filter",
                run.number
            ));
        }
        Ok(())
    }

    fn rows_of_run(&self, run: u64) -> Result<u64> {
        let end = self.runs()?.rank(&self.r, &(run + 1).to_be_bytes())?;
        Ok(end - self.runs()?.rank(&self.r, &run.to_be_bytes())?)
    }

    /// Checks the blocks whose rows begin with `prefix`. Returns the number of keys and the bytes of the blocks.
    fn check_blocks<'s>(
        &'s self,
        what: &str,
        table: &TableReader<'s>,
        prefix: &[u8],
        is_main: bool,
        problem: &mut OnProblem<'_>,
    ) -> Result<(u64, u64)> {
        let mut rows = table.cursor(&self.r)?;
        let mut there = rows.seek_ge(prefix)?;
        let (mut keys, mut bytes) = (0, 0);
        let mut last: Option<Vec<u8>> = None;
        while there && rows.key().starts_with(prefix) {
            let row = &rows.key()[prefix.len()..];
            if last.as_deref().is_some_and(|last| last >= row) {
                problem(format!(
                    "{what}: a row at {} behind greater keys",
                    row.escape_ascii()
                ));
            }
            let value = rows.value()?.to_vec()?;
            bytes += value.len() as u64;
            let block = Block::parse(&value)?;
            let mut of_key = 0;
            for index in 0..block.len() {
                let entry = block.entry(index)?;
                let action = Action::decode(entry.payload)?;
                if entry.key < row || last.as_deref().is_some_and(|last| last > entry.key) {
                    problem(format!(
                        "{what}: {} is out of order",
                        entry.key.escape_ascii()
                    ));
                }
                if index > 0 && last.as_deref() == Some(entry.key) {
                    of_key += 1;
                } else {
                    of_key = 1;
                    keys += u64::from(self.options.duplicates);
                }
                keys += u64::from(!self.options.duplicates);
                last = Some(entry.key.to_vec());
                let fits = match action {
                    Action::Set(_) => !is_main || of_key <= PLAIN_MAX || !self.options.duplicates,
                    Action::InSets => is_main && self.options.duplicates,
                    Action::Remove(_) => !is_main,
                    Action::RemoveOne(_) => !is_main && self.options.duplicates,
                };
                if !fits || is_main && of_key > 1 && !self.options.may_repeat() {
                    let key = entry.key.escape_ascii();
                    problem(format!("{what}: {key} has the entry {action:?}"));
                }
            }
            there = rows.next()?;
        }
        Ok((keys, bytes))
    }

    /// Every record must be in the index, an older version, a removal, or dead; and the index must name existing records
    /// of its keys only.
    fn check_records(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut known = RoaringTreemap::new();
        let mut walk = self.walk(b"")?;
        while walk.step()? {
            for number in walk.records() {
                match self.record(number)? {
                    None => problem(format!(
                        "the index names record {number}, which is not there"
                    )),
                    Some(record) => {
                        let folded = self.options.folded(record.key());
                        if *self.options.index_key(&folded) != *walk.key() {
                            let key = walk.key().escape_ascii();
                            problem(format!("record {number} is in the index under {key}"));
                        }
                    }
                }
            }
            known |= walk.records();
        }
        let dead = sets::get(&self.sets()?, &self.r, DEAD)?;
        if dead.len() != self.state.dead {
            let (found, noted) = (dead.len(), self.state.dead);
            problem(format!("{found} records are dead, {noted} are noted"));
        }
        if known.intersection_len(&dead) > 0 {
            problem("a record of the index is among the dead ones".into());
        }
        known |= dead;
        let mut more = sets::set_cursor(&self.sets()?, &self.r, &[0])?;
        let mut wrong = Vec::new();
        while let Some(cursor) = &mut more {
            let key = cursor.key().to_vec();
            let mut members = RoaringTreemap::new();
            let has_next = cursor.add_to(&mut members)?;
            if key.first() == Some(&1) && !self.has_sets(&key[3.min(key.len())..])? {
                wrong.push(format!(
                    "a set of records for {} is not in the index",
                    key.escape_ascii()
                ));
            }
            known |= members;
            if !has_next {
                break;
            }
        }
        wrong.into_iter().for_each(&mut *problem);
        check::check_rows(&self.sets()?, &self.r, &mut |_, _, _| Ok(()))?;
        let mut rows = self.records()?.cursor(&self.r)?;
        let mut there = rows.first()?;
        let mut unknown = 0;
        while there {
            let number = record::number_of(rows.key())?;
            let value = rows.value()?.to_vec()?;
            let parts = record::decode(number, &value)?;
            // Replaced records and removals may still be entries of a run.
            let may_wait = parts.kind != Kind::Set || !self.state.runs.is_empty();
            unknown += u64::from(!known.contains(number) && !may_wait);
            if number >= self.state.next_record {
                problem(format!(
                    "record {number}, the next one is {}",
                    self.state.next_record
                ));
            }
            there = rows.next()?;
        }
        if unknown > 0 {
            problem(format!("{unknown} records are not in the index"));
        }
        Ok(())
    }

    fn has_sets(&self, index_key: &[u8]) -> Result<bool> {
        let mut found = false;
        in_table(&self.main()?, &self.r, index_key, &mut |payload| {
            found |= Action::decode(payload)? == Action::InSets;
            Ok(())
        })?;
        Ok(found)
    }
}
