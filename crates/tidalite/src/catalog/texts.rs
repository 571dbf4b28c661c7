//! Strings, bytes and GUIDs: a row holds the number of a text; the texts are stored in one ordered table of the file.
//!
//! ```text
//! key       | series u64 | column u16 | part u8 | number u64 |          all big-endian
//! part 0    block: the texts from `number` on, in the order of writing
//! part 1    dictionary: the text with this number
//! part 2    lookup: `number` is the XXH3-64 of texts of the dictionary, the value their numbers, u64 each
//!
//! word      0, 2^62          the empty text (a GUID of zeros)
//!           1 to 2^62 - 1    a text in a block
//!           2^62 + n         a text of the dictionary
//!
//! block     see text_block.rs
//! ```
//!
//! 1. A number is assigned once, unless it was taken back before any row had it; the last block of a column always
//!    stays. If two rows of a series have the same word in a column, they therefore have the same text, in every
//!    version.
//! 2. Short texts go to the dictionary until it is full; each has one number there. All others are written as they
//!    come.
//! 3. Block numbers ascend in the order of writing, so the smallest one still used by rows tells which blocks can be
//!    freed.
//! 4. Texts in `fresh`, the unfinished block of an open column, are not in the table before `flush`.

use crate::catalog::text_block::{BLOCK_BYTES, BLOCK_TEXTS_MAX, Block};
use crate::types::error::{Error, Result};
use std::collections::HashMap;
use tidalite_base::{Corrupt, SeriesId, checksum, get_u16};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite};

/// Maximum number of texts in a column's dictionary.
pub(crate) const DICTIONARY_TEXTS_MAX: u64 = 4096;
/// Maximum length in bytes of a text in a dictionary.
pub(crate) const DICTIONARY_TEXT_BYTES_MAX: usize = 128;

/// Words from this value on are dictionary entries: this value plus the entry's number.
const DICTIONARY: u64 = 1 << 62;
/// The word written for the empty text. Older rows have 0 instead in a column that was added later without nulls.
const EMPTY: u64 = DICTIONARY;

/// A transaction extends the last block of the previous one if that block is shorter than this.
const BLOCK_GROWS_BYTES: usize = 2 << 10;

const PART_BLOCK: u8 = 0;
const PART_DICTIONARY: u8 = 1;
const PART_LOOKUP: u8 = 2;
const PART_AT: usize = 10;
const NUMBER_AT: usize = PART_AT + 1;
const KEY_BYTES: usize = NUMBER_AT + 8;

/// Maximum number of texts that a transaction remembers per column, to save lookups.
const KNOWN_MAX: usize = 4096;

/// A column of a series, as the series id and the number of the column.
pub(crate) type Column = (SeriesId, usize);

