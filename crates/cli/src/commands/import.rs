//! `import`: stores the rows of files as series.

use super::unfinished::{self, Unfinished};
use crate::args::{ImportArgs, MergeName, OnError};
use crate::database::{length_of, open_or_create};
use crate::exit::{Failure, Outcome};
use crate::import::advice;
use crate::import::batch::BadRow;
use crate::import::blocks::LinesBefore;
use crate::import::field::NOT_UTF_8;
use crate::import::file_tags;
use crate::import::known_series::KnownSeries;
use crate::import::layout::{Layout, LeftOut};
use crate::import::load::{Aim, Columns, Loader, Tally};
use crate::import::local_times::LocalTally;
use crate::import::open::Rows;
use crate::import::options::{self, format, local_times, wishes};
use crate::import::progress::Progress;
use crate::import::readers::Batches;
use crate::import::report;
use crate::import::resolver::Resolver;
use crate::import::source::Source;
use crate::output::{
    Format as Sheets, bytes_text, grouped, plural, printable, rate_text, rounded_text,
};
use crate::terminal::Terminal;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of bad rows, and of bad values, that are described; further ones are only counted.
const BAD_ROWS_SHOWN: u64 = 10;

/// Runs the command `tidalite import`.
pub(crate) fn run(args: &ImportArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let began = Instant::now();
    // Inputs are opened before the database is created, so that a wrong file name does not leave an empty database.
    let mut inputs = Vec::new();
    for path in &args.inputs {
        inputs.push((path.as_path(), options::open(args, path)?));
    }
    if args.dry_run {
        for (path, source) in inputs {
            describe(args, path, source, terminal)?;
        }
        return Ok(());
    }
    let is_new = !args.file.exists();
    let database = open_or_create(&args.file)?;
    let unfinished = match is_new {
        true => Unfinished::watch(&args.file),
        false => Unfinished::default(),
    };
    let aim = Aim {
        prefix: &args.prefix,
        into: args.target.into.as_deref(),
        merge: args.merge.map(MergeName::policy),
        unit: args.unit.unit(),
        bad_cells_are_null: args.on_error == OnError::Null,
    };
    let series = match KnownSeries::of(args, &database) {
        Ok(series) => series,
        Err(failure) => {
            drop(database);
            return Err(after_failure(failure, args, Tally::default(), is_new));
        }
    };
    let mut loader = Loader::new(database, &args.file, aim);
    let mut local = LocalTally::default();
    let mut done = Ok(());
    for (path, source) in inputs {
        let to = Target {
            loader: &mut loader,
            local: &mut local,
            unfinished: &unfinished,
            series: series.as_ref(),
        };
        done = one_input(args, path, source, to, terminal);
        if done.is_err() {
            break;
        }
    }
    let done = done.and_then(|()| {
        unfinished.keep();
        loader.commit()
    });
    let tally = loader.tally();
    let closed = loader.close();
    let done = done.and(closed);
    if let Err(failure) = done {
        return Err(after_failure(failure, args, tally, is_new));
    }
    if !args.quiet {
        summary(&args.file, tally, began.elapsed(), terminal)?;
        for line in local.lines(local_times(args)) {
            writeln!(terminal.out, "{line}")?;
        }
        terminal.out.flush()?;
    }
    Ok(())
}

/// Adds to the message of a failure which rows are nevertheless stored. Removes the database if this import created it
/// and committed nothing.
fn after_failure(failure: Failure, args: &ImportArgs, tally: Tally, is_new: bool) -> Failure {
    if tally.commits > 0 {
        return Failure {
            message: format!(
                "{} ({} durable commits before it remain)",
                failure.message,
                grouped(tally.commits)
            ),
            ..failure
        };
    }
    if is_new {
        unfinished::remove(&args.file);
    }
    failure
}

/// A count with its noun, in the singular or in the plural.
fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

