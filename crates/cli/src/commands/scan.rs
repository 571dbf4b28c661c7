//! `scan` and `latest`: print stored points.

use super::filters;
use super::walk::{Walk, Wanted};
use crate::args::{LatestArgs, ScanArgs};
use crate::columns::{all_shown_columns, shown_columns};
use crate::database::{Reader, Span, series_cell, time_cell, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, Format, Sheet};
use crate::terminal::Terminal;
use crate::time::{Nanos, TimeShow, read_any};
use std::ops::ControlFlow;
use std::sync::Arc;
use tidalite::query::Interpolation;
use tidalite::{
    ColumnType, Direction, Row, Schema, Series, SeriesId, SeriesInfo, Steps, Timestamp,
};

/// Runs the command `tidalite scan`.
pub(crate) fn run(args: &ScanArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some(function) = args.function {
        return super::functions::scan(args, function, terminal);
    }
    if let Some(values) = args.frequent {
        return super::frequent::run(args, values, terminal);
    }
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let printer = Printer::new(
        &infos,
        args.format.format.names_series(infos.len()),
        args.flags,
        args.column.column.as_deref(),
        args.range.zone.tz.clone(),
    )?;
    let mut sheet = printer.sheet(args.format.format, terminal);
    let scan = Scan {
        args,
        reader: &reader,
        span: &span,
    };
    let mut printed = 0_u64;
    let mut name: Option<(SeriesId, Cell)> = None;
    let mut print = |series: &Series<'_>, row: &Row| {
        printed += 1;
        // The name of the last series is reused, because rows of one series mostly follow each other.
        let name = match &mut name {
            Some((id, name)) if *id == series.id() => name,
            other => &mut other.insert((series.id(), Cell::series(series.info()))).1,
        };
        let cells = printer.cells(series, name, row);
        let cells = cells.map_err(|error| reader.fail(&error))?;
        Ok(sheet.row(&cells)?)
    };
    match (args.tail, &infos[..]) {
        (Some(most), [info]) => scan.tail_of_one(info, most, &mut print)?,
        (Some(most), infos) => scan.tail_of_all(infos, most, &mut print)?,
        (None, infos) => {
            let direction = scan.direction();
            let limit = args.limit.unwrap_or(u64::MAX);
            for info in infos {
                let series = reader.series(info)?;
                scan.each(info, &series, (direction, args.offset, limit), &mut print)?;
            }
        }
    }
    if printed == 0 && args.limit != Some(0) && args.tail != Some(0) {
        return Err(filters::nothing_scanned(args, &span));
    }
    Ok(sheet.finish()?)
}

/// Callback that prints a row.
type Print<'p> = dyn FnMut(&Series<'_>, &Row) -> Outcome + 'p;

struct Scan<'a> {
    args: &'a ScanArgs,
    reader: &'a Reader<'a>,
    span: &'a Span,
}

impl Scan<'_> {
    fn direction(&self) -> Direction {
        match self.args.reverse {
            true => Direction::Backward,
            false => Direction::Forward,
        }
    }

    fn wanted(&self, info: &SeriesInfo) -> Outcome<Wanted<'_>> {
        if let Some(regex) = &self.args.regex {
            let column = text_column(info, self.args.column.column.as_deref())?;
            return Ok(Wanted::Matching(column, regex));
        }
        let filters = filters::of(&self.args.wanted, info, &self.args.column)?;
        Ok(match filters.is_empty() {
            true => Wanted::All,
            false => Wanted::Filtered(filters),
        })
    }

    /// Passes the rows of a series in this direction to `print`: skips the first `offset` rows and stops after `limit`
    /// rows.
    fn each(
        &self,
        info: &SeriesInfo,
        series: &Series<'_>,
        (direction, offset, limit): (Direction, u64, u64),
        print: &mut Print<'_>,
    ) -> Outcome {
        let wanted = self.wanted(info)?;
        let Some(range) = self.span.in_series(series) else {
            return Ok(());
        };
        let walk = Walk {
            reader: self.reader,
            series,
            range,
            wanted,
        };
        let mut left = limit;
        if left == 0 {
            return Ok(());
        }
        walk.each(direction, offset, &mut |row| {
            left -= 1;
            print(series, row)?;
            Ok(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })
    }

    /// The newest `most` rows of a series, in ascending order of time.
    fn newest(&self, info: &SeriesInfo, series: &Series<'_>, most: u64) -> Outcome<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(
            info,
            series,
            (Direction::Backward, 0, most),
            &mut |_, row| {
                rows.push(row.clone());
                Ok(())
            },
        )?;
        rows.reverse();
        Ok(rows)
    }

    fn tail_of_one(&self, info: &SeriesInfo, most: usize, print: &mut Print<'_>) -> Outcome {
        let series = self.reader.series(info)?;
        let most = most as u64;
        if self.args.reverse {
            return self.each(info, &series, (Direction::Backward, 0, most), print);
        }
        if let (Wanted::All, Some((from, to))) = (self.wanted(info)?, self.span.in_series(&series))
        {
            let count = series.query(Steps(from)..=Steps(to)).count();
            let count = count.map_err(|error| self.reader.fail(&error))?;
            let offset = count.saturating_sub(most);
            return self.each(info, &series, (Direction::Forward, offset, most), print);
        }
        for row in self.newest(info, &series, most)? {
            print(&series, &row)?;
        }
        Ok(())
    }

    /// The newest rows of several series together, which are among the newest rows of each series. Rows with the same
    /// time are in the order of the series.
    fn tail_of_all(
        &self,
        infos: &[Arc<SeriesInfo>],
        most: usize,
        print: &mut Print<'_>,
    ) -> Outcome {
        let mut all: Vec<(Nanos, usize, Row)> = Vec::new();
        let series = infos.iter().map(|info| self.reader.series(info));
        let series = series.collect::<Outcome<Vec<_>>>()?;
        for (place, (info, own)) in infos.iter().zip(&series).enumerate() {
            let unit = info.schema.unit;
            for row in self.newest(info, own, most as u64)? {
                all.push((to_nanos(unit, row.time), place, row));
            }
            // Old rows are dropped early: with many series nearly all rows are too old.
            if all.len() > most.saturating_mul(2) {
                keep_newest(&mut all, most);
            }
        }
        keep_newest(&mut all, most);
        if self.args.reverse {
            all.reverse();
        }
        for (_, place, row) in &all {
            print(&series[*place], row)?;
        }
        Ok(())
    }
}

