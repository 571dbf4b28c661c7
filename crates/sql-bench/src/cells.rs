//! Values of results, as all engines show them, and their comparison.

use std::error::Error;
use tidalite_sql::Connection;
use tidalite_sql::arrow::array::{Array, AsArray, RecordBatch};
use tidalite_sql::arrow::compute::cast;
use tidalite_sql::arrow::datatypes::{DataType, Float64Type};

/// Maximum difference of equal numbers, relative to their size. Some engines compute with `f64`, others with decimals.
const RELATIVE_MAX: f64 = 1e-6;

/// Maximum difference of equal numbers near 0: a mean of decimals has six digits after the point.
const ABSOLUTE_MAX: f64 = 1e-6;

/// A value of a row. Dates are texts.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Number(f64),
    Text(String),
}

impl Cell {
    /// Reads a value that a program in Python has written: `n` and a number, `t` and a text, or `-` for null.
    pub(crate) fn parse(text: &str) -> Result<Self, Box<dyn Error>> {
        if let Some(text) = text.strip_prefix('t') {
            return Ok(Self::Text(text.to_owned()));
        }
        match text.strip_prefix('n') {
            Some(number) => Ok(Self::Number(number.parse()?)),
            None => Ok(Self::Null),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => {
                (one - other).abs() <= ABSOLUTE_MAX + RELATIVE_MAX * one.abs()
            }
            _ => false,
        }
    }
}

/// Runs a query to its end.
pub(crate) fn answer(
    connection: &mut Connection,
    sql: &str,
) -> tidalite_sql::Result<Vec<RecordBatch>> {
    connection.query(sql)?.collect()
}

/// The rows of a result.
pub(crate) fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<Cell>>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for batch in batches {
        let begin = rows.len();
        rows.resize(begin + batch.num_rows(), Vec::new());
        for column in batch.columns() {
            let is_number = column.data_type().is_numeric();
            let ty = match is_number {
                true => DataType::Float64,
                false => DataType::Utf8,
            };
            let column = cast(column, &ty)?;
            for (at, row) in rows[begin..].iter_mut().enumerate() {
                row.push(match is_number {
                    _ if column.is_null(at) => Cell::Null,
                    true => Cell::Number(column.as_primitive::<Float64Type>().value(at)),
                    false => Cell::Text(column.as_string::<i32>().value(at).to_owned()),
                });
            }
        }
    }
    Ok(rows)
}

/// The first difference between two results in order; `None` if they are equal.
pub(crate) fn difference(one: &[Vec<Cell>], other: &[Vec<Cell>]) -> Option<String> {
    if one.len() != other.len() {
        return Some(format!("{} rows instead of {}", one.len(), other.len()));
    }
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let equal = one.iter().zip(other).all(|(one, other)| one.equals(other));
        if !equal || one.len() != other.len() {
            return Some(format!("row {number} is {one:?} instead of {other:?}"));
        }
    }
    None
}

/// The median of measured times.
pub(crate) fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