fn summary(path: &Path, tally: Tally, took: Duration, terminal: &mut Terminal<'_>) -> Outcome {
    let seconds = took.as_secs_f64().max(1e-9);
    #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
    let rate = |count: u64| rate_text(count as f64 / seconds);
    let bytes = length_of(path);
    writeln!(
        terminal.out,
        "{}, {} in {} series in {} s: {} rows/s, {} points/s",
        counted(tally.rows, "row"),
        counted(tally.stored(), "point"),
        grouped(tally.series),
        rounded_text((seconds * 1000.0).round() / 1000.0),
        rate(tally.rows),
        rate(tally.points),
    )?;
    for (points, one, many) in [
        (
            tally.replaced.own,
            "of this import was replaced by another at the same time in the same series: is a --tag missing?",
            "of this import were replaced by others at the same time in the same series: is a --tag missing?",
        ),
        (
            tally.replaced.older,
            "that was stored before was replaced",
            "that were stored before were replaced",
        ),
        (
            tally.replaced.left_out,
            "was not stored: its time was taken, and its series keeps the existing point",
            "were not stored: their times were taken, and their series keep the existing points",
        ),
    ] {
        match points {
            0 => {}
            1 => writeln!(terminal.out, "1 point {one}")?,
            _ => writeln!(terminal.out, "{} points {many}", grouped(points))?,
        }
    }
    for (count, what) in [(tally.bad_rows, "row"), (tally.bad_cells, "value")] {
        match count {
            0 => {}
            1 => writeln!(terminal.out, "1 {what} skipped")?,
            _ => writeln!(terminal.out, "{} {what}s skipped", grouped(count))?,
        }
    }
    writeln!(
        terminal.out,
        "{}: {}",
        printable(&path.display().to_string()),
        bytes_text(bytes)
    )?;
    Ok(terminal.out.flush()?)
}

/// Prints how the columns of an input would be read.
fn describe(
    args: &ImportArgs,
    path: &Path,
    source: Source,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    if args.target.into.is_some() && args.columns.is_empty() {
        return Err(Failure::usage(
            "--dry-run shows the columns of a header, and an input for existing series has none",
        )
        .hint("give --columns, or omit --into"));
    }
    let given = &source.given;
    let (what, nulls) = (name_of(path), options::nulls(args, given));
    let rows = Rows::open(
        source.reader,
        &what,
        &format(args, path, given)?,
        &wishes(args, None, given),
        nulls.clone(),
    )?;
    if rows.names.is_empty() {
        return Err(Failure::usage(format!(
            "{what}: --dry-run shows columns, which the line protocol does not have"
        ))
        .hint("import into another file, and list the series: tidalite series FILE.tdl"));
    }
    mention(&what, &rows.notes, terminal);
    let count = rows.sample.len();
    writeln!(
        terminal.out,
        "{}: the first {}",
        printable(&what),
        plural(count as u64, "row", "rows")
    )?;
    let fixed_tags = file_tags::of_input(path, &args.tag_values, args.file_tags.as_deref())?;
    for (key, text) in fixed_tags {
        writeln!(
            terminal.out,
            "tag {}: {}",
            printable(&key),
            printable(&text)
        )?;
    }
    let into = args.target.into.as_deref();
    let lines = report::rows(&rows, &nulls, &args.prefix, into);
    let mut sheet = terminal.sheet(Sheets::Table, report::columns());
    for line in &lines {
        sheet.row(line)?;
    }
    Ok(sheet.finish()?)
}

