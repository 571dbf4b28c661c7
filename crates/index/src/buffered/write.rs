//! Storing and removing keys of a buffered table, and merging its runs into its rows.

use crate::block::BlockBuilder;
use crate::buffered::read::BufferedReader;
use crate::buffered::{REMOVE, value_of};
use crate::parts::{Part, change, part, row};
use crate::runs::merge::{Group, PUT};
use crate::runs::state::Runs;
use crate::runs::write::{Rules, add_run, begin_merge, take_merged};
use std::collections::BTreeMap;
use tidalite_kv::{KEY_BYTES_MAX, Tree};
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Maximum length in bytes of a key of a buffered table.
pub const BUFFERED_KEY_MAX: usize = 32 << 10;
const _: () =
    assert!(BUFFERED_KEY_MAX + 8 <= KEY_BYTES_MAX && BUFFERED_KEY_MAX < u16::MAX as usize);
/// Maximum length in bytes of a value of a buffered table. A value is copied a few times before it reaches its row.
pub const BUFFERED_VALUE_MAX: usize = 16 << 20;

/// Number of bytes at which the buffer counts as full.
const BYTES_MAX: usize = 8 << 20;
/// Approximate bytes of memory that an entry of the buffer takes in addition to its key and value.
const ENTRY_BYTES: usize = 96;
/// Merging into the rows begins when the number of entries in runs exceeds the number of rows divided by this.
const MAIN_SHARE: u64 = 4;
/// Default of `BufferedWriter::with_run_bytes`.
const RUN_BYTES_DEFAULT: u64 = if cfg!(test) { 2 << 10 } else { 1 << 20 };

/// The newest entry of a key replaces all others.
struct NewestOnly;

impl Rules for NewestOnly {
    fn settle<R: PageRead>(&mut self, _: &Tree, _: &R, group: &mut Group, _: bool) -> Result<()> {
        group.keep_newest();
        Ok(())
    }
}

/// A buffered table in a write transaction, with its entries that are not stored yet.
///
/// The caller keeps the root of the table and passes it to each call.
#[derive(Clone, Debug)]
pub struct BufferedWriter {
    runs: Runs,
    /// New values of keys; `None` for removed keys.
    buffer: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
    /// Runs are merged into the rows only if they have at least this many bytes in total.
    run_bytes: u64,
}

impl BufferedWriter {
    fn new(runs: Runs) -> Self {
        Self {
            runs,
            buffer: BTreeMap::new(),
            bytes: 0,
            run_bytes: RUN_BYTES_DEFAULT,
        }
    }

    /// Sets the number of bytes of runs at which merging into the rows begins. A smaller number also makes the steps
    /// smaller: fewer entries are merged at a time.
    #[must_use]
    pub fn with_run_bytes(mut self, bytes: u64) -> Self {
        self.run_bytes = bytes;
        self
    }

    /// Minimum number of entries that are merged into the rows at a time: 4096 by default.
    fn merge_entries(&self) -> u64 {
        (self.run_bytes / 256).clamp(16, 1 << 16)
    }

