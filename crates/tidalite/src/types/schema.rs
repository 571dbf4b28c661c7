//! The schema of a series: the unit of its timestamps, and its columns.
//!
//! ```text
//! 0        1         2              4
//! | version | unit u8 | columns u16 | column ... |   column = | type u8 | flags u8 | scale u8 | 0 | name bytes u16 | name |
//! ```

use crate::types::column::{Column, ColumnType};
use crate::types::decimal::DECIMAL_SCALE_MAX;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::fmt;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_base::{Corrupt, get_u16, put_u16};
use tidalite_codec::ColumnType as WordType;
use tidalite_time::{Timestamp, TimestampError};

/// Maximum length in bytes of a column name.
pub const COLUMN_NAME_BYTES_MAX: usize = 255;

const SCHEMA_VERSION: u8 = 2;
const HEAD_BYTES: usize = 4;
const TYPE_AT: usize = 0;
const FLAGS_AT: usize = TYPE_AT + 1;
const SCALE_AT: usize = FLAGS_AT + 1;
const NAME_LEN_AT: usize = SCALE_AT + 2;
const COLUMN_HEAD_BYTES: usize = NAME_LEN_AT + 2;
/// Flag in an encoded column: the column is nullable.
const NULLABLE: u8 = 1;

/// The unit in which a series counts its timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Unit {
    /// Nanoseconds since 1970-01-01 UTC.
    #[default]
    Nanos = 0,
    /// Microseconds since 1970-01-01 UTC.
    Micros = 1,
    /// Milliseconds since 1970-01-01 UTC.
    Millis = 2,
    /// Seconds since 1970-01-01 UTC.
    Seconds = 3,
    /// 100-nanosecond ticks since 0001-01-01, as .NET counts them.
    Ticks = 4,
}

impl Unit {
    fn from_u8(number: u8) -> Option<Self> {
        [
            Self::Nanos,
            Self::Micros,
            Self::Millis,
            Self::Seconds,
            Self::Ticks,
        ]
        .into_iter()
        .find(|unit| *unit as u8 == number)
    }

    /// Number of nanoseconds in one step of the unit.
    #[must_use]
    pub fn nanos(self) -> i64 {
        match self {
            Self::Nanos => 1,
            Self::Micros => 1_000,
            Self::Millis => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Ticks => 100,
        }
    }

    /// Number of steps from the zero of this unit to 1970-01-01.
    #[must_use]
    pub fn steps_to_1970(self) -> i64 {
        match self {
            // There are 719 162 days from 0001-01-01 to 1970-01-01, of 864 000 000 000 ticks each.
            Self::Ticks => 719_162 * 864_000_000_000,
            _ => 0,
        }
    }

    /// Converts a raw time in steps of this unit to a [`Timestamp`]; `None` if it is out of range.
    #[must_use]
    pub fn timestamp(self, raw: i64) -> Option<Timestamp> {
        let steps = i128::from(raw) - i128::from(self.steps_to_1970());
        i64::try_from(steps * i128::from(self.nanos()))
            .ok()
            .map(Timestamp)
    }

    /// A raw time in steps of this unit as text: in RFC 3339 if the calendar covers it, otherwise as a bare number.
    #[must_use]
    pub fn text(self, raw: i64) -> String {
        let steps = i128::from(raw) - i128::from(self.steps_to_1970());
        match jiff::Timestamp::from_nanosecond(steps * i128::from(self.nanos())) {
            Ok(instant) => instant.to_string(),
            Err(_) => raw.to_string(),
        }
    }

    /// Converts a raw time in steps of this unit to a [`Timestamp`]; returns an error if it is out of range.
    pub(crate) fn checked_timestamp(self, raw: i64) -> Result<Timestamp> {
        self.timestamp(raw).ok_or_else(|| {
            let problem = format!("in {self:?} it is outside of the years 1677 to 2262");
            let text = raw.to_string();
            TimestampError { text, problem }.into()
        })
    }
}

/// The schema of a series: the unit of its timestamps, and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Unit of the timestamps.
    pub unit: Unit,
    /// The columns; the timestamp is not one of them.
    pub columns: Vec<Column>,
}

