//! The rows of a container's series: the numbers of its messages.
//!
//! Each number in a message, also in objects within it (`position.latitude`), has a column of that name. A column is
//! created when its first number arrives. Its type is integer if that number is an integer beyond 2^53, otherwise
//! float. A number that a column cannot hold exactly is null in the row; columns of integers cannot hold 2^64 - 1 and
//! -2^63, because these stand for null. A number has no column if the series already has the maximum number of columns.
//! Of the messages of one time, only as many have rows as a series can have rows of one time
//! ([`time_rows_max`](crate::limits::time_rows_max)). The messages themselves have all numbers, exactly.

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
use std::ops::Range;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_messages::{Document, FieldNumber};
use tidalite_pager::{Error as FileError, Refusal};

/// The greatest integer up to which every integer is exact as a float.
const EXACT_MAX: i128 = 1 << 53;

/// The type of a new column for this number.
fn type_of(number: FieldNumber) -> ColumnType {
    match number {
        FieldNumber::Integer(x) if x > i128::from(i64::MAX) => ColumnType::U64,
        FieldNumber::Integer(x) if x.abs() > EXACT_MAX => ColumnType::I64,
        _ => ColumnType::F64,
    }
}

pub(super) fn value_of(number: FieldNumber) -> Value {
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
pub(super) struct Columns<'c> {
    own: &'c [Column],
    /// Columns that the series does not have yet.
    new: Vec<Column>,
    /// Index of the column after the one that was found last. Messages mostly have the same fields in the same order.
    next: usize,
}

impl<'c> Columns<'c> {
    pub(super) fn new(own: &'c [Column]) -> Self {
        Self {
            own,
            new: Vec::new(),
            next: 0,
        }
    }

    /// The columns that the series already has.
    pub(super) fn own(&self) -> &'c [Column] {
        self.own
    }

    fn len(&self) -> usize {
        self.own.len() + self.new.len()
    }

    fn get(&self, place: usize) -> Option<&Column> {
        match place.checked_sub(self.own.len()) {
            Some(place) => self.new.get(place),
            None => self.own.get(place),
        }
    }

    fn find(&mut self, name: &str) -> Option<usize> {
        let has_name = |column: &Column| column.name == name;
        let found = match self.get(self.next).is_some_and(has_name) {
            true => self.next,
            false => self.own.iter().chain(&self.new).position(has_name)?,
        };
        self.next = found + 1;
        Some(found)
    }

    /// Whether a column of this name can be added.
    pub(super) fn has_room_for(&self, name: &str) -> bool {
        self.len() < COLUMNS_MAX && (1..=COLUMN_NAME_BYTES_MAX).contains(&name.len())
    }

    /// The column for a number with this name. If it does not exist, it is added, as long as the series has room for
    /// it.
    fn find_or_add(&mut self, name: &str, number: FieldNumber) -> Option<usize> {
        if let Some(found) = self.find(name) {
            return Some(found);
        }
        if !self.has_room_for(name) {
            return None;
        }
        self.new.push(Column::nullable(name, type_of(number)));
        self.next = self.len();
        Some(self.len() - 1)
    }

    /// The words of a row without numbers.
    pub(super) fn nulls(&self) -> Vec<u64> {
        self.own.iter().map(null_of).collect()
    }

    /// Writes the numbers of a document into a row of nulls, and passes the names that have no column to `missing`.
    /// Returns whether the document has a row: true if any of its numbers has a column.
    pub(super) fn fill(
        &mut self,
        document: &Document,
        row: &mut [u64],
        mut missing: impl FnMut(&str),
    ) -> bool {
        let mut has_number = false;
        for (name, number) in document.numbers() {
            let Some(i) = self.find(&name) else {
                missing(&name);
                continue;
            };
            has_number = true;
            set_word(&self.own[i], number, &mut row[i]);
        }
        has_number
    }
}

fn null_of(column: &Column) -> u64 {
    column.null().unwrap_or(0)
}