    /// Creates a buffered table in an empty table.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn create<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<Self> {
        Self::with_runs(root, w, Runs::default())
    }

    /// Opens a buffered table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn open<R: PageRead>(root: &Tree, r: &R) -> Result<Self> {
        let runs = Runs::decode(&row(root, r, Part::State)?)?;
        Ok(Self::new(runs))
    }

    /// Stores a list of runs, and opens the table with this list.
    pub(crate) fn with_runs<W: PageWrite>(root: &mut Tree, w: &mut W, runs: Runs) -> Result<Self> {
        let table = Self::new(runs);
        table.put_state(root, w)?;
        Ok(table)
    }

    /// Whether there is nothing to store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the entries take so much memory that they should be stored.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Stores a value under a key, whether or not the key exists.
    ///
    /// # Errors
    /// `Limit` for a key or a value that is too long.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_len(
            "bytes of a key of the buffered table",
            key,
            BUFFERED_KEY_MAX,
        )?;
        check_len(
            "bytes of a value of the buffered table",
            value,
            BUFFERED_VALUE_MAX,
        )?;
        self.push(key, Some(value.to_vec()));
        Ok(())
    }

    /// Removes a key, whether or not it exists.
    ///
    /// # Errors
    /// `Limit` for a key that is too long.
    pub fn remove(&mut self, key: &[u8]) -> Result<()> {
        check_len(
            "bytes of a key of the buffered table",
            key,
            BUFFERED_KEY_MAX,
        )?;
        self.push(key, None);
        Ok(())
    }

    fn push(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        self.bytes += ENTRY_BYTES + key.len() + value.as_ref().map_or(0, Vec::len);
        match self.buffer.get_mut(key) {
            Some(held) => *held = value,
            None => {
                self.buffer.insert(key.to_vec(), value);
            }
        }
    }

    /// The value of a key in the buffer: `Some(None)` if it was removed, `None` if the buffer has no entry for the key
    /// and the stored table must be read.
    #[must_use]
    pub fn buffered(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.buffer.get(key).map(|value| value.as_deref())
    }

    /// A reader of the stored table; the entries in memory must have been stored.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn reader<R: PageRead>(&self, root: &Tree, r: R) -> Result<BufferedReader<R>> {
        BufferedReader::with(root, r, self.runs.clone())
    }

    /// Stores the entries that are in memory.
    ///
    /// # Errors
    /// A damaged page, a full disk: the table is then half changed, and the transaction must be rolled back.
    pub fn store<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut entries = BlockBuilder::default();
        let mut payload = Vec::new();
        for (key, value) in std::mem::take(&mut self.buffer) {
            payload.clear();
            match value {
                Some(value) => {
                    payload.push(PUT);
                    payload.extend_from_slice(&value);
                }
                None => payload.push(REMOVE),
            }
            entries.push(&key, &payload);
        }
        self.bytes = 0;
        add_run(root, w, &mut self.runs, &entries, &mut NewestOnly)?;
        let rows = part(root, &*w, Part::Main)?.len();
        let is_large = self.runs.bytes() > self.run_bytes;
        if self.runs.merging == 0 && is_large && self.runs.entries() > rows / MAIN_SHARE {
            begin_merge(&mut self.runs);
        }
        let new = &self.runs.list[self.runs.merging..];
        let wanted: u64 = new.iter().map(|run| 2 * run.entries).sum();
        while self.runs.merging > 0 && self.runs.merged + self.merge_entries() <= wanted {
            self.merge_step(root, w)?;
        }
        self.put_state(root, w)
    }

    /// Merges the next entries into the rows.
    fn merge_step<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        let count = self.merge_entries() as usize;
        let taken = take_merged(root, w, &mut self.runs, count, &mut NewestOnly)?;
        let Some(taken) = taken.filter(|taken| taken.len() > 0) else {
            return Ok(());
        };
        change(root, w, Part::Main, &mut |w, rows| {
            for entry in taken.iter() {
                match value_of(entry.payload) {
                    Some(value) => rows.insert(w, entry.key, value)?,
                    None => rows.remove(w, entry.key)?,
                };
            }
            Ok(())
        })
    }

    fn put_state<W: PageWrite>(&self, root: &mut Tree, w: &mut W) -> Result<()> {
        root.insert(w, &Part::State.key(), &self.runs.encode())
            .map(drop)
    }

    /// Merges all runs into the rows.
    ///
    /// # Errors
    /// As for `store`.
    pub fn compact<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.store(root, w)?;
        while !self.runs.is_empty() {
            begin_merge(&mut self.runs);
            self.merge_step(root, w)?;
        }
        self.put_state(root, w)
    }

    /// Removes all keys, stored or not.
    ///
    /// # Errors
    /// As for `store`.
    pub fn clear<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.buffer.clear();
        self.bytes = 0;
        for stale in [Part::Main, Part::Runs, Part::Filters] {
            change(root, w, stale, &mut |w, table| table.clear(w))?;
        }
        self.runs = Runs {
            next: self.runs.next,
            ..Runs::default()
        };
        self.put_state(root, w)
    }
}

fn check_len(what: &'static str, bytes: &[u8], limit: usize) -> Result<()> {
    match bytes.len() > limit {
        true => Err(Error::Limit {
            what,
            found: bytes.len() as u64,
            limit: limit as u64,
        }),
        false => Ok(()),
    }
}