fn key((series, column): Column, part: u8, number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&series.0.to_be_bytes());
    key[8..PART_AT].copy_from_slice(&(column as u16).to_be_bytes());
    key[PART_AT] = part;
    key[NUMBER_AT..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Whether a word refers to a dictionary entry: then the text has no other word in its column.
pub(crate) fn in_dictionary(word: u64) -> bool {
    word >= DICTIONARY
}

/// Maps both words that stand for the empty text, 0 and `EMPTY`, to `EMPTY`; all other words stay.
pub(crate) fn canonical(word: u64) -> u64 {
    if word == 0 { EMPTY } else { word }
}

/// Whether two words of a text column, of the same version or of two versions, stand for equal texts or both for null.
/// `read` gets 0 or 1 and returns the text of the first or second word; it is called only if the texts of both words
/// are in blocks.
pub(crate) fn are_equal(
    words: [u64; 2],
    mut read: impl FnMut(usize) -> Result<Vec<u8>>,
) -> Result<bool> {
    let [a, b] = words.map(canonical);
    if a == b || in_dictionary(a) || in_dictionary(b) {
        return Ok(a == b);
    }
    Ok(read(0)? == read(1)?)
}

/// Splits a key of the tree into column, part and number.
fn parse(key: &[u8]) -> Result<(Column, u8, u64)> {
    let Ok(key) = <[u8; KEY_BYTES]>::try_from(key) else {
        let found = format!("a key of {} bytes", key.len());
        return Err(Corrupt::new("texts", 0, found, "19 bytes").into());
    };
    let number = |at: usize| {
        let mut field = [0; 8];
        field.copy_from_slice(&key[at..at + 8]);
        u64::from_be_bytes(field)
    };
    let column = u16::from_be_bytes([key[8], key[9]]);
    let place = (SeriesId(number(0)), usize::from(column));
    Ok((place, key[PART_AT], number(NUMBER_AT)))
}

/// Reads the column's last block that begins at or before the text `number`.
fn block_at_or_before<R: PageRead>(
    r: &R,
    tree: &Tree,
    column: Column,
    number: u64,
) -> Result<Option<Block>> {
    let mut cursor = tree.cursor(r);
    if !cursor.seek_le(&key(column, PART_BLOCK, number))? {
        return Ok(None);
    }
    let (place, part, first) = parse(cursor.key())?;
    if (place, part) != (column, PART_BLOCK) {
        return Ok(None);
    }
    Ok(Some(Block::decode(first, &cursor.value()?.to_vec()?)?))
}

/// The state of a column to which a transaction adds texts.
struct Open {
    /// The unfinished block: new texts, after the texts of the column's last stored block if that block was short.
    fresh: Block,
    changed: bool,
    /// Number of the next entry of the column's dictionary.
    dictionary_next: u64,
    known: HashMap<Vec<u8>, u64>,
    /// The last text added to a block, and its number: an equal text that follows gets the same number.
    last: Option<(Vec<u8>, u64)>,
}

impl Open {
    fn load<R: PageRead>(r: &R, tree: &Tree, column: Column) -> Result<Self> {
        let fresh = match block_at_or_before(r, tree, column, DICTIONARY)? {
            None => Block {
                first: 1,
                ..Block::default()
            },
            Some(last) if last.size() < BLOCK_GROWS_BYTES && last.lengths.len() < 512 => last,
            Some(last) => Block {
                first: last.end(),
                ..Block::default()
            },
        };
        let mut cursor = tree.cursor(r);
        let mut dictionary_next = 1;
        if cursor.seek_lt(&key(column, PART_LOOKUP, 0))? {
            let (place, part, number) = parse(cursor.key())?;
            if (place, part) == (column, PART_DICTIONARY) {
                dictionary_next = number.saturating_add(1);
            }
        }
        Ok(Self {
            fresh,
            changed: false,
            dictionary_next,
            known: HashMap::new(),
            last: None,
        })
    }
}

/// The texts that a write transaction adds.
#[derive(Default)]
pub(crate) struct Texts {
    open: HashMap<Column, Open>,
    /// The complete block that was read last.
    read: TextCache,
}

impl Texts {
    fn open<'t, R: PageRead>(
        open: &'t mut HashMap<Column, Open>,
        r: &R,
        tree: &Tree,
        column: Column,
    ) -> Result<&'t mut Open> {
        use std::collections::hash_map::Entry;
        Ok(match open.entry(column) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Open::load(r, tree, column)?),
        })
    }

    /// Returns the word of a text, and stores the text if it is new.
    ///
    /// Cost: a lookup in memory for a text that the transaction remembers; a lookup in the tree for any other short
    /// text; for a text that goes to a block, its bytes.
    pub(crate) fn word<W: PageWrite>(
        &mut self,
        w: &mut W,
        tree: &mut Tree,
        column: Column,
        text: &[u8],
    ) -> Result<u64> {
        if text.is_empty() {
            return Ok(EMPTY);
        }
        let open = Self::open(&mut self.open, w, tree, column)?;
        if let Some(&word) = open.known.get(text) {
            return Ok(word);
        }
        if let Some((last, word)) = &open.last
            && last == text
        {
            return Ok(*word);
        }
        if text.len() <= DICTIONARY_TEXT_BYTES_MAX {
            let lookup = key(column, PART_LOOKUP, checksum(text));
            let mut numbers = match tree.get(w, &lookup)? {
                Some(numbers) => numbers.to_vec()?,
                None => Vec::new(),
            };
            let mut word = None;
            for number in numbers.as_chunks::<8>().0 {
                let number = u64::from_le_bytes(*number);
                let entry = tree.get(w, &key(column, PART_DICTIONARY, number))?;
                if let Some(entry) = entry
                    && entry.to_vec()? == text
                {
                    word = Some(DICTIONARY + number);
                }
            }
            if word.is_none() && open.dictionary_next <= DICTIONARY_TEXTS_MAX {
                let number = open.dictionary_next;
                tree.insert(w, &key(column, PART_DICTIONARY, number), text)?;
                numbers.extend(number.to_le_bytes());
                tree.insert(w, &lookup, &numbers)?;
                open.dictionary_next += 1;
                word = Some(DICTIONARY + number);
            }
            if let Some(word) = word {
                if open.known.len() == KNOWN_MAX {
                    open.known.clear();
                }
                open.known.insert(text.to_vec(), word);
                return Ok(word);
            }
        }
        // A full block is written only when the next text is added: its last text may still be taken back until then.
        if open.fresh.size() >= BLOCK_BYTES || open.fresh.lengths.len() == BLOCK_TEXTS_MAX {
            if open.changed {
                let block = &open.fresh;
                tree.insert(w, &key(column, PART_BLOCK, block.first), &block.encode())?;
            }
            open.fresh = Block {
                first: open.fresh.end(),
                ..Block::default()
            };
        }
        let word = open.fresh.push(text);
        open.changed = true;
        open.last = Some((text.to_vec(), word));
        Ok(word)
    }

    /// Whether a text with this word exists in the column.
    pub(crate) fn knows<R: PageRead>(
        &mut self,
        r: &R,
        tree: &Tree,
        column: Column,
        word: u64,
    ) -> Result<bool> {
        if word == 0 || word == EMPTY {
            return Ok(true);
        }
        let open = Self::open(&mut self.open, r, tree, column)?;
        Ok(match word.checked_sub(DICTIONARY) {
            Some(number) => number < open.dictionary_next,
            None => word < open.fresh.end(),
        })
    }

    /// Returns the text of a word that is not in the dictionary. The text may be in the unfinished block or in the
    /// table.
    pub(crate) fn in_block<R: PageRead>(
        &mut self,
        r: &R,
        tree: &Tree,
        column: Column,
        word: u64,
    ) -> Result<Vec<u8>> {
        let open = Self::open(&mut self.open, r, tree, column)?;
        match open.fresh.text(word) {
            Some(text) => Ok(text.to_vec()),
            None => self.read.text(r, tree, column, word),
        }
    }

    /// The number that the next text in the column's blocks will get.
    pub(crate) fn end<R: PageRead>(&mut self, r: &R, tree: &Tree, column: Column) -> Result<u64> {
        Ok(Self::open(&mut self.open, r, tree, column)?.fresh.end())
    }

    /// Removes the texts added to a column's blocks since `end` from the unfinished block; no row refers to them. Texts
    /// that are already in a written block stay.
    pub(crate) fn take_back(&mut self, column: Column, end: u64) {
        let Some(open) = self.open.get_mut(&column) else {
            return;
        };
        while open.fresh.first <= end && open.fresh.end() > end {
            open.fresh.pop();
            open.last = None;
        }
        open.changed = open.changed && !open.fresh.lengths.is_empty();
    }

    /// Writes the unfinished block of every changed column to the table, where readers find it.
    pub(crate) fn flush<W: PageWrite>(&mut self, w: &mut W, tree: &mut Tree) -> Result<()> {
        let mut changed: Vec<_> = self
            .open
            .iter_mut()
            .filter(|(_, open)| open.changed)
            .collect();
        changed.sort_unstable_by_key(|(column, _)| **column);
        for (&column, open) in changed {
            let block = &open.fresh;
            tree.insert(w, &key(column, PART_BLOCK, block.first), &block.encode())?;
            open.changed = false;
        }
        Ok(())
    }

    /// Removes the blocks of a column that precede the block of `least`, the smallest word in the column's rows.
    /// Without rows (`None`) all blocks but the last are removed. The texts of this transaction must have been flushed.
    pub(crate) fn trim<W: PageWrite>(
        w: &mut W,
        tree: &mut Tree,
        column: Column,
        least: Option<u64>,
    ) -> Result<()> {
        let least = least.unwrap_or(DICTIONARY).min(DICTIONARY);
        let kept = block_at_or_before(w, tree, column, least)?;
        if let Some(kept) = kept {
            let (from, to) = (
                key(column, PART_BLOCK, 0),
                key(column, PART_BLOCK, kept.first),
            );
            tree.remove_range(w, &from, &to)?;
        }
        Ok(())
    }
}

