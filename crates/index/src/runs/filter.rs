//! Filters: for most keys that a run does not have, its filter excludes them without reading the run.
//!
//! A run of at least `FILTERED_MIN` entries has a blocked Bloom filter: lines of 64 bytes, about 10 bits for each
//! entry. A key belongs to one line and sets `BITS` bits of it. The lines are stored in rows of the part `Filters`. The
//! key of a row is the number of the run, u64 big-endian, and the number of the row, u32 big-endian; each row except
//! the last has `ROW_LINES` lines.
//!
//! F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters", ACM Journal of Experimental
//! Algorithmics 14 (2009).

use crate::parts::{Part, change};
use crate::runs::state::{Run, Runs};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};
use xxhash_rust::xxh3::xxh3_64;

const LINE_BYTES: usize = 64;
/// Number of bits that a key sets in its line.
const BITS: u32 = 6;
const BITS_PER_ENTRY: u64 = 10;
/// Number of lines in a row: with the header of a large value they occupy 32 KiB.
const ROW_LINES: usize = if cfg!(test) { 3 } else { 511 };
/// Runs with fewer entries have no filter, because searching them is as fast.
const FILTERED_MIN: u64 = if cfg!(test) { 20 } else { 1024 };
/// Runs with more entries have no filter. Only a damaged list of runs contains larger numbers, because runs of
/// `RUN_BYTES_MAX` are not merged (`write.rs`).
const FILTERED_MAX: u64 = 1 << 27;
/// Number of lookups of a reader after which it reads the locations of all filters.
const LOOKUPS_BEFORE: u32 = 4;

/// The filter of a run that is being written.
#[derive(Default)]
pub(crate) struct FilterBuilder {
    lines: Vec<u8>,
}

/// The hash of a key: the upper half selects the line, the lower half the bits.
fn hash_of(key: &[u8]) -> u64 {
    xxh3_64(key)
}

fn line_of(hash: u64, lines: u64) -> usize {
    (((hash >> 32) * lines) >> 32) as usize
}

/// The positions of the bits that a key sets in its line.
fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    let (start, step) = (hash as u16, (hash >> 16) as u16 | 1);
    (0..BITS as u16).map(move |n| usize::from(start.wrapping_add(n.wrapping_mul(step))) % 512)
}

impl FilterBuilder {
    /// A filter for a run of at most `entries` entries.
    pub(crate) fn new(entries: u64) -> Self {
        let lines = match (FILTERED_MIN..=FILTERED_MAX).contains(&entries) {
            true => (entries * BITS_PER_ENTRY).div_ceil(8 * LINE_BYTES as u64) as usize,
            false => 0,
        };
        Self {
            lines: vec![0; lines * LINE_BYTES],
        }
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        let lines = self.lines.len() / LINE_BYTES;
        if lines > 0 {
            let hash = hash_of(key);
            let at = line_of(hash, lines as u64) * LINE_BYTES;
            for bit in bits_of(hash) {
                self.lines[at + bit / 8] |= 1 << (bit % 8);
            }
        }
    }

    /// Stores the filter of a run. Returns the number of its lines.
    pub(crate) fn write<W: PageWrite>(&self, root: &mut Tree, w: &mut W, run: u64) -> Result<u32> {
        if self.lines.is_empty() {
            return Ok(0);
        }
        let rows = self.lines.chunks(ROW_LINES * LINE_BYTES).enumerate();
        let rows: Vec<_> = rows
            .map(|(n, lines)| (row_key(run, n as u32), lines))
            .collect();
        change(root, w, Part::Filters, &mut |w, table| {
            table.extend(w, rows.iter().map(|(key, lines)| (key, lines)))
        })?;
        Ok((self.lines.len() / LINE_BYTES) as u32)
    }
}

