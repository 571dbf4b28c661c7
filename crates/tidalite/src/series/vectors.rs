//! Reading the rows of a query: vector by vector (up to 1024 rows at a time), or one by one.

use crate::series::figures::Figures;
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::row_walk::RowWalk;
use crate::txn::pages::Pages;
use crate::types::column::ColumnType;
use crate::types::error::Result;
use crate::types::point::{Point, Sample};
use crate::types::schema::Schema;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_series::{Lines, NextRows};

impl<'s, F: Figures> Query<'s, F> {
    /// Calls `f` with slices of up to 1024 rows, the fastest way to read many rows. Returns the number of rows. Rows
    /// within a slice ascend; a [reversed](Self::reverse) query delivers the last slice first.
    ///
    /// # Errors
    /// `Schema` for a column or a filter that does not exist; a damaged or unreadable block, after the rows before it
    /// were delivered.
    pub fn for_each_vector(&self, mut f: impl FnMut(&Vector<'_>)) -> Result<u64> {
        let (from, to) = self.ends()?;
        if from > to {
            return Ok(0);
        }
        let columns = self.wanted_columns();
        let view = self.series.view();
        let schema = &self.series.info().schema;
        let f = |inner: &tidalite_series::Vector<'_>| {
            let inner = inner.clone();
            f(&Vector { inner, schema });
        };
        Ok(match (self.filters.is_empty(), self.direction) {
            (true, Direction::Forward) => view.for_each_vector(from, to, &columns, f)?,
            (true, Direction::Backward) => view.for_each_vector_reverse(from, to, &columns, f)?,
            (false, direction) => {
                let matching = view.matching(self.filters.clone());
                matching.for_each_vector(from, to, &columns, direction, f)?
            }
        })
    }

    /// Calls `f` with the time of every row and one word per column of the series. Returns the number of rows.
    ///
    /// # Errors
    /// As for `for_each_vector`.
    #[inline(always)]
    pub fn for_each(&self, mut f: impl FnMut(i64, &[u64])) -> Result<u64> {
        // Vectors are pulled, and this function is inlined, so that the loop over rows is in the caller, where a sum
        // kept by `f` can stay in a register: if rows were pushed through a call, the sum would go to memory with every
        // row.
        if !self.filters.is_empty() || self.direction == Direction::Backward {
            let mut rows = self.walk()?;
            let mut count = 0;
            while let Some((time, words)) = rows.next_row()? {
                f(time, words);
                count += 1;
            }
            return Ok(count);
        }
        let mut scan = self.scan()?;
        let mut lines = Lines::default();
        let mut rows = 0;
        let columns = self.series.info().schema.columns.len();
        let mut words = [0u64; COLUMNS_MAX];
        while let Some(next) = scan.next_rows_or_lines(&mut lines)? {
            let vector = match next {
                NextRows::Vector(vector) => vector,
                NextRows::Lines => {
                    rows += lines.rows() as u64;
                    for_each_of_lines(&lines, columns, &mut f);
                    continue;
                }
            };
            let times = vector.times();
            rows += times.len() as u64;
            let column = |c| vector.words(c).iter();
            // The columns are zipped, not indexed: a bounds check that could fail would also force the sums of `f` into
            // memory.
            match columns {
                1 => times
                    .iter()
                    .zip(column(0))
                    .for_each(|(&time, &a)| f(time, &[a])),
                2 => times
                    .iter()
                    .zip(column(0))
                    .zip(column(1))
                    .for_each(|((&time, &a), &b)| f(time, &[a, b])),
                3 => times
                    .iter()
                    .zip(column(0))
                    .zip(column(1).zip(column(2)))
                    .for_each(|((&time, &a), (&b, &c))| f(time, &[a, b, c])),
                4 => times
                    .iter()
                    .zip(column(0).zip(column(1)))
                    .zip(column(2).zip(column(3)))
                    .for_each(|((&time, (&a, &b)), (&c, &d))| f(time, &[a, b, c, d])),
                columns => {
                    let words = &mut words[..columns];
                    for (row, &time) in times.iter().enumerate() {
                        for (column, word) in words.iter_mut().enumerate() {
                            *word = vector.words(column)[row];
                        }
                        f(time, words);
                    }
                }
            }
        }
        Ok(rows)
    }

    /// Creates a scan of all columns, vector by vector, in ascending order of time. Filters make it skip vectors in
    /// which no row can match, but do not select rows.
    pub(crate) fn scan(&self) -> Result<tidalite_series::Scan<'s, Pages<'s>>> {
        let (from, to) = self.ends()?;
        let columns: Vec<usize> = (0..self.series.info().schema.columns.len()).collect();
        let view = self.series.view();
        Ok(match self.filters.is_empty() {
            true => view.scan(from, to, &columns),
            false => view.matching(self.filters.clone()).scan(from, to, &columns),
        })
    }

