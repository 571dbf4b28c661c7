//! `scan` and `latest`: print stored points.

use super::points::Printer;
use super::rows::{Print, Scan};
use super::walk::Wanted;
use super::{filters, follow};
use crate::args::{LatestArgs, ScanArgs};
use crate::database::{Reader, Span, open, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::output::Cell;
use crate::terminal::Terminal;
use crate::time::{Nanos, read_any};
use std::sync::Arc;
use tidalite::{Direction, Row, Series, SeriesId, SeriesInfo, Steps, Timestamp};

/// Runs the command `tidalite scan`.
pub(crate) fn run(args: &ScanArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some(function) = args.function {
        return super::functions::scan(args, function, terminal);
    }
    if let Some(values) = args.frequent {
        return super::frequent::run(args, values, terminal);
    }
    let path = args.file.file.as_path();
    let database = open(path)?;
    let reader = Reader::at(&database, path, args.file.pin.as_deref())?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    // With --follow, further series may appear.
    let printer = Printer::new(
        &infos,
        args.follow.follow || args.format.format.names_series(infos.len()),
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
        // The name of the last series is reused, because consecutive rows mostly belong to the same series.
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
    if args.follow.follow {
        sheet.show()?;
        return follow::points(&database, reader, args, &printer, &mut sheet);
    }
    if printed == 0 && args.limit != Some(0) && args.tail != Some(0) {
        return Err(filters::nothing_scanned(args, &span));
    }
    Ok(sheet.finish()?)
}

impl Scan<'_> {
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

    /// The newest rows of several series combined. They are among the newest rows of each series. Rows with the same
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
            // Old rows are dropped early, because with many series nearly all rows are too old.
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

/// Runs the command `tidalite latest`.
pub(crate) fn latest(args: &LatestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = args.file.file.as_path();
    let database = open(path)?;
    let reader = Reader::at(&database, path, args.file.pin.as_deref())?;
    let infos = reader.select(&args.which.pattern)?;
    let printer = Printer::of_all(&infos, args.zone.tz.clone());
    let mut sheet = printer.sheet(args.format.format, terminal);
    if args.follow.follow {
        return follow::newest(&database, reader, args, &printer, &mut sheet);
    }
    let at = match &args.at {
        Some(text) => Some(read_timestamp(text, &args.zone.tz)?),
        None => None,
    };
    let mut any = false;
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
            any = true;
            sheet.row(&cells)?;
        }
    }
    if let (Some(text), false) = (&args.at, any) {
        return Err(Failure::not_found(format!("no value at {text}"))
            .hint("`tidalite series FILE.tdl` shows the time span of each series"));
    }
    Ok(sheet.finish()?)
}

/// Parses a time from the command line that must fit in 64-bit nanoseconds.
fn read_timestamp(text: &str, zone: &jiff::tz::TimeZone) -> Outcome<Timestamp> {
    let nanos = read_any(text, zone).map_err(Failure::usage)?;
    let time = i64::try_from(nanos).map(Timestamp);
    time.map_err(|_| Failure::usage(format!("`{text}` lies outside of the years 1677 to 2262")))
}
