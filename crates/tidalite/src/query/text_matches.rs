//! Queries for rows by the text in a column, such as events by their messages.

use crate::catalog::texts;
use crate::series::figures::{AllFigures, Figures};
use crate::series::query::Query;
use crate::txn::pages::Pages;
use crate::types::column::{Column, ColumnType};
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;
use crate::types::row::Row;
use crate::types::value::Value;
use std::collections::HashMap;
use tidalite_codec::Rows;
use tidalite_series::{Scan, ValueRange};

/// Iterator over the rows whose text matches, ascending in time, returned by [`Query::text_matches`].
pub struct TextMatches<'s, P> {
    query: Query<'s>,
    scan: Scan<'s, Pages<'s>>,
    column: usize,
    own: &'s Column,
    wanted: P,
    /// Cached results of `wanted` for words in the dictionary, which are the only words of their texts.
    known: HashMap<u64, bool>,
    /// Cache of one entry: the last word outside the dictionary for which `wanted` was called, with the result. Equal
    /// texts that were written one after the other have the same word, and `wanted` is called once for all of them.
    last: Option<(u64, bool)>,
    /// The matching rows of the vector that was read last.
    rows: Rows,
    at: usize,
    /// An error to report after the rows in `rows` were returned.
    error: Option<Error>,
    ended: bool,
}

impl<'s, F: Figures> Query<'s, F> {
    /// The rows for whose text in a column of strings `wanted` returns true, for example because the text contains a
    /// word, begins with a prefix, or matches an expression. Nulls are skipped. The rows ascend in time, also of a
    /// reversed query.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{ColumnType, Options, Schema, Steps, Unit};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let events = Schema::new(Unit::Seconds, [("message", ColumnType::String)]);
    /// let mut log = tx.series_with("events", &events)?;
    /// for (time, message) in [(1, "pump started"), (2, "valve 7: timeout"), (3, "valve 9: timeout")] {
    ///     log.insert_values(Steps(time), &[message.into()])?;
    /// }
    /// let log = log.view()?;
    /// let timeouts = log.query(..).text_matches("message", |text| text.ends_with("timeout"))?;
    /// let times: Vec<i64> = timeouts.map(|row| Ok(row?.time)).collect::<tidalite::Result<_>>()?;
    /// assert_eq!(times, [2, 3]);
    /// // The second page of ten.
    /// assert_eq!(log.query(..).text_matches("message", |text| text.contains("valve"))?.skip(10).take(10).count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist or is not a column of strings. The iterator yields an error for a damaged
    /// or unreadable block, and then ends.
    ///
    /// # Cost
    /// Reads all rows. `wanted` is called once for all rows with the same text of up to 128 bytes, and again for each
    /// row with a longer text.
    pub fn text_matches<P: FnMut(&str) -> bool>(
        &self,
        column: impl IntoColumn,
        wanted: P,
    ) -> Result<TextMatches<'s, P>> {
        let column = self.column(column)?;
        let columns = &self.series.info().schema.columns;
        let own = &columns[column];
        if own.ty != ColumnType::String {
            return Err(own.problem("it has no strings that could match"));
        }
        let query = self.settled()?.figures(AllFigures);
        Ok(TextMatches {
            scan: query.scan()?,
            query,
            column,
            own,
            wanted,
            known: HashMap::new(),
            last: None,
            rows: Rows::new(columns.len()),
            at: 0,
            error: None,
            ended: false,
        })
    }
}

impl<P: FnMut(&str) -> bool> TextMatches<'_, P> {
    /// Reads the next vector and collects the matching rows; returns false after the last vector.
    fn load(&mut self) -> Result<bool> {
        self.rows.clear();
        self.at = 0;
        let Some(vector) = self.scan.next()? else {
            return Ok(false);
        };
        for (row, &word) in vector.words(self.column).iter().enumerate() {
            let contains = |range: &ValueRange| range.contains(vector.words(range.column())[row]);
            if self.own.is_null(word) || !self.query.filters.iter().all(contains) {
                continue;
            }
            let last = self.last.filter(|(own, _)| *own == word);
            let said = self.known.get(&word).copied();
            let wanted = match said.or(last.map(|(_, said)| said)) {
                Some(said) => said,
                None => {
                    let text = self.query.series.text(self.column, word)?;
                    let said = match self.own.of_text(text)? {
                        Value::String(text) => (self.wanted)(&text),
                        _ => false,
                    };
                    if texts::in_dictionary(word) {
                        self.known.insert(word, said);
                    } else {
                        self.last = Some((word, said));
                    }
                    said
                }
            };
            if wanted {
                self.rows.times.push(vector.times()[row]);
                for (c, column) in self.rows.columns.iter_mut().enumerate() {
                    column.push(vector.words(c)[row]);
                }
            }
        }
        Ok(true)
    }
}

impl<P: FnMut(&str) -> bool> Iterator for TextMatches<'_, P> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(&time) = self.rows.times.get(self.at) {
                let words = self.rows.columns.iter().map(|column| column[self.at]);
                let words = words.collect();
                self.at += 1;
                return Some(Ok(Row { time, words }));
            }
            if let Some(error) = self.error.take() {
                return Some(Err(error));
            }
            if self.ended {
                return None;
            }
            match self.load() {
                Ok(more) => self.ended = !more,
                Err(error) => (self.error, self.ended) = (Some(error), true),
            }
        }
    }
}
