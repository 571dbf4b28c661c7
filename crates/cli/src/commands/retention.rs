//! `retention`: lists, sets, removes and applies retention policies.

use super::maintain;
use super::origin::windows_of;
use crate::args::{Function, KeepFromName, RetentionArgs, figure_list};
use crate::database::{Reader, failure, open, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::store;
use crate::terminal::Terminal;
use std::time::Duration;
use tidalite::retention::{Downsample, KeepFrom, Retention};

/// Runs the command `tidalite retention`.
pub(crate) fn run(args: &RetentionArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let changes = args.set.is_some() || args.remove.is_some();
    let database = if changes || args.apply && !args.dry_run {
        open_to_write(path)?
    } else {
        open(path)?
    };
    if changes {
        let mut txn = database.begin_write().map_err(fail)?;
        if let Some(name) = &args.set {
            let policy = Retention {
                pattern: args.series.clone(),
                keep: args
                    .keep
                    .map(|nanos| Duration::from_nanos(nanos.unsigned_abs())),
                keep_from: match args.keep_from {
                    Some(KeepFromName::Newest) => KeepFrom::Newest,
                    Some(KeepFromName::Now) | None => KeepFrom::Now,
                },
                bytes: args.max_bytes,
                cold: args
                    .cold
                    .map(|nanos| Duration::from_nanos(nanos.unsigned_abs())),
                downsample: downsample_of(args)?,
            };
            if policy.keep.is_none() && policy.bytes.is_none() && policy.cold.is_none() {
                return Err(Failure::usage("a policy needs a limit")
                    .hint("--keep 30d, --max-bytes 10737418240, --cold 7d, or several"));
            }
            Reader::at(&database, path, None)?.mention_unknown_keys(&policy.pattern)?;
            txn.set_retention(name, &policy).map_err(fail)?;
        }
        if let Some(name) = &args.remove {
            let snapshot = database.begin_read().map_err(fail)?;
            let policies = snapshot.retentions().map_err(fail)?;
            let own = policies.into_iter().find(|(own, _)| own == name);
            if let Some(rule) = own.and_then(|(_, policy)| policy.downsample) {
                eprintln!(
                    "{} the windows stay in the series '*.{}', but `window` reads them with the points only while a policy has their rule",
                    terminal.messages.warning("note:"),
                    rule.suffix
                );
            }
        }
        if let Some(name) = &args.remove
            && !txn.remove_retention(name).map_err(fail)?
        {
            return Err(
                Failure::not_found(format!("there is no policy `{name}`")).hint(format!(
                    "`tidalite retention {}` lists them",
                    path.display()
                )),
            );
        }
        txn.commit().map_err(fail)?;
    }
    if args.dry_run {
        return maintain::preview(&database, args, terminal);
    }
    if args.apply {
        maintain::apply(&database, args, terminal)?;
        return store::close(database).map_err(fail);
    }
    let snapshot = database.begin_read().map_err(fail)?;
    let columns = vec![
        Column::text("policy"),
        Column::text("series"),
        Column::number("keep_seconds"),
        Column::text("keep_from"),
        Column::number("max_bytes"),
        Column::number("cold_seconds"),
        Column::text("windows"),
        Column::text("suffix"),
        Column::text("functions"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    for (name, policy) in snapshot.retentions().map_err(fail)? {
        let keep = policy
            .keep
            .map_or(Cell::Missing, |keep| Cell::Computed(keep.as_secs_f64()));
        let from = policy.keep.map_or(Cell::Missing, |_| {
            let from = match policy.keep_from {
                KeepFrom::Now => "now",
                KeepFrom::Newest => "newest",
            };
            Cell::Text(from.to_owned())
        });
        let bytes = policy.bytes.map_or(Cell::Missing, Cell::Bytes);
        let cold = policy
            .cold
            .map_or(Cell::Missing, |cold| Cell::Computed(cold.as_secs_f64()));
        let text = |text: Option<String>| text.map_or(Cell::Missing, Cell::Text);
        let rule = policy.downsample.as_ref();
        let functions = |rule: &Downsample| {
            let names: Vec<String> = rule.figures.iter().map(ToString::to_string).collect();
            names.join(",")
        };
        let cells = [
            Cell::Text(name),
            Cell::Text(policy.pattern),
            keep,
            from,
            bytes,
            cold,
            text(rule.map(|rule| rule.grid.to_string())),
            text(rule.map(|rule| rule.suffix.clone())),
            text(rule.map(functions)),
        ];
        sheet.row(&cells)?;
    }
    drop(snapshot);
    if changes {
        store::close(database).map_err(fail)?;
    }
    Ok(sheet.finish()?)
}

/// The rule of --downsample.
fn downsample_of(args: &RetentionArgs) -> Outcome<Option<Downsample>> {
    let Some(width) = args.downsample else {
        return Ok(None);
    };
    let mut figures = Vec::new();
    for asked in figure_list::all(&args.functions) {
        match (asked.function, &asked.of) {
            (Function::Figure(figure, 1.0), None) => figures.push(figure),
            (_, Some(of)) => {
                return Err(Failure::usage(format!(
                    "{} cannot be stored for {of} alone: windows have the functions of every column",
                    asked.name
                ))
                .hint("give the function without brackets"));
            }
            _ => {
                return Err(Failure::usage(format!("{} cannot be stored", asked.title()))
                    .hint("store functions whose result is a number, in seconds; `window` converts them"));
            }
        }
    }
    let grid = windows_of(width, None, &args.tz, 0)?;
    Ok(Some(Downsample {
        grid,
        figures,
        suffix: args.suffix.clone().unwrap_or_else(|| width.to_string()),
    }))
}
