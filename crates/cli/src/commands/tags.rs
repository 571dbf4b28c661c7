//! `find` and `tags`: names of series, the tags in use, and changes of tags.

use crate::args::{FindArgs, TagsArgs};
use crate::database::{Reader, failure, open_to_write};
use crate::exit::Outcome;
use crate::output::{Cell, Column, plural};
use crate::store;
use crate::terminal::Terminal;
use tidalite::WriteTxn;

/// Runs the command `tidalite find`.
pub(crate) fn find(args: &FindArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.version)?;
    if args.count {
        let infos = reader.select_if_any(&args.which.pattern)?;
        reader.mention_unknown_keys(&args.which.pattern)?;
        let mut sheet = terminal.sheet(args.format.format, vec![Column::number("series")]);
        sheet.row(&[Cell::Count(infos.len() as u64)])?;
        return Ok(sheet.finish()?);
    }
    let infos = reader.select(&args.which.pattern)?;
    let mut sheet = terminal.sheet(args.format.format, vec![Column::text("series")]);
    for info in infos.iter().take(args.limit.unwrap_or(usize::MAX)) {
        sheet.row(&[Cell::series(info)])?;
    }
    Ok(sheet.finish()?)
}

/// Runs the command `tidalite tags`.
pub(crate) fn tags(args: &TagsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if let Some((key, value)) = &args.set {
        return change(args, terminal, |txn, pattern| {
            txn.set_tag(pattern, key, Some(value))
        });
    }
    if let Some(key) = &args.drop {
        return change(args, terminal, |txn, pattern| {
            txn.set_tag(pattern, key, None)
        });
    }
    if let Some((from, to)) = &args.rename {
        return change(args, terminal, |txn, pattern| {
            txn.rename_tag(pattern, from, to)
        });
    }
    let reader = Reader::open(&args.version)?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let snapshot = reader.snapshot();
    let found = match &args.key {
        None if !args.metrics => return keys(args, &reader, terminal),
        None => snapshot.metrics(&args.prefix, limit),
        Some(key) => {
            reader.expect_tag(key)?;
            snapshot.tag_values(key, &args.prefix, limit)
        }
    };
    let text = if args.metrics { "metric" } else { "value" };
    let columns = vec![Column::text(text), Column::number("series")];
    let mut sheet = terminal.sheet(args.format.format, columns);
    for count in found.map_err(|error| reader.fail(&error))? {
        sheet.row(&[Cell::Text(count.text), Cell::Count(count.series)])?;
    }
    Ok(sheet.finish()?)
}

fn keys(args: &TagsArgs, reader: &Reader<'_>, terminal: &mut Terminal<'_>) -> Outcome {
    let cardinality = reader.snapshot().cardinality();
    let cardinality = cardinality.map_err(|error| reader.fail(&error))?;
    let columns = vec![
        Column::text("tag"),
        Column::number("series"),
        Column::number("values"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let tags = cardinality.tags.into_iter();
    let tags = tags.filter(|tag| tag.key.starts_with(&args.prefix));
    for tag in tags.take(args.limit.unwrap_or(usize::MAX)) {
        sheet.row(&[
            Cell::Text(tag.key),
            Cell::Count(tag.series),
            Cell::Count(tag.values),
        ])?;
    }
    Ok(sheet.finish()?)
}

/// Changes the names of series in one transaction.
fn change(
    args: &TagsArgs,
    terminal: &mut Terminal<'_>,
    change: impl FnOnce(&mut WriteTxn, &str) -> tidalite::Result<u64>,
) -> Outcome {
    let path = &args.version.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let pattern = args.series.as_deref().unwrap_or_default();
    let database = open_to_write(path)?;
    let mut txn = database.begin_write().map_err(fail)?;
    let reader = Reader::at(&database, path, None)?;
    reader.refuse_unknown_keys(pattern)?;
    drop(reader);
    let changed = change(&mut txn, pattern).map_err(fail)?;
    store::commit(txn).map_err(fail)?;
    store::close(database).map_err(fail)?;
    writeln!(
        terminal.out,
        "{} renamed",
        plural(changed, "series", "series")
    )?;
    Ok(terminal.out.flush()?)
}
