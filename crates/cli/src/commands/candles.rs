//! `candles`: prints a series in chunks, at the boundaries that the file stores.

use super::figures::Figures;
use crate::args::{Asked, CandlesArgs, Function};
use crate::columns::numeric_column;
use crate::database::{Reader, Span, time_cell, width_in};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use tidalite::query::CandleSize;
use tidalite::{Figure, Steps};

/// Names and functions of the columns that are printed for a candle, after its times.
const FIGURES: [(&str, Figure); 6] = [
    ("count", Figure::Count),
    ("open", Figure::First),
    ("low", Figure::Min),
    ("high", Figure::Max),
    ("close", Figure::Last),
    ("mean", Figure::Mean),
];

/// Runs the command `tidalite candles`.
pub(crate) fn run(args: &CandlesArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let show = TimeShow::new(args.range.zone.tz.clone());
    let functions = FIGURES.map(|(name, figure)| Asked::plain(Function::Figure(figure, 1.0), name));
    let figures = Figures {
        functions: &functions,
        show: &show,
    };
    let with_series = args.format.format.names_series(infos.len());
    let columns = with_series
        .then(|| Column::text("series"))
        .into_iter()
        .chain(["first", "last"].map(Column::text))
        .chain(FIGURES.map(|(name, _)| Column::number(name)))
        .collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    let mut any = false;
    for info in &infos {
        let (column, unit) = (numeric_column(info, &args.column)?, info.schema.unit);
        let size = match (args.size.level, args.size.width) {
            (Some(level), _) => CandleSize::Level(level),
            (None, width) => {
                let width = width_in(unit, width.unwrap_or(i64::MAX), "--width")?;
                CandleSize::Width(width.unsigned_abs())
            }
        };
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let candles = series.query(Steps(from)..=Steps(to)).candles(size, column);
        for candle in candles.map_err(|error| reader.fail(&error))? {
            any = true;
            let label = with_series.then(|| Cell::series(info));
            let times = [candle.first_time, candle.last_time];
            let own = &info.schema.columns[column];
            let cells = label
                .into_iter()
                .chain(times.map(|time| time_cell(&show, unit, time)))
                .chain(figures.cells(&candle.aggregate, &[], own, unit));
            sheet.row(&cells.collect::<Vec<_>>())?;
        }
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}
