//! Rows into series.
//!
//! Invariants:
//! 1. Points wait in one buffer a series and are handed over in stretches; all buffers
//!    together hold at most [`WAITING_MAX`] points.
//! 2. A series is created with its first value: a column that is null throughout leaves none.
//! 3. What was committed is whole: buffers are emptied before every commit.
//! 4. A series that is there keeps its unit of time and its columns: times go into its own steps, and single values only
//!    into the columns of the default point. Which series are there is asked of the newest commit, once the transaction
//!    has begun: from then on nobody else changes them.

use crate::database::{failure, step_at};
use crate::exit::{Failure, Outcome};
use crate::import::batch::Batch;
use crate::import::layout::Named;
use crate::store;
use std::collections::HashMap;
use std::path::Path;
use tidalite::{
    Column, Database, MergePolicy, ReadTxn, Schema, SeriesId, SeriesInfo, SeriesName, Unit,
    WriteTxn,
};

/// Points that wait in all buffers together: about 64 MiB.
const WAITING_MAX: usize = 4 * 1024 * 1024;

/// Points of one buffer that are worth handing over: a vector of the file format, times four.
const STRETCH: usize = 4096;

/// What was stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Rows read.
    pub rows: u64,
    /// Values stored.
    pub points: u64,
    /// Of these, points that took the place of the one before them in the input, at the same time.
    pub replaced: u64,
    /// Series that got values.
    pub series: u64,
    /// Rows left out.
    pub bad_rows: u64,
    /// Durable commits.
    pub commits: u64,
}

/// One series that is being filled.
struct Slot {
    name: String,
    id: Option<SeriesId>,
    /// Of its times, as soon as a value comes.
    unit: Option<Unit>,
    times: Vec<i64>,
    words: Vec<u64>,
    last_time: Option<i64>,
    /// Of the points that wait, those at the same time as the one before them.
    repeated: u64,
}

/// Which series rows are for, and what these are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aim<'a> {
    /// `--prefix`: before every name.
    pub prefix: &'a str,
    /// `--into`: the series that has all columns of the input.
    pub into: Option<&'a str>,
    /// `--merge`: what the series do with a second point at one time.
    pub merge: Option<MergePolicy>,
    /// `--unit`: of the times of series that are not there yet.
    pub unit: Unit,
}

/// The transaction under way.
struct Open {
    txn: WriteTxn,
    /// The newest commit before it.
    before: ReadTxn,
}

/// Begins the transaction, if there is none.
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