/// The name of an input in messages.
fn name_of(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// The loader that receives the rows of an input, and the options for this input.
struct Target<'t, 'a> {
    loader: &'t mut Loader<'a>,
    local: &'t mut LocalTally,
    unfinished: &'t Unfinished,
    /// The series of `--into` without `--columns`.
    series: Option<&'t KnownSeries>,
}

fn one_input(
    args: &ImportArgs,
    path: &Path,
    source: Source,
    to: Target<'_, '_>,
    terminal: &Terminal<'_>,
) -> Outcome {
    let Target {
        loader,
        local,
        unfinished,
        series,
    } = to;
    let what = name_of(path);
    let fixed_tags = file_tags::of_input(path, &args.tag_values, args.file_tags.as_deref())?;
    let wishes = wishes(args, series, &source.given);
    let nulls = options::nulls(args, &source.given);
    let progress = Progress::new(&source, args.quiet);
    let is_packed = source.is_packed;
    let rows = Rows::open(
        source.reader,
        &what,
        &format(args, path, &wishes.given)?,
        &wishes,
        nulls,
    )?;
    let mut columns = Columns::of(&rows, fixed_tags);
    if let Some(series) = series {
        series.check_width(rows.layout().width, &what)?;
        columns.series = Some(series.name.clone());
    }
    let counts = rows.reading.counts;
    if !args.quiet {
        mention(&what, &rows.notes, terminal);
        mention_left_out(&what, rows.layout(), terminal);
    }
    loader.next_input();
    let before = loader.tally();
    let zone = rows.layout().reader.zone().clone();
    let mut resolver = Resolver::new(rows.layout().reader.is_local());
    let mut batches = Batches::start(rows);
    while let Some(batch) = resolver.next(&mut batches)? {
        local.add(batch.local.tally);
        loader.meet(&batch, &columns)?;
        let mut lines = LinesBefore::default();
        let mut bad = batch.bad.iter().peekable();
        let mut bad_cells = batch.bad_cells.iter().peekable();
        let mut refused = batch.local.refused.iter().peekable();
        let leave_out = |line: &BadRow, loader: &mut Loader<'_>| {
            loader.bad_row();
            if args.on_error == OnError::Stop {
                return Err(stopped(&what, counts, line, args));
            }
            let number = loader.tally().bad_rows;
            let place = (&what[..], counts);
            progress.aside(|| tell("row skipped", place, line, number, terminal));
            Ok(())
        };
        let leave_empty = |line: &BadRow, loader: &mut Loader<'_>| {
            loader.bad_cell();
            let number = loader.tally().bad_cells;
            let place = (&what[..], counts);
            progress.aside(|| tell("value skipped", place, line, number, terminal));
        };
        for row in 0..=batch.times.len() {
            while let Some((_, line)) = bad.next_if(|(before, _)| *before == row) {
                leave_out(line, loader)
                    .map_err(|failure| damage_behind(&mut batches, is_packed).unwrap_or(failure))?;
            }
            if row == batch.times.len() {
                break;
            }
            let stored = if let Some(time) = refused.next_if(|time| time.row == row) {
                Err(time.complaint(&zone))
            } else if columns.typed.is_empty() {
                loader.row(&batch, row, &columns)?
            } else {
                loader.typed_row(&batch, row, &columns.typed)?
            };
            while let Some((_, cell)) = bad_cells.next_if(|(of, _)| *of == row) {
                if stored.is_ok() {
                    leave_empty(cell, loader);
                }
            }
            for why in loader.take_bad_cells() {
                // If the whole row is skipped, its bad cells are not reported separately.
                if stored.is_ok() {
                    let line = batch.line(row, &mut lines);
                    leave_empty(&BadRow { line, why }, loader);
                }
            }
            if let Err(why) = stored {
                let line = batch.line(row, &mut lines);
                leave_out(&BadRow { line, why }, loader)
                    .map_err(|failure| damage_behind(&mut batches, is_packed).unwrap_or(failure))?;
                continue;
            }
            if let Some(every) = args.commit_every
                && loader.tally().rows.is_multiple_of(every)
                && batch.ends_line(row)
            {
                unfinished.keep();
                loader.commit()?;
            }
        }
        batches.recycle(batch);
        progress.show(loader.tally().rows);
    }
    progress.clear();
    let now = loader.tally();
    if now.points == before.points && now.bad_cells > before.bad_cells {
        return Err(Failure::bad_input(format!("{what}: no value in {} can be read", plural(now.rows - before.rows, "row", "rows")))
            .hint("the messages above give the reasons; --value chooses the columns, --null names words for \"no value\""));
    }
    if now.rows == before.rows && now.bad_rows == before.bad_rows {
        return Err(Failure::bad_input(format!("{what} has no rows"))
            .hint("it holds only comments and blank lines, or names of columns"));
    }
    if now.rows == before.rows {
        let none = match now.bad_rows {
            1 => "its only row cannot be read".to_owned(),
            rows => format!("none of {} rows can be read", grouped(rows)),
        };
        return Err(Failure::bad_input(format!("{what}: {none}"))
            .hint("the messages above give the reasons; --time, --time-format, --tag and --value choose the columns"));
    }
    Ok(())
}

