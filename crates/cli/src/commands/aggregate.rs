//! `aggregate`: one line of figures for every series.

use super::Terminal;
use super::figures::Figures;
use crate::args::AggregateArgs;
use crate::database::{Reader, Span, column_of};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::time::TimeShow;

/// `tidalite aggregate`
pub(crate) fn run(args: &AggregateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file.file)?;
    let infos = reader.select(&args.pattern)?;
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
    let mut any = false;
    for info in &infos {
        let column = column_of(info, &args.column)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let aggregate = series.between(from..=to).aggregate(column);
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
        sheet.row(&cells)?;
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}
