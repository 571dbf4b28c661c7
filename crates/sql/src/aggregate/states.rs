//! Converts statistics of a series to states of aggregate functions, in the order and with the types of the partial
//! aggregate.

use crate::aggregate::request::Function;
use crate::error::{Error, ErrorKind, Result};
use crate::metric::layout::Part;
use crate::pieces;
use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, UInt64Array,
};
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use std::sync::Arc;
use tidalite::{Aggregate, Column, ColumnType};

/// The states of one function, one row for each group.
pub(crate) struct States {
    function: Function,
    fields: Vec<FieldRef>,
    columns: Vec<Values>,
}

/// Values of a field of a state.
enum Values {
    Unsigned(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    Decimal(Vec<Option<i128>>),
    Truth(Vec<Option<bool>>),
    Time(TimeUnit, Vec<Option<i64>>),
}

/// An exact number from a column: a float, an integer, a boolean as 0 or 1, or a decimal in units of its last digit.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    fn integer(self) -> i128 {
        match self {
            Self::Integer(value) => value,
            Self::Float(value) => value as i128,
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The statistics of a group's rows in one series.
pub(crate) struct Figures<'f> {
    pub(crate) part: &'f Part,
    /// Number of rows, with or without a value.
    pub(crate) rows: u64,
    /// Times of the first and the last row, in steps of the series.
    pub(crate) times: (i64, i64),
    /// The numbers of the tag values; `None` for a tag that the series lacks.
    pub(crate) tags: &'f [Option<i32>],
    /// Returns the statistics of a value column of the table, and the column of the series; `None` if the series lacks
    /// it.
    pub(crate) of: &'f dyn Fn(usize) -> Option<(&'f Aggregate, &'f Column)>,
}

impl States {
    /// Creates the states of a function with these fields; `None` if they are not the fields of its state.
    pub(crate) fn new(function: Function, fields: Vec<FieldRef>) -> Option<Self> {
        let expected = match function {
            Function::Rows(_)
            | Function::FirstTime
            | Function::LastTime
            | Function::Count(_)
            | Function::Sum(_)
            | Function::Min(_)
            | Function::Max(_) => 1,
            Function::Mean(_) | Function::First(_, false) | Function::Last(_, false) => 2,
            Function::Deviation(_) | Function::First(_, true) | Function::Last(_, true) => 3,
        };
        if fields.len() != expected {
            return None;
        }
        let columns = fields.iter().map(|field| Values::new(field.data_type()));
        let columns = columns.collect::<Option<_>>()?;
        Some(Self {
            function,
            fields,
            columns,
        })
    }

    /// Adds the state of a group.
    pub(crate) fn push(&mut self, figures: &Figures<'_>) -> Result<()> {
        let column = self.function.column().map(|column| (figures.of)(column));
        let of = column.flatten();
        let values = of.filter(|(own, _)| own.count() > 0);
        match self.function {
            Function::Rows(tag) => {
                let has_tag = tag.is_none_or(|tag| figures.tags[tag].is_some());
                let rows = if has_tag { figures.rows } else { 0 };
                self.columns[0].push(Some(Number::Integer(rows.into())));
            }
            Function::FirstTime => self.push_time(0, figures, figures.times.0)?,
            Function::LastTime => self.push_time(0, figures, figures.times.1)?,
            Function::Count(_) => {
                let count = of.map_or(0, |(own, _)| own.count());
                self.columns[0].push(Some(Number::Integer(count.into())));
            }
            Function::Sum(_) => self.columns[0].push(values.map(sum)),
            Function::Mean(_) => {
                // The count of a group without values is null, which makes the merge skip its mean.
                let count = values.map(|(own, _)| Number::Integer(own.count().into()));
                self.columns[0].push(count);
                self.columns[1].push(values.map(sum));
            }
            Function::Deviation(_) => {
                let count = of.map_or(0, |(own, _)| own.count());
                let (mean, squares) = values.map_or((0.0, 0.0), deviation);
                self.columns[0].push(Some(Number::Integer(count.into())));
                self.columns[1].push(Some(Number::Float(mean)));
                self.columns[2].push(Some(Number::Float(squares)));
            }
            Function::Min(_) => self.columns[0].push(values.and_then(min)),
            Function::Max(_) => self.columns[0].push(values.and_then(max)),
            Function::First(_, flagged) => {
                let word = of.and_then(|(own, column)| number(column, own.stats().first()?));
                self.columns[0].push(word);
                self.push_time(1, figures, figures.times.0)?;
                self.push_flag(flagged);
            }
            Function::Last(_, flagged) => {
                let word = of.and_then(|(own, column)| number(column, own.stats().last()?));
                self.columns[0].push(word);
                self.push_time(1, figures, figures.times.1)?;
                self.push_flag(flagged);
            }
        }
        Ok(())
    }

    fn push_flag(&mut self, flagged: bool) {
        if flagged {
            self.columns[2].push(Some(Number::Integer(1)));
        }
    }

