//! Records: plain structs that are stored as rows. `#[derive(Record)]` makes a struct a record.
//!
//! ```text
//! Record       a struct: its schema, its time, its columns in order
//! Field        mapping of a field's type to a column
//! RowWriter    accepts the fields one by one            -> words
//! RowReader    returns them one by one                  <- words
//! ```

use crate::catalog::texts::Texts;
use crate::series::read::Series;
use crate::types::column::{Column, ColumnType};
use crate::types::decimal::Decimal;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::instant::Instant;
use crate::types::point::Point;
use crate::types::schema::{Schema, Unit};
use crate::types::value::Value;
use tidalite_base::SeriesId;
use tidalite_codec::ColumnType as WordType;
use tidalite_kv::Tree;
use tidalite_time::Timestamp;

/// A struct that can be stored as a row of a series. Derive this trait:
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Decimal, Options, Record};
/// use tidalite::storage::MemoryStorage;
///
/// #[derive(Record, Debug, Clone, PartialEq)]
/// #[record(unit = "ms")]
/// struct Sale {
///     time: i64,                        // milliseconds since 1970
///     #[record(scale = 2)]
///     price: Decimal,                   // stored exactly
///     pieces: u32,
///     weight: Option<f32>,              // may be missing
///     #[record(name = "card.accepted")]
///     accepted: bool,
/// }
///
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let sale = Sale {
///     time: 1_400_000_000_000,
///     price: Decimal { units: 1999, scale: 2 },
///     pieces: 3,
///     weight: None,
///     accepted: true,
/// };
/// let mut tx = db.begin_write()?;
/// tx.series_of::<Sale>("shop.sales")?.insert_record(&sale)?;
/// tx.commit()?;
///
/// let snap = db.begin_read()?;
/// let sales = snap.series("shop.sales")?.ok_or("no such series")?;
/// let mut found = Vec::new();
/// sales.query(..).for_each_record(|sale: Sale| found.push(sale))?;
/// assert_eq!(found, [sale]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Fields are `f64`, `f32`, `i64` to `i8`, `u64` to `u8`, `bool`, [`Decimal`] with a scale, `String`, `Vec<u8>`, GUIDs
/// as `[u8; 16]`, and `Option` of these; [`Field`] makes others possible. A [`Point`] is a record too.
///
/// A record whose time is a [`Timestamp`] can be written to and read from series of any unit: its time is converted.
/// The unit in the struct's schema is used only for a series created for it. A numeric time counts steps of the
/// struct's unit, so a series of another unit is refused.
pub trait Record: Sized {
    /// Whether the record's time is independent of a unit, so that `time_in` can convert it. If not, a series is
    /// refused if its unit differs from the schema's.
    const ANY_UNIT: bool = false;

    /// The schema of the record's rows: unit and columns. It is the same for every value of the type.
    fn schema() -> Schema;

    /// The record's time, in steps of the schema's unit.
    ///
    /// # Errors
    /// `InvalidInput` if the unit cannot represent the time.
    fn time(&self) -> Result<i64>;

    /// The record's time, as a number of steps of `unit`, the unit of the series. A time between two steps is rounded
    /// down, like any [`Instant`]. Unless `ANY_UNIT` is set, `unit` is always the schema's unit, so that this default
    /// implementation can return the result of `time`.
    ///
    /// # Errors
    /// `InvalidInput` if the unit cannot represent the time.
    #[inline]
    fn time_in(&self, unit: Unit) -> Result<i64> {
        let _ = unit;
        self.time()
    }

    /// Writes the record's fields to the row, in the order of the columns.
    ///
    /// # Errors
    /// `Schema` if a column cannot represent a value.
    fn write(&self, row: &mut RowWriter<'_>) -> Result<()>;

    /// Reads a record from the columns of a row, in order.
    ///
    /// # Errors
    /// `Schema` if a word is not a valid value of the field; errors of the file.
    fn read(row: &mut RowReader<'_>) -> Result<Self>;
}

impl<P: Point> Record for P {
    fn schema() -> Schema {
        P::schema()
    }

    #[inline]
    fn time(&self) -> Result<i64> {
        Ok(Point::time(self))
    }

    #[inline]
    fn write(&self, row: &mut RowWriter<'_>) -> Result<()> {
        self.write_words(row.words);
        Ok(())
    }

    #[inline]
    fn read(row: &mut RowReader<'_>) -> Result<Self> {
        Ok(P::from_words(row.time, row.words))
    }
}

/// Receives the fields of a record as the columns of a row, in [`Record::write`].
pub struct RowWriter<'w> {
    pub(crate) columns: &'w [Column],
    /// The stored words of the row, one per column.
    pub(crate) words: &'w mut [u64],
    pub(crate) at: usize,
    /// Stores texts; `None` if no column has texts.
    pub(crate) texts: Option<TextSink<'w>>,
}

/// The place where the texts of a record are stored.
pub(crate) struct TextSink<'w> {
    pub(crate) texts: &'w mut Texts,
    pub(crate) tree: &'w mut Tree,
    pub(crate) pages: &'w mut tidalite_pager::WriteTxn,
    pub(crate) broken: &'w mut Option<String>,
    pub(crate) series: SeriesId,
}

impl RowWriter<'_> {
    /// Writes a field to the next column.
    ///
    /// # Errors
    /// `Schema` if the column cannot represent the value, or the row has no further column.
    #[inline]
    pub fn put<F: Field>(&mut self, field: &F) -> Result<()> {
        let at = self.at;
        if at >= self.words.len() {
            return Err(too_many(self.columns.len()));
        }
        self.words[at] = field.word(self)?;
        self.at = at + 1;
        Ok(())
    }

    /// Stores a text for the current column and returns the word that stands for it.
    ///
    /// # Errors
    /// `Schema` if the current column is not a text column, or the value is not valid for it; `Limit` if the text is
    /// too long; a full disk.
    pub fn text(&mut self, value: &Value) -> Result<u64> {
        let column = &self.columns[self.at];
        if !column.ty.is_text() {
            return Err(column.problem("it has no texts"));
        }
        let Some(text) = column.text(value)? else {
            return Ok(column.words().fill());
        };
        let Some(sink) = &mut self.texts else {
            return Err(column.problem("it has no texts"));
        };
        let place = (sink.series, self.at);
        let word = sink.texts.word(sink.pages, sink.tree, place, text);
        if let Err(error) = &word {
            *sink.broken = Some(error.to_string());
        }
        word
    }

    /// The column that is written next.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.columns[self.at]
    }
}