impl Schema {
    /// Creates a schema from the names and types of its columns.
    ///
    /// ```
    /// use tidalite::{ColumnType, Schema, Unit};
    /// let trade = Schema::new(Unit::Micros, [("volume", ColumnType::F64), ("price", ColumnType::I64)]);
    /// assert_eq!(trade.column("price"), Some(1));
    /// ```
    #[must_use]
    pub fn new<'a>(unit: Unit, columns: impl IntoIterator<Item = (&'a str, ColumnType)>) -> Self {
        let columns = columns
            .into_iter()
            .map(|(name, ty)| Column::new(name, ty))
            .collect();
        Self { unit, columns }
    }

    /// Returns the schema with one more column at the end.
    ///
    /// ```
    /// use tidalite::{Column, ColumnType, Schema, Unit};
    /// let room = Schema::new(Unit::Millis, [("celsius", ColumnType::F32), ("open", ColumnType::Bool)])
    ///     .with(Column::nullable("price", ColumnType::Decimal(2)));
    /// assert_eq!(room.column("price"), Some(2));
    /// ```
    #[must_use]
    pub fn with(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// The schema of the default point: time in nanoseconds, and the columns `flags` and `value`.
    #[must_use]
    pub fn point() -> Self {
        Self::new(
            Unit::Nanos,
            [("flags", ColumnType::I64), ("value", ColumnType::F64)],
        )
    }

    /// The number of the column with this name; `None` if there is none.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The number of the column that a query uses by default: `value` if there is one, otherwise the first column of
    /// floats, otherwise the first column.
    #[must_use]
    pub fn main_column(&self) -> usize {
        self.column("value")
            .or_else(|| {
                self.columns
                    .iter()
                    .position(|column| matches!(column.ty, ColumnType::F64 | ColumnType::F32))
            })
            .unwrap_or(0)
    }

    /// The types of the columns, in order.
    #[must_use]
    pub fn types(&self) -> Vec<ColumnType> {
        self.columns.iter().map(|column| column.ty).collect()
    }

    /// The storage types of the columns' words, in order.
    pub(crate) fn word_types(&self) -> Vec<WordType> {
        self.columns.iter().map(Column::words).collect()
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let problem = |problem: String| Err(Error::from(Cause::Schema { problem }));
        if self.columns.is_empty() || self.columns.len() > COLUMNS_MAX {
            return problem(format!(
                "{} columns, 1 to {COLUMNS_MAX} can be",
                self.columns.len()
            ));
        }
        for (i, column) in self.columns.iter().enumerate() {
            if column.name.is_empty() || column.name.len() > COLUMN_NAME_BYTES_MAX {
                return problem(format!(
                    "a column name of {} bytes, 1 to {COLUMN_NAME_BYTES_MAX} can be",
                    column.name.len()
                ));
            }
            if let ColumnType::Decimal(scale) = column.ty
                && scale > DECIMAL_SCALE_MAX
            {
                return problem(format!(
                    "column {} has {scale} digits behind the point, {DECIMAL_SCALE_MAX} can be",
                    column.name
                ));
            }
            if self.columns[..i]
                .iter()
                .any(|earlier| earlier.name == column.name)
            {
                return problem(format!("column {} is there twice", column.name));
            }
        }
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut head = [0u8; HEAD_BYTES];
        head[0] = SCHEMA_VERSION;
        head[1] = self.unit as u8;
        put_u16(&mut head, 2, self.columns.len() as u16);
        out.extend_from_slice(&head);
        for column in &self.columns {
            let mut head = [0u8; COLUMN_HEAD_BYTES];
            (head[TYPE_AT], head[SCALE_AT]) = column.ty.code();
            head[FLAGS_AT] = NULLABLE * u8::from(column.nullable);
            put_u16(&mut head, NAME_LEN_AT, column.name.len() as u16);
            out.extend_from_slice(&head);
            out.extend_from_slice(column.name.as_bytes());
        }
    }

    /// Decodes a schema from the beginning of `bytes`; also returns the number of bytes read.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, usize)> {
        let (unit, count) = decode_head(bytes)?;
        let (mut at, mut columns) = (HEAD_BYTES, Vec::with_capacity(count));
        for _ in 0..count {
            let (name, column) = decode_column(bytes, &mut at)?;
            columns.push(Column {
                name: name.to_owned(),
                ..column
            });
        }
        let schema = Self { unit, columns };
        schema.validate()?;
        Ok((schema, at))
    }

    /// Decodes only the storage types of the columns' words, which equal `word_types` of the decoded schema; also
    /// returns the number of bytes read.
    pub(crate) fn decode_word_types(bytes: &[u8]) -> Result<(Vec<WordType>, usize)> {
        let (_, count) = decode_head(bytes)?;
        let mut at = HEAD_BYTES;
        let types = (0..count).map(|_| Ok(decode_column(bytes, &mut at)?.1.words()));
        let types = types.collect::<Result<_>>()?;
        Ok((types, at))
    }
}

