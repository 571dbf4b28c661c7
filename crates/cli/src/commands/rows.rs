//! The rows that the options of `scan` select.

use super::filters;
use super::walk::{Walk, Wanted};
use crate::args::ScanArgs;
use crate::database::{Reader, Span};
use crate::exit::{Failure, Outcome};
use std::ops::ControlFlow;
use tidalite::{ColumnType, Direction, Row, Series, SeriesInfo};

/// Callback that prints a row.
pub(super) type Print<'p> = dyn FnMut(&Series<'_>, &Row) -> Outcome + 'p;

pub(super) struct Scan<'a> {
    pub(super) args: &'a ScanArgs,
    pub(super) reader: &'a Reader<'a>,
    pub(super) span: &'a Span,
}

impl Scan<'_> {
    pub(super) fn direction(&self) -> Direction {
        match self.args.reverse {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }

    pub(super) fn wanted(&self, info: &SeriesInfo) -> Outcome<Wanted<'_>> {
        if let Some(regex) = &self.args.regex {
            let column = text_column(info, self.args.column.column.as_deref())?;
            return Ok(Wanted::Matching(column, regex));
        }
        let filters = filters::of(&self.args.wanted, info, &self.args.column)?;
        Ok(match filters.is_empty() {
            true => Wanted::All,
            false => Wanted::Filtered(filters),
        })
    }

    /// Passes the rows of a series in this direction to `print`: skips the first `offset` rows and stops after `limit`
    /// rows.
    pub(super) fn each(
        &self,
        info: &SeriesInfo,
        series: &Series<'_>,
        (direction, offset, limit): (Direction, u64, u64),
        print: &mut Print<'_>,
    ) -> Outcome {
        let Some(range) = self.span.in_series(series) else {
            return Ok(());
        };
        self.each_in(range, info, series, (direction, offset, limit), print)
    }

    /// Like `each`, for the rows of a range of times.
    pub(super) fn each_in(
        &self,
        range: (i64, i64),
        info: &SeriesInfo,
        series: &Series<'_>,
        (direction, offset, limit): (Direction, u64, u64),
        print: &mut Print<'_>,
    ) -> Outcome {
        let wanted = self.wanted(info)?;
        let walk = Walk {
            reader: self.reader,
            series,
            range,
            wanted,
        };
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        walk.each(direction, offset, &mut |row| {
            left -= 1;
            print(series, row)?;
            Ok(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })
    }
}

/// The number of the string column to which a regular expression is applied: the column with this name, or else the
/// last one.
fn text_column(info: &SeriesInfo, name: Option<&str>) -> Outcome<usize> {
    let columns = &info.schema.columns;
    let found = match name {
        Some(name) => info.schema.column(name),
        None => columns
            .iter()
            .rposition(|column| column.ty == ColumnType::String),
    };
    let text = found.filter(|&column| columns[column].ty == ColumnType::String);
    text.ok_or_else(|| {
        let column = name.map_or("column".to_owned(), |name| format!("column `{name}`"));
        Failure::usage(format!(
            "{} has no {column} of strings for --regex",
            info.label()
        ))
    })
}
