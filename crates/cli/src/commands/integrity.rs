//! `backup`, `restore`, `salvage`, `pins`, `page`.

use super::damage::finding_json;
use crate::args::{BackupArgs, PageArgs, PinsArgs, RestoreArgs, SalvageArgs, StatArgs};
use crate::database::{failure, open, open_to_back_up, open_to_write, refuse_wrong_place};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Cell, Column, bytes_text, grouped, plural, printable};
use crate::store::{self, second_file};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use tidalite::maintenance::{Restore, Salvage, Watch};
use tidalite::{ErrorKind, Timestamp};

/// Maximum number of losses that `salvage` prints.
const SHOWN: usize = 100;

/// Runs the command `tidalite backup`.
pub(crate) fn backup(args: &BackupArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let database = open_to_back_up(path)?;
    if let Some(pin) = &args.pin {
        let known = database.pins().map_err(fail)?;
        if !known.iter().any(|known| known.name == *pin) {
            database.pin(pin).map_err(fail)?;
        }
    }
    let watch = Watch::new().bytes_per_second(args.rate.bytes());
    let mut backup = database.backup().watch(watch);
    if let Some(pin) = &args.pin {
        backup = backup.of(pin);
    }
    if let Some(base) = &args.since {
        backup = backup.since(base);
    }
    if args.to == Path::new("-") {
        backup.to_writer(&mut *terminal.out).map_err(fail)?;
        store::close(database).map_err(fail)?;
        return Ok(terminal.out.flush()?);
    }
    refuse_wrong_place(&args.to)?;
    let file = create_new(&args.to)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = backup.to_writer(&mut out).map_err(fail).and_then(|info| {
        let synced = out.flush().and_then(|()| out.get_ref().sync_all());
        synced.map_err(|error| Failure::file("cannot write", &args.to, &error))?;
        Ok(info)
    });
    let info = match written {
        Ok(info) => info,
        Err(failure) => {
            let _ = std::fs::remove_file(&args.to);
            return Err(failure);
        }
    };
    store::close(database).map_err(fail)?;
    let what = match info.base {
        Some(base) => format!("pages written since {base}"),
        None => "everything".to_owned(),
    };
    let to = printable(&args.to.display().to_string());
    writeln!(
        terminal.out,
        "{to}: {what} as of {}, {}",
        info.txn,
        bytes_text(info.bytes)
    )?;
    Ok(terminal.out.flush()?)
}

fn create_new(path: &Path) -> Outcome<File> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} exists already", path.display()))
                .hint("choose another name, or remove it first")
        }
        _ => Failure::file("cannot write", path, &error),
    })
}

/// Runs the command `tidalite restore`.
pub(crate) fn restore(args: &RestoreArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file;
    if path.exists() {
        return Err(Failure::usage(format!("{} exists already", path.display()))
            .hint("choose another name, or remove it first"));
    }
    refuse_wrong_place(path)?;
    let mut backups: Vec<Box<dyn Read>> = Vec::new();
    for backup in &args.backups {
        if backup == Path::new("-") {
            backups.push(Box::new(io::stdin()));
            continue;
        }
        let opened = File::open(backup);
        let opened = opened.map_err(|error| Failure::file("cannot read", backup, &error))?;
        backups.push(Box::new(opened));
    }
    let mut restore = Restore::from(backups);
    if let Some(second) = second_file() {
        restore = restore.large_values(second);
    }
    let info = restore.to(path).map_err(|error| {
        match error.kind() {
            ErrorKind::InvalidInput => Failure::bad_input(&error).hint(
                "give the full backup first, then its increments in order; nothing was created",
            ),
            ErrorKind::Damaged => Failure::bad_input(&error).hint(
                "give the full backup first, then its increments; replace a damaged one by another copy, or omit it and the following ones; nothing was created",
            ),
            _ => failure(path, &error),
        }
    })?;
    let path = printable(&path.display().to_string());
    writeln!(
        terminal.out,
        "{path}: restored as of {}, {}",
        info.txn,
        bytes_text(info.bytes)
    )?;
    Ok(terminal.out.flush()?)
}

