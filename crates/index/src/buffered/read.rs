//! Lookups in a buffered table.

use crate::buffered::value_of;
use crate::parts::{Part, part, row};
use crate::runs::filter::Filters;
use crate::runs::lookup::in_run;
use crate::runs::merge::{Group, Merge};
use crate::runs::state::Runs;
use tidalite_kv::{TableReader, Tree, Value};
use tidalite_pager::{PageRead, Result};

/// A buffered table in a snapshot.
#[derive(Clone, Debug)]
pub struct BufferedReader<R> {
    pub(crate) r: R,
    pub(crate) runs: Runs,
    pub(crate) root: Tree,
    /// The parts that have pages of their own; a small part is stored in a row of the root.
    main: Option<Tree>,
    blocks: Option<Tree>,
    pub(crate) filters: Filters,
}

/// Statistics of a buffered table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferedStat {
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of runs that are not yet merged into the rows.
    pub runs: u64,
    /// Number of entries in these runs.
    pub run_entries: u64,
    /// Bytes of the blocks of these runs.
    pub run_bytes: u64,
}

/// A value that was found.
#[derive(Debug)]
pub enum FoundValue<'r> {
    /// The value in a row.
    Row(Value<'r>),
    /// The value in a run.
    Run(Vec<u8>),
}

impl<R: PageRead> BufferedReader<R> {
    /// Opens a buffered table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        let runs = Runs::decode(&row(root, &r, Part::State)?)?;
        Self::with(root, r, runs)
    }

    pub(crate) fn with(root: &Tree, r: R, runs: Runs) -> Result<Self> {
        let tree = |kind| part(root, &r, kind).map(|part| part.tree().copied());
        Ok(Self {
            runs,
            root: *root,
            main: tree(Part::Main)?,
            blocks: tree(Part::Runs)?,
            filters: Filters::default(),
            r,
        })
    }

    pub(crate) fn main(&self) -> Result<TableReader<'_>> {
        match &self.main {
            Some(tree) => Ok(TableReader::of(*tree)),
            None => part(&self.root, &self.r, Part::Main),
        }
    }

    pub(crate) fn blocks(&self) -> Result<TableReader<'_>> {
        match &self.blocks {
            Some(tree) => Ok(TableReader::of(*tree)),
            None => part(&self.root, &self.r, Part::Runs),
        }
    }

    /// Counts lookups; returns whether to use the filters of the runs.
    pub(crate) fn prepare_filters(&self, lookups: u32) -> Result<bool> {
        let table = || self.filter_table();
        self.filters.prepare(&self.runs, table, &self.r, lookups)
    }

    pub(crate) fn filter_table(&self) -> Result<TableReader<'_>> {
        part(&self.root, &self.r, Part::Filters)
    }

    /// The value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A descent of the rows, and one for each run.
    pub fn get(&self, key: &[u8]) -> Result<Option<FoundValue<'_>>> {
        if !self.runs.is_empty() {
            let blocks = self.blocks()?;
            let is_filtered = self.prepare_filters(1)?;
            for (index, run) in self.runs.with_key(key).rev() {
                if is_filtered && !self.filters.may_have(index, key, &self.r)? {
                    continue;
                }
                let mut found = None;
                in_run(&blocks, &self.r, run.number, key, &mut |payload| {
                    found = Some(value_of(payload).map(<[u8]>::to_vec));
                    Ok(())
                })?;
                if let Some(found) = found {
                    return Ok(found.map(FoundValue::Run));
                }
            }
        }
        if let Some(tree) = &self.main {
            return Ok(tree.get(&self.r, key)?.map(FoundValue::Row));
        }
        Ok(self.main()?.get(&self.r, key)?.map(FoundValue::Row))
    }

    /// Statistics of the table.
    ///
    /// # Errors
    /// A damaged page.
    pub fn stat(&self) -> Result<BufferedStat> {
        Ok(BufferedStat {
            rows: self.main()?.len(),
            runs: self.runs.list.len() as u64,
            run_entries: self.runs.entries(),
            run_bytes: self.runs.bytes(),
        })
    }

    /// Number of keys. Without runs this reads nothing; otherwise it reads the whole table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn count(&self) -> Result<u64> {
        let main = self.main()?;
        if self.runs.is_empty() {
            return Ok(main.len());
        }
        let mut count = main.len();
        let blocks = self.blocks()?;
        let all = 0..self.runs.list.len();
        let mut merge = Merge::of_runs(&self.runs, all, &blocks, &self.r, b"")?;
        let mut group = Group::default();
        while merge.next(&mut group)? {
            let newest = group.payloads().next_back();
            let is_put = newest.is_some_and(|newest| value_of(newest).is_some());
            match (is_put, main.contains(&self.r, &group.key)?) {
                (true, false) => count += 1,
                (false, true) => count = count.saturating_sub(1),
                _ => {}
            }
        }
        Ok(count)
    }
}