    /// Creates a walk over the rows that match the filters, in the direction of the query.
    #[cold]
    pub(crate) fn walk(&self) -> Result<RowWalk<'s>> {
        let ends = self.ends()?;
        let filters = self.filters.clone();
        Ok(RowWalk::new(self.series, ends, filters, self.direction))
    }

    /// Calls `f` with every row as a default point (`flags`, `value`), with its time in the series' unit. Returns the
    /// number of rows.
    ///
    /// # Errors
    /// `Schema` if the series has other columns; else as for `for_each_vector`.
    pub fn for_each_sample(&self, mut f: impl FnMut(Sample)) -> Result<u64> {
        crate::catalog::entries::expect_columns(self.series.info(), &<Sample as Point>::schema())?;
        let all = Self {
            columns: None,
            ..self.clone()
        };
        all.for_each_vector(|vector| {
            let rows = vector.times().iter().zip(vector.i64(0)).zip(vector.f64(1));
            let sample = |((&time, &flags), &value)| Sample { time, flags, value };
            match self.direction {
                Direction::Forward => rows.map(sample).for_each(&mut f),
                Direction::Backward => rows.map(sample).rev().for_each(&mut f),
            }
        })
    }
}

/// Calls `f` with the rows of a vector whose times and columns are straight lines, and computes each row as it goes.
/// Because of inlining, values that `f` does not use are not computed.
#[inline(always)]
fn for_each_of_lines(lines: &Lines, columns: usize, f: &mut impl FnMut(i64, &[u64])) {
    let (rows, times) = (0..lines.rows(), lines.times());
    let time = |row| times.integer(row) as i64;
    let column = |c| lines.column(c);
    match columns {
        0 => rows.for_each(|row| f(time(row), &[])),
        1 => {
            let a = column(0);
            rows.for_each(|row| f(time(row), &[a.at(row)]));
        }
        2 => {
            let (a, b) = (column(0), column(1));
            // A special case for an integer and a float, the columns of the default point, because it is faster.
            if a.is_integer() && !b.is_integer() {
                return rows.for_each(|row| f(time(row), &[a.integer(row), b.float(row)]));
            }
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row)]));
        }
        3 => {
            let (a, b, c) = (column(0), column(1), column(2));
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row), c.at(row)]));
        }
        _ => {
            let (a, b, c, d) = (column(0), column(1), column(2), column(3));
            rows.for_each(|row| f(time(row), &[a.at(row), b.at(row), c.at(row), d.at(row)]));
        }
    }
}

/// Up to 1024 consecutive rows of a series, borrowed from the scan that decoded them.
pub struct Vector<'v> {
    pub(crate) inner: tidalite_series::Vector<'v>,
    pub(crate) schema: &'v Schema,
}

impl<'v> Vector<'v> {
    fn is_float(&self, column: usize) -> Option<bool> {
        let own = self.schema.columns.get(column)?;
        Some(matches!(own.ty, ColumnType::F64 | ColumnType::F32))
    }

    /// Times of the rows, ascending, in the series' unit.
    #[must_use]
    pub fn times(&self) -> &'v [i64] {
        self.inner.times()
    }

    /// The stored words of a column, one per row; empty if the column was not requested.
    #[must_use]
    pub fn words(&self, column: usize) -> &'v [u64] {
        self.inner.words(column)
    }

    /// A column as floats, with unchanged bits: the result is valid only for a column of floats.
    /// [`floats`](Self::floats) returns an error for other columns.
    ///
    /// # Panics
    /// In builds with debug assertions, if the column has integers or texts.
    #[must_use]
    pub fn f64(&self, column: usize) -> &'v [f64] {
        debug_assert!(
            self.is_float(column) != Some(false),
            "column {column} has no floats"
        );
        bytemuck::cast_slice(self.words(column))
    }

    /// A column as signed integers, with unchanged bits: the result is not valid for a column of floats.
    /// [`integers`](Self::integers) returns an error for such a column.
    ///
    /// # Panics
    /// In builds with debug assertions, if the column has floats.
    #[must_use]
    pub fn i64(&self, column: usize) -> &'v [i64] {
        debug_assert!(
            self.is_float(column) != Some(true),
            "column {column} has floats"
        );
        bytemuck::cast_slice(self.words(column))
    }
}
