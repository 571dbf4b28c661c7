//! `aggregate`: one line of aggregates per series.

use super::figures::{Figures, by_column, number_of, output_columns};
use super::filters;
use crate::args::{AggregateArgs, Function, figure_list};
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
    let functions = figure_list::all(&args.functions);
    let columns = [Column::text("series")]
        .into_iter()
        .chain(output_columns(&functions))
        .collect();
    let messages = terminal.messages;
    let mut sheet = terminal.sheet(args.format.format, columns);
    let order = args.top.or(args.bottom);
    let first = functions.first().map(|asked| asked.function);
    if order.is_some() && first.is_some_and(Function::is_time) {
        let problem = "--top and --bottom need a number as the result of the first function";
        return Err(Failure::usage(problem));
    }
    let mut ordered = Vec::new();
    let mut any = false;
    for info in &infos {
        let columns = by_column(info, &args.column, &functions)?;
        let series = reader.series(info)?;
        reader.mention_replaced(info, &span, messages)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let filters = filters::of(&args.wanted, info, &args.column)?;
        let range = series.query(Steps(from)..=Steps(to));
        let query = filters::filtered(range, &filters);
        let mut cells = vec![Cell::Missing; 1 + functions.len()];
        cells[0] = Cell::series(info);
        let mut has_values = false;
        for own in columns {
            let figures = Figures {
                functions: &own.functions,
                show: &show,
            };
            let of_column = figures.aggregate(&query, (&info.schema, own.column));
            let of_column = of_column.map_err(|error| reader.fail(&error))?;
            has_values |= of_column.is_some();
            for (&place, cell) in own.places.iter().zip(of_column.into_iter().flatten()) {
                cells[1 + place] = cell;
            }
        }
        if !has_values {
            continue;
        }
        any = true;
        match order {
            Some(_) => {
                let figure = number_of(&cells[1]).filter(|figure| !figure.is_nan());
                ordered.extend(figure.map(|figure| (figure, cells)));
            }
            None => sheet.row(&cells)?,
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