/// Sets the word of a number. If the column cannot hold the number exactly, the word remains null.
fn set_word(column: &Column, number: FieldNumber, word: &mut u64) {
    match (column.ty, number) {
        (ColumnType::F64, FieldNumber::Float(x)) => *word = x.to_bits(),
        (_, number) => {
            if let Ok(exact) = column.word(&value_of(number)) {
                *word = exact;
            }
        }
    }
}

/// A number of a document, and its column.
struct Cell {
    document: usize,
    column: usize,
    number: FieldNumber,
}

/// Rows to insert into one series.
struct NewRows {
    times: Vec<i64>,
    /// The columns one after the other, each with room for `len` rows.
    words: Vec<u64>,
    len: usize,
}

impl NewRows {
    /// Creates a row for each document that has a number in a column.
    fn new(columns: &[Column], documents: &[(i64, &Document)], cells: &[Cell]) -> Self {
        let len = documents.len();
        let mut words = Vec::with_capacity(columns.len() * len);
        for column in columns {
            words.resize(words.len() + len, null_of(column));
        }
        let (mut times, mut last) = (Vec::with_capacity(len), None);
        for cell in cells {
            let Some(column) = columns.get(cell.column) else {
                continue;
            };
            if last.replace(cell.document) != Some(cell.document) {
                times.push(documents[cell.document].0);
            }
            let row = times.len() - 1;
            set_word(column, cell.number, &mut words[cell.column * len + row]);
        }
        Self { times, words, len }
    }

    /// The rows of a range, by column.
    fn columns(&self, rows: Range<usize>) -> Vec<&[u64]> {
        let columns = self.words.chunks_exact(self.len);
        columns.map(|column| &column[rows.clone()]).collect()
    }
}

/// Whether a series can belong to a container. All series of containers have these properties.
pub(super) fn is_own(info: &SeriesInfo) -> bool {
    let schema = &info.schema;
    schema.unit == Unit::Nanos
        && info.merge == MergePolicy::KeepAll
        && schema.columns.iter().all(|column| column.null().is_some())
}

/// Whether a column can hold any number of a message.
pub(super) fn holds_numbers(column: &Column) -> bool {
    let numbers = [Value::F64(0.0), Value::I64(0), Value::U64(0)];
    !column.ty.is_text() && numbers.iter().any(|number| column.word(number).is_ok())
}

/// The series of a container, which may not exist yet.
pub(super) struct NumberSeries {
    name: SeriesName,
    id: Option<SeriesId>,
}

impl NumberSeries {
    pub(super) fn exists(&self) -> bool {
        self.id.is_some()
    }
}

