//! Functions over rows: `scan --fn`, and two series combined with `join --combine`.

use crate::args::{Arithmetic, JoinArgs, Mean, RowFunction, ScanArgs};
use crate::columns::numeric_column;
use crate::database::{Reader, Span, time_cell, width_in};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use tidalite::functions::{Dot, DotFunctions};
use tidalite::query::Join;
use tidalite::{Selection, Steps, Unit};

type Dots<'s> = Box<dyn Iterator<Item = tidalite::Result<Dot>> + 's>;

/// Runs the command `tidalite scan --fn`.
pub(crate) fn scan(args: &ScanArgs, function: RowFunction, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let show = TimeShow::new(args.range.zone.tz.clone());
    let with_series = args.format.format.names_series(infos.len());
    let columns = with_series
        .then(|| Column::text("series"))
        .into_iter()
        .chain([Column::text("time"), Column::number(function.name())])
        .collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    let mut any = args.limit == Some(0);
    for info in &infos {
        let column = numeric_column(info, &args.column)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let fail = |error: tidalite::Error| reader.fail(&error);
        let dots = series
            .query(Steps(from)..=Steps(to))
            .dots(column)
            .map_err(fail)?;
        let unit = info.schema.unit;
        let limit = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let dots = applied(dots, function, unit)?;
        let offset = usize::try_from(args.offset).unwrap_or(usize::MAX);
        for dot in dots.skip(offset).take(limit) {
            any = true;
            let dot = dot.map_err(fail)?;
            let label = with_series.then(|| Cell::series(info));
            let cells: Vec<Cell> = label
                .into_iter()
                .chain([time_cell(&show, unit, dot.time), Cell::Computed(dot.value)])
                .collect();
            sheet.row(&cells)?;
        }
    }
    if !any {
        return Err(super::filters::nothing_scanned(args, &span));
    }
    Ok(sheet.finish()?)
}

fn applied<'s>(
    dots: impl Iterator<Item = tidalite::Result<Dot>> + 's,
    function: RowFunction,
    unit: Unit,
) -> Outcome<Dots<'s>> {
    let steps = |nanos: i64| width_in(unit, nanos, "--fn");
    Ok(match function {
        RowFunction::Difference => Box::new(dots.difference()),
        RowFunction::Derivative(per) => Box::new(dots.derivative(steps(per)?)),
        RowFunction::Rate(per) => Box::new(dots.rate(steps(per)?)),
        RowFunction::Mean(mean) => match mean {
            Mean::OfRows(rows) => Box::new(dots.moving_mean(rows)),
            Mean::Over(width) => Box::new(dots.moving_mean_over(steps(width)?)),
            Mean::Exponential(rows) => Box::new(dots.exponential_mean(rows)),
            Mean::ExponentialOver(width) => Box::new(dots.exponential_mean_over(steps(width)?)),
        },
        RowFunction::Error(mean) => match mean {
            Mean::OfRows(rows) => Box::new(dots.moving_mean(rows).errors()),
            Mean::Over(width) => Box::new(dots.moving_mean_over(steps(width)?).errors()),
            Mean::Exponential(rows) => Box::new(dots.exponential_mean(rows).errors()),
            Mean::ExponentialOver(width) => {
                Box::new(dots.exponential_mean_over(steps(width)?).errors())
            }
        },
        RowFunction::Sum => Box::new(dots.cumulative_sum()),
    })
}

/// Runs the command `tidalite join --combine`.
pub(crate) fn combine(
    args: &JoinArgs,
    join: Join,
    arithmetic: Arithmetic,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select_all(&args.patterns)?;
    let [first, second] = &infos[..] else {
        return Err(Failure::usage(format!(
            "--combine needs two series, but {} were given",
            infos.len()
        )));
    };
    let (a, b) = (
        numeric_column(first, &args.column)?,
        numeric_column(second, &args.column)?,
    );
    let names = (
        first.schema.columns[a].name.as_str(),
        second.schema.columns[b].name.as_str(),
    );
    let series = vec![reader.series(first)?, reader.series(second)?];
    let span = Span::of(&args.range)?;
    let times = span.on_clock(&series);
    let selection = Selection::of(series);
    let show = TimeShow::new(args.range.zone.tz.clone());
    let columns = vec![Column::text("time"), Column::number(arithmetic.name())];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let fail = |error: tidalite::Error| reader.fail(&error);
    let combined = selection.query(times);
    let combined = combined.combine(join, names, |a, b| arithmetic.of(a, b));
    let mut any = false;
    for dot in combined.map_err(fail)? {
        any = true;
        let dot = dot.map_err(fail)?;
        let time = Cell::Text(show.show(dot.time.into()));
        sheet.row(&[time, Cell::Computed(dot.value)])?;
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}
