//! The rows of a container's series: the numbers of its messages.
//!
//! Each number in a message, also in objects within it (`position.latitude`), has a column of that name. A column is made
//! when its first number arrives: for integers beyond 2^53 it has integers, for all other numbers floats. A number that a
//! column cannot hold exactly (2^64 - 1 and -2^63 stand for null in columns of integers) is null in the row, and so is a number that has no column because the series has as many as
//! it can have. Of the messages of one time, only as many have rows as a series can have of one time
//! ([`time_rows_max`](crate::limits::time_rows_max)). The messages have all numbers, exactly.

use crate::catalog::entries::{self, SeriesInfo, SeriesKey};
use crate::series::write::SeriesMut;
use crate::txn::write::WriteTxn;
use crate::types::column::{Column, ColumnType};
use crate::types::error::cause::Cause;
use crate::types::error::kind::ErrorKind;
use crate::types::error::{Error, Result};
use crate::types::instant::Steps;
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesName;
use crate::types::schema::{COLUMN_NAME_BYTES_MAX, Schema, Unit};
use crate::types::value::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_messages::{Document, FieldNumber};

/// The greatest integer up to which floats hold all integers.
const EXACT_MAX: i128 = 1 << 53;

/// The type of a new column for this number.
fn type_of(number: FieldNumber) -> ColumnType {
    match number {
        FieldNumber::Integer(x) if x > i128::from(i64::MAX) => ColumnType::U64,
        FieldNumber::Integer(x) if x.abs() > EXACT_MAX => ColumnType::I64,
        _ => ColumnType::F64,
    }
}

fn value_of(number: FieldNumber) -> Value {
    match number {
        FieldNumber::Float(x) => Value::F64(x),
        FieldNumber::Integer(x) => match (i64::try_from(x), u64::try_from(x)) {
            (Ok(x), _) => Value::I64(x),
            (_, Ok(x)) => Value::U64(x),
            _ => Value::Null,
        },
    }
}

/// The columns of a series, found by name.
struct Columns {
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    /// The column behind the one that was found last. Messages mostly have the same fields in the same order.
    next: usize,
}

impl Columns {
    fn new(columns: &[Column]) -> Self {
        let by_name = columns.iter().enumerate();
        Self {
            columns: columns.to_vec(),
            by_name: by_name
                .map(|(i, column)| (column.name.clone(), i))
                .collect(),
            next: 0,
        }
    }

    fn find(&mut self, name: &str) -> Option<usize> {
        let is_next = |column: &Column| column.name == name;
        let found = match self.columns.get(self.next).is_some_and(is_next) {
            true => self.next,
            false => *self.by_name.get(name)?,
        };
        self.next = found + 1;
        Some(found)
    }

    /// Adds a column for a number whose name has none, if there is room for it.
    fn add(&mut self, name: &str, number: FieldNumber) {
        if self.columns.len() < COLUMNS_MAX && (1..=COLUMN_NAME_BYTES_MAX).contains(&name.len()) {
            self.by_name.insert(name.to_owned(), self.columns.len());
            self.columns.push(Column::nullable(name, type_of(number)));
        }
    }
}

/// Rows of one series, by column.
struct NewRows {
    times: Vec<i64>,
    words: Vec<Vec<u64>>,
}

fn rows_of(columns: &mut Columns, documents: &[(i64, &Document)]) -> NewRows {
    let nulls = columns
        .columns
        .iter()
        .map(|column| column.null().unwrap_or(0));
    let mut row: Vec<u64> = nulls.collect();
    let nulls = row.clone();
    let mut rows = NewRows {
        times: Vec::with_capacity(documents.len()),
        words: vec![Vec::with_capacity(documents.len()); nulls.len()],
    };
    for (time, document) in documents {
        let mut has_number = false;
        for (name, number) in document.numbers() {
            if let Some(i) = columns.find(&name) {
                has_number = true;
                row[i] = match (columns.columns[i].ty, number) {
                    (ColumnType::F64, FieldNumber::Float(x)) => x.to_bits(),
                    (_, number) => {
                        let word = columns.columns[i].word(&value_of(number));
                        word.unwrap_or(nulls[i])
                    }
                };
            }
        }
        if has_number {
            rows.times.push(*time);
            for (column, word) in rows.words.iter_mut().zip(&row) {
                column.push(*word);
            }
            row.copy_from_slice(&nulls);
        }
    }
    rows
}

/// Whether a series can belong to a container. Series of containers all have these properties; a series with others was
/// not made for a container.
fn is_own(info: &SeriesInfo) -> bool {
    let schema = &info.schema;
    schema.unit == Unit::Nanos
        && info.merge == MergePolicy::KeepAll
        && schema.columns.iter().all(|column| column.null().is_some())
}

/// Whether a change of a series was made. It is refused, with nothing changed, if a time would have more rows than a series
/// of that many columns can have.
fn is_made(changed: Result<()>) -> Result<bool> {
    match changed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Limit => Ok(false),
        Err(error) => Err(error),
    }
}

impl WriteTxn {
    fn find_series(&self, name: &SeriesName) -> Result<Option<SeriesId>> {
        entries::find(&self.roots, &self.pages, SeriesKey::Name(name))
    }

