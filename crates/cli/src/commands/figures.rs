//! The aggregate functions that `aggregate`, `window` and `candles` print.

use crate::args::{Asked, ColumnArg, Function};
use crate::columns::column_of_function;
use crate::database::{time_cell, word_cell};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::time::TimeShow;
use std::collections::BTreeMap;
use tidalite::query::{History, Windows};
use tidalite::{
    Aggregate, ColumnType, Decimal, Figure, Grid, Query, Result, Schema, SeriesInfo, Steps, Unit,
};

/// Formats figures of one column as cells, one for each function.
pub(crate) struct Figures<'a> {
    /// The functions that the user has chosen.
    pub functions: &'a [Asked],
    /// Time zone and format of the times.
    pub show: &'a TimeShow,
}

/// Creates one output column per function.
pub(crate) fn output_columns(functions: &[Asked]) -> impl Iterator<Item = Column> {
    functions
        .iter()
        .map(|asked| match asked.function.is_time() {
            true => Column::text(asked.title()),
            false => Column::number(asked.title()),
        })
}

/// The functions that read one column, and their positions among all functions.
pub(crate) struct OfColumn {
    pub column: usize,
    pub places: Vec<usize>,
    pub functions: Vec<Asked>,
}

/// Groups functions by the column that they read.
pub(crate) fn by_column(
    info: &SeriesInfo,
    wanted: &ColumnArg,
    functions: &[Asked],
) -> Outcome<Vec<OfColumn>> {
    let mut columns: BTreeMap<usize, OfColumn> = BTreeMap::new();
    for (place, function) in functions.iter().enumerate() {
        let column = column_of_function(info, wanted, function)?;
        let own = columns.entry(column).or_insert_with(|| OfColumn {
            column,
            places: Vec::new(),
            functions: Vec::new(),
        });
        own.places.push(place);
        own.functions.push(function.clone());
    }
    Ok(columns.into_values().collect())
}

