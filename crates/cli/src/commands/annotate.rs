//! `annotate`: lists and changes annotations of series, and changes merge policies.

use crate::args::{AnnotateArgs, MergeName};
use crate::database::{Reader, failure, open_to_write};
use crate::exit::Outcome;
use crate::output::{Cell, Column, plural};
use crate::store;
use crate::terminal::Terminal;

/// Runs the command `tidalite annotate`.
pub(crate) fn run(args: &AnnotateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    if args.set.is_empty() && args.remove.is_empty() && args.merge.is_none() {
        return list(args, terminal);
    }
    let path = &args.file.file;
    let ids: Vec<_> = {
        let reader = Reader::newest(path)?;
        let infos = reader.select(&args.which.pattern)?;
        infos.iter().map(|info| info.id).collect()
    };
    let fail = |error: tidalite::Error| failure(path, &error);
    let database = open_to_write(path)?;
    let mut txn = database.begin_write().map_err(fail)?;
    let changed = plural(ids.len() as u64, "series", "series");
    for id in ids {
        let mut series = txn.series_by_id(id).map_err(fail)?;
        for key in &args.remove {
            series.remove_annotation(key).map_err(fail)?;
        }
        for (key, text) in &args.set {
            series.annotate(key, text).map_err(fail)?;
        }
        if let Some(merge) = args.merge.map(MergeName::policy) {
            series.set_merge(merge).map_err(fail)?;
        }
    }
    txn.commit().map_err(fail)?;
    store::close(database).map_err(fail)?;
    writeln!(terminal.out, "{changed} changed")?;
    Ok(terminal.out.flush()?)
}

fn list(args: &AnnotateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::newest(&args.file.file)?;
    let columns = ["series", "key", "text"].map(Column::text).to_vec();
    let mut sheet = terminal.sheet(args.format.format, columns);
    for info in &reader.select(&args.which.pattern)? {
        let series = reader.series(info)?;
        let words = series.annotations().map_err(|error| reader.fail(&error))?;
        for (key, text) in words {
            sheet.row(&[Cell::series(info), Cell::Text(key), Cell::Text(text)])?;
        }
    }
    Ok(sheet.finish()?)
}
