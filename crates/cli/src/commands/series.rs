//! `series`: lists the series of a database.

use crate::args::SeriesArgs;
use crate::database::{Reader, time_cell};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::query::Names;
use tidalite::{MergePolicy, Schema};

/// Runs the command `tidalite series`.
pub(crate) fn run(args: &SeriesArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    if args.names {
        let names = Names::of(infos.iter().map(Arc::as_ref));
        return show_names(&names, args, terminal);
    }
    let show = TimeShow::new(args.zone.tz.clone());
    // Most databases contain only default points; the column with the schema would then be the same on every line.
    let all_columns = !args.format.format.is_table();
    let schemas = all_columns || infos.iter().any(|info| info.schema != Schema::point());
    let mut columns = vec![
        Column::text("series"),
        Column::number("points"),
        Column::text("first"),
        Column::text("last"),
        Column::number("bytes_per_point"),
    ];
    if schemas {
        columns.push(Column::text("columns"));
    }
    let merges = all_columns || infos.iter().any(|info| info.merge != MergePolicy::Replace);
    if merges {
        columns.push(Column::text("merge"));
    }
    let mut lines = Vec::with_capacity(infos.len());
    for info in &infos {
        let series = reader.series(info)?;
        let points = series.count().map_err(|error| reader.fail(&error))?;
        let unit = info.schema.unit;
        let (first, last) = match series.span() {
            Some((first, last)) => (time_cell(&show, unit, first), time_cell(&show, unit, last)),
            None => (Cell::Missing, Cell::Missing),
        };
        let sealed = points.saturating_sub(series.waiting_rows());
        #[expect(clippy::cast_precision_loss, reason = "shown with six digits")]
        let bytes = if sealed > 0 {
            Cell::Computed(series.stored_bytes() as f64 / sealed as f64)
        } else {
            Cell::Missing
        };
        let mut cells = vec![Cell::series(info), Cell::Count(points), first, last, bytes];
        if schemas {
            cells.push(Cell::Text(info.schema.to_string()));
        }
        if merges {
            cells.push(Cell::Text(info.merge.name().to_owned()));
        }
        lines.push(cells);
    }
    // A table omits this column if no series has leaves, because it would be empty.
    if !all_columns && lines.iter().all(|cells| cells[BYTES_AT] == Cell::Missing) {
        columns.remove(BYTES_AT);
        lines
            .iter_mut()
            .for_each(|cells| drop(cells.remove(BYTES_AT)));
    }
    let mut sheet = terminal.sheet(args.format.format, columns);
    for cells in lines {
        sheet.row(&cells)?;
    }
    Ok(sheet.finish()?)
}

/// Position of the column `bytes_per_point`.
const BYTES_AT: usize = 4;

/// Runs the command `tidalite series --names`.
fn show_names(names: &Names, args: &SeriesArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let columns = vec![
        Column::text("kind"),
        Column::text("name"),
        Column::text("value"),
        Column::number("series"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let mut line = |kind: &str, name: &str, value: Option<&str>, series| {
        let text = |text: &str| Cell::Text(text.to_owned());
        let value = value.map_or(Cell::Missing, text);
        sheet.row(&[text(kind), text(name), value, Cell::Count(series)])
    };
    for (metric, &series) in &names.metrics {
        line("metric", metric, None, series)?;
    }
    for (key, values) in &names.tags {
        line("tag", key, None, values.values().sum())?;
        for (value, &series) in values {
            line("value", key, Some(value), series)?;
        }
    }
    for (unit, &series) in &names.units {
        line("unit", &unit.to_string(), None, series)?;
    }
    Ok(sheet.finish()?)
}
