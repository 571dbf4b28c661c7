//! `retention --apply`: removes data that the policies do not keep, or previews the removal.

use crate::args::RetentionArgs;
use crate::database::{failure, time_cell};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Cell, Column, bytes_text, plural, printable};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use jiff::tz::TimeZone;
use std::time::Duration;
use tidalite::retention::{Budget, CapState, ClockReading, Holder, Maintained};
use tidalite::{Database, ErrorKind};

/// Maximum number of pins and readers that are listed as the cause of a long file.
const HOLDERS_SHOWN: usize = 5;

fn budget(args: &RetentionArgs) -> Budget {
    Budget {
        time: Duration::from_secs(args.budget),
        confirm_clock: args.yes,
        ..Budget::default()
    }
}

/// Prints the rows that `--apply` would remove, and changes nothing.
pub(super) fn preview(
    database: &Database,
    args: &RetentionArgs,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let preview = database.preview_maintenance(&budget(args)).map_err(fail)?;
    let columns = vec![
        Column::text("series"),
        Column::number("rows"),
        Column::text("first"),
        Column::text("last"),
        Column::number("bytes"),
    ];
    let show = TimeShow::new(TimeZone::UTC);
    let mut sheet = terminal.sheet(args.format.format, columns);
    for gone in &preview.removals {
        let unit = gone.series.schema.unit;
        sheet.row(&[
            Cell::Text(gone.series.label()),
            Cell::Count(gone.rows),
            time_cell(&show, unit, gone.from),
            time_cell(&show, unit, gone.to),
            Cell::Count(gone.bytes),
        ])?;
    }
    sheet.finish()?;
    let note = terminal.messages.warning("note:");
    let series = preview.removals.len() as u64;
    eprintln!(
        "{note} nothing was removed; without --dry-run {} of {}, {}, would be removed",
        plural(preview.rows, "row", "rows"),
        plural(series, "series", "series"),
        bytes_text(preview.bytes)
    );
    if let Some(reading) = &preview.clock_ahead {
        eprintln!("{note} {}; --yes includes them", ahead(reading));
    }
    Ok(())
}

/// Applies the policies, and prints the number of removed rows.
pub(super) fn apply(
    database: &Database,
    args: &RetentionArgs,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let done = database.maintain(&budget(args)).map_err(fail)?;
    told(&done, terminal)?;
    if let Some(cap) = &done.cap {
        let note = terminal.messages.warning("note:");
        for line in about_cap(cap, done.more) {
            eprintln!("{note} {line}");
        }
    }
    if let Some(first) = done.failed.first() {
        let exit = match first.kind {
            ErrorKind::Damaged => Exit::Damage,
            _ => Exit::Failure,
        };
        let others = done.failed.len() as u64 - 1;
        let also = match others {
            0 => String::new(),
            _ => format!(", and {}", plural(others, "other table", "other tables")),
        };
        let (table, problem) = (printable(&first.table), &first.problem);
        let failure = Failure::new(
            exit,
            format!("table {table}{also} could not be maintained: {problem}"),
        );
        if let Some(reading) = &done.clock_ahead {
            let note = terminal.messages.warning("note:");
            eprintln!("{note} {}; --yes includes it", ahead(reading));
        }
        return Err(match first.kind {
            ErrorKind::Damaged => {
                failure.hint(format!("`tidalite check {}` lists damage", path.display()))
            }
            _ => failure,
        });
    }
    match &done.clock_ahead {
        None => Ok(()),
        Some(reading) => Err(Failure::new(Exit::Failure, ahead(reading))
            .hint("check `date`; if it is right, add --yes")),
    }
}

fn told(done: &Maintained, terminal: &mut Terminal<'_>) -> Outcome {
    let cold = &done.cold;
    if cold.rows > 0 {
        writeln!(
            terminal.out,
            "{} of {} made cold: {} instead of {}",
            plural(cold.rows, "row", "rows"),
            plural(cold.leaves, "leaf", "leaves"),
            bytes_text(cold.bytes_after),
            bytes_text(cold.bytes_before)
        )?;
    }
    if done.windows > 0 {
        writeln!(
            terminal.out,
            "{} stored in place of rows",
            plural(done.windows, "window", "windows")
        )?;
    }
    let messages = &done.messages;
    if messages.tables > 0 {
        writeln!(
            terminal.out,
            "{} of messages maintained: {} and {} removed in {}",
            plural(messages.tables, "table", "tables"),
            plural(messages.messages, "message", "messages"),
            plural(messages.objects, "object", "objects"),
            plural(messages.commits, "commit", "commits"),
        )?;
    }
    let used = done.cap.as_ref().map_or(String::new(), |cap| {
        let (before, now) = (bytes_text(cap.used_before), bytes_text(cap.used_bytes));
        if before == now {
            format!("; {now} in use")
        } else {
            format!("; {now} in use, {before} before")
        }
    });
    let more = if done.more {
        "; the time limit was reached, and more data remains"
    } else {
        ""
    };
    writeln!(
        terminal.out,
        "{} removed from {} in {}{used}{more}",
        plural(done.rows, "row", "rows"),
        plural(done.series, "series", "series"),
        plural(done.commits, "commit", "commits"),
    )?;
    Ok(terminal.out.flush()?)
}

/// Messages about bytes in use that exceed the cap, or about a file that is larger than the cap.
fn about_cap(cap: &CapState, more: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let bound = bytes_text(cap.cap_bytes);
    if cap.used_bytes > cap.cap_bytes && !more {
        let used = bytes_text(cap.used_bytes);
        lines.push(format!(
            "{used} are in use, the cap is {bound}: only the newest row of each series is left; other data is not removed"
        ));
    }
    if cap.file_bytes <= cap.cap_bytes {
        return lines;
    }
    let file = bytes_text(cap.file_bytes);
    if cap.holders.is_empty() {
        let used = bytes_text(cap.used_bytes);
        lines.push(format!(
            "the file has {file}, the cap is {bound}: {used} are in use, the rest is free for what comes next; `tidalite compact` makes the \
             file as short as it can be"
        ));
        return lines;
    }
    let mut holders: Vec<String> = cap.holders.iter().take(HOLDERS_SHOWN).map(named).collect();
    let others = cap.holders.len().saturating_sub(HOLDERS_SHOWN) as u64;
    if others > 0 {
        holders.push(plural(others, "other", "others"));
    }
    lines.push(format!(
        "the file has {file}, the cap is {bound}: {} of old versions are retained by {}",
        bytes_text(cap.retained_bytes),
        holders.join(", ")
    ));
    lines
}

fn named(holder: &Holder) -> String {
    match holder {
        Holder::Pin { name, txn } => format!("the pin `{}` of {txn}", printable(name)),
        Holder::Reader { process, txn } => format!("a reader of process {process} at {txn}"),
        _ => "somebody".to_owned(),
    }
}

fn ahead(reading: &ClockReading) -> String {
    let seconds = (reading.wall.0.saturating_sub(reading.commits.0)) / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let show = TimeShow::new(TimeZone::UTC);
    format!(
        "data that only the computer's clock makes too old was kept: it shows {}, {hours} h {minutes} min ahead of the newest commit and the time \
         that is known to have passed since",
        show.show(reading.wall.0.into())
    )
}