    /// The series of a container, if it exists; an error if the series of this name cannot be one of a container.
    fn numbers_series(&self, name: &SeriesName) -> Result<Option<SeriesId>> {
        let Some(id) = self.find_series(name)? else {
            return Ok(None);
        };
        let is_own = match self.open.index(id) {
            Some(index) => is_own(&self.open[index].info),
            None => entries::info(&self.roots, &self.pages, id)?.is_none_or(|info| is_own(&info)),
        };
        match is_own {
            true => Ok(Some(id)),
            false => Err(Error::from(Cause::Schema {
                problem: format!(
                    "series {name} is not a series of a container: rename it, or give the container another name"
                ),
            })),
        }
    }

    /// Checks that a container can have a series of this name: the name fits, and a series that has it is the container's.
    pub(super) fn check_numbers(&self, name: &SeriesName) -> Result<()> {
        self.check_name_fits(name)?;
        self.numbers_series(name).map(drop)
    }

    /// Checks that a new container can have a series of this name: the name fits, and no series has it.
    pub(super) fn check_new_numbers(&self, name: &SeriesName) -> Result<()> {
        self.check_name_fits(name)?;
        match self.find_series(name)? {
            None => Ok(()),
            Some(_) => Err(Error::from(Cause::Name {
                name: name.to_string(),
                problem: "a series has this name, which the container's series needs".into(),
            })),
        }
    }

    /// Creates columns of these types before numbers arrive for them.
    pub(super) fn add_number_columns(
        &mut self,
        name: &SeriesName,
        columns: &[Column],
    ) -> Result<()> {
        if let Some(id) = self.numbers_series(name)? {
            return self.series_by_id(id)?.add_columns(columns);
        }
        let mut schema = Schema::new(Unit::Nanos, []);
        schema.columns = columns.to_vec();
        self.create_numbers(name, &schema).map(drop)
    }

    fn create_numbers(&mut self, name: &SeriesName, schema: &Schema) -> Result<SeriesMut<'_>> {
        let text = name.to_string();
        let series = self.open_series(&text).schema(schema);
        series.merge(MergePolicy::KeepAll).open()
    }

    /// The times in a span at which the series of a container has rows.
    pub(super) fn times_of_numbers(
        &mut self,
        name: &SeriesName,
        (from, to): (i64, i64),
    ) -> Result<HashSet<i64>> {
        let mut times = HashSet::new();
        if let Some(id) = self.numbers_series(name)? {
            let mut series = self.series_by_id(id)?;
            let series = series.view()?;
            series.query(Steps(from)..=Steps(to)).for_each(|time, _| {
                times.insert(time);
            })?;
        }
        Ok(times)
    }

    /// Inserts rows with the numbers of documents at their times, in this order. The series is created, and gets columns, as
    /// needed. A document without numbers adds no row.
    pub(super) fn insert_numbers(
        &mut self,
        name: &SeriesName,
        documents: &[(i64, &Document)],
    ) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let found = self.numbers_series(name)?;
        let info: Option<Arc<SeriesInfo>> = match found {
            Some(id) => Some(Arc::clone(self.series_by_id(id)?.info_arc())),
            None => None,
        };
        let own = info.as_ref().map_or(&[][..], |info| &info.schema.columns);
        let mut columns = Columns::new(own);
        for (_, document) in documents {
            for (name, number) in document.numbers() {
                if columns.find(&name).is_none() {
                    columns.add(&name, number);
                }
            }
        }
        if columns.columns.is_empty() {
            return Ok(());
        }
        let mut series = match found {
            Some(id) => {
                let mut series = self.series_by_id(id)?;
                let added = columns.columns.get(own.len()..).unwrap_or_default();
                if !added.is_empty() && !is_made(series.add_columns(added))? {
                    columns = Columns::new(&series.info().schema.columns);
                }
                series
            }
            None => {
                let mut schema = Schema::new(Unit::Nanos, []);
                schema.columns.clone_from(&columns.columns);
                self.create_numbers(name, &schema)?
            }
        };
        columns.next = 0;
        let rows = rows_of(&mut columns, documents);
        let words: Vec<&[u64]> = rows.words.iter().map(|column| &column[..]).collect();
        if rows.times.is_empty() || is_made(series.append_rows(&rows.times, &words))? {
            return Ok(());
        }
        // Some time has too many rows: all others are inserted.
        for (i, time) in rows.times.iter().enumerate() {
            let row: Vec<&[u64]> = words.iter().map(|column| &column[i..=i]).collect();
            is_made(series.append_rows(&[*time], &row))?;
        }
        Ok(())
    }

    /// Removes the rows of a container's series from `from` to `to`, both inclusive.
    pub(super) fn remove_numbers(
        &mut self,
        name: &SeriesName,
        (from, to): (i64, i64),
    ) -> Result<()> {
        if let Some(id) = self.numbers_series(name)? {
            self.series_by_id(id)?.delete(Steps(from)..=Steps(to))?;
        }
        Ok(())
    }

    /// Removes the series of a container. A series of the same name that is not one of a container stays.
    pub(super) fn remove_all_numbers(&mut self, name: &SeriesName) -> Result<()> {
        match self.numbers_series(name) {
            Ok(Some(id)) => self.remove_series_by_id(id).map(drop),
            Ok(None) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Schema => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives the series of a container another name.
    pub(super) fn rename_numbers(&mut self, from: &SeriesName, to: &SeriesName) -> Result<()> {
        match self.numbers_series(from)? {
            Some(id) => self.rename_series(id, &to.to_string()),
            None => Ok(()),
        }
    }
}