impl Figures<'_> {
    /// The cells of each window of a column, with the start of the window.
    pub(crate) fn windows(
        &self,
        query: &Query<'_>,
        windows: impl Into<Windows>,
        (schema, column): (&Schema, usize),
    ) -> Result<Vec<(i64, Vec<Cell>)>> {
        let windows = windows.into();
        let (own, unit) = (&schema.columns[column], schema.unit);
        if let Some(figures) = self.as_floats(own) {
            let of = query.clone().figures(&figures[..]);
            let each = of.windows(windows, column)?.into_iter();
            let cells = |window: tidalite::Window<Vec<Option<f64>>>| {
                (window.start, self.float_cells(&window.aggregate))
            };
            return Ok(each.map(cells).collect());
        }
        // An aggregate does not contain the figures that are computed from rows, so these are queried separately.
        let figures = self.of_rows();
        let mut rows = match figures.is_empty() {
            true => Vec::new(),
            false => {
                let of = query.clone().figures(&figures[..]);
                of.windows(windows.clone(), column)?
            }
        }
        .into_iter();
        let each = query.windows(windows, column)?.into_iter().map(|window| {
            let rows = rows.next().map_or(Vec::new(), |rows| rows.aggregate);
            let cells = self.cells(&window.aggregate, &rows, own, unit);
            (window.start, cells)
        });
        Ok(each.collect())
    }

    /// The cells of each window of a column, computed from stored windows together with points; all functions must be
    /// figures.
    pub(crate) fn of_history(
        &self,
        history: &History<'_>,
        (from, to): (i64, i64),
        grid: &Grid,
        column: usize,
    ) -> Result<Vec<(i64, Vec<Cell>)>> {
        let figures = self
            .functions
            .iter()
            .filter_map(|asked| asked.function.figure());
        let figures: Vec<Figure> = figures.collect();
        let windows = history.windows(Steps(from)..=Steps(to), grid, column, &figures)?;
        let cells = |window: tidalite::Window<Vec<Option<f64>>>| {
            (window.start, self.float_cells(&window.aggregate))
        };
        Ok(windows.into_iter().map(cells).collect())
    }

    /// The cells of a whole query; `None` if no row has a value.
    pub(crate) fn aggregate(
        &self,
        query: &Query<'_>,
        (schema, column): (&Schema, usize),
    ) -> Result<Option<Vec<Cell>>> {
        let aggregate = query.aggregate(column)?;
        if aggregate.count() == 0 {
            return Ok(None);
        }
        let figures = self.of_rows();
        let rows = match figures.is_empty() {
            true => Vec::new(),
            false => query.clone().figures(&figures[..]).aggregate(column)?,
        };
        let own = &schema.columns[column];
        Ok(Some(self.cells(&aggregate, &rows, own, schema.unit)))
    }

    /// The figures that are computed from rows.
    fn of_rows(&self) -> Vec<Figure> {
        let figures = self
            .functions
            .iter()
            .filter_map(|asked| asked.function.figure());
        figures.filter(|figure| figure.reads_rows()).collect()
    }

    /// The figures to request from a query, if all cells of this column can be computed from floats; `None` if whole
    /// aggregates are needed.
    fn as_floats(&self, column: &tidalite::Column) -> Option<Vec<Figure>> {
        let is_float = column.ty == ColumnType::F64;
        let figure = |asked: &Asked| match asked.function {
            Function::Figure(figure, _) => {
                let always = matches!(figure, Figure::Count | Figure::Mean | Figure::Stddev);
                (is_float || always || figure.reads_rows()).then_some(figure)
            }
            _ => None,
        };
        self.functions.iter().map(figure).collect()
    }

    /// Formats one cell per function, from the values of the figures that `as_floats` has returned.
    fn float_cells(&self, values: &[Option<f64>]) -> Vec<Cell> {
        let functions = self.functions.iter().zip(values);
        let cell = |(asked, value): (&Asked, &Option<f64>)| float_cell(asked.function, *value);
        functions.map(cell).collect()
    }

    /// Formats one cell per function from an aggregate, and from the figures that are computed from rows.
    pub(crate) fn cells(
        &self,
        aggregate: &Aggregate,
        of_rows: &[Option<f64>],
        column: &tidalite::Column,
        unit: Unit,
    ) -> Vec<Cell> {
        let mut of_rows = of_rows.iter();
        let cell = |asked: &Asked| match asked.function {
            Function::Figure(figure, _) if figure.reads_rows() => {
                float_cell(asked.function, of_rows.next().copied().flatten())
            }
            function => self.cell(function, aggregate, column, unit),
        };
        self.functions.iter().map(cell).collect()
    }

    fn cell(
        &self,
        function: Function,
        of: &Aggregate,
        column: &tidalite::Column,
        unit: Unit,
    ) -> Cell {
        let stats = of.stats();
        // In a table, extremes are rounded like means, so that neighbouring figures have the same number of digits.
        let word = |word: Option<u64>| match word.map(|word| word_cell(column, word)) {
            Some(Cell::Float(value)) => Cell::Computed(value),
            Some(cell) => cell,
            None => Cell::Missing,
        };
        let time =
            |time: Option<i64>| time.map_or(Cell::Missing, |time| time_cell(self.show, unit, time));
        match function {
            Function::NanCount => Cell::Count(of.nan_count()),
            Function::MinTime => time(stats.min().map(|(_, time)| time)),
            Function::MaxTime => time(stats.max().map(|(_, time)| time)),
            Function::Figure(Figure::Sum, _) => {
                match stats.int_sum().and_then(|sum| i64::try_from(sum).ok()) {
                    Some(units) => match column.ty {
                        ColumnType::Decimal(scale) => Cell::Decimal(Decimal { units, scale }),
                        _ => Cell::Int(units),
                    },
                    None => Cell::Computed(of.sum()),
                }
            }
            Function::Figure(Figure::Min, _) => word(stats.min().map(|(word, _)| word)),
            Function::Figure(Figure::Max, _) => word(stats.max().map(|(word, _)| word)),
            Function::Figure(Figure::First, _) => word(stats.first()),
            Function::Figure(Figure::Last, _) => word(stats.last()),
            Function::Figure(figure, _) => float_cell(function, figure.of(of)),
        }
    }
}

/// Formats the value of a figure.
pub(crate) fn float_cell(function: Function, value: Option<f64>) -> Cell {
    let (Some(value), Function::Figure(figure, factor)) = (value, function) else {
        return Cell::Missing;
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count is a whole number, and no file has 2^53 rows"
    )]
    match figure {
        Figure::Count | Figure::Distinct => Cell::Count(value as u64),
        Figure::Min | Figure::Max | Figure::First | Figure::Last | Figure::Mode => {
            Cell::Computed(value)
        }
        _ => Cell::Computed(value * factor),
    }
}

/// The value of a cell as a number, to compare or to draw; `None` for a time or a missing value.
pub(crate) fn number_of(cell: &Cell) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "only compared, or drawn")]
    match *cell {
        Cell::Float(value) | Cell::Computed(value) => Some(value),
        Cell::Int(value) => Some(value as f64),
        Cell::Unsigned(value) | Cell::Count(value) | Cell::Bytes(value) => Some(value as f64),
        Cell::Bool(value) => Some(f64::from(u8::from(value))),
        Cell::Decimal(value) => Some(value.to_f64()),
        Cell::Text(_) | Cell::Series(_) | Cell::Missing => None,
    }
}
