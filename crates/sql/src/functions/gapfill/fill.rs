//! Merges the rows of one group with rows for the missing bins.
//!
//! Invariants
//! 1. Rows are in order of time, and rows without a time come last. The starts of bins are also in order, so a single
//!    merge yields the result.
//! 2. Rows outside the range to fill are kept.
//! 3. A null value counts as missing for `locf` and `interpolate`, even in rows of the input.

use super::node::Fill;
use crate::functions::args;
use crate::functions::bucket::Buckets;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Float64Type, SchemaRef};
use datafusion::common::Result;
use std::sync::Arc;

/// The bins of the time range to fill.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    buckets: Buckets,
    /// First and last time of the range, in steps of the column.
    range: (i128, i128),
    /// Length of a step in nanoseconds.
    step: i128,
}

impl Grid {
    pub(super) fn new(buckets: Buckets, range: (i128, i128), step: i128) -> Self {
        Self {
            buckets,
            range,
            step,
        }
    }

    /// The start of the first bin, in nanoseconds.
    fn first(&self) -> Option<i128> {
        let (first, last) = self.range;
        let begin = || self.buckets.begin(first.checked_mul(self.step)?);
        begin().filter(|_| first <= last)
    }

    /// The start of a bin, in steps of the column; `None` after the end of the range.
    fn steps(&self, begin: i128) -> Option<i64> {
        let steps = begin.div_euclid(self.step);
        i64::try_from(steps).ok().filter(|_| steps <= self.range.1)
    }
}

/// The rows of one group, returned in parts.
pub(super) struct Filled {
    rows: RecordBatch,
    times: Int64Array,
    columns: Vec<Column>,
    grid: Grid,
    schema: SchemaRef,
    next_row: usize,
    /// The start of the next bin, in nanoseconds.
    next_bin: Option<i128>,
}

/// A column of the result, and the source of its values for the next row.
enum Column {
    Key,
    Time,
    Null,
    /// The row of the last value.
    Locf(Option<u32>),
    Linear(Line),
}

/// A numeric column, interpolated linearly between its values.
struct Line {
    /// Times and values of the rows in which both are not null.
    points: Vec<(i64, f64)>,
    /// Number of points up to the current time.
    passed: usize,
}

/// A row of the result: its time, and the corresponding row of the input, if any.
#[derive(Clone, Copy)]
struct Row {
    time: Option<i64>,
    source: Option<u32>,
}

impl Filled {
    /// Begins with the rows of a group.
    pub(super) fn new(
        rows: RecordBatch,
        fills: &[Fill],
        grid: &Grid,
        schema: SchemaRef,
    ) -> Result<Self> {
        let time_column = fills.iter().position(|fill| *fill == Fill::Time);
        let time_column = time_column.unwrap_or(0);
        let times = args::times(rows.column(time_column))?;
        let columns = fills.iter().zip(rows.columns()).map(|(fill, values)| {
            Ok(match fill {
                Fill::Key => Column::Key,
                Fill::Time => Column::Time,
                Fill::Null => Column::Null,
                Fill::Locf => Column::Locf(None),
                Fill::Linear => Column::Linear(Line::new(&times, args::numbers(values)?)),
            })
        });
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            times,
            grid: grid.clone(),
            schema,
            next_row: 0,
            next_bin: grid.first(),
            rows,
        })
    }

    /// Returns at most this many further rows; `None` after the last one.
    pub(super) fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        let mut part = Vec::new();
        while part.len() < rows_max
            && let Some(row) = self.next_row()
        {
            part.push(row);
        }
        if part.is_empty() {
            return Ok(None);
        }
        let Self { rows, columns, .. } = self;
        let columns = columns.iter_mut().zip(rows.columns());
        let columns = columns.map(|(column, values)| column.values(values, &part));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Some(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns,
        )?))
    }

    fn next_row(&mut self) -> Option<Row> {
        let bin = self.next_bin.and_then(|begin| self.grid.steps(begin));
        let has_row = self.next_row < self.times.len();
        let time = (has_row && self.times.is_valid(self.next_row))
            .then(|| self.times.value(self.next_row));
        let (from_row, from_bin) = match (time, bin) {
            (Some(time), Some(bin)) => (time <= bin, bin <= time),
            (None, Some(_)) => (false, true),
            (_, None) => (has_row, false),
        };
        let source = from_row.then_some(self.next_row as u32);
        let row = Row {
            time: if from_row { time } else { bin },
            source,
        };
        if from_bin {
            self.next_bin = self
                .next_bin
                .and_then(|begin| self.grid.buckets.next(begin));
        }
        self.next_row += usize::from(from_row);
        (from_row || from_bin).then_some(row)
    }
}

impl Column {
    fn values(&mut self, values: &ArrayRef, rows: &[Row]) -> Result<ArrayRef> {
        let indices: UInt32Array = match self {
            Self::Key => UInt32Array::from_value(0, rows.len()),
            Self::Null => rows.iter().map(|row| row.source).collect(),
            Self::Locf(last) => {
                let source = |row: &Row| {
                    let own = row
                        .source
                        .filter(|&source| values.is_valid(source as usize));
                    // A row without a time is not between any points.
                    if row.time.is_none() {
                        return own;
                    }
                    *last = own.or(*last);
                    *last
                };
                rows.iter().map(source).collect()
            }
            Self::Time => {
                let times = Int64Array::from_iter(rows.iter().map(|row| row.time));
                return args::retyped(&times, values.data_type());
            }
            Self::Linear(line) => {
                let values = values.as_primitive::<Float64Type>();
                let at = |row: &Row| match (row.time, row.source) {
                    (Some(time), _) => line.at(time),
                    (None, Some(source)) => {
                        let source = source as usize;
                        values.is_valid(source).then(|| values.value(source))
                    }
                    (None, None) => None,
                };
                return Ok(Arc::new(Float64Array::from_iter(rows.iter().map(at))));
            }
        };
        Ok(take(values, &indices, None)?)
    }
}

impl Line {
    fn new(times: &Int64Array, values: &Float64Array) -> Self {
        let points = times.iter().zip(values);
        let points = points.filter_map(|(time, value)| Some((time?, value?)));
        Self {
            points: points.collect(),
            passed: 0,
        }
    }

    /// The value at a time, which must not be before the times of earlier calls; `None` before the first point and
    /// after the last.
    fn at(&mut self, time: i64) -> Option<f64> {
        let later = &self.points[self.passed..];
        self.passed += later.iter().take_while(|(at, _)| *at <= time).count();
        let &(from, a) = self.points.get(self.passed.checked_sub(1)?)?;
        if from == time {
            return Some(a);
        }
        let &(to, b) = self.points.get(self.passed)?;
        if a == b {
            return Some(a);
        }
        let distance = |from: i64, to: i64| (i128::from(to) - i128::from(from)) as f64;
        let part = distance(from, time) / distance(from, to);
        Some(a * (1.0 - part) + b * part)
    }
}
