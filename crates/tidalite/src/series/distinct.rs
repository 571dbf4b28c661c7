//! Series with the merge policy `KeepDistinct`, which keep all different rows of each time.
//!
//! ```text
//! row ──> newer than every row? ──yes────────────────────────────────────────────────────────> buffered
//!             └─no──> rows of its time, buffered or stored ──> one of them equal? ─yes─> ignored, nothing is written
//!                                                                 └─no──> buffered after them (keep_all.rs)
//! ```
//!
//! Two rows are equal if their times and all their columns are: numbers by their bits (NaN equals the same NaN, 0.0
//! differs from -0.0), null equals null, texts by content, whatever their numbers. The rows at one time are a set
//! ordered by first arrival: of A, B, A the second A is ignored, and B stays the last. Rows are stored in several
//! places (write buffer, delta, leaves). The newest place that has a time has all rows at that time, so only one place
//! is compared, and lower layers and readers need no knowledge of this policy.
//!
//! Invariants: 1. Before a row is buffered, it is compared with all rows of its time, by `Seen` or within its batch. 2.
//! An ignored row adds no text to the series if it was inserted with its texts. The invariants of `Seen` are in
//! `txn/known_times.rs`.

use crate::catalog::texts;
use crate::series::write::SeriesMut;
use crate::txn::known_times::{Seen, Taken};
use crate::types::error::Result;
use tidalite_base::checksum;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::{Rows, RowsRef};

/// Copies the words of a row from its columns into one array.
fn words_of(rows: RowsRef<'_>, row: usize) -> [u64; COLUMNS_MAX] {
    let mut words = [0; COLUMNS_MAX];
    for (c, word) in words.iter_mut().take(rows.column_count()).enumerate() {
        *word = rows.column(c)[row];
    }
    words
}