/// Writes rows to a database.
pub(crate) struct Loader<'a> {
    database: Database,
    path: &'a Path,
    aim: Aim<'a>,
    open: Option<Open>,
    slots: Vec<Slot>,
    /// Slots by name: inputs with other columns may lead to the same series.
    by_name: HashMap<String, usize>,
    /// `--series`: a row has the whole name of its series.
    names_series: bool,
    /// For the columns of the current input: the slots of each combination of tags, by its number.
    by_tags: Vec<Vec<usize>>,
    /// Zeros, as long as the longest stretch: the flags of the points.
    flags: Vec<u64>,
    /// The time of a row for each of its series, whose units may differ.
    steps: Vec<i64>,
    waiting: usize,
    tally: Tally,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(database: Database, path: &'a Path, aim: Aim<'a>) -> Self {
        Self {
            aim,
            names_series: false,
            database,
            path,
            open: None,
            slots: Vec::new(),
            by_name: HashMap::new(),
            by_tags: Vec::new(),
            flags: Vec::new(),
            steps: Vec::new(),
            waiting: 0,
            tally: Tally::default(),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Another input with other columns follows.
    pub(crate) fn next_input(&mut self, names_series: bool) {
        self.names_series = names_series;
        self.by_tags.clear();
    }

    /// A row that was left out.
    pub(crate) fn bad_row(&mut self) {
        self.tally.bad_rows += 1;
    }

    /// Makes the slots of the combinations of tags that a batch is the first to use.
    pub(crate) fn meet(&mut self, batch: &Batch, tags: &[Named], values: &[Named]) -> Outcome {
        let into = self.aim.into.map(|name| Named {
            index: 0,
            name: name.to_owned(),
        });
        let values = into.as_ref().map_or(values, std::slice::from_ref);
        for texts in &batch.combinations {
            let slots = values
                .iter()
                .map(|value| self.slot(value, tags, texts))
                .collect::<Outcome<Vec<usize>>>()?;
            self.by_tags.push(slots);
        }
        Ok(())
    }

    /// One row of a batch that was met; why it is a bad one, if a series cannot have its time.
    pub(crate) fn row(&mut self, batch: &Batch, row: usize) -> Outcome<Result<(), String>> {
        let (nanos, tags) = (batch.times[row], batch.tags[row] as usize);
        let width = self.by_tags[tags].len();
        let values = &batch.values[row * width..(row + 1) * width];
        // All of a row or nothing of it: its times come first.
        let mut known = None;
        self.steps.clear();
        for (column, value) in values.iter().enumerate() {
            if value.is_none() {
                self.steps.push(0);
                continue;
            }
            let index = self.by_tags[tags][column];
            let unit = match self.slots[index].unit {
                Some(unit) => unit,
                None => self.unit_of_values(index)?,
            };
            let step = match known {
                Some((own, step)) if own == unit => step,
                _ => match step_at(unit, nanos, &self.slots[index].name) {
                    Ok(step) => step,
                    Err(why) => return Ok(Err(why)),
                },
            };
            known = Some((unit, step));
            self.steps.push(step);
        }
        self.tally.rows += 1;
        let slots = &self.by_tags[tags];
        let mut full = false;
        for ((index, value), &time) in slots.iter().zip(values).zip(&self.steps) {
            let Some(value) = value else { continue };
            let slot = &mut self.slots[*index];
            slot.repeated += u64::from(slot.last_time == Some(time));
            slot.last_time = Some(time);
            slot.times.push(time);
            slot.words.push(value.to_bits());
            self.waiting += 1;
            self.tally.points += 1;
            full |= slot.times.len() >= STRETCH;
        }
        if full {
            let full: Vec<usize> = slots
                .iter()
                .copied()
                .filter(|i| self.slots[*i].times.len() >= STRETCH)
                .collect();
            for index in full {
                self.hand_over(index)?;
            }
        }
        if self.waiting >= WAITING_MAX {
            self.hand_over_all()?;
        }
        Ok(Ok(()))
    }

    /// One row of a batch that was met, all of it into one series with these columns; why it is a bad one, if the series
    /// cannot have its time.
    pub(crate) fn typed_row(
        &mut self,
        batch: &Batch,
        row: usize,
        columns: &[Column],
    ) -> Outcome<Result<(), String>> {
        let index = self.by_tags[batch.tags[row] as usize][0];
        let unit = match self.slots[index].unit {
            Some(unit) => unit,
            None => {
                let there = self.series_before(index)?;
                let unit = there.map_or(self.aim.unit, |info| info.schema.unit);
                *self.slots[index].unit.insert(unit)
            }
        };
        let time = match step_at(unit, batch.times[row], &self.slots[index].name) {
            Ok(time) => time,
            Err(why) => return Ok(Err(why)),
        };
        let path = self.path;
        let fail = |error: tidalite::Error| failure(path, &error);
        let txn = &mut begin(&mut self.open, &self.database, path)?.txn;
        let slot = &mut self.slots[index];
        let mut series = match slot.id {
            Some(id) => txn.series_by_id(id).map_err(fail)?,
            None => {
                let columns = columns.to_vec();
                let schema = Schema { unit, columns };
                let mut series = txn.series_extended(&slot.name, &schema).map_err(fail)?;
                if let Some(merge) = self.aim.merge {
                    series.set_merge(merge).map_err(fail)?;
                }
                slot.id = Some(series.id());
                self.tally.series += 1;
                series
            }
        };
        let cells = &batch.cells[row * columns.len()..(row + 1) * columns.len()];
        series.insert_values(time, cells).map_err(fail)?;
        self.tally.rows += 1;
        self.tally.points += 1;
        let replaces = series.info().merge == MergePolicy::Replace;
        self.tally.replaced += u64::from(replaces && slot.last_time == Some(time));
        slot.last_time = Some(time);
        Ok(Ok(()))
    }

    /// Commits everything so far.
    pub(crate) fn commit(&mut self) -> Outcome {
        self.hand_over_all()?;
        if let Some(open) = self.open.take() {
            drop(open.before);
            store::commit(open.txn).map_err(|error| failure(self.path, &error))?;
            self.tally.commits += 1;
        }
        Ok(())
    }

    fn slot(&mut self, value: &Named, tags: &[Named], texts: &[String]) -> Outcome<usize> {
        let name = if self.names_series {
            self.named(texts)?
        } else {
            self.made_of_tags(value, tags, texts)?
        };
        let name = name.to_string();
        if let Some(index) = self.by_name.get(&name) {
            return Ok(*index);
        }
        self.by_name.insert(name.clone(), self.slots.len());
        self.slots.push(Slot {
            name,
            id: None,
            unit: None,
            times: Vec::new(),
            words: Vec::new(),
            last_time: None,
            repeated: 0,
        });
        Ok(self.slots.len() - 1)
    }

    /// The name that the row has, with the prefix.
    fn named(&self, texts: &[String]) -> Outcome<SeriesName> {
        let name = SeriesName::parse(texts.first().map_or("", String::as_str));
        let name = name.and_then(|name| {
            let metric = format!("{}{}", self.aim.prefix, name.metric());
            SeriesName::new(metric, name.tags().to_vec())
        });
        name.map_err(Failure::bad_input)
    }

    fn made_of_tags(&self, value: &Named, tags: &[Named], texts: &[String]) -> Outcome<SeriesName> {
        let tags = tags
            .iter()
            .zip(texts)
            .filter(|(_, text)| !text.is_empty())
            .map(|(tag, text)| (tag.name.clone(), text.clone()));
        let metric = format!("{}{}", self.aim.prefix, value.name);
        SeriesName::new(metric, tags).map_err(|error| {
            Failure::bad_input(error)
                .hint("give the column another name: --value COLUMN=NAME, --tag COLUMN=NAME")
        })
    }

    /// What is known of the series of a slot, if it was there before the transaction.
    fn series_before(&mut self, index: usize) -> Outcome<Option<SeriesInfo>> {
        let before = &begin(&mut self.open, &self.database, self.path)?.before;
        let found = before.series(&self.slots[index].name);
        let found = found.map_err(|error| failure(self.path, &error))?;
        Ok(found.map(|series| series.info().clone()))
    }

    /// The unit of a series that takes single values. One that is there has to have the columns of the default point: into
    /// others the values would go where they do not belong.
    fn unit_of_values(&mut self, index: usize) -> Outcome<Unit> {
        let unit = match self.series_before(index)? {
            None => self.aim.unit,
            Some(info) if info.schema.columns == Schema::point().columns => info.schema.unit,
            Some(info) => return Err(other_columns(&info)),
        };
        self.slots[index].unit = Some(unit);
        Ok(unit)
    }

    fn hand_over_all(&mut self) -> Outcome {
        for index in 0..self.slots.len() {
            if !self.slots[index].times.is_empty() {
                self.hand_over(index)?;
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, index: usize) -> Outcome {
        let path = self.path;
        let fail = |error: tidalite::Error| failure(path, &error);
        let txn = &mut begin(&mut self.open, &self.database, path)?.txn;
        let slot = &mut self.slots[index];
        let mut series = match slot.id {
            Some(id) => txn.series_by_id(id),
            None => {
                let unit = slot.unit.unwrap_or_default();
                let columns = Schema::point().columns;
                txn.series_with(&slot.name, &Schema { unit, columns })
            }
        }
        .map_err(fail)?;
        if slot.id.is_none() {
            if let Some(merge) = self.aim.merge {
                series.set_merge(merge).map_err(fail)?;
            }
            slot.id = Some(series.id());
            self.tally.series += 1;
        }
        let points = slot.times.len();
        if self.flags.len() < points {
            self.flags.resize(points, 0);
        }
        series
            .append_rows(&slot.times, &[&self.flags[..points], &slot.words])
            .map_err(fail)?;
        let repeated = std::mem::take(&mut slot.repeated);
        if series.info().merge == MergePolicy::Replace {
            self.tally.replaced += repeated;
        }
        slot.times.clear();
        slot.words.clear();
        self.waiting -= points;
        Ok(())
    }
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
        "series {name} has {own}; single values go into {wanted} alone"
    ))
    .hint(format!(
        "name its columns: --into or --series, with --columns '{}'; or give another name: --value COLUMN=NAME, --prefix",
        columns.join(",")
    ))
}
