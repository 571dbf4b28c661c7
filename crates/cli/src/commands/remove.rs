//! `remove` and `rename`: deletes points and series, and renames series.

use crate::args::{RemoveArgs, RenameArgs};
use crate::database::{Reader, Span, failure, is_called, open, open_to_write, time_cell};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, printable};
use crate::store;
use crate::terminal::Terminal;
use crate::time::TimeShow;
use tidalite::{SeriesInfo, Steps, WriteTxn};

/// Runs the command `tidalite remove`.
pub(crate) fn run(args: &RemoveArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let span = Span::of(&args.range)?;
    // A write transaction stays open, so that no other writer can change the listed series.
    let (database, mut txn) = if args.dry_run {
        (open(path)?, None)
    } else {
        let database = open_to_write(path)?;
        let txn = database.begin_write().map_err(fail)?;
        (database, Some(txn))
    };
    let reader = Reader::at(&database, path, None)?;
    reader.refuse_unknown_keys(&args.which.pattern)?;
    let infos = reader.select(&args.which.pattern)?;
    let show = TimeShow::new(args.range.zone.tz.clone());
    let columns = vec![
        Column::text("series"),
        Column::number("removed"),
        Column::text("first"),
        Column::text("last"),
        Column::number("left"),
    ];
    let mut lines = Vec::new();
    for info in &infos {
        let Some(gone) = Gone::of(&reader, info, &span)? else {
            continue;
        };
        if let Some(txn) = &mut txn {
            gone.remove(txn, info).map_err(fail)?;
        }
        let time = |time: Option<i64>| {
            time.map_or(Cell::Missing, |time| {
                time_cell(&show, info.schema.unit, time)
            })
        };
        lines.push([
            Cell::series(info),
            Cell::Count(gone.rows),
            time(gone.range.map(|(first, _)| first)),
            time(gone.range.map(|(_, last)| last)),
            gone.left.map_or(Cell::Missing, Cell::Count),
        ]);
    }
    if lines.is_empty() {
        return Err(span.nothing());
    }
    drop(reader);
    // The commit comes before the report, so that a removal is not reported if its commit fails.
    if let Some(txn) = txn {
        store::commit(txn).map_err(fail)?;
        store::close(database).map_err(fail)?;
    }
    let mut sheet = terminal.sheet(args.format.format, columns);
    for line in lines {
        sheet.row(&line)?;
    }
    sheet.finish()?;
    if args.dry_run {
        let note = terminal.messages.warning("note:");
        eprintln!("{note} nothing was removed; without --dry-run these would be removed");
    }
    Ok(())
}

/// The data that is removed from one series.
struct Gone {
    rows: u64,
    /// Times of the first and the last removed point; `None` for a series without points.
    range: Option<(i64, i64)>,
    /// Number of points that remain; `None` if the whole series is removed.
    left: Option<u64>,
}

impl Gone {
    /// Determines which data would be removed from a series; `None` if only points in a span are to be removed and the
    /// series has no points in it.
    fn of(reader: &Reader<'_>, info: &SeriesInfo, span: &Span) -> Outcome<Option<Self>> {
        let fail = |error: tidalite::Error| reader.fail(&error);
        let series = reader.series(info)?;
        let all = series.count().map_err(fail)?;
        if span.is_everything() {
            return Ok(Some(Self {
                rows: all,
                range: series.span(),
                left: None,
            }));
        }
        let Some((from, to)) = span.in_series(&series) else {
            return Ok(None);
        };
        let rows = series
            .query(Steps(from)..=Steps(to))
            .count()
            .map_err(fail)?;
        if rows == 0 {
            return Ok(None);
        }
        let mut cursor = series.cursor();
        let first = series.query(..Steps(from)).count().map_err(fail)?;
        let first = cursor.nth(first).map_err(fail)?;
        let last = cursor.search(Steps(to)).map_err(fail)?;
        let range = first.zip(last);
        Ok(Some(Self {
            rows,
            range: range.map(|(first, last)| (first.time, last.time)),
            left: Some(all - rows),
        }))
    }

    fn remove(&self, txn: &mut WriteTxn, info: &SeriesInfo) -> tidalite::Result<()> {
        match (self.left, self.range) {
            (None, _) => txn.remove_series_by_id(info.id).map(drop),
            (Some(_), Some((first, last))) => {
                let mut series = txn.series_by_id(info.id)?;
                series.delete(Steps(first)..=Steps(last)).map(drop)
            }
            (Some(_), None) => Ok(()),
        }
    }
}

/// Runs the command `tidalite rename`.
pub(crate) fn rename(args: &RenameArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let database = open_to_write(path)?;
    let mut txn = database.begin_write().map_err(fail)?;
    let reader = Reader::at(&database, path, None)?;
    let infos = reader.select(&args.from)?;
    let Some(info) = infos.iter().find(|info| is_called(info, &args.from)) else {
        const SHOWN: usize = 3;
        let names = infos.iter().take(SHOWN).map(|info| info.label());
        let more = if infos.len() > SHOWN { "  ..." } else { "" };
        let names = names.collect::<Vec<_>>().join("  ");
        return Err(
            Failure::not_found(format!("no series has exactly the name `{}`", args.from))
                .hint(format!("give the whole name with its tags: {names}{more}")),
        );
    };
    let before = info.label();
    txn.rename_series(info.id, &args.to).map_err(fail)?;
    let now = txn.series_by_id(info.id).map_err(fail)?.info().label();
    drop(reader);
    store::commit(txn).map_err(fail)?;
    store::close(database).map_err(fail)?;
    let (before, now) = (printable(&before), printable(&now));
    writeln!(terminal.out, "{before} is called {now} now")?;
    Ok(terminal.out.flush()?)
}