/// Approximate size in bytes of the text blocks of a series, which are freed with its rows. Walks the keys, and reads
/// no block.
pub(crate) fn block_bytes<R: PageRead>(
    r: &R,
    tree: &Tree,
    series: SeriesId,
    columns: impl Iterator<Item = usize>,
) -> Result<u64> {
    let mut bytes = 0u64;
    for column in columns {
        let mut cursor = tree.cursor(r);
        let mut there = cursor.seek_ge(&key((series, column), PART_BLOCK, 0))?;
        while there {
            let (place, part, _) = parse(cursor.key())?;
            if (place, part) != ((series, column), PART_BLOCK) {
                break;
            }
            bytes = bytes.saturating_add(cursor.value()?.len());
            there = cursor.next()?;
        }
    }
    Ok(bytes)
}

/// Removes all texts of a series. Called when the series itself is removed; its id is never assigned again.
pub(crate) fn remove_series<W: PageWrite>(w: &mut W, tree: &mut Tree, id: SeriesId) -> Result<()> {
    let (from, to) = (key((id, 0), 0, 0), key((SeriesId(id.0 + 1), 0), 0, 0));
    tree.remove_range(w, &from, &to)?;
    Ok(())
}

/// The text blocks and dictionary texts that a reader of one series read last.
#[derive(Default)]
pub(crate) struct TextCache {
    block: Option<(Column, Block)>,
    dictionary: HashMap<(Column, u64), Vec<u8>>,
}

