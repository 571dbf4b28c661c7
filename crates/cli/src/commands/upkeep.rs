//! `stat`, `check`, `copy`, `compact`: commands that work on the whole file.

use crate::args::{CheckArgs, CompactArgs, CopyArgs, StatArgs};
use crate::database::{
    Reader, failure, open, open_to_back_up, open_to_write, refuse_missing, refuse_wrong_place,
    try_open,
};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Cell, Column, Format, bytes_text, grouped, plural, printable};
use crate::progress::Progress;
use crate::store;
use crate::terminal::Terminal;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;
use tidalite::maintenance::{Stat, Watch};
use tidalite::retention::Budget;
use tidalite::{Database, ErrorKind, Timestamp};

/// Maximum number of problems that `check` prints; a broken file may have one per page.
const PROBLEMS_SHOWN: usize = 100;

/// Runs the command `tidalite stat`.
pub(crate) fn stat(args: &StatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    if args.weights {
        return super::integrity::weights(args, terminal);
    }
    if args.head {
        return super::head::run(args, terminal);
    }
    let stat = open(path)?.stat().map_err(|error| failure(path, &error))?;
    let figures = figures(&stat);
    if args.format.format == Format::Table {
        let columns = vec![
            Column::text("what"),
            Column::number("value"),
            Column::text("meaning"),
        ];
        let mut sheet = terminal.sheet(Format::Table, columns);
        for (name, cell, meaning) in figures {
            sheet.row(&[
                Cell::Text(name.replace('_', " ")),
                cell,
                Cell::Text(meaning.to_owned()),
            ])?;
        }
        return Ok(sheet.finish()?);
    }
    let columns = figures
        .iter()
        .map(|(name, cell, _)| match cell {
            Cell::Text(_) => Column::text(*name),
            _ => Column::number(*name),
        })
        .collect();
    let cells: Vec<Cell> = figures.into_iter().map(|(_, cell, _)| cell).collect();
    let mut sheet = terminal.sheet(args.format.format, columns);
    sheet.row(&cells)?;
    Ok(sheet.finish()?)
}

/// Name, value and meaning of every statistic that `stat` prints.
fn figures(stat: &Stat) -> Vec<(&'static str, Cell, &'static str)> {
    let page = stat.page_size as u64;
    let used = stat
        .pages_total
        .saturating_sub(stat.pages_free + stat.pages_pending);
    let ratio = |bytes: u64, rows: u64| {
        #[expect(clippy::cast_precision_loss, reason = "shown with six digits")]
        if rows > 0 {
            Cell::Computed(bytes as f64 / rows as f64)
        } else {
            Cell::Missing
        }
    };
    vec![
        (
            "commit",
            Cell::Unsigned(stat.txn.0),
            "number of the newest commit",
        ),
        (
            "commit_time",
            Cell::Text(stat.commit_time.to_string()),
            "time of the newest commit, UTC",
        ),
        (
            "file_bytes",
            Cell::Bytes(stat.file_bytes),
            "size of the file",
        ),
        ("page_size", Cell::Bytes(page), "size of a page"),
        ("pages", Cell::Count(stat.pages_total), "pages of the file"),
        ("pages_used", Cell::Count(used), "hold something"),
        ("pages_free", Cell::Count(stat.pages_free), "are free"),
        (
            "pages_pending",
            Cell::Count(stat.pages_pending),
            "are freed, but snapshots may still see them",
        ),
        (
            "log_pages",
            Cell::Count(stat.log_pages),
            "of the used pages, for the redo log",
        ),
        (
            "free_scattered",
            stat.fragmentation().map_or(Cell::Missing, Cell::Computed),
            "of the free pages, outside their longest range: 0 to 1",
        ),
        (
            "large_bytes",
            Cell::Bytes(stat.large_bytes),
            "size of the second file, for large values",
        ),
        (
            "large_pages_free",
            Cell::Count(stat.large_pages_free),
            "of its pages are free",
        ),
        ("tables", Cell::Count(stat.tables), "ordered tables"),
        (
            "table_entries",
            Cell::Count(stat.table_entries),
            "entries in them",
        ),
        ("series", Cell::Count(stat.series), "time series"),
        ("points", Cell::Count(stat.rows()), "points in total"),
        (
            "leaf_points",
            Cell::Count(stat.leaf_rows),
            "points in leaves",
        ),
        (
            "delta_points",
            Cell::Count(stat.delta_rows),
            "points in the delta, not in leaves yet",
        ),
        ("runs", Cell::Count(stat.runs), "sorted runs of the delta"),
        (
            "height_max",
            Cell::Unsigned(stat.series_height_max.into()),
            "levels of the highest tree",
        ),
        (
            "leaf_bytes",
            Cell::Bytes(stat.leaf_bytes),
            "size of all leaves",
        ),
        (
            "bytes_per_leaf_point",
            ratio(stat.leaf_bytes, stat.leaf_rows),
            "of the leaves alone",
        ),
        (
            "bytes_per_point",
            ratio(used * page, stat.rows()),
            "of all pages used",
        ),
    ]
}