/// Mixes one more word of a row into the row's fingerprint.
fn mix(print: u64, word: u64) -> u64 {
    // Multiplying by an odd number is reversible, so rows that differ in one word have different fingerprints.
    (print.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl SeriesMut<'_> {
    /// Buffers a row after the other rows of its time, unless it is equal to one of them. The result says whether the
    /// row was buffered or left out.
    pub(crate) fn keep_distinct(&mut self, time: i64, words: &[u64]) -> Result<Taken> {
        self.learn_newest()?;
        if self.guard().is_newer(time) != Some(true) {
            self.use_overlay()?;
            let mut seen = self.seen_at(time)?;
            let print = self.print(words)?;
            if self.has_equal(&seen, print, words)? {
                self.guard().seen = Some(seen);
                return Ok(Taken::LeftOut);
            }
            self.expect_room(seen.rows.len() + 1)?;
            if !seen.buffered && !seen.rows.is_empty() {
                let taken = self.txn.write_buffer.append(self.slot, seen.rows.view());
                debug_assert_eq!(taken, seen.rows.len(), "an overlay takes all");
            }
            seen.add(print, time, words);
            seen.buffered = true;
            self.guard().seen = Some(seen);
        }
        let look = self.txn.write_buffer.push(self.slot, time, words);
        self.note(time);
        if look {
            self.txn.flush_write_buffer()?;
        }
        Ok(Taken::Free)
    }

    /// Selects from rows in time order the rows that are equal to no earlier row: not to one of these rows, not to one
    /// in the write buffer, and not to one in `stored`, which has the stored rows of times that are not buffered.
    /// Returns `None` if all rows are to be kept. Removes from `stored` the times that get no new row.
    pub(crate) fn without_equal(
        &mut self,
        rows: RowsRef<'_>,
        newest: Option<i64>,
        stored: &mut Rows,
    ) -> Result<Option<Rows>> {
        let mut seen = Seen::new(rows.column_count());
        let (mut kept, mut needed) = (
            Vec::with_capacity(rows.len()),
            Rows::new(rows.column_count()),
        );
        let mut end = 0;
        for same in rows.times().chunk_by(|a, b| a == b) {
            let (begin, time) = (end, same[0]);
            end += same.len();
            seen.clear();
            let mut there = stored.slice(0..0);
            if newest.is_some_and(|newest| time <= newest) {
                self.txn
                    .write_buffer
                    .copy_rows_at(self.slot, time, &mut seen.rows);
                if seen.rows.is_empty() {
                    there = stored.view().between(time, time);
                    seen.rows.extend(there);
                }
            }
            if seen.rows.is_empty() && same.len() == 1 {
                kept.push(begin);
                continue;
            }
            self.print_all(&mut seen)?;
            let before = kept.len();
            for row in begin..end {
                let words = words_of(rows, row);
                let words = &words[..rows.column_count()];
                let print = self.print(words)?;
                if !self.has_equal(&seen, print, words)? {
                    seen.add(print, time, words);
                    kept.push(row);
                }
            }
            if kept.len() > before {
                self.expect_room(seen.rows.len())?;
                needed.extend(there);
            }
        }
        *stored = needed;
        if kept.len() == rows.len() {
            return Ok(None);
        }
        let column = |c| {
            kept.iter()
                .map(|&row: &usize| rows.column(c)[row])
                .collect()
        };
        Ok(Some(Rows {
            times: kept.iter().map(|&row| rows.times()[row]).collect(),
            columns: (0..rows.column_count()).map(column).collect(),
        }))
    }

    /// The existing rows at a time, with their fingerprints; from the cache if possible.
    fn seen_at(&mut self, time: i64) -> Result<Box<Seen>> {
        let now = (time, self.txn.write_buffer.flush_count());
        let columns = self.info().schema.columns.len();
        let seen = self.guard().seen.take();
        let mut seen = seen.unwrap_or_else(|| Box::new(Seen::new(columns)));
        if seen.of == Some(now) {
            return Ok(seen);
        }
        seen.clear();
        let write_buffer = &mut self.txn.write_buffer;
        write_buffer.copy_rows_at(self.slot, time, &mut seen.rows);
        seen.buffered = !seen.rows.is_empty();
        if !seen.buffered {
            seen.rows = self.stored(&[time])?;
        }
        self.print_all(&mut seen)?;
        seen.of = Some(now);
        Ok(seen)
    }

    fn print_all(&mut self, seen: &mut Seen) -> Result<()> {
        let columns = seen.rows.columns.len();
        for row in 0..seen.rows.len() {
            let words = words_of(seen.rows.view(), row);
            let print = self.print(&words[..columns])?;
            seen.prints.insert((print, row as u32));
        }
        Ok(())
    }

    /// A fingerprint of a row's words, which is equal for equal rows.
    fn print(&mut self, words: &[u64]) -> Result<u64> {
        let mut print = 0;
        for (c, &word) in words.iter().enumerate() {
            let said = match self.text_in_block(c, word)? {
                Some(text) => checksum(&text),
                None => self.canonical(c, word),
            };
            print = mix(print, said);
        }
        Ok(print)
    }

    fn has_equal(&mut self, seen: &Seen, print: u64, words: &[u64]) -> Result<bool> {
        for &(_, row) in seen.prints.range((print, 0)..=(print, u32::MAX)) {
            let mut equal = true;
            for (c, &word) in words.iter().enumerate() {
                equal = equal && self.says_the_same(c, word, seen.rows.columns[c][row as usize])?;
            }
            if equal {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether two words of a column stand for equal values; for a text column, the texts are compared.
    fn says_the_same(&mut self, c: usize, a: u64, b: u64) -> Result<bool> {
        if a == b || !self.is_text(c) {
            return Ok(a == b);
        }
        texts::are_equal([a, b], |place| self.block_text(c, [a, b][place]))
    }

    pub(crate) fn is_text(&self, c: usize) -> bool {
        self.has_texts() && self.info().schema.columns[c].ty.is_text()
    }

    /// Maps both words that stand for the empty text to one word; other words do not change.
    fn canonical(&self, c: usize, word: u64) -> u64 {
        if self.is_text(c) {
            texts::canonical(word)
        } else {
            word
        }
    }

    /// The text of a word outside the dictionary, where a text may have several words; `None` for all other words.
    fn text_in_block(&mut self, c: usize, word: u64) -> Result<Option<Vec<u8>>> {
        if !self.is_text(c) || texts::in_dictionary(texts::canonical(word)) {
            return Ok(None);
        }
        self.block_text(c, word).map(Some)
    }

    /// Reads the text of a word outside the dictionary.
    fn block_text(&mut self, c: usize, word: u64) -> Result<Vec<u8>> {
        let (id, txn) = (self.id(), &mut *self.txn);
        txn.texts
            .in_block(&txn.pages, &txn.roots.texts, (id, c), word)
    }
}