impl TextCache {
    /// Returns the text of a word that is not null.
    pub(crate) fn text<R: PageRead>(
        &mut self,
        r: &R,
        tree: &Tree,
        column: Column,
        word: u64,
    ) -> Result<Vec<u8>> {
        let lost = || -> Error {
            let what = format!("text {word} of column {} of {}", column.1, column.0);
            Corrupt::new(what, 0, "nothing", "a text").into()
        };
        if word == 0 || word == EMPTY {
            return Ok(Vec::new());
        }
        if let Some(number) = word.checked_sub(DICTIONARY) {
            if let Some(text) = self.dictionary.get(&(column, number)) {
                return Ok(text.clone());
            }
            let entry = tree.get(r, &key(column, PART_DICTIONARY, number))?;
            let text = entry.ok_or_else(lost)?.to_vec()?;
            if self.dictionary.len() as u64 == DICTIONARY_TEXTS_MAX {
                self.dictionary.clear();
            }
            self.dictionary.insert((column, number), text.clone());
            return Ok(text);
        }
        if let Some((own, block)) = &self.block
            && *own == column
            && let Some(text) = block.text(word)
        {
            return Ok(text.to_vec());
        }
        let block = block_at_or_before(r, tree, column, word)?.ok_or_else(lost)?;
        let text = block.text(word).ok_or_else(lost)?.to_vec();
        self.block = Some((column, block));
        Ok(text)
    }
}