/// Whether a change of a series was made. The change is refused, with nothing changed, if a time would have more rows
/// than a series with that many columns can have.
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

    /// The series of a container, if it exists; an error if the series with this name cannot belong to a container.
    fn numbers_series(&self, name: &SeriesName) -> Result<Option<SeriesId>> {
        let Some(id) = self.find_series(name)? else {
            return Ok(None);
        };
        let is_own = match self.open.known(id) {
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

    /// Checks that a container can have a series of this name: the name is valid, and an existing series with this name
    /// belongs to the container.
    pub(super) fn check_numbers(&self, name: SeriesName) -> Result<NumberSeries> {
        self.check_name_fits(&name)?;
        let id = self.numbers_series(&name)?;
        Ok(NumberSeries { name, id })
    }

    /// If a container's series has columns that hold no numbers, replaces it by an empty series without these columns.
    pub(super) fn keep_columns_of_numbers(&mut self, name: &SeriesName) -> Result<()> {
        let Some(id) = self.numbers_series(name)? else {
            return Ok(());
        };
        let mut columns = self.series_by_id(id)?.info().schema.columns.clone();
        if columns.iter().all(holds_numbers) {
            return Ok(());
        }
        columns.retain(holds_numbers);
        self.remove_series_by_id(id)?;
        match columns.is_empty() {
            true => Ok(()),
            false => self.add_number_columns(name, &columns),
        }
    }

    /// Checks that a new container can have a series of this name: the name is valid, and no series has it.
    pub(super) fn check_new_numbers(&self, name: &SeriesName) -> Result<()> {
        self.check_name_fits(name)?;
        match self.find_series(name)? {
            None => Ok(()),
            Some(_) => {
                let found = format!("the series {name}, whose name the container's series needs");
                let expected = "a name that neither a container nor a series has";
                Err(FileError::refused(Refusal::AlreadyExists, found, expected).into())
            }
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

    /// Inserts the numbers of documents as rows at their times, in this order. The series and its columns are created
    /// as needed. A document without numbers adds no row. If the caller knows that the series has no row after
    /// `newest`, the series is not read to find out.
    pub(super) fn insert_numbers(
        &mut self,
        to: &NumberSeries,
        newest: Option<i64>,
        documents: &[(i64, &Document)],
    ) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let info: Option<Arc<SeriesInfo>> = match to.id {
            Some(id) => Some(Arc::clone(self.series_by_id(id)?.info_arc())),
            None => None,
        };
        let own = info.as_ref().map_or(&[][..], |info| &info.schema.columns);
        let mut columns = Columns::new(own);
        let mut cells = Vec::new();
        for (document, (_, fields)) in documents.iter().enumerate() {
            for (name, number) in fields.numbers() {
                if let Some(column) = columns.find_or_add(&name, number) {
                    cells.push(Cell {
                        document,
                        column,
                        number,
                    });
                }
            }
        }
        if cells.is_empty() {
            return Ok(());
        }
        let new = columns.new;
        let mut series = match to.id {
            Some(id) => {
                let mut series = self.series_by_id(id)?;
                if !new.is_empty() {
                    // If the series refuses the columns, their numbers are stored in the messages only.
                    is_made(series.add_columns(&new))?;
                }
                series
            }
            None => {
                let mut schema = Schema::new(Unit::Nanos, []);
                schema.columns = new;
                self.create_numbers(&to.name, &schema)?
            }
        };
        if let Some(newest) = newest {
            series.limit_newest(newest);
        }
        let rows = NewRows::new(&series.info().schema.columns, documents, &cells);
        let len = rows.times.len();
        if len == 0 || is_made(series.append_rows(&rows.times, &rows.columns(0..len)))? {
            return Ok(());
        }
        // Some time has too many rows: the rows of all other times are inserted.
        for (i, time) in rows.times.iter().enumerate() {
            is_made(series.append_rows(&[*time], &rows.columns(i..i + 1)))?;
        }
        Ok(())
    }

    /// Removes the rows of a container's series from `from` to `to`, both inclusive.
    pub(super) fn remove_numbers(
        &mut self,
        series: &NumberSeries,
        (from, to): (i64, i64),
    ) -> Result<()> {
        if let Some(id) = series.id {
            self.series_by_id(id)?.delete(Steps(from)..=Steps(to))?;
        }
        Ok(())
    }

    /// Removes the series of a container. A series of the same name that cannot belong to a container is kept.
    pub(super) fn remove_all_numbers(&mut self, name: &SeriesName) -> Result<()> {
        match self.numbers_series(name) {
            Ok(Some(id)) => self.remove_series_by_id(id).map(drop),
            Ok(None) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Schema => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Renames a series, whether or not it can belong to a container.
    pub(super) fn rename_any(&mut self, from: &SeriesName, to: &str) -> Result<()> {
        match self.find_series(from)? {
            Some(id) => self.as_container(|txn| txn.rename_series(id, to)),
            None => Ok(()),
        }
    }

    /// Renames the series of a container.
    pub(super) fn rename_numbers(&mut self, from: &SeriesName, to: &SeriesName) -> Result<()> {
        match self.numbers_series(from)? {
            Some(id) => self.rename_series(id, &to.to_string()),
            None => Ok(()),
        }
    }
}
