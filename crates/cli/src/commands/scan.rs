//! `scan` and `latest`: points as they are stored.

use super::Terminal;
use crate::args::{LatestArgs, ScanArgs};
use crate::database::{Reader, Span, all_shown_columns, series_cell, shown_columns, time_cell};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, Format, Sheet};
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::{ColumnType, Row, Schema, Series, SeriesInfo};

/// `tidalite scan`
pub(crate) fn run(args: &ScanArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some(function) = args.function {
        return super::functions::scan(args, function, terminal);
    }
    if let Some(values) = args.frequent {
        return super::frequent::run(args, values, terminal);
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
        let mut left = args.limit.unwrap_or(u64::MAX);
        if let Some(regex) = &args.regex {
            let column = text_column(info, args.column.column.as_deref())?;
            let range = series.between(from..=to);
            let rows = range.text_matches(column, |text| regex.is_match(text));
            let rows = rows.map_err(|error| reader.fail(&error))?;
            let [offset, limit] =
                [args.offset, left].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            for point in rows.skip(offset).take(limit) {
                let cells = point.and_then(|point| printer.cells(&series, &label, &point));
                sheet.row(&cells.map_err(|error| reader.fail(&error))?)?;
                printed += 1;
            }
            continue;
        }
        // A cursor instead of whole vectors: it can stop, at a limit or at a closed pipe.
        let mut cursor = series.cursor();
        let fail = |error: tidalite::Error| reader.fail(&error);
        let before = series.between(..from).count().map_err(fail)?;
        let first = before.saturating_add(args.offset);
        let mut row = cursor.nth(first).map_err(fail)?;
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
        return Err(nothing(args, &span));
    }
    Ok(sheet.finish()?)
}

/// The complaint when there is nothing to print.
pub(super) fn nothing(args: &ScanArgs, span: &Span) -> Failure {
    if args.offset > 0 {
        return Failure::not_found("no point behind the offset")
            .hint("with a smaller --offset, or none, the earlier ones are printed");
    }
    if args.regex.is_some() {
        return Failure::not_found("no text in this range matches").hint(
            "a part of the text is enough; (?i) in front makes capitals match small letters",
        );
    }
    span.nothing()
}

/// The column that an expression is for.
fn text_column(info: &SeriesInfo, name: Option<&str>) -> Outcome<usize> {
    let columns = &info.schema.columns;
    let found = match name {
        Some(name) => info.schema.column(name),
        None => columns
            .iter()
            .rposition(|column| column.ty == ColumnType::String),
    };
    let text = found.filter(|&column| columns[column].ty == ColumnType::String);
    text.ok_or_else(|| {
        let column = name.map_or("column".to_owned(), |name| format!("column `{name}`"));
        Failure::usage(format!(
            "{} has no {column} of strings for --regex",
            info.label()
        ))
    })
}

/// `tidalite latest`
pub(crate) fn latest(args: &LatestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let printer = Printer::of_all(&infos, args.zone.tz.clone());
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

/// Points of series as rows of one table.
struct Printer {
    /// Columns by their names: a series that lacks one has nothing there.
    names: Vec<String>,
    with_series: bool,
    show: TimeShow,
}

impl Printer {
    /// Of series that have the same columns.
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
        let all = names_of(&first.schema);
        if let Some(other) = infos.iter().find(|info| names_of(&info.schema) != all) {
            return Err(Failure::usage(format!(
                "{} and {} have different columns and do not fit one table",
                first.label(),
                other.label()
            ))
            .hint("print them one by one; `tidalite export` writes all to one file"));
        }
        let names = match column {
            None => {
                let shown = shown_columns(&first.schema, flags).into_iter();
                shown.map(|index| all[index].to_owned()).collect()
            }
            Some(name) => {
                if !all.contains(&name) {
                    let why = format!("{} has no column `{name}`", first.label());
                    return Err(Failure::not_found(why).hint(format!("it has {}", all.join(", "))));
                }
                vec![name.to_owned()]
            }
        };
        Ok(Self {
            names,
            with_series,
            show: TimeShow::new(zone),
        })
    }

    /// Of any series: all columns that one of them has.
    fn of_all(infos: &[Arc<SeriesInfo>], zone: jiff::tz::TimeZone) -> Self {
        Self {
            names: all_shown_columns(infos, false),
            with_series: true,
            show: TimeShow::new(zone),
        }
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
        let mut cells = Vec::with_capacity(self.names.len() + 2);
        if self.with_series {
            cells.push(Cell::Text(label.to_owned()));
        }
        let schema = &series.info().schema;
        cells.push(time_cell(&self.show, schema.unit, row.time));
        for name in &self.names {
            cells.push(match schema.column(name) {
                Some(index) => series_cell(series, index, row.words[index])?,
                None => Cell::Missing,
            });
        }
        Ok(cells)
    }
}

fn names_of(schema: &Schema) -> Vec<&str> {
    let columns = schema.columns.iter();
    columns.map(|column| column.name.as_str()).collect()
}