/// Provides the columns of a row as fields of a record, in [`Record::read`].
pub struct RowReader<'r> {
    pub(crate) columns: &'r [Column],
    /// The unit of the series' times.
    pub(crate) unit: Unit,
    pub(crate) time: i64,
    /// The stored words of the row, one per column.
    pub(crate) words: &'r [u64],
    pub(crate) at: usize,
    pub(crate) series: &'r Series<'r>,
}

impl RowReader<'_> {
    /// The time of the row, in the series' unit.
    #[must_use]
    pub fn time(&self) -> i64 {
        self.time
    }

    /// The unit of the series' times.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Reads the next column as a field.
    ///
    /// # Errors
    /// `Schema` if the word is not a valid value of the field's type, or the row has no further column.
    #[inline]
    pub fn take<F: Field>(&mut self) -> Result<F> {
        let at = self.at;
        let Some(&word) = self.words.get(at) else {
            return Err(too_many(self.columns.len()));
        };
        let field = F::of_word(word, self)?;
        self.at = at + 1;
        Ok(field)
    }

    /// Reads the text that a word of the current column stands for.
    ///
    /// # Errors
    /// Errors of the file; a missing text.
    pub fn text(&self, word: u64) -> Result<Value> {
        self.series.value(self.at, word)
    }

    /// The column that is read next.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.columns[self.at]
    }
}

#[cold]
fn too_many(columns: usize) -> Error {
    Error::from(Cause::Schema {
        problem: format!("the record has more fields than the {columns} columns"),
    })
}

/// A Rust type that can be a field of a record, stored in one column.
pub trait Field: Sized {
    /// Type of the column for this field. For a decimal, the scale is given by an attribute of the field.
    const TYPE: ColumnType;
    /// Whether the column for this field is nullable.
    const NULLABLE: bool = false;

    /// Converts the field to the word that is stored in the current column of `row`.
    ///
    /// # Errors
    /// `Schema` if the column cannot represent the value.
    fn word(&self, row: &mut RowWriter<'_>) -> Result<u64>;

    /// Converts a word from the current column of `row` to the field.
    ///
    /// # Errors
    /// `Schema` if the word is not a valid value of this type.
    fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self>;
}

impl Field for f64 {
    const TYPE: ColumnType = ColumnType::F64;

    #[inline]
    fn word(&self, _: &mut RowWriter<'_>) -> Result<u64> {
        Ok(self.to_bits())
    }

    #[inline]
    fn of_word(word: u64, _: &mut RowReader<'_>) -> Result<Self> {
        Ok(Self::from_bits(word))
    }
}

impl Field for f32 {
    const TYPE: ColumnType = ColumnType::F32;

    #[inline]
    fn word(&self, _: &mut RowWriter<'_>) -> Result<u64> {
        Ok(WordType::widen(*self))
    }

    #[inline]
    fn of_word(word: u64, _: &mut RowReader<'_>) -> Result<Self> {
        Ok(WordType::narrow(word))
    }
}

impl Field for bool {
    const TYPE: ColumnType = ColumnType::Bool;

    #[inline]
    fn word(&self, _: &mut RowWriter<'_>) -> Result<u64> {
        Ok(u64::from(*self))
    }

