//! Stores the rows of an import in series.
//!
//! Invariants:
//! 1. Points wait in one buffer per series and are written in batches; all buffers together hold about
//!    [`WAITING_BYTES_MAX`] at most.
//! 2. A series is created with its first value: a column that has only nulls does not create a series.
//! 3. A commit includes all rows before it: buffers are written before every commit.
//! 4. An existing series keeps its unit of time and its columns: times are converted to its unit, and single values are
//!    stored only in the columns of the default point, or in a lone column `value` of whole numbers. Whether a series
//!    exists is read from the newest commit after the write transaction has begun: from then on no other writer can
//!    change the series.

use crate::database::{failure, failure_in, step_at};
use crate::exit::{Failure, Outcome};
use crate::import::batch::Batch;
use crate::import::number::{Number, type_of_all};
use crate::import::open::Rows;
use crate::import::replaced::{Replaced, Times};
use crate::import::table::Named;
use crate::import::texts::Texts;
use crate::output::printable;
use crate::store;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tidalite::{
    Column, ColumnType, Database, MergePolicy, ReadTxn, Schema, SeriesId, SeriesInfo, SeriesMut,
    SeriesName, Steps, Unit, WriteTxn,
};

/// Maximum number of bytes of buffered rows in all buffers together.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Number of points in one buffer at which the buffer is written: four vectors of the file format.
const STRETCH: usize = 4096;

/// Number of bytes in memory of a buffered single value: its time and its word.
const POINT_BYTES: usize = size_of::<i64>() + size_of::<u64>();

/// Counts of an import, for its summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of rows read.
    pub rows: u64,
    /// Number of values read.
    pub points: u64,
    /// Number of committed values that replaced others at the same time, and of those left out for this reason.
    pub replaced: Replaced,
    /// Number of series that received values.
    pub series: u64,
    /// Number of rows that were left out because they are bad.
    pub bad_rows: u64,
    /// Number of bad cells that were left out of stored rows.
    pub bad_cells: u64,
    /// Number of commits made.
    pub commits: u64,
}

impl Tally {
    /// Number of values of the import that are in the database.
    pub(crate) fn stored(&self) -> u64 {
        let lost = self.replaced.own + self.replaced.left_out;
        self.points.saturating_sub(lost)
    }
}

/// A series that receives rows, with its buffered rows.
struct Slot {
    name: String,
    /// Unit of the values, which becomes an annotation of a new series.
    values_unit: Option<String>,
    id: Option<SeriesId>,
    /// Unit of the series' times; known as soon as the first value arrives.
    unit: Option<Unit>,
    /// Columns of `--columns`; `None` for a series of single values.
    typed: Option<Arc<[Column]>>,
    /// Type of a series of single values, known together with the unit. A new series stores doubles; while all of its
    /// values are still buffered, the type may change to whole numbers, for values that a double cannot represent.
    single: ColumnType,
    is_new: bool,
    /// Whether it was checked that the series has these columns.
    is_checked: bool,
    times: Vec<i64>,
    /// The buffered values of each column, as stored words; for texts, as their numbers in `texts`.
    words: Vec<Vec<u64>>,
    texts: Texts,
    /// Summary of the rows' times, to find out whether rows may replace others.
    order: Times,
    /// Whether the merge policy of the series is `Replace`: the newer row of a time wins.
    replaces: bool,
    /// Number of bytes in memory of the buffered rows.
    waiting_bytes: usize,
}

impl Slot {
    /// Converts a single value to the word that the series stores.
    ///
    /// # Errors
    /// The reason why the series cannot store the value.
    fn word(&mut self, number: Number, texts: &Texts) -> Result<u64, String> {
        if let (Number::Text(text), ColumnType::String) = (number, self.single) {
            return Ok(self.texts.push(texts.get(text).unwrap_or_default()));
        }
        let word = number.word(self.single);
        // The type of the series can still change, because all of its values are buffered.
        if word.is_err()
            && self.is_new
            && self.id.is_none()
            && let Some((ty, words)) = type_of_all(&self.words[0], self.single, number)
        {
            (self.single, self.words[0]) = (ty, words);
            return number.word(ty);
        }
        word
    }

    /// Completes a buffered row whose words were pushed, by adding its time.
    fn end_row(&mut self, time: i64, bytes: usize) {
        self.order.push(time);
        self.times.push(time);
        self.waiting_bytes += bytes;
    }
}