/// Runs the command `tidalite salvage`.
pub(crate) fn salvage(args: &SalvageArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (from, to) = (&args.file.file, &args.to);
    if !from.exists() || from.is_dir() {
        return Err(
            Failure::not_found(format!("there is no file {}", from.display()))
                .hint("give the damaged database first, then the new one"),
        );
    }
    if to.exists() {
        return Err(Failure::usage(format!("{} exists already", to.display()))
            .hint("choose another name, or remove it first"));
    }
    refuse_wrong_place(to)?;
    let mut salvage = Salvage::of(from);
    if let Some(second) = second_file() {
        salvage = salvage.large_values(second);
    }
    let report = salvage.to(to).map_err(|error| failure(from, &error))?;
    let lost = report.lost.len() as u64 + report.more_lost;
    if args.format.is_json() {
        let saved = |all: &[tidalite::maintenance::Saved]| -> Vec<Value> {
            let one = |saved: &tidalite::maintenance::Saved| json!({"name": saved.name, "rows": saved.rows, "rows_by_headers": saved.rows_by_headers});
            all.iter().map(one).collect()
        };
        let document = json!({
            "commit": report.txn.map(|txn| txn.0),
            "headers": report.headers,
            "tables": saved(&report.tables),
            "series": saved(&report.series),
            "lost": report.lost.iter().map(finding_json).collect::<Vec<_>>(),
            "more_lost": report.more_lost,
        });
        writeln!(terminal.out, "{document}")?;
    } else {
        for finding in report.lost.iter().take(SHOWN) {
            writeln!(terminal.out, "lost: {}", printable(&finding.to_string()))?;
        }
        if let Some(more) = lost.checked_sub(SHOWN as u64).filter(|more| *more > 0) {
            writeln!(terminal.out, "and {} more", grouped(more))?;
        }
        writeln!(
            terminal.out,
            "{}: {} of {} and {} series saved",
            printable(&to.display().to_string()),
            plural(report.rows(), "row", "rows"),
            plural(report.tables.len() as u64, "table", "tables"),
            grouped(report.series.len() as u64),
        )?;
    }
    terminal.out.flush()?;
    if report.is_complete() {
        return Ok(());
    }
    Err(Failure::new(Exit::Damage, "some data could not be saved")
        .hint("a backup may hold the missing data"))
}

/// Runs the command `tidalite pins`.
pub(crate) fn pins(args: &PinsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    if let Some(name) = &args.add {
        let database = open_to_write(path)?;
        let known = database.pins().map_err(fail)?;
        let before = known.iter().find(|pin| pin.name == *name);
        let txn = database.pin(name).map_err(fail)?;
        let no_longer = before.map_or(String::new(), |pin| format!(", no longer {}", pin.txn));
        writeln!(
            terminal.out,
            "{} is pinned: {txn}{no_longer}",
            printable(name)
        )?;
        store::close(database).map_err(fail)?;
        return Ok(terminal.out.flush()?);
    }
    if let Some(name) = &args.remove {
        let database = open_to_write(path)?;
        if !database.unpin(name).map_err(fail)? {
            return Err(Failure::not_found(format!("there is no pin {name}"))
                .hint(format!("`tidalite pins {}` lists them", path.display())));
        }
        store::close(database).map_err(fail)?;
        writeln!(terminal.out, "{} is no longer pinned", printable(name))?;
        return Ok(terminal.out.flush()?);
    }
    let columns = vec![
        Column::text("name"),
        Column::number("commit"),
        Column::text("time"),
    ];
    let found = open(path)?.pins().map_err(fail)?;
    let mut sheet = terminal.sheet(args.format.format, columns);
    for pin in found {
        sheet.row(&[
            Cell::Text(pin.name),
            Cell::Unsigned(pin.txn.0),
            Cell::Text(Timestamp(pin.time_ns).to_string()),
        ])?;
    }
    Ok(sheet.finish()?)
}

/// Runs the command `tidalite page`.
pub(crate) fn page(args: &PageArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let found = open(path)?
        .page(args.number)
        .map_err(|error| failure(path, &error))?;
    let Some(page) = found else {
        return Err(
            Failure::not_found(format!("the file has no page {}", args.number)).hint(format!(
                "`tidalite stat {}` shows the number of pages",
                path.display()
            )),
        );
    };
    let out = &mut *terminal.out;
    writeln!(out, "page {} at byte {}", page.number, page.address)?;
    match &page.kind {
        Some(kind) => {
            let sum = if page.sound {
                "right for a page"
            } else {
                "not that of a whole page"
            };
            writeln!(
                out,
                "kind {kind}, owner {}, written by {}, checksum {sum}",
                page.owner, page.birth
            )?;
        }
        None => writeln!(out, "no header for this address: inside an extent, or free")?,
    }
    for (line, bytes) in page.bytes.chunks(16).enumerate() {
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String = bytes
            .iter()
            .map(|byte| {
                if (b' '..=b'~').contains(byte) {
                    char::from(*byte)
                } else {
                    '.'
                }
            })
            .collect();
        writeln!(out, "{:6x}  {:47}  {text}", line * 16, hex.join(" "))?;
    }
    Ok(out.flush()?)
}

/// Runs the command `tidalite stat --weights`.
pub(crate) fn weights(args: &StatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let weights = open(path)?
        .weights()
        .map_err(|error| failure(path, &error))?;
    let columns = vec![
        Column::text("what"),
        Column::number("pages"),
        Column::number("ranges"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    for weight in weights {
        sheet.row(&[
            Cell::Text(weight.what),
            Cell::Count(weight.pages),
            Cell::Count(weight.ranges),
        ])?;
    }
    Ok(sheet.finish()?)
}