fn decode_head(bytes: &[u8]) -> Result<(Unit, usize)> {
    let damaged = |found: String, expected: &str| Corrupt::new("schema", 0, found, expected);
    if bytes.len() < HEAD_BYTES || bytes[0] != SCHEMA_VERSION {
        return Err(damaged(format!("{:?}", bytes.first()), "schema version 2").into());
    }
    let unit = Unit::from_u8(bytes[1])
        .ok_or_else(|| damaged(format!("unit {}", bytes[1]), "a unit from 0 to 4"))?;
    let count = usize::from(get_u16(bytes, 2));
    if !(1..=COLUMNS_MAX).contains(&count) {
        let expected = format!("1 to {COLUMNS_MAX}");
        return Err(damaged(format!("{count} columns"), &expected).into());
    }
    Ok((unit, count))
}

/// Decodes the column at `at` and moves `at` past it. The name is returned separately and borrowed, because storing
/// it in the column would allocate memory.
fn decode_column<'b>(bytes: &'b [u8], at: &mut usize) -> Result<(&'b str, Column)> {
    let column = bytes.get(*at..*at + COLUMN_HEAD_BYTES).and_then(|head| {
        let name_at = *at + COLUMN_HEAD_BYTES;
        let end = name_at + usize::from(get_u16(head, NAME_LEN_AT));
        let name = std::str::from_utf8(bytes.get(name_at..end)?).ok()?;
        let plain = head[FLAGS_AT] & !NULLABLE == 0 && head[SCALE_AT + 1] == 0;
        let ty = ColumnType::from_code(head[TYPE_AT], head[SCALE_AT]);
        *at = end;
        let column = Column {
            name: String::new(),
            ty: ty.filter(|_| plain)?,
            nullable: head[FLAGS_AT] & NULLABLE != 0,
        };
        Some((name, column))
    });
    let cut = || Corrupt::new("schema", 0, "a cut column", "a column");
    Ok(column.ok_or_else(cut)?)
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanos => "nanos",
            Self::Micros => "micros",
            Self::Millis => "millis",
            Self::Seconds => "seconds",
            Self::Ticks => "ticks",
        })
    }
}

impl fmt::Display for Schema {
    /// Writes the schema as in `volume:u64 price:decimal(2)?, time in micros`; a `?` marks a nullable column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, time in {}", Described(&self.columns), self.unit)
    }
}

/// Displays columns with their types.
pub(crate) struct Described<'s>(pub &'s [Column]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, column) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            let null = if column.nullable { "?" } else { "" };
            write!(f, "{space}{}:{}{null}", column.name, column.ty.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_survives_its_bytes_and_no_prefix_does() {
        let schema = Schema::new(
            Unit::Ticks,
            [("a", ColumnType::U64), ("größe", ColumnType::F64)],
        )
        .with(Column::nullable("b", ColumnType::Decimal(18)))
        .with(Column::nullable("c", ColumnType::Bool))
        .with(Column::new("d", ColumnType::F32));
        let mut bytes = Vec::new();
        schema.encode(&mut bytes);
        assert_eq!(Schema::decode(&bytes).unwrap(), (schema, bytes.len()));
        for cut in 0..bytes.len() {
            assert!(Schema::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_schema_prints_in_its_input_syntax() {
        let schema = Schema::new(Unit::Ticks, [("Volume", ColumnType::U64)])
            .with(Column::nullable("price", ColumnType::Decimal(2)));
        assert_eq!(
            schema.to_string(),
            "Volume:u64 price:decimal(2)?, time in ticks"
        );
    }

    #[test]
    fn column_limits_hold_at_and_one_beyond() {
        let many = |n: usize| Schema {
            unit: Unit::Nanos,
            columns: (0..n)
                .map(|i| Column::nullable(format!("c{i}"), ColumnType::F64))
                .collect(),
        };
        assert!(many(COLUMNS_MAX).validate().is_ok());
        assert!(many(COLUMNS_MAX + 1).validate().is_err());
        assert!(many(0).validate().is_err());
        let named =
            |n: usize| Schema::new(Unit::Nanos, [("x".repeat(n).as_str(), ColumnType::F64)]);
        assert!(named(COLUMN_NAME_BYTES_MAX).validate().is_ok());
        assert!(named(COLUMN_NAME_BYTES_MAX + 1).validate().is_err());
        let twice = Schema::new(
            Unit::Nanos,
            [("x", ColumnType::F64), ("x", ColumnType::I64)],
        );
        assert!(twice.validate().is_err());
        let decimal = |scale| Schema::new(Unit::Nanos, [("x", ColumnType::Decimal(scale))]);
        assert!(decimal(DECIMAL_SCALE_MAX).validate().is_ok());
        assert!(decimal(DECIMAL_SCALE_MAX + 1).validate().is_err());
    }
}
