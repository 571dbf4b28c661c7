//! A series in a write transaction: insert, overwrite, append and delete rows. Its methods for reading are in
//! `own_reads.rs`.

use crate::catalog::entries::{self, SeriesInfo, wrong_columns};
use crate::catalog::texts::Texts;
use crate::series::record::{Record, RowWriter, TextSink};
use crate::txn::known_times::{Guard, Taken};
use crate::txn::open_series::OneSeries;
use crate::txn::write::WriteTxn;
use crate::types::column::Column;
use crate::types::error::Result;
use crate::types::instant::{Instant, Moment, Steps};
use crate::types::interval::{EVER, Interval};
use crate::types::merge_policy::MergePolicy;
use crate::types::point::{Point, Sample};
use crate::types::value::Value;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::{Rows, RowsRef};
use tidalite_delta::{Sink, Slot};
use tidalite_series::{Cooling, KeptHot};

/// A series in a write transaction, for changes. Rows can be inserted anywhere: at the end, before existing rows, or at
/// an existing timestamp (the new row replaces the old one, unless the series has another [`MergePolicy`]).
///
/// A single insert only adds a row to the write buffer. It does not check whether the transaction can still be
/// committed, so in a broken transaction ([`Broken`](crate::ErrorKind::Broken)) it may return `Ok`. The next flush,
/// `append_rows`, `delete`, `view` and the commit report the error.
pub struct SeriesMut<'t> {
    pub(crate) txn: &'t mut WriteTxn,
    index: usize,
    pub(crate) slot: Slot,
    /// Copy of `OneSeries::point`. To insert a point, only this flag and the slot are needed; everything else is looked
    /// up in `open`.
    point: bool,
}

