//! `scan --frequent`: the values that come most often.

use super::Terminal;
use crate::args::ScanArgs;
use crate::database::{Reader, Span, column_of, value_cell};
use crate::exit::Outcome;
use crate::output::{Cell, Column};

/// So many values are counted at a time, and all exactly while there are no more of them.
const COUNTERS: usize = 1_000;

pub(crate) fn run(args: &ScanArgs, values: usize, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let with_series = infos.len() > 1;
    let columns = with_series
        .then(|| Column::text("series"))
        .into_iter()
        .chain(["value", "count", "at_least"].map(Column::number))
        .collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    let mut any = values == 0;
    for info in &infos {
        let column = column_of(info, &args.column)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let found = series.between(from..=to);
        let found = found.frequent_items(column, COUNTERS.max(values));
        let found = found.map_err(|error| reader.fail(&error))?;
        for one in found.into_iter().take(values) {
            any = true;
            let label = with_series.then(|| Cell::Text(info.label()));
            // Rows are counted, so both are whole.
            let counts = [one.weight, one.at_least()].map(|count| Cell::Unsigned(count as u64));
            let cells = label
                .into_iter()
                .chain([value_cell(one.item)])
                .chain(counts);
            sheet.row(&cells.collect::<Vec<_>>())?;
        }
    }
    if !any {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}
