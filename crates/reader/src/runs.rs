//! Runs: sorted entries of hash tables and buffered tables that are not in the main table yet.

use crate::bytes::Fields;
use crate::error::{Error, Result};
use crate::table::{Rows, Value};
use xxhash_rust::xxh3::xxh3_64;

const VARYING: usize = 65_535;
const LINE_BYTES: usize = 64;
const ROW_LINES: usize = 511;

/// Keys and values of rows.
pub(crate) type PlainRows<'r> = [(&'r [u8], &'r [u8])];

/// An entry: its key and its payload.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

pub(crate) fn broken(reason: &'static str) -> Error {
    Error::damaged(0, reason)
}

pub(crate) fn require(rule: bool, reason: &'static str) -> Result<()> {
    if rule { Ok(()) } else { Err(broken(reason)) }
}

struct Run {
    number: u64,
    entries: u64,
    bytes: u64,
    filter_lines: usize,
}

/// The list of runs.
pub(crate) struct Runs {
    list: Vec<Run>,
    merging: usize,
    /// Number of entries of merging runs that are below the watermark.
    pub(crate) merged: u64,
    watermark: Vec<u8>,
}

impl Runs {
    /// Reads the list, which consists of all remaining fields.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let next_run = fields.u64()?;
        let merged = fields.u64()?;
        let count = fields.u16()?;
        let merging = fields.u16()?;
        let mut list: Vec<Run> = Vec::new();
        for _ in 0..count {
            let run = Run {
                number: fields.u64()?,
                entries: fields.u64()?,
                bytes: fields.u64()?,
                filter_lines: fields.u32()?,
            };
            let ascends = list.last().is_none_or(|last| last.number < run.number);
            require(ascends && run.number < next_run, "numbers of runs")?;
            list.push(run);
        }
        require(merging <= count, "merging runs")?;
        let watermark = fields.rest().to_vec();
        require(merging > 0 || watermark.is_empty(), "a watermark")?;
        Ok(Self {
            list,
            merging,
            merged,
            watermark,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether an entry of the run at `place` has been merged, so that it does not count.
    pub(crate) fn is_merged(&self, place: usize, key: &[u8]) -> bool {
        place < self.merging && key < &self.watermark
    }

    /// The entries of each run, from the oldest run to the newest, from the rows of the blocks and of the filters.
    pub(crate) fn entries(
        &self,
        rows: &PlainRows<'_>,
        filters: &PlainRows<'_>,
    ) -> Result<Vec<Vec<Pair>>> {
        let (mut all, mut used, mut filter_rows) = (Vec::new(), 0, 0);
        for run in &self.list {
            let prefix = run.number.to_be_bytes();
            let mut bytes = 0;
            let mut entries: Vec<Pair> = Vec::new();
            for (row, value) in rows.iter().filter(|(row, _)| row.starts_with(&prefix)) {
                used += 1;
                bytes += value.len() as u64;
                let block = block(value)?;
                let first = block.first().map(|(key, _)| key.as_slice());
                require(first == Some(&row[8..]), "the key of a row of a run")?;
                let last = entries.last().map(|(key, _)| key.as_slice());
                require(last < first, "the order of blocks of a run")?;
                entries.extend(block);
            }
            require(entries.len() as u64 == run.entries, "the entries of a run")?;
            require(bytes == run.bytes, "the bytes of a run")?;
            let own = filters.iter().filter(|(row, _)| row.starts_with(&prefix));
            let own: Vec<_> = own.collect();
            filter_rows += own.len();
            run.check_filter(&own, &entries)?;
            all.push(entries);
        }
        require(used == rows.len(), "a block of no run")?;
        require(filter_rows == filters.len(), "a filter of no run")?;
        Ok(all)
    }
}

impl Run {
    /// The rows of the filter must have its lines, and every key must have its bits set.
    fn check_filter(&self, rows: &[&(&[u8], &[u8])], entries: &[Pair]) -> Result<()> {
        let mut lines = Vec::new();
        for (number, (key, value)) in rows.iter().enumerate() {
            let expected = (number as u32).to_be_bytes();
            require(key[8..] == expected, "the rows of a filter")?;
            let whole = value.len() == ROW_LINES * LINE_BYTES || number + 1 == rows.len();
            require(whole, "the lines of a row of a filter")?;
            lines.extend_from_slice(value);
        }
        let is_whole = lines.len() == self.filter_lines * LINE_BYTES;
        require(is_whole, "the lines of a filter")?;
        if lines.is_empty() {
            return Ok(());
        }
        for (key, _) in entries {
            let hash = xxh3_64(key);
            let line = (((hash >> 32) * self.filter_lines as u64) >> 32) as usize * LINE_BYTES;
            let (start, step) = (hash & 0xffff, hash >> 16 & 0xffff | 1);
            for number in 0..6 {
                let bit = ((start + number * step) % 65_536 % 512) as usize;
                let is_set = lines[line + bit / 8] >> (bit % 8) & 1 == 1;
                require(is_set, "a key of a filter")?;
            }
        }
        Ok(())
    }
}

/// The entries of a block.
pub(crate) fn block(bytes: &[u8]) -> Result<Vec<Pair>> {
    let mut fields = Fields::new(bytes, 0);
    let (key_bytes, payload_bytes) = (fields.u16()?, fields.u16()?);
    let count = fields.u32()?;
    let head = fields.u64()?;
    let mut entries = Vec::new();
    if key_bytes == VARYING {
        require(payload_bytes == VARYING, "the sizes in a block")?;
        let mut ends = Vec::new();
        for _ in 0..count {
            ends.push(fields.u32()?);
        }
        let first = fields.position();
        for end in ends {
            let length = fields.u16()?;
            let key = fields.take(length)?.to_vec();
            let payload = (first + end).checked_sub(fields.position());
            let payload = payload.ok_or_else(|| broken("the end of an entry"))?;
            entries.push((key, fields.take(payload)?.to_vec()));
        }
    } else {
        for _ in 0..count {
            let key = fields.take(key_bytes)?.to_vec();
            entries.push((key, fields.take(payload_bytes)?.to_vec()));
        }
    }
    require(fields.left() == 0, "a block goes on")?;
    let Some((last, _)) = entries.last() else {
        return Err(broken("a block without entries"));
    };
    let mut first_bytes = last.clone();
    first_bytes.resize(8, 0);
    let first_bytes = first_bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    require(first_bytes == head, "the head of the last key")?;
    let ascend = entries.is_sorted_by(|a, b| a.0 <= b.0);
    require(ascend, "the order of entries")?;
    Ok(entries)
}

/// The rows as pairs of bytes; an error if a value is not plain bytes.
pub(crate) fn plain(rows: &Rows) -> Result<Vec<(&[u8], &[u8])>> {
    let rows = rows.rows.iter().map(|(key, value)| match value {
        Value::Bytes(bytes) => Ok((key.as_slice(), bytes.as_slice())),
        _ => Err(broken("rows with a table too many")),
    });
    rows.collect()
}

/// The rows of a buffered table, with the values that count: rows and runs merged.
///
/// # Errors
/// If the table breaks a rule of the format.
pub(crate) fn buffered(root: &Rows) -> Result<Rows> {
    let (mut state, empty) = (None, Rows::default());
    let (mut main, mut runs, mut filters) = (Vec::new(), plain(&empty)?, plain(&empty)?);
    for (key, value) in &root.rows {
        match (key.as_slice(), value) {
            ([1], Value::Bytes(bytes)) => state = Some(bytes),
            ([3], Value::Table(rows)) => main = rows.rows.clone(),
            ([4], Value::Table(rows)) => runs = plain(rows)?,
            ([6], Value::Table(rows)) => filters = plain(rows)?,
            _ => return Err(broken("a row of a buffered table")),
        }
    }
    let state = state.ok_or_else(|| broken("a buffered table without a state"))?;
    let list = Runs::read(&mut Fields::new(state, 0))?;
    let mut all: std::collections::BTreeMap<Vec<u8>, Value> = main.into_iter().collect();
    for entries in list.entries(&runs, &filters)? {
        for (key, payload) in entries {
            match payload.split_first() {
                Some((1, value)) => {
                    all.insert(key, Value::Bytes(value.to_vec()));
                }
                Some((0, [])) => {
                    all.remove(&key);
                }
                _ => return Err(broken("an entry of a buffered table")),
            }
        }
    }
    Ok(Rows {
        rows: all.into_iter().collect(),
        ..Rows::default()
    })
}