    #[inline]
    fn of_word(word: u64, _: &mut RowReader<'_>) -> Result<Self> {
        Ok(word != 0)
    }
}

macro_rules! integer_fields {
    ($($own:ty, $wide:ty, $column:ident);*) => {$(
        impl Field for $own {
            const TYPE: ColumnType = ColumnType::$column;

            #[inline]
            fn word(&self, _: &mut RowWriter<'_>) -> Result<u64> {
                Ok(<$wide>::from(*self) as u64)
            }

            #[inline]
            fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self> {
                let value = word as $wide;
                Self::try_from(value).map_err(|_| {
                    row.column().problem(format!("{value} is no {}", stringify!($own)))
                })
            }
        }
    )*};
}

integer_fields! {
    i64, i64, I64; i32, i64, I64; i16, i64, I64; i8, i64, I64;
    u64, u64, U64; u32, u64, U64; u16, u64, U64; u8, u64, U64
}

impl Field for Decimal {
    const TYPE: ColumnType = ColumnType::Decimal(0);

    fn word(&self, row: &mut RowWriter<'_>) -> Result<u64> {
        row.column().word(&Value::Decimal(*self))
    }

    fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self> {
        match row.column().value(word) {
            Value::Decimal(decimal) => Ok(decimal),
            other => Err(row.column().problem(format!("{other} is no decimal"))),
        }
    }
}

macro_rules! text_fields {
    ($($own:ty, $kind:ident);*) => {$(
        impl Field for $own {
            const TYPE: ColumnType = ColumnType::$kind;

            fn word(&self, row: &mut RowWriter<'_>) -> Result<u64> {
                row.text(&Value::$kind(self.clone()))
            }

            fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self> {
                match row.text(word)? {
                    Value::$kind(text) => Ok(text),
                    other => Err(row.column().problem(format!("{other:?}"))),
                }
            }
        }
    )*};
}

text_fields! {
    String, String; Vec<u8>, Bytes; [u8; 16], Guid
}

impl<F: Field> Field for Option<F> {
    const TYPE: ColumnType = F::TYPE;
    const NULLABLE: bool = true;

    #[inline]
    fn word(&self, row: &mut RowWriter<'_>) -> Result<u64> {
        match self {
            Some(value) => {
                let word = value.word(row)?;
                row.column().as_value(word)
            }
            None => row.column().word(&Value::Null),
        }
    }

    #[inline]
    fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self> {
        if row.column().is_null(word) {
            return Ok(None);
        }
        F::of_word(word, row).map(Some)
    }
}

/// A Rust type that can be the time of a record: `i64` in the record's unit, or [`Timestamp`].
pub trait RecordTime: Sized {
    /// Whether the time can be converted to any unit, because it is an instant and not a number of steps of one unit.
    const ANY_UNIT: bool = false;

    /// Converts the time to steps of the unit.
    ///
    /// # Errors
    /// `InvalidInput` if the unit cannot represent the time.
    fn steps(&self, unit: Unit) -> Result<i64>;

    /// Converts a number of steps of the unit to the time.
    ///
    /// # Errors
    /// `InvalidInput` if the type cannot represent it.
    fn of_steps(steps: i64, unit: Unit) -> Result<Self>;
}

impl RecordTime for i64 {
    #[inline]
    fn steps(&self, _: Unit) -> Result<i64> {
        Ok(*self)
    }

    #[inline]
    fn of_steps(steps: i64, _: Unit) -> Result<Self> {
        Ok(steps)
    }
}

impl RecordTime for Timestamp {
    const ANY_UNIT: bool = true;

    // Most series use nanoseconds, so their times are returned without a division.
    #[inline]
    fn steps(&self, unit: Unit) -> Result<i64> {
        match unit {
            Unit::Nanos => Ok(self.0),
            unit => self.in_unit(unit),
        }
    }

    #[inline]
    fn of_steps(steps: i64, unit: Unit) -> Result<Self> {
        if unit == Unit::Nanos {
            return Ok(Self(steps));
        }
        unit.checked_timestamp(steps)
    }
}

/// The column for a field of type `F`; called by `#[derive(Record)]`.
#[must_use]
pub fn column_of<F: Field>(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        ty: F::TYPE,
        nullable: F::NULLABLE,
    }
}

/// The decimal column for a field with a scale; called by `#[derive(Record)]`. The field may be of any integer type,
/// and holds the decimal's units.
///
/// Fields of other types do not compile.
#[must_use]
pub fn decimal_of<F: Field>(name: &str, scale: u8) -> Column {
    const {
        assert!(
            matches!(F::TYPE, ColumnType::I64 | ColumnType::Decimal(_)),
            "a scale belongs to i64 or Decimal"
        );
    }
    Column {
        ty: ColumnType::Decimal(scale),
        ..column_of::<F>(name)
    }
}