    fn push_time(&mut self, field: usize, figures: &Figures<'_>, step: i64) -> Result<()> {
        let time = figures.part.clock.time(step).ok_or_else(|| {
            let label = figures.part.info.label();
            Error::new(
                ErrorKind::Execution,
                format!("a time of {label} is beyond the range of timestamps"),
            )
        })?;
        self.columns[field].push(Some(Number::Integer(time.into())));
        Ok(())
    }

    /// Takes the states as arrays.
    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        let columns = self.columns.iter_mut().zip(&self.fields);
        let arrays = columns.map(|(values, field)| {
            let array = values.finish(field.data_type());
            match array.data_type() == field.data_type() {
                true => Ok(array),
                false => Ok(arrow::compute::cast(&array, field.data_type())?),
            }
        });
        arrays.collect()
    }
}

impl Values {
    fn new(ty: &DataType) -> Option<Self> {
        Some(match ty {
            DataType::UInt64 => Self::Unsigned(Vec::new()),
            DataType::Int64 => Self::Signed(Vec::new()),
            DataType::Float64 | DataType::Float32 => Self::Float(Vec::new()),
            DataType::Decimal128(..) => Self::Decimal(Vec::new()),
            DataType::Boolean => Self::Truth(Vec::new()),
            DataType::Timestamp(unit, _) => Self::Time(*unit, Vec::new()),
            _ => return None,
        })
    }

    fn push(&mut self, number: Option<Number>) {
        match self {
            // A sum that exceeds 64 bits wraps around, as in DataFusion.
            Self::Unsigned(values) => values.push(number.map(|number| number.integer() as u64)),
            Self::Signed(values) | Self::Time(_, values) => {
                values.push(number.map(|number| number.integer() as i64));
            }
            Self::Decimal(values) => values.push(number.map(Number::integer)),
            Self::Truth(values) => values.push(number.map(|number| number.integer() != 0)),
            Self::Float(values) => values.push(number.map(Number::float)),
        }
    }

    /// Takes the values as an array. Decimals are units of the last digit of `ty`.
    fn finish(&mut self, ty: &DataType) -> ArrayRef {
        match self {
            Self::Unsigned(values) => Arc::new(UInt64Array::from(std::mem::take(values))),
            Self::Signed(values) => Arc::new(Int64Array::from(std::mem::take(values))),
            Self::Float(values) => Arc::new(Float64Array::from(std::mem::take(values))),
            Self::Truth(values) => Arc::new(BooleanArray::from(std::mem::take(values))),
            Self::Decimal(values) => {
                let units = Decimal128Array::from(std::mem::take(values));
                Arc::new(units.with_data_type(ty.clone()))
            }
            Self::Time(unit, values) => {
                let values = std::mem::take(values)
                    .into_iter()
                    .map(Option::unwrap_or_default);
                pieces::times(*unit, values.collect())
            }
        }
    }
}

/// The number that a word represents; `None` for null and for texts.
fn number(column: &Column, word: u64) -> Option<Number> {
    if column.is_null(word) {
        return None;
    }
    Some(match column.ty {
        ColumnType::F64 | ColumnType::F32 => Number::Float(f64::from_bits(word)),
        ColumnType::I64 | ColumnType::Decimal(_) => Number::Integer((word as i64).into()),
        ColumnType::U64 | ColumnType::Bool => Number::Integer(word.into()),
        _ => return None,
    })
}

fn is_float(column: &Column) -> bool {
    matches!(column.ty, ColumnType::F64 | ColumnType::F32)
}

/// The sum. Statistics ignore NaN, but a sum of values with NaN is NaN.
fn sum((own, column): (&Aggregate, &Column)) -> Number {
    if own.nan_count() > 0 {
        return Number::Float(f64::NAN);
    }
    match own.stats().int_sum() {
        Some(sum) if !is_float(column) => Number::Integer(sum),
        _ => Number::Float(own.sum()),
    }
}

/// The mean, and the sum of the squares of the differences from it.
fn deviation((own, _): (&Aggregate, &Column)) -> (f64, f64) {
    if own.nan_count() > 0 {
        return (f64::NAN, f64::NAN);
    }
    let deviation = own.stddev().unwrap_or_default();
    (
        own.mean().unwrap_or_default(),
        deviation * deviation * own.count() as f64,
    )
}

/// The smallest value. NaN counts as greater than all numbers, so it is the result only if all values are NaN.
fn min((own, column): (&Aggregate, &Column)) -> Option<Number> {
    match own.stats().min_word() {
        Some(word) => number(column, word),
        None => Some(Number::Float(f64::NAN)),
    }
}

/// The greatest value: NaN if any value is NaN.
fn max((own, column): (&Aggregate, &Column)) -> Option<Number> {
    match own.stats().max_word() {
        Some(word) if own.nan_count() == 0 => number(column, word),
        _ => Some(Number::Float(f64::NAN)),
    }
}