/// Continues reading a compressed input to find damage, because a bad row may be its first sign.
fn damage_behind(batches: &mut Batches, is_packed: bool) -> Option<Failure> {
    /// Maximum number of further batches that are read to find damage: the batches of 256 MiB of input.
    const BATCHES_MAX: usize = 1024;
    for _ in 0..if is_packed { BATCHES_MAX } else { 0 } {
        match batches.next() {
            Ok(Some(batch)) => batches.recycle(batch),
            Ok(None) => break,
            Err(failure) => return Some(failure),
        }
    }
    None
}

/// Prints the properties that were detected in an input.
fn mention(what: &str, notes: &[String], terminal: &Terminal<'_>) {
    let mut stderr = std::io::stderr().lock();
    for note in notes {
        let _ = writeln!(
            stderr,
            "{} {what}: {note}",
            terminal.messages.warning("note:")
        );
    }
}

/// Reports columns that are not used, because a forgotten tag would mix the rows of several series.
fn mention_left_out(what: &str, layout: &Layout, terminal: &Terminal<'_>) {
    if layout.left_out.is_empty() {
        return;
    }
    let names: Vec<String> = layout.left_out.iter().map(described).collect();
    let mut words = layout.left_out.iter().filter(|own| !own.is_numeric());
    let advice = words.next().map_or(String::new(), |first| {
        let name = printable(&first.name);
        format!("; a column of names becomes a tag with --tag {name}")
    });
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(
        stderr,
        "{} {what}: not used: {}{advice}",
        terminal.messages.warning("note:"),
        names.join(", "),
    );
}

/// Formats the name of a column, with the number of its numeric cells if it has any.
fn described(column: &LeftOut) -> String {
    let name = printable(&column.name);
    match column.numbers {
        0 => name,
        _ if column.is_numeric() => {
            format!(
                "{name} (numbers, but the column has no name: --value {name} stores them, beside --value for the others)"
            )
        }
        numbers => format!(
            "{name} (numbers in {} of the first {} cells: --value {name} --on-error null stores them)",
            grouped(numbers as u64),
            grouped(column.cells as u64)
        ),
    }
}

fn stopped(what: &str, counts: &str, bad: &BadRow, args: &ImportArgs) -> Failure {
    let stored = if args.commit_every.is_some() {
        "rows after the last commit are not stored"
    } else {
        "nothing was stored"
    };
    let failure = Failure::bad_input(format!("{what}, {counts} {}: {}", bad.line, bad.why));
    if bad.why.ends_with(NOT_UTF_8) {
        return failure.hint(format!("{stored}; {}", advice::NOT_UTF_8));
    }
    failure.hint(format!(
        "{stored}; correct the {counts}, name a word for \"no value\" with --null WORD, or leave out such values with \
         --on-error null, such rows with --on-error skip"
    ))
}

/// Prints a description of a skipped row or value, if it is one of the first.
fn tell(
    lost: &str,
    (what, counts): (&str, &str),
    bad: &BadRow,
    number: u64,
    terminal: &Terminal<'_>,
) {
    let mut stderr = std::io::stderr().lock();
    let mark = terminal.messages.warning(format!("{lost}:"));
    if number <= BAD_ROWS_SHOWN {
        let _ = writeln!(stderr, "{mark} {what}, {counts} {}: {}", bad.line, bad.why);
    } else if number == BAD_ROWS_SHOWN + 1 {
        let _ = writeln!(stderr, "{mark} more follow and are only counted");
    }
}
