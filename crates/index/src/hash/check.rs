//! Checks the rules of the format of a hash table.

use crate::block::Block;
use crate::hash::entry::Action;
use crate::hash::options::History;
use crate::hash::read::HashReader;
use crate::hash::record;
use crate::hash::settle::{DEAD, PLAIN_MAX, duplicates_key, versions_key};
use crate::postings::{check, sets};
use crate::runs::cursor::BlockCursor;
use crate::runs::filter;
use crate::runs::lookup::in_table;
use crate::runs::state::Run;
use roaring::RoaringTreemap;
use tidalite_pager::{PageRead, Result};

/// Callback that receives a problem as text.
type OnProblem<'f> = dyn FnMut(String) + 'f;

/// Counts of the blocks of a run, or of the main table.
#[derive(Default)]
struct Found {
    rows: u64,
    bytes: u64,
    entries: u64,
    /// Entries that are in the main table already.
    merged: u64,
    keys: u64,
}

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
        let mut named = RoaringTreemap::new();
        let main = self.check_blocks(None, &mut named, problem)?;
        if main.bytes != self.state.main_bytes {
            let (bytes, noted) = (main.bytes, self.state.main_bytes);
            problem(format!(
                "main table: {bytes} bytes of blocks, {noted} are noted"
            ));
        }
        if main.keys != self.state.main_keys {
            let (keys, noted) = (main.keys, self.state.main_keys);
            problem(format!("main table: {keys} keys, {noted} are noted"));
        }
        let (mut rows, mut merged, mut filter_rows) = (0, 0, 0);
        for (index, run) in self.state.runs.list.iter().enumerate() {
            let found = self.check_blocks(Some((index, run)), &mut named, problem)?;
            if (found.bytes, found.entries) != (run.bytes, run.entries) {
                problem(format!(
                    "run {}: {} entries in blocks of {} bytes, {} in {} are noted",
                    run.number, found.entries, found.bytes, run.entries, run.bytes
                ));
            }
            rows += found.rows;
            merged += found.merged;
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
        if merged != self.state.runs.merged {
            let noted = self.state.runs.merged;
            problem(format!(
                "runs: {merged} entries are merged, {noted} are noted"
            ));
        }
        self.check_sets(&mut named, problem)?;
        self.check_records(&named, problem)
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

    /// Checks the blocks of a run, or of the main table. Adds the numbers of records in entries that count to `named`.
    fn check_blocks(
        &self,
        run: Option<(usize, &Run)>,
        named: &mut RoaringTreemap,
        problem: &mut OnProblem<'_>,
    ) -> Result<Found> {
        let (what, table, prefix) = match run {
            Some((_, run)) => (
                format!("run {}", run.number),
                self.runs()?,
                run.number.to_be_bytes().to_vec(),
            ),
            None => ("main table".to_owned(), self.main()?, Vec::new()),
        };
        let is_main = run.is_none();
        let mut rows = table.cursor(&self.r)?;
        let mut there = rows.seek_ge(&prefix)?;
        let mut found = Found::default();
        let mut last: Option<Vec<u8>> = None;
        while there && rows.key().starts_with(&prefix) {
            let row = &rows.key()[prefix.len()..];
            if last.as_deref().is_some_and(|last| last >= row) {
                problem(format!(
                    "{what}: a row at {} behind greater keys",
                    row.escape_ascii()
                ));
            }
            let value = rows.value()?.to_vec()?;
            let block = Block::parse(&value)?;
            found.rows += 1;
            found.bytes += value.len() as u64;
            found.entries += block.len() as u64;
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
                    found.keys += u64::from(self.options.duplicates);
                }
                found.keys += u64::from(!self.options.duplicates);
                last = Some(entry.key.to_vec());
                let fits = match action {
                    Action::Set(_) => !is_main || of_key <= PLAIN_MAX || !self.options.duplicates,
                    Action::InSets => is_main && self.options.duplicates && of_key == 1,
                    Action::Remove(_) => !is_main,
                    Action::RemoveOne(_) => !is_main && self.options.duplicates,
                };
                if !fits || is_main && of_key > 1 && !self.options.may_repeat() {
                    let key = entry.key.escape_ascii();
                    problem(format!("{what}: {key} has the entry {action:?}"));
                }
                match action {
                    _ if run.is_some_and(|(index, _)| !self.state.runs.has(index, entry.key)) => {
                        found.merged += 1;
                    }
                    Action::Set(number) | Action::Remove(number) | Action::RemoveOne(number) => {
                        self.check_number(&what, number, Some(entry.key), problem)?;
                        if !named.insert(number) {
                            problem(format!("{what}: record {number} has another entry, too"));
                        }
                    }
                    Action::InSets => {}
                }
            }
            if !block.ends_with(last.as_deref().unwrap_or_default()) {
                let row = row.escape_ascii();
                problem(format!("{what}: the header of the block at {row}"));
            }
            there = rows.next()?;
        }
        Ok(found)
    }

    /// Checks that a record exists, and that it has this key in the index.
    fn check_number(
        &self,
        what: &str,
        number: u64,
        index_key: Option<&[u8]>,
        problem: &mut OnProblem<'_>,
    ) -> Result<()> {
        let Some(record) = self.record(number)? else {
            problem(format!("{what} names record {number}, which is not there"));
            return Ok(());
        };
        let folded = self.options.folded(record.key());
        if let Some(key) = index_key.filter(|key| **key != *self.options.index_key(&folded)) {
            let key = key.escape_ascii();
            problem(format!("record {number} is in {what} under {key}"));
        }
        Ok(())
    }

    /// Members of the sets must be existing records, of the key of the set, in one set each and in no entry.
    fn check_sets(&self, named: &mut RoaringTreemap, problem: &mut OnProblem<'_>) -> Result<()> {
        check::check_rows(&self.sets()?, &self.r, &mut |_, _, _| Ok(()))?;
        let dead = sets::get(&self.sets()?, &self.r, DEAD)?;
        if dead.len() != self.state.dead {
            let (found, noted) = (dead.len(), self.state.dead);
            problem(format!("{found} records are dead, {noted} are noted"));
        }
        let mut more = sets::set_cursor(&self.sets()?, &self.r, &[0])?;
        while let Some(cursor) = &mut more {
            let key = cursor.key().to_vec();
            let mut members = RoaringTreemap::new();
            let has_next = cursor.add_to(&mut members)?;
            let index_key = match key.as_slice() {
                DEAD => None,
                [_, _, _, index_key @ ..] if duplicates_key(index_key) == key => {
                    if !self.has_sets(index_key)? {
                        let key = index_key.escape_ascii();
                        problem(format!("a set of records for {key} is not in the index"));
                    }
                    Some(index_key)
                }
                [_, _, _, index_key @ ..] if versions_key(index_key) == key => {
                    if self.options.history == History::None {
                        problem("older versions in a table without history".into());
                    }
                    Some(index_key)
                }
                _ => {
                    problem(format!("a set with the key {}", key.escape_ascii()));
                    None
                }
            };
            for number in &members {
                self.check_number("a set", number, index_key, problem)?;
                if !named.insert(number) {
                    problem(format!("record {number} has another set or an entry, too"));
                }
            }
            if !has_next {
                break;
            }
        }
        Ok(())
    }

    /// Every record must be in the index, an older version, a removal, or dead.
    fn check_records(&self, named: &RoaringTreemap, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut rows = self.records()?.cursor(&self.r)?;
        let mut there = rows.first()?;
        let mut unknown = 0;
        while there {
            let number = record::number_of(rows.key())?;
            record::decode(number, &rows.value()?.to_vec()?)?;
            unknown += u64::from(!named.contains(number));
            if number >= self.state.next_record {
                let next = self.state.next_record;
                problem(format!("record {number}, the next one is {next}"));
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
