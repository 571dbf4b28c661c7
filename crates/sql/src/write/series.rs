//! Inserts batches of rows into the series of a table.
//!
//! The tags of a row select its series. A series that does not exist is created with the columns of the metric or of
//! its newest series. In a wide table, a row adds one row to each metric for which it has a value.

use crate::error::{Error, ErrorKind, Result};
use crate::metric::layout::{Layout, Source, TIME};
use crate::types::{Clock, cast, column_type};
use crate::write::words::{value, words};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::{ErrorKind as DatabaseErrorKind, Schema, SeriesId, SeriesName, Steps, WriteTxn};

/// Inserts rows into a table of series.
pub(crate) struct SeriesInsert {
    layout: Arc<Layout>,
    /// For each metric, the value columns that belong to it.
    columns: Vec<Vec<usize>>,
    /// For each tag, the values seen so far.
    values: Vec<Values>,
    /// The indexes of series in `series`, by the numbers of their tag values and the index of the source.
    places: HashMap<(Vec<u32>, usize), usize>,
    series: Vec<Target>,
}

/// Values of a tag, numbered from 1; 0 is null.
#[derive(Default)]
struct Values {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

/// A series that receives rows.
struct Target {
    id: SeriesId,
    schema: Schema,
    clock: Clock,
    /// For each column of the series, the value column of the table.
    columns: Vec<Option<usize>>,
}

/// Rows with the same tags.
struct Group {
    tags: Vec<u32>,
    rows: Vec<u32>,
}

impl SeriesInsert {
    pub(crate) fn new(layout: &Arc<Layout>) -> Self {
        Self {
            layout: Arc::clone(layout),
            columns: layout
                .sources
                .iter()
                .map(|source| layout.columns_of(source))
                .collect(),
            values: layout.tags.iter().map(|_| Values::default()).collect(),
            places: HashMap::new(),
            series: Vec::new(),
        }
    }

    /// Inserts a batch that has the columns of the table; returns the number of its rows.
    pub(crate) fn insert(&mut self, txn: &mut WriteTxn, batch: &RecordBatch) -> Result<u64> {
        let times = cast(batch.column(0), self.layout.schema.field(0).data_type())?;
        if times.null_count() > 0 {
            let problem = format!("column {TIME}: every row needs a time, NULL was given");
            return Err(Error::new(ErrorKind::Execution, problem));
        }
        let times = cast(&times, &DataType::Int64)?;
        let groups = self.groups(batch)?;
        let layout = Arc::clone(&self.layout);
        for group in &groups {
            let rows = match groups.len() {
                1 => None,
                _ => Some(UInt32Array::from(group.rows.clone())),
            };
            let part = |array: &ArrayRef| match &rows {
                None => Ok(ArrayRef::clone(array)),
                Some(rows) => Ok::<_, Error>(take(array, rows, None)?),
            };
            let times = part(&times)?;
            let columns = batch.columns()[1 + layout.tags.len()..].iter().map(part);
            let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
            for (number, source) in layout.sources.iter().enumerate() {
                self.insert_into(txn, (number, source), &group.tags, (&times, &columns))?;
            }
        }
        Ok(batch.num_rows() as u64)
    }