impl<'t> SeriesMut<'t> {
    #[inline]
    pub(crate) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        let open = &txn.open[index];
        let (slot, point) = (open.slot, open.point);
        Self {
            txn,
            index,
            slot,
            point,
        }
    }

    #[inline]
    fn open(&self) -> &OneSeries {
        &self.txn.open[self.index]
    }

    #[inline]
    fn columns(&self) -> usize {
        self.open().columns as usize
    }

    /// Whether the series has a text column.
    #[inline]
    pub(crate) fn has_texts(&self) -> bool {
        self.open().texts
    }

    /// Whether a container may own the series, by its name.
    #[inline]
    pub(crate) fn has_name_of_container(&self) -> bool {
        self.open().has_name_of_container
    }

    /// Whether an insert must first find out if a row has its time already (`duplicates.rs`), because the merge policy
    /// is not `Replace`.
    #[inline]
    fn is_guarded(&self) -> bool {
        self.open().guard.is_some()
    }

    /// The cache of times known to be taken or free, for a series with a merge policy other than `Replace`.
    pub(crate) fn guard(&mut self) -> &mut Guard {
        self.txn.open[self.index].guard.get_or_insert_default()
    }

    /// Changes the merge policy for rows that are inserted from now on. Existing rows stay as they are, even equal ones
    /// kept by [`MergePolicy::KeepAll`].
    ///
    /// # Errors
    /// Errors of the file.
    pub fn set_merge(&mut self, merge: MergePolicy) -> Result<()> {
        let info = Arc::clone(&self.txn.open[self.index].info);
        if info.merge == merge {
            return self.txn.check_usable();
        }
        self.expect_own_rows()?;
        self.txn.finish_background(self.slot)?;
        let info = self
            .txn
            .changing(|txn| entries::change_merge(&mut txn.roots, &mut txn.pages, &info, merge))?;
        let several = merge.keeps_several();
        if several != self.keeps_several() {
            self.txn.write_buffer.keep_all(self.slot, several);
        }
        let open = &mut self.txn.open[self.index];
        open.learn(info);
        open.guard = (merge != MergePolicy::Replace).then(Box::default);
        self.point = open.point;
        Ok(())
    }

    /// Name, schema and id of the series.
    #[must_use]
    pub fn info(&self) -> &SeriesInfo {
        &self.txn.open[self.index].info
    }

    pub(crate) fn info_arc(&self) -> &Arc<SeriesInfo> {
        &self.txn.open[self.index].info
    }

    /// Id of the series in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.info().id
    }

    /// Inserts a default point with flags 0, or overwrites the point at that time.
    ///
    /// # Errors
    /// `Schema` if the series has other columns; `InvalidInput` for a text that is not a time; a full disk.
    pub fn insert(&mut self, t: impl Instant, value: f64) -> Result<()> {
        self.txn.open[self.index].expect_record(<Sample as Point>::schema, true)?;
        self.insert_point(t, 0, value)
    }

    /// Converts a time to steps of the series' unit, rounded down.
    #[inline]
    fn step(&self, t: impl Instant) -> Result<i64> {
        Ok(match t.moment()? {
            Moment::Step(Steps(step)) => step,
            clock => clock.floor(self.info().schema.unit),
        })
    }

    /// Inserts a row of two columns, flags and value.
    ///
    /// # Errors
    /// `Schema` if the series does not have two columns; `InvalidInput` for a text that is not a time; a full disk.
    #[inline]
    pub fn insert_point(&mut self, t: impl Instant, flags: i64, value: f64) -> Result<()> {
        let time = self.step(t)?;
        if !self.point {
            return self.insert_point_checked(time, flags, value);
        }
        let (slot, flags, value) = (self.slot, flags as u64, value.to_bits());
        if self.txn.write_buffer.push_point(slot, time, flags, value) {
            self.txn.flush_write_buffer()?;
        }
        Ok(())
    }

    /// Does the work of `insert_point` for a series that does not have two columns, or whose merge policy is not
    /// `Replace`.
    #[inline(never)]
    fn insert_point_checked(&mut self, time: i64, flags: i64, value: f64) -> Result<()> {
        if self.is_guarded() {
            return self.insert_row(Steps(time), &[flags as u64, value.to_bits()]);
        }
        self.wrong_columns(2)
    }

    /// Inserts a row, given as a time and one stored word per column.
    ///
    /// # Errors
    /// `Schema` if the number of words differs from the number of columns; `InvalidInput` for a text that is not a
    /// time; a full disk.
    #[inline]
    pub fn insert_row(&mut self, t: impl Instant, words: &[u64]) -> Result<()> {
        let time = self.step(t)?;
        if self.columns() != words.len() {
            return self.wrong_columns(words.len());
        }
        if self.has_texts() {
            self.expect_texts(|c| &words[c..=c])?;
        }
        if self.is_guarded() {
            if self.look(time)? == Taken::Free {
                self.stage_guarded(time, words)?;
            }
            return Ok(());
        }
        if self.txn.write_buffer.push(self.slot, time, words) {
            self.txn.flush_write_buffer()?;
        }
        Ok(())
    }

    /// Buffers a row as the merge policy requires. The caller must have asked `look` whether the row may be buffered.
    fn stage_guarded(&mut self, time: i64, words: &[u64]) -> Result<Taken> {
        match self.info().merge {
            MergePolicy::KeepAll => return self.keep(time, words).map(|()| Taken::Free),
            MergePolicy::KeepDistinct => return self.keep_distinct(time, words),
            _ => self.note(time),
        }
        if self.txn.write_buffer.push(self.slot, time, words) {
            self.txn.flush_write_buffer()?;
        }
        Ok(Taken::Free)
    }

    /// Inserts a row whose words `put` produces; `put` also stores the texts of the row.
    #[inline]
    fn insert_made(
        &mut self,
        time: i64,
        put: impl FnOnce(&mut Self, &mut [u64]) -> Result<()>,
    ) -> Result<()> {
        let mut words = [0u64; COLUMNS_MAX];
        let words = &mut words[..self.columns()];
        if self.is_guarded() {
            return self.insert_made_guarded(time, words, put);
        }
        put(self, words)?;
        self.insert_row(Steps(time), words)
    }

    /// Inserts a row like `insert_made`, for a series whose merge policy is not `Replace`. Takes back the texts that
    /// `put` has stored if the row is ignored, or is refused because its time has the maximum number of rows.
    #[inline(never)]
    fn insert_made_guarded(
        &mut self,
        time: i64,
        words: &mut [u64],
        put: impl FnOnce(&mut Self, &mut [u64]) -> Result<()>,
    ) -> Result<()> {
        if self.look(time)? == Taken::LeftOut {
            return Ok(());
        }
        let (id, mut ends) = (self.id(), Vec::new());
        if self.has_texts() && self.keeps_several() {
            for c in 0..words.len() {
                if self.is_text(c) {
                    let txn = &mut *self.txn;
                    let end = txn.texts.end(&txn.pages, &txn.roots.texts, (id, c))?;
                    ends.push((c, end));
                }
            }
        }
        put(self, words)?;
        if self.has_texts() {
            self.expect_texts(|c| &words[c..=c])?;
        }
        let taken = self.stage_guarded(time, words);
        if !matches!(taken, Ok(Taken::Free)) {
            for (c, end) in ends {
                self.txn.texts.take_back((id, c), end);
            }
        }
        taken.map(|_| ())
    }

    /// Inserts a row: a time and one value per column, for columns known only at run time.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Column, ColumnType, Decimal, Options, Schema, Steps, Unit, Value};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let shop = Schema::new(Unit::Seconds, [("open", ColumnType::Bool)])
    ///     .with(Column::nullable("till", ColumnType::Decimal(2)));
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series_with("shop", &shop)?;
    /// let amount = Decimal { units: 1999, scale: 2 };
    /// series.insert_values(Steps(1), &[true.into(), amount.into()])?;
    /// series.insert_values(Steps(2), &[false.into(), Value::Null])?;
    /// assert!(series.insert_values(Steps(3), &[Value::Null, Value::Null]).is_err());
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let series = snap.series("shop")?.ok_or("no such series")?;
    /// assert_eq!(series.query(..).aggregate(1)?.sum(), 19.99);
    /// let last = series.latest()?.ok_or("no row")?;
    /// assert_eq!(series.values(&last)?, [Value::Bool(false), Value::Null]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the values do not fit the columns; `InvalidInput` for a text that is not a time; a full disk.
    pub fn insert_values(&mut self, t: impl Instant, values: &[Value]) -> Result<()> {
        if values.len() != self.columns() {
            return self.wrong_columns(values.len());
        }
        let info = Arc::clone(&self.txn.open[self.index].info);
        let time = t.in_unit(info.schema.unit)?;
        self.insert_made(time, |series, words| {
            for (c, value) in values.iter().enumerate() {
                words[c] = series.word(c, value)?;
            }
            Ok(())
        })
    }

    /// The stored word for a value of a column, for `insert_row` and `append_rows`. A text that is new is stored.
    ///
    /// # Errors
    /// `Schema` if the value does not fit the column; `Limit` if a text is too long; a full disk.
    ///
    /// # Panics
    /// If the column does not exist.
    pub fn word(&mut self, column: usize, value: &Value) -> Result<u64> {
        let info = Arc::clone(&self.txn.open[self.index].info);
        let own = &info.schema.columns[column];
        if !own.ty.is_text() {
            return own.word(value);
        }
        match own.text(value)? {
            Some(text) => self.text_word(column, text),
            None => Ok(own.words().fill()),
        }
    }

    /// The word that stands for a text. The text is stored if it is new.
    pub(crate) fn text_word(&mut self, column: usize, text: &[u8]) -> Result<u64> {
        let place = (self.id(), column);
        self.txn.changing(|txn| {
            txn.texts
                .word(&mut txn.pages, &mut txn.roots.texts, place, text)
        })
    }

    /// Checks that every word in a text column stands for a stored text, so that no row has a dangling reference.
    /// `words` returns the words of a column.
    fn expect_texts<'w>(&mut self, words: impl Fn(usize) -> &'w [u64]) -> Result<()> {
        let info = Arc::clone(&self.txn.open[self.index].info);
        for (c, column) in info.schema.columns.iter().enumerate() {
            if !column.ty.is_text() {
                continue;
            }
            for &word in words(c) {
                let txn = &mut *self.txn;
                if !column.is_null(word)
                    && !txn
                        .texts
                        .knows(&txn.pages, &txn.roots.texts, (info.id, c), word)?
                {
                    return Err(column.problem(format!("{word} is the number of no text")));
                }
            }
        }
        Ok(())
    }

    /// Inserts a record. If its time is a [`Timestamp`](crate::Timestamp), the row gets the last whole step of the
    /// series' unit at or before that time.
    ///
    /// # Errors
    /// `Schema` if series and record have different columns, or if the record's time is a number and the series has
    /// another unit; a full disk.
    #[inline]
    pub fn insert_record<R: Record>(&mut self, record: &R) -> Result<()> {
        self.txn.open[self.index].expect_record(R::schema, R::ANY_UNIT)?;
        let unit = self.info().schema.unit;
        self.insert_made(record.time_in(unit)?, |series, words| {
            let txn = &mut *series.txn;
            let info = &txn.open[series.index].info;
            record.write(&mut RowWriter {
                columns: &info.schema.columns,
                words,
                at: 0,
                texts: Some(TextSink {
                    texts: &mut txn.texts,
                    tree: &mut txn.roots.texts,
                    pages: &mut txn.pages,
                    broken: &mut txn.broken,
                    series: info.id,
                }),
            })
        })
    }

    /// Appends columns to the series. In existing rows the new columns are null, or zero if they have no nulls;
    /// existing rows are not rewritten, except those still in the delta.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Column, ColumnType, Options, Steps, Value};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("load")?;
    /// series.insert(Steps(1), 0.5)?;
    /// series.add_columns(&[Column::nullable("cores", ColumnType::U64)])?;
    /// series.insert_values(Steps(2), &[0.into(), 0.75.into(), 8u64.into()])?;
    /// let series = series.view()?;
    /// assert_eq!(series.query(..).aggregate(2)?.count(), 1);
    /// let first = series.at(Steps(1))?.ok_or("no row")?;
    /// assert_eq!(series.values(&first)?[2], Value::Null);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if a name exists already or there are too many columns; `Limit` if a time has more rows than a series
    /// of that many columns accepts; a damaged block that must be read; a full disk.
    ///
    /// # Cost
    /// The rows of the series that are in the delta are moved to leaves.
    pub fn add_columns(&mut self, columns: &[Column]) -> Result<()> {
        self.expect_own_rows()?;
        let info = Arc::clone(&self.txn.open[self.index].info);
        let mut schema = info.schema.clone();
        schema.columns.extend_from_slice(columns);
        schema.validate()?;
        self.expect_room_with(schema.columns.len())?;
        let types = info.schema.word_types();
        let all = schema.word_types();
        let (id, slot) = (info.id, self.slot);
        self.txn.finish_background(slot)?;
        let (info, slot) = self.txn.changing(|txn| {
            let mut waiting = Rows::new(types.len());
            txn.delta.rows(&txn.pages, id, &types, EVER, &mut waiting)?;
            let late = Rows::merge_newest(waiting.view(), txn.write_buffer.rows(slot));
            if !late.is_empty() {
                // The delta stores rows by column layout, so it cannot keep rows of this series with the old layout.
                let (from, to) = EVER;
                txn.write_buffer.delete(slot, from, to);
                txn.delta.delete(&mut txn.pages, id, &types, EVER)?;
                txn.leaves.link(&mut txn.pages, id, &types, late.view())?;
            }
            let added = &all[types.len()..];
            txn.leaves.add_columns(&mut txn.pages, id, &types, added)?;
            let info = entries::change_schema(&mut txn.roots, &mut txn.pages, &info, schema)?;
            Ok((info, txn.write_buffer.renew(id, &all)))
        })?;
        if info.merge.keeps_several() {
            self.txn.write_buffer.keep_all(slot, true);
            *self.guard() = Guard::default();
        }
        self.slot = slot;
        self.txn.open.widened(self.index, info, slot);
        self.point = self.open().point;
        Ok(())
    }

    /// Inserts many rows, in any order, given as times and one slice of words per column, all of equal length.
    ///
    /// # Errors
    /// `Schema` if columns or lengths do not fit; a full disk.
    pub fn append_rows(&mut self, times: &[i64], columns: &[&[u64]]) -> Result<()> {
        if columns.len() != self.columns() || columns.iter().any(|c| c.len() != times.len()) {
            return self.wrong_columns(columns.len());
        }
        self.txn.check_usable()?;
        if self.has_texts() {
            self.expect_texts(|c| columns[c])?;
        }
        if self.is_guarded() && self.keeps_several() {
            return self.keep_rows(RowsRef::new(times, columns));
        }
        if self.is_guarded() {
            let places = self.admitted(times)?;
            return match places {
                None => {
                    self.buffer_rows(RowsRef::new(times, columns))?;
                    self.note_all(times.iter().copied());
                    Ok(())
                }
                Some(places) => {
                    let kept: Vec<i64> = places.iter().map(|&i| times[i as usize]).collect();
                    let words = columns.iter().map(|column| {
                        let words = places.iter().map(|&i| column[i as usize]);
                        words.collect::<Vec<u64>>()
                    });
                    let words: Vec<Vec<u64>> = words.collect();
                    let words: Vec<&[u64]> = words.iter().map(|column| &column[..]).collect();
                    self.buffer_rows(RowsRef::new(&kept, &words))?;
                    self.note_all(kept.iter().copied());
                    Ok(())
                }
            };
        }
        self.buffer_rows(RowsRef::new(times, columns))
    }

    fn buffer_rows(&mut self, rows: RowsRef<'_>) -> Result<()> {
        let mut at = 0;
        while at < rows.len() {
            at += self
                .txn
                .write_buffer
                .append(self.slot, rows.slice(at..rows.len()));
            self.txn.flush_write_buffer()?;
        }
        Ok(())
    }

    /// Removes the rows of an interval; returns the number of rows removed. Aggregates are correct immediately.
    ///
    /// # Errors
    /// A damaged block that must be read; a full disk.
    pub fn delete(&mut self, times: impl Interval) -> Result<u64> {
        self.expect_own_rows()?;
        let (from, to) = times.ends()?.in_unit(self.info().schema.unit);
        if from > to {
            return Ok(0);
        }
        let removed = self.rows_within(from, to)?;
        if removed == 0 {
            return Ok(0);
        }
        if self.is_guarded() {
            *self.guard() = Guard::default();
        }
        let (id, slot) = (self.id(), self.slot);
        let types = self.info().schema.word_types();
        self.txn.pages.free_space();
        self.txn.changing(|txn| {
            txn.write_buffer.delete(slot, from, to);
            txn.delta.delete(&mut txn.pages, id, &types, (from, to))?;
            txn.leaves.delete(&mut txn.pages, id, &types, (from, to))
        })?;
        if self.has_texts() {
            self.trim_texts()?;
        }
        Ok(removed)
    }

    /// Rewrites leaves in cold form, except those in `kept`; returns whether further leaves are left for another step.
    pub(crate) fn cool(
        &mut self,
        before: i64,
        step: &mut Cooling,
        kept: &mut KeptHot,
    ) -> Result<bool> {
        let id = self.id();
        let types = self.info().schema.word_types();
        if !tidalite_codec::COLD {
            let found = "leaves in cold form".to_owned();
            let expected = "a build with the feature `cold`: turn it on and build again".to_owned();
            return Err(tidalite_pager::Error::Unsupported { found, expected }.into());
        }
        self.txn.finish_background(self.slot)?;
        self.txn
            .changing(|txn| (txn.leaves).cool(&mut txn.pages, id, &types, before, (step, kept)))
    }

    /// For each text column, frees the texts that precede the first one still used by a row.
    fn trim_texts(&mut self) -> Result<()> {
        let info = Arc::clone(&self.txn.open[self.index].info);
        for (c, column) in info.schema.columns.iter().enumerate() {
            if !column.ty.is_text() {
                continue;
            }
            let whole = self.view()?.query(..).aggregate(c)?;
            let least = whole.stats().min().map(|(word, _)| word);
            self.txn.changing(|txn| {
                let tree = &mut txn.roots.texts;
                Texts::trim(&mut txn.pages, tree, (info.id, c), least)
            })?;
        }
        Ok(())
    }

    #[cold]
    fn wrong_columns<T>(&self, found: usize) -> Result<T> {
        Err(wrong_columns(self.info(), self.columns(), found))
    }
}