/// Names and properties of the series that receive the rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aim<'a> {
    /// The option `--prefix`: a text in front of every series name.
    pub prefix: &'a str,
    /// The option `--into`: name of the series that receives all columns of the input.
    pub into: Option<&'a str>,
    /// The option `--merge`: policy for a second point at the same time.
    pub merge: Option<MergePolicy>,
    /// The option `--unit`: unit of the times of new series.
    pub unit: Unit,
    /// The option `--on-error null`: a value that its series cannot store is left out of its row.
    pub bad_cells_are_null: bool,
}

/// Roles of the columns of an input.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Columns that become tags; with `names_series`, the column with the full series name.
    pub tags: Vec<Named>,
    /// Whether a column contains the name of each row's series.
    pub names_series: bool,
    /// Columns that become one series each or, with `typed`, the columns of one series.
    pub values: Vec<Named>,
    /// Schema of the columns if they form one series; empty if each column becomes a series.
    pub typed: Arc<[Column]>,
    /// Whether the values have types of their own, as in the line protocol: integers are not stored as doubles.
    pub has_types: bool,
    /// Units of the columns of the input, for the annotation `unit` of series that have none.
    pub units: Vec<Option<String>>,
    /// Tags that every series gets, as keys and texts.
    pub fixed_tags: Vec<(String, String)>,
    /// The series that receives all rows, if it is given with its full name.
    pub series: Option<SeriesName>,
}

impl Columns {
    pub(crate) fn of(rows: &Rows<'_>, fixed_tags: Vec<(String, String)>) -> Self {
        let layout = rows.layout();
        Self {
            tags: layout.tags.clone(),
            names_series: layout.names_series,
            values: layout.values.clone(),
            typed: layout.typed.clone().into(),
            has_types: rows.reading.has_types(),
            units: rows.units.clone(),
            fixed_tags,
            series: None,
        }
    }

    /// The unit of the series of a value column. A series of several columns has no unit.
    fn unit(&self, value: &Named) -> Option<&String> {
        let is_single = self.typed.len() < 2 && !self.names_series;
        self.units.get(value.index)?.as_ref().filter(|_| is_single)
    }
}

/// The annotation that holds the unit of the values of a series.
const UNIT_KEY: &str = "unit";

/// The open transaction of an import.
struct Open {
    txn: WriteTxn,
    /// A snapshot of the commit on which the transaction was begun.
    before: ReadTxn,
}

/// Begins a transaction if none is open.
fn begin<'o>(
    open: &'o mut Option<Open>,
    database: &Database,
    path: &Path,
) -> Outcome<&'o mut Open> {
    let fail = |error: tidalite::Error| failure(path, &error);
    let now = match open.take() {
        Some(now) => now,
        None => Open {
            txn: database.begin_write().map_err(fail)?,
            before: database.begin_read().map_err(fail)?,
        },
    };
    Ok(open.insert(now))
}