    /// The rows of a batch grouped by their tags, in the order of their first rows.
    fn groups(&mut self, batch: &RecordBatch) -> Result<Vec<Group>> {
        let mut numbers = Vec::with_capacity(self.values.len());
        for (tag, values) in self.values.iter_mut().enumerate() {
            numbers.push(values.numbers(batch.column(1 + tag))?);
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut found: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut last: Option<usize> = None;
        let mut tags = vec![0; numbers.len()];
        for row in 0..batch.num_rows() {
            for (tag, numbers) in tags.iter_mut().zip(&numbers) {
                *tag = numbers[row];
            }
            let place = match last.filter(|&place| groups[place].tags == tags) {
                Some(place) => place,
                None => *found.entry(tags.clone()).or_insert_with(|| {
                    groups.push(Group {
                        tags: tags.clone(),
                        rows: Vec::new(),
                    });
                    groups.len() - 1
                }),
            };
            last = Some(place);
            groups[place].rows.push(row as u32);
        }
        Ok(groups)
    }

    /// Inserts rows with the same tags into the series of one metric.
    fn insert_into(
        &mut self,
        txn: &mut WriteTxn,
        (number, source): (usize, &Source),
        tags: &[u32],
        (times, columns): (&ArrayRef, &[ArrayRef]),
    ) -> Result<()> {
        let (mut times, mut columns) = (ArrayRef::clone(times), columns.to_vec());
        let own = &self.columns[number];
        if source.leaf.is_some() {
            // A row without a value of this metric adds no row to the metric.
            let Some(rows) = rows_with_values(own, &columns, times.len()) else {
                return Ok(());
            };
            times = take(&times, &rows, None)?;
            for column in &mut columns {
                *column = take(column, &rows, None)?;
            }
        }
        let place = match self.places.get(&(tags.to_vec(), number)) {
            Some(&place) => place,
            None => {
                self.series.push(self.open(txn, source, tags)?);
                let place = self.series.len() - 1;
                self.places.insert((tags.to_vec(), number), place);
                place
            }
        };
        let target = &self.series[place];
        if let Some(column) = target.missing_column(&self.columns[number], &columns) {
            let field = self
                .layout
                .schema
                .field(1 + self.layout.tags.len() + column);
            let problem = format!(
                "the series of {} with these tags has no column {}, which another series of the metric has",
                source.metric,
                field.name()
            );
            return Err(Error::new(ErrorKind::Execution, problem));
        }
        target.insert(txn, (&times, &columns))
    }

    /// Opens the series of a metric with these tags, or creates it.
    fn open(&self, txn: &mut WriteTxn, source: &Source, tags: &[u32]) -> Result<Target> {
        let mut pairs = Vec::new();
        for ((tag, values), &number) in self.layout.tags.iter().zip(&self.values).zip(tags) {
            if number > 0 {
                let value = values.texts[number as usize - 1].clone();
                pairs.push((tag.key.clone(), value));
            }
        }
        let name = SeriesName::new(&source.metric, pairs)?.to_string();
        let found = txn.open_series(&name).must_exist().open();
        let found = found.map(|series| Target::new(&self.layout, source, series.info()));
        match found {
            Err(error) if error.kind() == DatabaseErrorKind::NotFound => {}
            found => return Ok(found?),
        }
        let mut opener = txn.open_series(&name);
        if let Some(schema) = source.template() {
            opener = opener.schema(schema);
        }
        let series = opener.open()?;
        Ok(Target::new(&self.layout, source, series.info()))
    }
}

impl Values {
    /// The numbers of the values of each row.
    fn numbers(&mut self, array: &ArrayRef) -> Result<Vec<u32>> {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let array = cast(array, &dictionary)?;
        let array = array.as_dictionary::<Int32Type>();
        let texts = array.values().as_string::<i32>();
        // A dictionary may contain values that no row uses; these are not assigned numbers.
        let mut numbers: Vec<Option<u32>> = vec![None; texts.len()];
        let mut number = |key: Option<i32>| -> u32 {
            let Some(key) = key.filter(|&key| texts.is_valid(key as usize)) else {
                return 0;
            };
            let key = key as usize;
            *numbers[key].get_or_insert_with(|| self.number(texts.value(key)))
        };
        Ok(array.keys().iter().map(&mut number).collect())
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.to_owned());
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// The rows that have a value in at least one of these columns; `None` if no row has one.
fn rows_with_values(own: &[usize], columns: &[ArrayRef], rows: usize) -> Option<UInt32Array> {
    let has_value = |row: &u32| {
        own.iter()
            .any(|&column| columns[column].is_valid(*row as usize))
    };
    let rows: Vec<u32> = (0..rows as u32).filter(has_value).collect();
    (!rows.is_empty()).then(|| UInt32Array::from(rows))
}

impl Target {
    fn new(layout: &Layout, source: &Source, info: &tidalite::SeriesInfo) -> Self {
        let columns = info.schema.columns.iter();
        Self {
            id: info.id,
            clock: Clock::new(info.schema.unit, layout.unit),
            columns: columns
                .map(|column| layout.place(source, &column.name))
                .collect(),
            schema: info.schema.clone(),
        }
    }

    fn insert(&self, txn: &mut WriteTxn, (times, columns): (&ArrayRef, &[ArrayRef])) -> Result<()> {
        let times: &Int64Array = times.as_primitive();
        let steps: Vec<i64>;
        let times: &[i64] = match self.clock.is_same() {
            true => times.values(),
            false => {
                steps = times
                    .values()
                    .iter()
                    .map(|&time| self.clock.steps(time).1)
                    .collect();
                &steps
            }
        };
        let rows = times.len();
        let nulls = |ty| arrow::array::new_null_array(&column_type(ty), rows);
        let own = self.schema.columns.iter().zip(&self.columns);
        let own = own.map(|(column, place)| match place {
            Some(place) => (column, ArrayRef::clone(&columns[*place])),
            None => (column, nulls(column.ty)),
        });
        if self.schema.columns.iter().any(|column| column.ty.is_text()) {
            let own =
                own.map(|(column, array)| Ok((column, cast(&array, &column_type(column.ty))?)));
            let own: Vec<_> = own.collect::<Result<_>>()?;
            let mut series = txn.series_by_id(self.id)?;
            for (row, &time) in times.iter().enumerate() {
                let values = own.iter().map(|(column, array)| value(column, array, row));
                series.insert_values(Steps(time), &values.collect::<Result<Vec<_>>>()?)?;
            }
            return Ok(());
        }
        let own: Vec<Vec<u64>> = own
            .map(|(column, array)| words(column, &array))
            .collect::<Result<_>>()?;
        let own: Vec<&[u64]> = own.iter().map(Vec::as_slice).collect();
        txn.series_by_id(self.id)?.append_rows(times, &own)?;
        Ok(())
    }

    /// A column of the metric for which a value is given although the series does not have the column.
    fn missing_column(&self, own: &[usize], columns: &[ArrayRef]) -> Option<usize> {
        let has_value = |&column: &usize| columns[column].null_count() < columns[column].len();
        let lacks = |column: &usize| !self.columns.contains(&Some(*column));
        own.iter().copied().filter(lacks).find(has_value)
    }
}