/// Reads every text whose key is `at` or greater, and moves `at` forward as it reads. Passes each problem and its
/// column to `f`. `is_text` says whether a series has such a column of texts.
pub(crate) fn check<R: PageRead>(
    r: &R,
    tree: &Tree,
    at: &mut Vec<u8>,
    is_text: &dyn Fn(Column) -> bool,
    f: &mut dyn FnMut(Column, String),
) -> Result<()> {
    let mut cursor = tree.cursor(r);
    let mut there = cursor.seek_ge(at)?;
    let mut before: Option<(Column, u64)> = None;
    while there {
        cursor.key().clone_into(at);
        let (column, part, number) = parse(cursor.key())?;
        let mut f = |problem: String| f(column, problem);
        let value = cursor.value()?.to_vec()?;
        let place = format!("texts of column {} of {}", column.1, column.0);
        if !is_text(column) {
            f(format!("{place}: there is no such column"));
        }
        match part {
            PART_BLOCK => match Block::decode(number, &value) {
                Ok(block) => {
                    let end = before.filter(|(own, _)| *own == column).map(|(_, end)| end);
                    if number == 0
                        || end.is_some_and(|end| number < end)
                        || block.end() > DICTIONARY
                    {
                        f(format!("{place}: the block at {number} overlaps another"));
                    }
                    before = Some((column, block.end()));
                }
                Err(error) => f(format!("{place}: {}", error.finding())),
            },
            PART_DICTIONARY => {
                let lookup = tree.get(r, &key(column, PART_LOOKUP, checksum(&value)))?;
                let numbers = lookup.map(|found| found.to_vec()).transpose()?;
                let found = numbers.unwrap_or_default();
                let listed = found.as_chunks::<8>().0.contains(&number.to_le_bytes());
                if !listed || number == 0 || number > DICTIONARY_TEXTS_MAX {
                    f(format!(
                        "{place}: number {number} of the dictionary is not found by its text"
                    ));
                }
            }
            PART_LOOKUP => {
                let (numbers, rest) = value.as_chunks::<8>();
                for own in numbers {
                    let own = u64::from_le_bytes(*own);
                    let entry = tree.get(r, &key(column, PART_DICTIONARY, own))?;
                    let text = entry.map(|entry| entry.to_vec()).transpose()?;
                    if text.is_none_or(|text| checksum(&text) != number) {
                        f(format!(
                            "{place}: the lookup leads to {own}, which has another text"
                        ));
                    }
                }
                if numbers.is_empty() || !rest.is_empty() {
                    f(format!("{place}: a lookup of {} bytes", value.len()));
                }
            }
            other => f(format!("{place}: part {other}")),
        }
        there = cursor.next()?;
    }
    Ok(())
}

/// Copies an entry of a damaged file's text table for a series that has a new id in the new file; entries of a column
/// without texts are skipped. If two blocks have the same key, the one with more texts is kept, because it is newer.
/// The lookup entries are rebuilt from the texts found.
pub(crate) fn take_over<W: PageWrite>(
    w: &mut W,
    tree: &mut Tree,
    row: (&[u8], &[u8]),
    series: impl Fn(Column) -> Option<SeriesId>,
) -> tidalite_pager::Result<()> {
    let Some((column, part, number)) = parse(row.0).ok().and_then(|(column, part, number)| {
        let own = series(column)?;
        Some(((own, column.1), part, number))
    }) else {
        return Ok(());
    };
    let (moved, value) = (key(column, part, number), row.1);
    let known = tree.get(w, &moved)?.map(|known| known.to_vec());
    let known = known.transpose()?;
    match part {
        PART_BLOCK => {
            let fits = number > 0
                && Block::decode(number, value).is_ok_and(|block| block.end() <= DICTIONARY);
            if fits && known.is_none_or(|known| get_u16(&known, 1) < get_u16(value, 1)) {
                tree.insert(w, &moved, value)?;
            }
        }
        PART_DICTIONARY => {
            let fits = (1..=DICTIONARY_TEXTS_MAX).contains(&number)
                && value.len() <= DICTIONARY_TEXT_BYTES_MAX;
            if fits && known.is_none() {
                tree.insert(w, &moved, value)?;
                let lookup = key(column, PART_LOOKUP, checksum(value));
                let numbers = tree.get(w, &lookup)?.map(|numbers| numbers.to_vec());
                let mut numbers = numbers.transpose()?.unwrap_or_default();
                numbers.extend(number.to_le_bytes());
                tree.insert(w, &lookup, &numbers)?;
            }
        }
        _ => {}
    }
    Ok(())
}
