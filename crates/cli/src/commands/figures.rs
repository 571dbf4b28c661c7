//! The aggregate functions that `aggregate` and `window` print.

use crate::args::Function;
use crate::database::{time_cell, word_cell};
use crate::output::{Cell, Column};
use crate::time::TimeShow;
use clap::ValueEnum;
use tidalite::{Aggregate, ColumnType, Decimal, Figure, Unit};

/// Formats an aggregate as cells, one for each function.
pub(crate) struct Figures<'a> {
    /// The functions that the user has chosen.
    pub functions: &'a [Function],
    /// Time zone and format of the times.
    pub show: &'a TimeShow,
}

impl Figures<'_> {
    /// The figures to request from a query if all cells of this column can be computed from floats; otherwise `None`,
    /// and whole aggregates are needed.
    pub(crate) fn as_floats(&self, column: &tidalite::Column) -> Option<Vec<Figure>> {
        let is_float = column.ty == ColumnType::F64;
        let figure = |&function: &Function| {
            let always = matches!(
                function,
                Function::Count | Function::Mean | Function::Stddev
            );
            figure_of(function).filter(|_| always || is_float)
        };
        self.functions.iter().map(figure).collect()
    }

    /// Formats one cell per function from the values of the figures that `as_floats` has returned.
    pub(crate) fn float_cells(&self, values: &[Option<f64>]) -> impl Iterator<Item = Cell> {
        let functions = self.functions.iter().zip(values);
        functions.map(|(function, value)| match (function, value) {
            (_, None) => Cell::Missing,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count is a whole number, and no file has 2^53 rows"
            )]
            (Function::Count, Some(count)) => Cell::Count(*count as u64),
            (Function::Sum | Function::Mean | Function::Stddev, Some(value)) => {
                Cell::Computed(*value)
            }
            (_, Some(value)) => Cell::Float(*value),
        })
    }

    /// Makes one output column per function.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column> {
        self.functions.iter().map(|function| {
            let name = function
                .to_possible_value()
                .map(|value| value.get_name().replace('-', "_"));
            let name = name.unwrap_or_default();
            match function {
                Function::MinTime | Function::MaxTime => Column::text(name),
                _ => Column::number(name),
            }
        })
    }

    /// Formats one cell per function from an aggregate.
    pub(crate) fn cells(
        &self,
        aggregate: &Aggregate,
        column: &tidalite::Column,
        unit: Unit,
    ) -> impl Iterator<Item = Cell> {
        self.functions
            .iter()
            .map(move |function| self.cell(*function, aggregate, column, unit))
    }

    fn cell(
        &self,
        function: Function,
        of: &Aggregate,
        column: &tidalite::Column,
        unit: Unit,
    ) -> Cell {
        let stats = of.stats();
        let word = |word: Option<u64>| word.map_or(Cell::Missing, |word| word_cell(column, word));
        let time =
            |time: Option<i64>| time.map_or(Cell::Missing, |time| time_cell(self.show, unit, time));
        let computed = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Computed);
        match function {
            Function::Count => Cell::Count(of.count()),
            Function::NanCount => Cell::Count(of.nan_count()),
            Function::Sum => match stats.int_sum().and_then(|sum| i64::try_from(sum).ok()) {
                Some(units) => match column.ty {
                    ColumnType::Decimal(scale) => Cell::Decimal(Decimal { units, scale }),
                    _ => Cell::Int(units),
                },
                None => Cell::Computed(of.sum()),
            },
            Function::Mean => computed(of.mean()),
            Function::Min => word(stats.min().map(|(word, _)| word)),
            Function::MinTime => time(stats.min().map(|(_, time)| time)),
            Function::Max => word(stats.max().map(|(word, _)| word)),
            Function::MaxTime => time(stats.max().map(|(_, time)| time)),
            Function::First => word(stats.first()),
            Function::Last => word(stats.last()),
            Function::Stddev => computed(of.stddev()),
        }
    }
}

/// The library's figure for a function; `None` if the function needs a whole aggregate.
pub(crate) fn figure_of(function: Function) -> Option<Figure> {
    Some(match function {
        Function::Count => Figure::Count,
        Function::Sum => Figure::Sum,
        Function::Mean => Figure::Mean,
        Function::Min => Figure::Min,
        Function::Max => Figure::Max,
        Function::First => Figure::First,
        Function::Last => Figure::Last,
        Function::Stddev => Figure::Stddev,
        Function::NanCount | Function::MinTime | Function::MaxTime => return None,
    })
}

/// The value of a function as a number to draw; `None` if it is a time.
pub(crate) fn drawn(function: Function, of: &Aggregate) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
    let count = |count: u64| Some(count as f64);
    match function {
        Function::Count => count(of.count()),
        Function::NanCount => count(of.nan_count()),
        Function::Sum => Some(of.sum()),
        Function::Mean => of.mean(),
        Function::Min => of.min().map(|(value, _)| value),
        Function::Max => of.max().map(|(value, _)| value),
        Function::First => of.first(),
        Function::Last => of.last(),
        Function::Stddev => of.stddev(),
        Function::MinTime | Function::MaxTime => None,
    }
}
