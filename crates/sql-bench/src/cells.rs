//! Values of results in a form common to all engines, and their comparison.

use std::error::Error;
use tidalite_sql::Connection;
use tidalite_sql::arrow::array::{Array, AsArray, RecordBatch};
use tidalite_sql::arrow::compute::cast;
use tidalite_sql::arrow::datatypes::{DataType, Float64Type, Int64Type};

/// Maximum relative difference between numbers that count as equal. Some engines compute with `f64`, others with
/// decimals.
const RELATIVE_MAX: f64 = 1e-6;

/// Maximum absolute difference between numbers near 0 that count as equal: a mean of decimals has six digits after the
/// point.
const ABSOLUTE_MAX: f64 = 1e-6;

/// A value of a row. Dates are texts.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Number(f64),
    Text(String),
}

impl Cell {
    /// Parses a value that the Python program has written: a letter for its kind, followed by the value.
    pub(crate) fn parse(text: &str) -> Result<Self, Box<dyn Error>> {
        let mut rest = text.chars();
        let kind = rest.next();
        let value = rest.as_str();
        Ok(match kind {
            Some('-') => Self::Null,
            Some('i') => Self::Integer(value.parse()?),
            Some('n') => Self::Number(value.parse()?),
            Some('t') => Self::Text(value.to_owned()),
            _ => return Err(format!("{text:?} is no value").into()),
        })
    }

    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            // DuckDB returns sums of integers as decimals.
            (Self::Integer(integer), Self::Number(number))
            | (Self::Number(number), Self::Integer(integer)) => *integer as f64 == *number,
            (Self::Number(one), Self::Number(other)) => {
                (one - other).abs() <= ABSOLUTE_MAX + RELATIVE_MAX * one.abs()
            }
            _ => false,
        }
    }
}

/// Runs a query to its end and returns its rows.
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
            let ty = match column.data_type() {
                ty if ty.is_integer() => DataType::Int64,
                ty if ty.is_numeric() => DataType::Float64,
                _ => DataType::Utf8,
            };
            let column = cast(column, &ty)?;
            for (at, row) in rows[begin..].iter_mut().enumerate() {
                row.push(match ty {
                    _ if column.is_null(at) => Cell::Null,
                    DataType::Int64 => Cell::Integer(column.as_primitive::<Int64Type>().value(at)),
                    DataType::Float64 => {
                        Cell::Number(column.as_primitive::<Float64Type>().value(at))
                    }
                    _ => Cell::Text(column.as_string::<i32>().value(at).to_owned()),
                });
            }
        }
    }
    Ok(rows)
}

/// The first difference between two results whose rows are in order; `None` if they are equal.
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

/// Formats a ratio with two significant digits, so that 0.14 is not shown as 0.1.
pub(crate) fn two_digits(ratio: f64) -> String {
    let digits = (1.0 - ratio.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{ratio:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_equal_only_if_they_are_the_same() {
        let cell = |text| Cell::parse(text).unwrap();
        assert!(!cell("i10000000").equals(&cell("i10000001")));
        assert!(!cell("i10000000").equals(&cell("n10000001.0")));
        assert!(cell("i10000000").equals(&cell("n10000000")));
        assert!(cell("n10000000.5").equals(&cell("n10000001.5")));
        assert!(cell("-").equals(&Cell::Null));
        assert!(Cell::parse("").is_err());
    }

    #[test]
    fn ratios_have_two_digits() {
        let ratios = [0.0142, 0.142, 1.42, 14.2, 142.0];
        assert_eq!(
            ratios.map(two_digits),
            ["0.014", "0.14", "1.4", "14", "142"]
        );
    }
}
