//! `aggregate`: one line of aggregates per series.

use super::figures::{Figures, drawn};
use super::filters;
use crate::args::AggregateArgs;
use crate::columns::figures_column;
use crate::database::{Reader, Span};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use tidalite::Steps;

/// Runs the command `tidalite aggregate`.
pub(crate) fn run(args: &AggregateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let show = TimeShow::new(args.range.zone.tz.clone());
    let figures = Figures {
        functions: &args.functions,
        show: &show,
    };
    let columns = [Column::text("series")]
        .into_iter()
        .chain(figures.columns())
        .collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    let order = args.top.or(args.bottom);
    let first = args.functions.first().copied();
    let mut ordered = Vec::new();
    let mut any = false;
    for info in &infos {
        let column = figures_column(info, &args.column, &args.functions)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let filters = filters::of(&args.wanted, info, &args.column)?;
        let range = series.query(Steps(from)..=Steps(to));
        let aggregate = filters::filtered(range, &filters).aggregate(column);
        let aggregate = aggregate.map_err(|error| reader.fail(&error))?;
        if aggregate.count() == 0 {
            continue;
        }
        any = true;
        let own = &info.schema.columns[column];
        let cells: Vec<Cell> = [Cell::Text(info.label())]
            .into_iter()
            .chain(figures.cells(&aggregate, own, info.schema.unit))
            .collect();
        match (order, first) {
            (Some(_), Some(first)) => {
                let Some(figure) = drawn(first, &aggregate) else {
                    let problem =
                        "--top and --bottom need a number as the result of the first function";
                    return Err(Failure::usage(problem));
                };
                if !figure.is_nan() {
                    ordered.push((figure, cells));
                }
            }
            _ => sheet.row(&cells)?,
        }
    }
    if let Some(count) = order {
        let largest_first = args.top.is_some();
        ordered.sort_by(|(a, _), (b, _)| match largest_first {
            true => b.total_cmp(a),
            false => a.total_cmp(b),
        });
        for (_, cells) in ordered.iter().take(count) {
            sheet.row(cells)?;
        }
    }
    if !any {
        return Err(filters::nothing(&args.wanted, &span));
    }
    Ok(sheet.finish()?)
}