/// Runs the command `tidalite check`.
pub(crate) fn check(args: &CheckArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let progress = Progress::new(args.quiet, args.progress);
    let watch = Watch::new().bytes_per_second(args.rate.bytes());
    let watch = watch.on_progress(|now| {
        progress.show(now);
        ControlFlow::Continue(())
    });
    let advice = format!(
        "restore a backup (tidalite restore), or save what is intact: tidalite salvage {} new.tdl",
        path.display()
    );
    // The advice is also given for damage that leaves no data to be checked.
    let advise = |failure: Failure| match failure.exit {
        Exit::Damage => failure.hint(&advice),
        _ => failure,
    };
    let mut fail = |failure: Failure, error: Option<&tidalite::Error>| {
        if args.format.is_json() {
            super::damage::failed_json(error, &failure, terminal)?;
        }
        Err(failure)
    };
    if let Err(failure) = refuse_missing(path) {
        return fail(failure, None);
    }
    let checked = try_open(path).and_then(|database| database.check_with(watch));
    progress.clear();
    let report = match checked {
        Ok(report) => report,
        Err(error) => return fail(advise(failure(path, &error)), Some(&error)),
    };
    if args.format.is_json() {
        super::damage::check_json(&report, terminal)?;
    }
    let shown = printable(&path.display().to_string());
    if !args.quiet && !args.format.is_json() {
        for note in &report.notes {
            writeln!(terminal.out, "no damage, {}", printable(note))?;
        }
    }
    if report.is_clean() {
        if !args.quiet && !args.format.is_json() {
            let clean = terminal.palette.good("clean");
            writeln!(
                terminal.out,
                "{shown}: {clean}; {} in use, {} free; {}, {} series, {} in {}, {} in the delta",
                plural(report.pages_used, "page", "pages"),
                grouped(report.pages_free + report.pages_pending),
                plural(report.tables, "table", "tables"),
                grouped(report.series),
                plural(report.leaf_rows, "point", "points"),
                plural(report.leaves, "leaf", "leaves"),
                grouped(report.delta_rows),
            )?;
        }
        return Ok(terminal.out.flush()?);
    }
    if !args.quiet && !args.format.is_json() {
        for problem in report.problems.iter().take(PROBLEMS_SHOWN) {
            writeln!(terminal.out, "{}", printable(problem))?;
        }
        if let Some(more) = report
            .problems
            .len()
            .checked_sub(PROBLEMS_SHOWN)
            .filter(|n| *n > 0)
        {
            writeln!(terminal.out, "and {} more", grouped(more as u64))?;
        }
        terminal.out.flush()?;
    }
    let count = report.problems.len() as u64;
    let advice = match report.problems_healable == count {
        true => format!(
            "no data is lost: the next command that writes to the file repairs the damage, such as tidalite compact {}",
            path.display()
        ),
        false => advice,
    };
    Err(Failure::new(
        Exit::Damage,
        format!("{shown}: {} found", plural(count, "problem", "problems")),
    )
    .hint(advice))
}

/// Runs the command `tidalite copy`.
pub(crate) fn copy(args: &CopyArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (from, to) = (&args.file.file, &args.copy);
    let watch = Watch::new().bytes_per_second(args.rate.bytes());
    if to == std::path::Path::new("-") {
        let out = &mut *terminal.out;
        let written = match (&args.temporary, args.image) {
            (_, true) => {
                let database = open_to_back_up(from)?;
                let copied = database.image().watch(watch).to_writer(out);
                copied.and_then(|bytes| store::close(database).map(|()| bytes))
            }
            (Some(folder), false) => open(from)?
                .copy()
                .temporary_in(folder)
                .watch(watch)
                .to_writer(out),
            (None, false) => open(from)?.copy().watch(watch).to_writer(out),
        };
        written.map_err(|error| failure(from, &error))?;
        return Ok(terminal.out.flush()?);
    }
    if to.exists() {
        return Err(Failure::usage(format!("{} exists already", to.display()))
            .hint("choose another name, or remove it first"));
    }
    refuse_wrong_place(to)?;
    let database = match args.image {
        true => open_to_back_up(from)?,
        false => open(from)?,
    };
    // The copy is written under a temporary name and then renamed, so that a file with the final name is complete.
    let mut part = to.clone().into_os_string();
    part.push(".part");
    let part = std::path::PathBuf::from(part);
    discard(&part);
    let copied = match args.image {
        true => image(&database, &part, watch),
        false => database.copy().watch(watch).to(&part),
    };
    let copied = copied.and_then(|bytes| store::close(database).map(|()| bytes));
    let bytes = match copied {
        Ok(bytes) => bytes,
        Err(error) => {
            discard(&part);
            return Err(copy_failure(from, to, &error));
        }
    };
    std::fs::rename(&part, to)
        .and_then(|()| sync_folder(to))
        .map_err(|error| Failure::file("cannot write", to, &error))?;
    discard(&part);
    let size = std::fs::metadata(to).map_or(bytes, |metadata| metadata.len());
    let (from, to) = (
        printable(&from.display().to_string()),
        printable(&to.display().to_string()),
    );
    writeln!(terminal.out, "{from} copied to {to}: {}", bytes_text(size))?;
    Ok(terminal.out.flush()?)
}

