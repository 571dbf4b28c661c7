//! Checks the rules of the format for a hash table.

use crate::hash::entry::Action;
use crate::hash::options::History;
use crate::hash::read::HashReader;
use crate::hash::record;
use crate::hash::settle::{DEAD, PLAIN_MAX, duplicates_key, versions_key};
use crate::parts::Part;
use crate::postings::{check, sets};
use crate::runs::check::{OnProblem, Placed, RunParts, check_root, check_table};
use crate::runs::lookup::in_table;
use roaring::RoaringTreemap;
use tidalite_pager::{PageRead, Result};

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
        let values = [Part::Options, Part::State];
        let tables = [
            Part::Records,
            Part::Main,
            Part::Runs,
            Part::Sets,
            Part::Filters,
        ];
        check_root(&self.root, &self.r, (&values, &tables), problem)?;
        let mut named = RoaringTreemap::new();
        let main = check_table(
            "main table",
            &self.main()?,
            &self.r,
            &mut |placed, problem| self.check_entry(placed, true, &mut named, problem),
            problem,
        )?;
        if main.bytes != self.state.main_bytes {
            let (bytes, noted) = (main.bytes, self.state.main_bytes);
            problem(format!(
                "main table: {bytes} bytes of blocks, {noted} are noted"
            ));
        }
        let keys = match self.options.duplicates {
            true => main.keys,
            false => main.entries,
        };
        if keys != self.state.main_keys {
            let noted = self.state.main_keys;
            problem(format!("main table: {keys} keys, {noted} are noted"));
        }
        self.prepare_filters(u32::MAX)?;
        let parts = RunParts {
            runs: &self.state.runs,
            blocks: self.runs()?,
            filters: &self.filters,
            filter_table: self.filter_table()?,
            r: &self.r,
        };
        parts.check(
            &mut |placed, problem| self.check_entry(placed, false, &mut named, problem),
            problem,
        )?;
        self.check_sets(&mut named, problem)?;
        self.check_records(&named, problem)
    }

    /// Checks an entry of a run, or of the main table. Adds the number of its record to `named` if the entry counts.
    fn check_entry(
        &self,
        placed: &Placed<'_>,
        is_main: bool,
        named: &mut RoaringTreemap,
        problem: &mut OnProblem<'_>,
    ) -> Result<()> {
        let Placed {
            what,
            entry,
            of_key,
            ..
        } = placed;
        let action = Action::decode(entry.payload)?;
        let fits = match action {
            Action::Set(_) => !is_main || *of_key <= PLAIN_MAX || !self.options.duplicates,
            Action::InSets => is_main && self.options.duplicates && *of_key == 1,
            Action::Remove(_) => !is_main,
            Action::RemoveOne(_) => !is_main && self.options.duplicates,
        };
        if !fits || is_main && *of_key > 1 && !self.options.may_repeat() {
            let key = entry.key.escape_ascii();
            problem(format!("{what}: {key} has the entry {action:?}"));
        }
        match action {
            _ if placed.is_merged => {}
            Action::Set(number) | Action::Remove(number) | Action::RemoveOne(number) => {
                self.check_number(what, number, Some(entry.key), problem)?;
                if !named.insert(number) {
                    problem(format!("{what}: record {number} has another entry, too"));
                }
            }
            Action::InSets => {}
        }
        Ok(())
    }

    /// Checks that a record exists, and that it has this key of the index.
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

    /// Checks that each member of a set is an existing record with the key of the set, is in only one set, and is in no
    /// entry.
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
                    self.check_versions(index_key, &members, problem)?;
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

    /// Checks that no key has more older versions than the history keeps; a removed key may have one more. Keys with
    /// the same hash share a set, so only sets of whole keys are checked.
    fn check_versions(
        &self,
        index_key: &[u8],
        members: &RoaringTreemap,
        problem: &mut OnProblem<'_>,
    ) -> Result<()> {
        let most = match self.options.history {
            History::None => 0,
            History::Last(most) => u64::from(most),
            History::All => return Ok(()),
        };
        let Some(newest) = members
            .max()
            .filter(|_| !self.options.is_hashed() || most == 0)
        else {
            return Ok(());
        };
        let is_removal = most > 0 && self.expect(newest)?.value().is_none();
        let found = members.len();
        if found > most + u64::from(is_removal) {
            let key = index_key.escape_ascii();
            problem(format!("{found} older versions of {key}, {most} are kept"));
        }
        Ok(())
    }

    /// Checks that every record is in the index, an older version, a removal, or dead.
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