/// Writes the rows of an import to a database.
pub(crate) struct Loader<'a> {
    database: Database,
    path: &'a Path,
    aim: Aim<'a>,
    open: Option<Open>,
    slots: Vec<Slot>,
    /// Index of each series' slot by name; inputs with different columns may write to the same series.
    by_name: HashMap<String, usize>,
    /// For the current input: the slots by reader thread and by number of the combination of tags.
    by_tags: Vec<Vec<Vec<usize>>>,
    /// Zeros for the column of flags, as many as the longest batch that was written.
    flags: Vec<u64>,
    /// Time and word of each value of the current row, converted for its series; the series may differ in units and
    /// types.
    points: Vec<Option<(i64, u64)>>,
    /// The reasons why values of the last row were left out.
    bad_cells: Vec<String>,
    waiting_bytes: usize,
    tally: Tally,
    /// Whether the current line of the input counts already: lines of the line protocol have a row for each field.
    line_counted: bool,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(database: Database, path: &'a Path, aim: Aim<'a>) -> Self {
        Self {
            aim,
            database,
            path,
            open: None,
            slots: Vec::new(),
            by_name: HashMap::new(),
            by_tags: Vec::new(),
            flags: Vec::new(),
            points: Vec::new(),
            bad_cells: Vec::new(),
            waiting_bytes: 0,
            tally: Tally::default(),
            line_counted: false,
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Prepares the loader for the next input, which may have other columns.
    pub(crate) fn next_input(&mut self) {
        self.by_tags.clear();
    }

    /// Counts a row that was left out because it is bad.
    pub(crate) fn bad_row(&mut self) {
        self.tally.bad_rows += 1;
    }

    /// Counts a cell that was left out because it is bad.
    pub(crate) fn bad_cell(&mut self) {
        self.tally.bad_cells += 1;
    }

    /// Takes the reasons why values of the last row were left out.
    pub(crate) fn take_bad_cells(&mut self) -> Vec<String> {
        std::mem::take(&mut self.bad_cells)
    }

    /// Creates the slots for the combinations of tags that are new in a batch: with `typed` columns one slot for each
    /// combination, otherwise one for each combination and value column.
    pub(crate) fn meet(&mut self, batch: &Batch, columns: &Columns) -> Outcome {
        let into = self.aim.into.map(|name| Named {
            index: columns.values.first().map_or(0, |value| value.index),
            name: name.to_owned(),
        });
        let values = match &into {
            Some(into) => std::slice::from_ref(into),
            // All value columns go into a single series, whose name is in the row, so one column is enough to find the
            // slot.
            None if !columns.typed.is_empty() => &columns.values[..1],
            None => &columns.values,
        };
        if self.by_tags.len() <= batch.reader {
            self.by_tags.resize_with(batch.reader + 1, Vec::new);
        }
        for texts in &batch.combinations {
            let slots = values
                .iter()
                .map(|value| self.slot(value, texts, columns))
                .collect::<Outcome<Vec<usize>>>()?;
            self.by_tags[batch.reader].push(slots);
        }
        Ok(())
    }

    /// Adds one row of a batch that was passed to `meet`. The inner error says why a series cannot store the row's time
    /// or a value.
    pub(crate) fn row(
        &mut self,
        batch: &Batch,
        row: usize,
        columns: &Columns,
    ) -> Outcome<Result<(), String>> {
        let (nanos, tags) = (batch.times[row], batch.tags[row] as usize);
        let width = self.by_tags[batch.reader][tags].len();
        let values = &batch.values[row * width..(row + 1) * width];
        if batch.begins_line(row) {
            self.line_counted = false;
        }
        // A row is stored whole or not at all, so all of its values are converted before any is buffered.
        let mut known = None;
        self.points.clear();
        for (column, value) in values.iter().enumerate() {
            let &Some(number) = value else {
                self.points.push(None);
                continue;
            };
            let index = self.by_tags[batch.reader][tags][column];
            let unit = match self.slots[index].unit {
                Some(unit) => unit,
                None => self.unit_of_values(index, number, columns)?,
            };
            let slot = &mut self.slots[index];
            let step = match known {
                Some((own, step)) if own == unit => step,
                _ => match step_at(unit, nanos, &slot.name) {
                    Ok(step) => step,
                    Err(why) => return Ok(Err(why)),
                },
            };
            known = Some((unit, step));
            let point = match slot.word(number, &batch.texts) {
                Ok(word) => Some((step, word)),
                Err(why) => {
                    let why = format!("series {}: {why}", printable(&slot.name));
                    if !self.aim.bad_cells_are_null {
                        return Ok(Err(why));
                    }
                    self.bad_cells.push(why);
                    None
                }
            };
            self.points.push(point);
        }
        self.tally.rows += u64::from(!std::mem::replace(&mut self.line_counted, true));
        let slots = &self.by_tags[batch.reader][tags];
        let mut full = false;
        for (index, point) in slots.iter().zip(&self.points) {
            let &Some((time, word)) = point else { continue };
            let slot = &mut self.slots[*index];
            slot.words[0].push(word);
            let text = match slot.single {
                ColumnType::String => slot.texts.get(word).map_or(0, <[u8]>::len),
                _ => 0,
            };
            slot.end_row(time, POINT_BYTES + text);
            self.waiting_bytes += POINT_BYTES + text;
            self.tally.points += 1;
            full |= slot.times.len() >= STRETCH;
        }
        if full {
            for column in 0..width {
                let index = self.by_tags[batch.reader][tags][column];
                if self.slots[index].times.len() >= STRETCH {
                    self.hand_over(index)?;
                }
            }
        }
        if self.waiting_bytes >= WAITING_BYTES_MAX {
            self.hand_over_all()?;
        }
        Ok(Ok(()))
    }

    /// Adds one row of a batch that was passed to `meet` to the single series with these columns. The inner error says
    /// why the series cannot store the row's time.
    pub(crate) fn typed_row(
        &mut self,
        batch: &Batch,
        row: usize,
        columns: &[Column],
    ) -> Outcome<Result<(), String>> {
        let index = self.by_tags[batch.reader][batch.tags[row] as usize][0];
        let unit = match self.slots[index].unit {
            Some(unit) => unit,
            None => {
                let there = self.series_before(index)?;
                let unit = there.map_or(self.aim.unit, |info| info.schema.unit);
                *self.slots[index].unit.insert(unit)
            }
        };
        let slot = &mut self.slots[index];
        let time = match step_at(unit, batch.times[row], &slot.name) {
            Ok(time) => time,
            Err(why) => return Ok(Err(why)),
        };
        let words = &batch.words[row * columns.len()..(row + 1) * columns.len()];
        let mut bytes = size_of::<i64>() * (1 + words.len());
        for ((column, own), &word) in columns.iter().zip(&mut slot.words).zip(words) {
            let text = match column.ty.is_text() {
                true => batch.texts.get(word),
                false => None,
            };
            own.push(match text {
                Some(text) => {
                    bytes += text.len();
                    slot.texts.push(text)
                }
                None => word,
            });
        }
        slot.end_row(time, bytes);
        self.waiting_bytes += bytes;
        self.tally.rows += 1;
        self.tally.points += 1;
        if slot.times.len() >= STRETCH {
            self.hand_over(index)?;
        }
        if self.waiting_bytes >= WAITING_BYTES_MAX {
            self.hand_over_all()?;
        }
        Ok(Ok(()))
    }

    /// Commits all rows that were added so far.
    pub(crate) fn commit(&mut self) -> Outcome {
        self.hand_over_all()?;
        self.count_replaced()?;
        if let Some(open) = self.open.take() {
            drop(open.before);
            store::commit(open.txn).map_err(|error| failure(self.path, &error))?;
            self.tally.commits += 1;
        }
        Ok(())
    }

    /// Counts the points that the rows of this transaction replace.
    ///
    /// # Errors
    /// `BadInput` if the rows replace too many points of the import itself and `--merge` is not given.
    fn count_replaced(&mut self) -> Outcome {
        let path = self.path;
        let fail = |error: tidalite::Error| failure(path, &error);
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let mut after = None;
        let mut example = None;
        for slot in &mut self.slots {
            if slot.order.may_replace() {
                let after = match &after {
                    Some(after) => after,
                    None => after.insert(open.txn.reader().map_err(fail)?),
                };
                let old = open.before.series(&slot.name).map_err(fail)?;
                if let Some(new) = after.series(&slot.name).map_err(fail)? {
                    let replaced = slot.order.replaced(old.as_ref(), &new, slot.replaces);
                    let replaced = replaced.map_err(fail)?;
                    if replaced.own > 0 && example.is_none() {
                        example = Some(slot.name.clone());
                    }
                    self.tally.replaced.add(replaced);
                }
            }
            slot.order.end_transaction();
        }
        let (replaced, points) = (self.tally.replaced, self.tally.points);
        match example {
            Some(name) if self.aim.merge.is_none() && replaced.is_suspicious(points) => {
                Err(replaced.refusal(points, &name))
            }
            _ => Ok(()),
        }
    }

    /// Closes the database; rows that are not committed are discarded.
    pub(crate) fn close(mut self) -> Outcome {
        drop(self.open.take());
        store::close(self.database).map_err(|error| failure(self.path, &error))
    }

    fn slot(&mut self, value: &Named, texts: &[String], columns: &Columns) -> Outcome<usize> {
        let name = if let Some(series) = &columns.series {
            series.clone()
        } else if columns.names_series {
            self.named(texts, columns)?
        } else {
            self.made_of_tags(value, columns, texts)?
        };
        let name = name.to_string();
        let typed = Some(&columns.typed)
            .filter(|typed| !typed.is_empty())
            .cloned();
        if let Some(&index) = self.by_name.get(&name) {
            if self.slots[index].typed != typed {
                // Another input has other columns for this series. Whether these fit is checked at the next write.
                self.hand_over(index)?;
                let slot = &mut self.slots[index];
                slot.words
                    .resize_with(typed.as_ref().map_or(1, |typed| typed.len()), Vec::new);
                slot.typed = typed;
                slot.is_checked = false;
            }
            return Ok(index);
        }
        self.by_name.insert(name.clone(), self.slots.len());
        self.slots.push(Slot {
            name,
            values_unit: columns.unit(value).cloned(),
            id: None,
            unit: None,
            words: vec![Vec::new(); typed.as_ref().map_or(1, |typed| typed.len())],
            typed,
            single: ColumnType::F64,
            is_new: false,
            is_checked: false,
            times: Vec::new(),
            texts: Texts::default(),
            order: Times::default(),
            replaces: true,
            waiting_bytes: 0,
        });
        Ok(self.slots.len() - 1)
    }

    /// Parses the name of the series that a row contains, and puts the prefix in front.
    fn named(&self, texts: &[String], columns: &Columns) -> Outcome<SeriesName> {
        let name = SeriesName::parse(texts.first().map_or("", String::as_str));
        let name = name.and_then(|name| {
            let metric = format!("{}{}", self.aim.prefix, name.metric());
            let own = name.tags().iter().cloned();
            SeriesName::new(metric, own.chain(columns.fixed_tags.iter().cloned()))
        });
        name.map_err(Failure::bad_input)
    }

    fn made_of_tags(
        &self,
        value: &Named,
        columns: &Columns,
        texts: &[String],
    ) -> Outcome<SeriesName> {
        let tags = columns
            .tags
            .iter()
            .zip(texts)
            .filter(|(_, text)| !text.is_empty())
            .map(|(tag, text)| (tag.name.clone(), text.clone()))
            .chain(columns.fixed_tags.iter().cloned());
        let metric = format!("{}{}", self.aim.prefix, value.name);
        SeriesName::new(metric, tags).map_err(|error| {
            Failure::bad_input(error)
                .hint("give the column another name: --value COLUMN=NAME, --tag COLUMN=NAME")
        })
    }

    /// The catalog entry of a slot's series, if the series existed before the transaction.
    fn series_before(&mut self, index: usize) -> Outcome<Option<SeriesInfo>> {
        let path = self.path;
        let fail = |error: tidalite::Error| failure(path, &error);
        let before = &begin(&mut self.open, &self.database, path)?.before;
        let slot = &mut self.slots[index];
        let Some(series) = before.series(&slot.name).map_err(fail)? else {
            return Ok(None);
        };
        let last = series.latest().map_err(fail)?;
        slot.order.begin_behind(last.map(|row| row.time));
        Ok(Some(series.info().clone()))
    }

    /// Determines the unit and the type of a series of single values, when its first value arrives. An existing series
    /// must have the columns of the default point, or a lone column `value`: in other columns the values would be
    /// misplaced.
    fn unit_of_values(&mut self, index: usize, first: Number, columns: &Columns) -> Outcome<Unit> {
        let there = self.series_before(index)?;
        let slot = &mut self.slots[index];
        slot.is_new = there.is_none();
        let (unit, single) = match there {
            None => (self.aim.unit, first.type_alone(columns.has_types)),
            Some(info) => match single_type(&info.schema) {
                Some(single) => (info.schema.unit, single),
                None => return Err(other_columns(&info)),
            },
        };
        (slot.unit, slot.single) = (Some(unit), single);
        Ok(unit)
    }

    fn hand_over_all(&mut self) -> Outcome {
        for index in 0..self.slots.len() {
            self.hand_over(index)?;
        }
        Ok(())
    }

    /// Writes the buffered rows of a series to the transaction. A new series is created now.
    fn hand_over(&mut self, index: usize) -> Outcome {
        let path = self.path;
        let fail = |error: tidalite::Error| failure(path, &error);
        let slot = &mut self.slots[index];
        if slot.times.is_empty() {
            return Ok(());
        }
        let txn = &mut begin(&mut self.open, &self.database, path)?.txn;
        let mut series = match slot.id.filter(|_| slot.is_checked) {
            Some(id) => txn.series_by_id(id),
            None => {
                let unit = slot.unit.unwrap_or_default();
                let columns = match &slot.typed {
                    Some(typed) => typed.to_vec(),
                    None => single_columns(slot.single),
                };
                let schema = Schema { unit, columns };
                match slot.typed {
                    Some(_) => txn
                        .open_series(&slot.name)
                        .schema(&schema)
                        .add_columns()
                        .open(),
                    None => txn.series_with(&slot.name, &schema),
                }
            }
        }
        .map_err(fail)?;
        slot.is_checked = true;
        if slot.id.is_none() {
            if let Some(merge) = self.aim.merge {
                series.set_merge(merge).map_err(fail)?;
            }
            if let Some(unit) = &slot.values_unit
                && series.annotation(UNIT_KEY).map_err(fail)?.is_none()
            {
                series.annotate(UNIT_KEY, unit).map_err(fail)?;
            }
            slot.id = Some(series.id());
            self.tally.series += 1;
        }
        let points = slot.times.len();
        slot.replaces = series.info().merge == MergePolicy::Replace;
        let stored = match &slot.typed {
            None if slot.single == ColumnType::String => {
                append_typed(&mut series, &single_columns(slot.single), slot)
            }
            None if slot.single != ColumnType::F64 => {
                series.append_rows(&slot.times, &[&slot.words[0]])
            }
            None => {
                if self.flags.len() < points {
                    self.flags.resize(points, 0);
                }
                series.append_rows(&slot.times, &[&self.flags[..points], &slot.words[0]])
            }
            Some(columns) => append_typed(&mut series, columns, slot),
        };
        stored.map_err(|error| failure_in(path, &error, series.info().schema.unit))?;
        slot.times.clear();
        slot.words.iter_mut().for_each(Vec::clear);
        slot.texts.truncate(0);
        self.waiting_bytes -= std::mem::take(&mut slot.waiting_bytes);
        Ok(())
    }
}

/// Appends the buffered rows of a series with typed columns. Numbers of buffered texts are converted to the words that
/// the series has for these texts.
fn append_typed(
    series: &mut SeriesMut<'_>,
    columns: &[Column],
    slot: &Slot,
) -> tidalite::Result<()> {
    let is_text = |column: &Column| column.ty.is_text();
    if !slot.replaces && columns.iter().any(is_text) {
        // The series must check the time before it stores the texts of a row: a row that is left out must not leave
        // texts behind.
        let mut values = Vec::with_capacity(columns.len());
        for (row, &time) in slot.times.iter().enumerate() {
            values.clear();
            for (column, words) in columns.iter().zip(&slot.words) {
                values.push(match is_text(column) {
                    true => slot.texts.value(column, words[row]),
                    false => column.value(words[row]),
                });
            }
            series.insert_values(Steps(time), &values)?;
        }
        return Ok(());
    }
    let mut texts: Vec<Vec<u64>> = Vec::new();
    for (place, (column, words)) in columns.iter().zip(&slot.words).enumerate() {
        let mut own = Vec::new();
        if is_text(column) {
            own.reserve(words.len());
            for &number in words {
                own.push(series.word(place, &slot.texts.value(column, number))?);
            }
        }
        texts.push(own);
    }
    let words = columns.iter().zip(&slot.words).zip(&texts);
    let words: Vec<&[u64]> = words
        .map(|((column, words), texts)| match is_text(column) {
            true => &texts[..],
            false => &words[..],
        })
        .collect();
    series.append_rows(&slot.times, &words)
}

/// The columns that a new series of single values gets.
fn single_columns(ty: ColumnType) -> Vec<Column> {
    match ty {
        ColumnType::F64 => Schema::point().columns,
        _ => vec![Column::new("value", ty)],
    }
}

/// The type in which a series with these columns stores single values; `None` if it cannot store any.
fn single_type(schema: &Schema) -> Option<ColumnType> {
    let types = [
        ColumnType::F64,
        ColumnType::I64,
        ColumnType::U64,
        ColumnType::Bool,
        ColumnType::String,
    ];
    let mut types = types.into_iter();
    types.find(|ty| schema.columns == single_columns(*ty))
}

fn other_columns(info: &SeriesInfo) -> Failure {
    let (name, own) = (info.label(), &info.schema);
    let wanted = Schema {
        unit: own.unit,
        ..Schema::point()
    };
    let columns: Vec<String> = own
        .columns
        .iter()
        .map(|column| {
            let null = if column.nullable { "?" } else { "" };
            format!("{}:{}{null}", column.name, column.ty.name())
        })
        .collect();
    Failure::bad_input(format!(
        "series {name} has {own}; single values can be stored only in {wanted}"
    ))
    .hint(format!(
        "name its columns with --into or --series and --columns '{}', or rename the series with --value COLUMN=NAME or --prefix",
        columns.join(",")
    ))
}