fn row_key(run: u64, row: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&run.to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// Number of rows of a run's filter.
pub(crate) fn rows_of(run: &Run) -> u64 {
    (run.filter_lines as usize).div_ceil(ROW_LINES) as u64
}

/// Removes the filter of a run.
pub(crate) fn remove<W: PageWrite>(root: &mut Tree, w: &mut W, run: &Run) -> Result<()> {
    if run.filter_lines > 0 {
        let (from, to) = (row_key(run.number, 0), row_key(run.number + 1, 0));
        change(root, w, Part::Filters, &mut |w, table| {
            table.remove_range(w, &from, &to).map(drop)
        })?;
    }
    Ok(())
}

/// The locations of the rows of a run's filter, or the rows themselves if they are short.
#[derive(Clone, Debug)]
struct RunFilter {
    lines: u32,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    At(u64),
    Bytes(Vec<u8>),
}

/// The filters of all runs of a reader. Their locations are read after a few lookups.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    lookups: AtomicU32,
    runs: OnceLock<Vec<RunFilter>>,
}

impl Clone for Filters {
    fn clone(&self) -> Self {
        Self {
            lookups: AtomicU32::new(self.lookups.load(Ordering::Relaxed)),
            runs: self.runs.clone(),
        }
    }
}

impl Filters {
    /// Counts `lookups` lookups. Returns whether to use the filters.
    pub(crate) fn prepare<'r, R: PageRead>(
        &self,
        runs: &Runs,
        table: impl FnOnce() -> Result<TableReader<'r>>,
        r: &'r R,
        lookups: u32,
    ) -> Result<bool> {
        if self.runs.get().is_some() {
            return Ok(true);
        }
        let before = self.lookups.fetch_add(lookups, Ordering::Relaxed);
        if before.saturating_add(lookups) < LOOKUPS_BEFORE {
            return Ok(false);
        }
        let table = table()?;
        let found = runs.list.iter().map(|run| RunFilter::find(run, &table, r));
        let found = found.collect::<Result<Vec<_>>>()?;
        // Another thread may have set it first, with the same result.
        let _ = self.runs.set(found);
        Ok(true)
    }

    /// Whether the run at `index` of the list may have a key. Call it only after `prepare` has returned true.
    #[inline]
    pub(crate) fn may_have<R: PageRead>(&self, index: usize, key: &[u8], r: &R) -> Result<bool> {
        let filter = self.runs.get().and_then(|runs| runs.get(index));
        let Some(filter) = filter.filter(|filter| filter.lines > 0) else {
            return Ok(true);
        };
        let hash = hash_of(key);
        let line = line_of(hash, u64::from(filter.lines));
        let at = line % ROW_LINES * LINE_BYTES;
        match &filter.rows[line / ROW_LINES] {
            Row::At(addr) => Ok(has(&r.bytes(addr + at as u64, LINE_BYTES)?, hash)),
            Row::Bytes(bytes) => Ok(has(&bytes[at..at + LINE_BYTES], hash)),
        }
    }
}

#[inline]
fn has(line: &[u8], hash: u64) -> bool {
    bits_of(hash).all(|bit| (line[bit / 8] >> (bit % 8)) & 1 == 1)
}

impl RunFilter {
    fn find<'r, R: PageRead>(run: &Run, table: &TableReader<'r>, r: &'r R) -> Result<Self> {
        let mut rows = Vec::new();
        let mut left = run.filter_lines as usize;
        while left > 0 {
            let of_row = left.min(ROW_LINES);
            let value = table.get(r, &row_key(run.number, rows.len() as u32))?;
            let value = value.filter(|value| value.len() == (of_row * LINE_BYTES) as u64);
            let Some(value) = value else {
                let what = format!("filter of run {}", run.number);
                let found = format!("no row {} of {of_row} lines", rows.len());
                return Err(Corrupt::new(what, 0, found, "all lines").into());
            };
            rows.push(match value.verified_place()? {
                Some(addr) => Row::At(addr),
                None => Row::Bytes(value.to_vec()?),
            });
            left -= of_row;
        }
        Ok(Self {
            lines: run.filter_lines,
            rows,
        })
    }
}