/// Writes an image, a copy of the database page by page, to a new file, and syncs that file.
fn image(database: &Database, to: &std::path::Path, watch: Watch<'_>) -> tidalite::Result<u64> {
    let opened = std::fs::File::create_new(to)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, opened);
    let bytes = database.image().watch(watch).to_writer(&mut out)?;
    out.flush().and_then(|()| out.get_ref().sync_all())?;
    Ok(bytes)
}

/// Age from which `compact` rewrites rows in cold form, unless the command line specifies another age.
const COLD_AGE_NANOS: i64 = Budget::COLD_AGE.as_nanos() as i64;

/// Runs the command `tidalite compact`.
pub(crate) fn compact(args: &CompactArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let database = open_to_write(path)?;
    let by_default = Some(COLD_AGE_NANOS).filter(|_| cfg!(feature = "cold") && !args.no_cold);
    let mut cold = String::new();
    if let Some(age) = args.cold.or(by_default) {
        let budget = Budget {
            time: Duration::MAX,
            ..Budget::default()
        };
        let clock = database.clock().map_err(|error| failure(path, &error))?;
        let older_than = Timestamp(clock.now().0.saturating_sub(age.saturating_abs()));
        Reader::at(&database, path, None)?.mention_unknown_keys(&args.series)?;
        let done = database.rewrite_cold(&args.series, older_than, &budget);
        let done = done.map_err(|error| failure(path, &error))?;
        if done.rows > 0 || args.cold.is_some() {
            cold = format!(
                "{} of {} cold: {} instead of {}\n",
                plural(done.rows, "row", "rows"),
                plural(done.leaves, "leaf", "leaves"),
                bytes_text(done.bytes_after),
                bytes_text(done.bytes_before)
            );
        }
    }
    let mut moved = 0;
    let done = loop {
        let step = database.compact(args.step);
        let step = step.map_err(|error| failure(path, &error))?;
        moved += step.moved_bytes;
        if step.done {
            break step;
        }
    };
    store::close(database).map_err(|error| failure(path, &error))?;
    // The size is measured after closing, because closing the database frees the redo log.
    let after = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map_or(done.file_bytes, |file| file.len());
    let shown = printable(&path.display().to_string());
    writeln!(
        terminal.out,
        "{shown} compacted to {}: {} moved",
        bytes_text(after),
        bytes_text(moved)
    )?;
    write!(terminal.out, "{cold}")?;
    writeln!(
        terminal.out,
        "{} stay free, {} of them as a reserve for removing points on a full disk",
        bytes_text(done.free_bytes),
        bytes_text(done.reserve_bytes.min(done.free_bytes))
    )?;
    if done.waiting_bytes > 0 {
        writeln!(
            terminal.out,
            "{} are retained by readers and pins: compact again after these have ended; `tidalite readers {shown}` and `tidalite pins {shown}` list them",
            bytes_text(done.waiting_bytes)
        )?;
    }
    Ok(terminal.out.flush()?)
}

/// The error for a copy. It refers to the written file if the error occurred in it, otherwise to the database.
fn copy_failure(from: &std::path::Path, to: &std::path::Path, error: &tidalite::Error) -> Failure {
    match (error.path(), error.io_error()) {
        (Some(_), Some(source)) => Failure::file("cannot open", to, source),
        (None, Some(source)) if error.operation().is_none() => {
            Failure::file("cannot write", to, source)
        }
        (None, None) if error.kind() == ErrorKind::Full && error.limit().is_none() => {
            failure(to, error)
        }
        _ => failure(from, error),
    }
}

/// Removes an unfinished copy and its lock file, if they exist.
fn discard(part: &std::path::Path) {
    let _ = std::fs::remove_file(part);
    let mut lock = part.as_os_str().to_owned();
    lock.push("-lock");
    let _ = std::fs::remove_file(lock);
}

/// Syncs the folder of a renamed file, so that the new name is durable.
fn sync_folder(file: &std::path::Path) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => std::path::Path::new("."),
    };
    std::fs::File::open(folder)?.sync_all()
}