/// Sorts the rows by time and keeps only the newest `most` of them.
fn keep_newest(rows: &mut Vec<(Nanos, usize, Row)>, most: usize) {
    rows.sort_by_key(|(time, place, _)| (*time, *place));
    rows.drain(..rows.len().saturating_sub(most));
}

/// The number of the string column to which a regular expression is applied: the column with this name, or else the
/// last one.
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

/// Runs the command `tidalite latest`.
pub(crate) fn latest(args: &LatestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let printer = Printer::of_all(&infos, args.zone.tz.clone());
    let mut sheet = printer.sheet(args.format.format, terminal);
    let at = match &args.at {
        Some(text) => Some(read_timestamp(text, &args.zone.tz)?),
        None => None,
    };
    for info in &infos {
        let series = reader.series(info)?;
        let name = Cell::series(info);
        let cells = match (at, args.between) {
            (Some(at), Some(between)) => printer.cells_between(&series, &name, (at, between)),
            (Some(at), None) => {
                let row = series.cursor().search(at);
                row.and_then(|row| {
                    row.map(|row| printer.cells(&series, &name, &row))
                        .transpose()
                })
            }
            (None, _) => {
                let row = series.latest();
                row.and_then(|row| {
                    row.map(|row| printer.cells(&series, &name, &row))
                        .transpose()
                })
            }
        };
        if let Some(cells) = cells.map_err(|error| reader.fail(&error))? {
            sheet.row(&cells)?;
        }
    }
    Ok(sheet.finish()?)
}

/// Parses a time of the command line that nanoseconds can tell.
fn read_timestamp(text: &str, zone: &jiff::tz::TimeZone) -> Outcome<Timestamp> {
    let nanos = read_any(text, zone).map_err(Failure::usage)?;
    let time = i64::try_from(nanos).map(Timestamp);
    time.map_err(|_| Failure::usage(format!("`{text}` lies outside of the years 1677 to 2262")))
}

/// Prints the points of several series under one header.
struct Printer {
    /// Names of the printed columns. A series without one of these columns has empty cells there.
    names: Vec<String>,
    with_series: bool,
    show: TimeShow,
}

impl Printer {
    /// Creates a printer for series with the same columns.
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
                "{} and {} have different columns and cannot share a table",
                first.label(),
                other.label()
            ))
            .hint("print them separately; `tidalite export` writes all to one file"));
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

    /// Creates a printer for any series: it prints all columns that at least one of them has.
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

    fn cells(&self, series: &Series<'_>, name: &Cell, row: &Row) -> tidalite::Result<Vec<Cell>> {
        let mut cells = Vec::with_capacity(self.names.len() + 2);
        if self.with_series {
            cells.push(name.clone());
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

    /// The values of numeric columns at a time between rows; `None` if no column has one.
    fn cells_between(
        &self,
        series: &Series<'_>,
        name: &Cell,
        (at, between): (Timestamp, Interpolation),
    ) -> tidalite::Result<Option<Vec<Cell>>> {
        let mut cells = Vec::with_capacity(self.names.len() + 2);
        if self.with_series {
            cells.push(name.clone());
        }
        cells.push(Cell::Text(self.show.show(at.0.into())));
        let schema = &series.info().schema;
        let mut any = false;
        for name in &self.names {
            let column = schema.column(name);
            let numeric = column.filter(|&column| !schema.columns[column].ty.is_text());
            let value = match numeric {
                Some(column) => series.value_at(at, column, between)?,
                None => None,
            };
            any |= value.is_some();
            cells.push(value.map_or(Cell::Missing, Cell::Computed));
        }
        Ok(any.then_some(cells))
    }
}

fn names_of(schema: &Schema) -> Vec<&str> {
    let columns = schema.columns.iter();
    columns.map(|column| column.name.as_str()).collect()
}
