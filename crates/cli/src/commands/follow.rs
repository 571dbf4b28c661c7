//! `--follow`: prints points as they are committed, until the program is interrupted or its reader closes the pipe.
//!
//! The database is polled. A new commit is compared with the one that was printed last, whose snapshot is kept until
//! then. So all commits between two polls are printed together, and no commit is missed.

use super::points::Printer;
use super::rows::Scan;
use crate::args::{FollowArg, LatestArgs, ScanArgs};
use crate::database::{Reader, Span};
use crate::exit::Outcome;
use crate::output::{Cell, Sheet, printable};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tidalite::{Database, Direction, Row, Series, SeriesId, SeriesInfo};

type Out<'s, 'o> = &'s mut Sheet<&'o mut dyn Write>;

/// Waits for a commit newer than the one that the reader shows, and returns a reader of the newest commit.
fn next<'a>(database: &Database, before: &Reader<'a>, wait: &FollowArg) -> Outcome<Reader<'a>> {
    loop {
        std::thread::sleep(Duration::from_nanos(wait.every.unsigned_abs()));
        let now = before.newer(database)?;
        if now.commit() != before.commit() {
            return Ok(now);
        }
    }
}

/// Prints points that were added or changed, for each poll in the order of the series and of their times.
pub(super) fn points(
    database: &Database,
    mut before: Reader<'_>,
    args: &ScanArgs,
    printer: &Printer,
    sheet: Out<'_, '_>,
) -> Outcome {
    let span = Span::of(&args.range)?;
    let mut known: HashSet<SeriesId> = ids(&before.select_if_any(&args.which.pattern)?);
    loop {
        let now = next(database, &before, &args.follow)?;
        let infos = now.select_if_any(&args.which.pattern)?;
        let scan = Scan {
            args,
            reader: &now,
            span: &span,
        };
        for info in &infos {
            let series = now.series(info)?;
            let Some((from, to)) = span.in_series(&series) else {
                continue;
            };
            let ranges = match before.series_if_there(info.id)? {
                Some(_) => now.changed_since(&before, info.id, None)?,
                None => vec![(from, to)],
            };
            if known.insert(info.id) && !printer.fits(info) {
                let name = printable(&info.label());
                eprintln!("note: {name} has other columns; those that it lacks are empty");
            }
            let name = Cell::series(info);
            let mut print = |series: &Series<'_>, row: &Row| {
                let cells = printer.cells(series, &name, row);
                Ok(sheet.row(&cells.map_err(|error| now.fail(&error))?)?)
            };
            for (first, last) in ranges {
                let range = (first.max(from), last.min(to));
                if range.0 <= range.1 {
                    let all = (Direction::Forward, 0, u64::MAX);
                    scan.each_in(range, info, &series, all, &mut print)?;
                }
            }
        }
        sheet.show()?;
        before = now;
    }
}

fn ids(infos: &[Arc<SeriesInfo>]) -> HashSet<SeriesId> {
    infos.iter().map(|info| info.id).collect()
}

/// Prints the newest point of each series, and prints it again whenever it has changed.
pub(super) fn newest(
    database: &Database,
    mut reader: Reader<'_>,
    args: &LatestArgs,
    printer: &Printer,
    sheet: Out<'_, '_>,
) -> Outcome {
    let mut printed: HashMap<SeriesId, Row> = HashMap::new();
    loop {
        for info in &reader.select_if_any(&args.which.pattern)? {
            let fail = |error: tidalite::Error| reader.fail(&error);
            let series = reader.series(info)?;
            let Some(row) = series.latest().map_err(fail)? else {
                continue;
            };
            if printed.get(&info.id) == Some(&row) {
                continue;
            }
            let cells = printer.cells(&series, &Cell::series(info), &row);
            sheet.row(&cells.map_err(fail)?)?;
            printed.insert(info.id, row);
        }
        sheet.show()?;
        reader = next(database, &reader, &args.follow)?;
    }
}
