//! `scan` and `latest`: points as they are stored.

use super::Terminal;
use crate::args::{LatestArgs, ScanArgs};
use crate::database::{Reader, Span, series_cell, shown_columns, time_cell};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, Format, Sheet};
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::{Row, Series, SeriesInfo};

/// `tidalite scan`
pub(crate) fn run(args: &ScanArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some(function) = args.function {
        return super::functions::scan(args, function, terminal);
    }
    let reader = Reader::open(&args.file.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let printer = Printer::new(
        &infos,
        infos.len() > 1,
        args.flags,
        args.column.column.as_deref(),
        args.range.zone.tz.clone(),
    )?;
    let mut sheet = printer.sheet(args.format.format, terminal);
    let mut printed = 0_u64;
    for info in &infos {
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let label = info.label();
        // A cursor instead of whole vectors: it can stop, at a limit or at a closed pipe.
        let mut cursor = series.cursor();
        let fail = |error: tidalite::Error| reader.fail(&error);
        // To the last row before: one time may have several rows.
        let before = match from.checked_sub(1) {
            Some(before) => cursor.search(before).map_err(fail)?,
            None => None,
        };
        let mut row = match before {
            Some(_) => cursor.next().map_err(fail)?,
            None => cursor.first().map_err(fail)?,
        };
        let mut left = args.limit.unwrap_or(u64::MAX);
        while let Some(point) = row.take().filter(|row| row.time <= to) {
            if left == 0 {
                break;
            }
            left -= 1;
            printed += 1;
            let cells = printer.cells(&series, &label, &point).map_err(fail)?;
            sheet.row(&cells)?;
            row = cursor.next().map_err(fail)?;
        }
    }
    if printed == 0 && args.limit != Some(0) {
        return Err(span.nothing());
    }
    Ok(sheet.finish()?)
}

/// `tidalite latest`
pub(crate) fn latest(args: &LatestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let printer = Printer::new(&infos, true, false, None, args.zone.tz.clone())?;
    let mut sheet = printer.sheet(args.format.format, terminal);
    for info in &infos {
        let series = reader.series(info)?;
        if let Some(row) = series.latest().map_err(|error| reader.fail(&error))? {
            let cells = printer.cells(&series, &info.label(), &row);
            sheet.row(&cells.map_err(|error| reader.fail(&error))?)?;
        }
    }
    Ok(sheet.finish()?)
}

/// Points of series that have the same columns.
struct Printer {
    names: Vec<String>,
    columns: Vec<usize>,
    with_series: bool,
    show: TimeShow,
}

impl Printer {
    fn new(
        infos: &[Arc<SeriesInfo>],
        with_series: bool,
        flags: bool,
        column: Option<&str>,
        zone: jiff::tz::TimeZone,
    ) -> Outcome<Self> {
        let Some(first) = infos.first() else {
            return Err(Failure::not_found("no series"));
        };
        let names = |info: &SeriesInfo| -> Vec<String> {
            info.schema
                .columns
                .iter()
                .map(|column| column.name.clone())
                .collect()
        };
        let columns = shown_columns(&first.schema, flags);
        if let Some(other) = infos.iter().find(|info| names(info) != names(first)) {
            return Err(Failure::usage(format!(
                "{} and {} have different columns and do not fit one table",
                first.label(),
                other.label()
            ))
            .hint("print them one by one"));
        }
        let columns = match column {
            None => columns,
            Some(name) => {
                let found = first.schema.column(name);
                let missing = || format!("{} has no column `{name}`", first.label());
                vec![found.ok_or_else(|| Failure::not_found(missing()))?]
            }
        };
        let all = names(first);
        let names = columns.iter().map(|index| all[*index].clone()).collect();
        Ok(Self {
            names,
            columns,
            with_series,
            show: TimeShow::new(zone),
        })
    }

    fn sheet<'a>(
        &self,
        format: Format,
        terminal: &'a mut Terminal<'_>,
    ) -> Sheet<&'a mut dyn std::io::Write> {
        let series = self.with_series.then(|| Column::text("series"));
        let values = self.names.iter().map(|name| Column::number(name.as_str()));
        let columns = series
            .into_iter()
            .chain([Column::text("time")])
            .chain(values)
            .collect();
        terminal.sheet(format, columns)
    }

    fn cells(&self, series: &Series<'_>, label: &str, row: &Row) -> tidalite::Result<Vec<Cell>> {
        let mut cells = Vec::with_capacity(self.columns.len() + 2);
        if self.with_series {
            cells.push(Cell::Text(label.to_owned()));
        }
        let unit = series.info().schema.unit;
        cells.push(time_cell(&self.show, unit, row.time));
        for index in &self.columns {
            cells.push(series_cell(series, *index, row.words[*index])?);
        }
        Ok(cells)
    }
}
