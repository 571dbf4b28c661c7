//! `kv`: tables by hand.

use super::Terminal;
use super::dump::{escaped, hex, unhex};
use crate::args::{KvArgs, KvCommand, KvPlace};
use crate::database::{failure, open, open_or_create, open_to_write};
use crate::exit::{Failure, Outcome};
use crate::output::grouped;
use crate::store;
use std::path::Path;
use tidalite::{ReadTxn, Table, TableCursor, WriteTxn};

/// `tidalite kv`
pub(crate) fn run(args: &KvArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        KvCommand::Get { place, key } => get(place, key, terminal),
        KvCommand::Put {
            place,
            key,
            value,
            new,
            ..
        } => put(place, (key, value), *new),
        KvCommand::Del {
            place,
            key,
            value,
            all,
            ..
        } => del(place, key, value.as_deref(), *all),
        KvCommand::Scan {
            place,
            from,
            to,
            limit,
            reverse,
        } => {
            let bounds = Bounds {
                from: from.as_deref().map(|text| place.bytes(text)).transpose()?,
                to: to.as_deref().map(|text| place.bytes(text)).transpose()?,
                limit: *limit,
                reverse: *reverse,
            };
            scan(place, &bounds, terminal)
        }
        KvCommand::Drop { file, table, .. } => change(&file.file, table, |tx| tx.drop_table(table)),
        KvCommand::Rename {
            file, table, name, ..
        } => change(&file.file, table, |tx| tx.rename_table(table, name)),
        KvCommand::Stat { file } => stat(&file.file, terminal),
    }
}

impl KvPlace {
    fn bytes(&self, text: &str) -> Outcome<Vec<u8>> {
        if !self.hex {
            return Ok(text.as_bytes().to_vec());
        }
        unhex(text.as_bytes())
            .ok_or_else(|| Failure::usage(format!("`{text}` is not made of pairs of hex digits")))
    }

    /// The keys of the nested tables on the way.
    fn path(&self) -> Outcome<Vec<Vec<u8>>> {
        self.path.iter().map(|key| self.bytes(key)).collect()
    }

    fn text(&self, bytes: &[u8]) -> String {
        if self.hex { hex(bytes) } else { escaped(bytes) }
    }

    fn fail(&self, error: &tidalite::Error) -> Failure {
        failure(&self.file.file, error)
    }

    fn snapshot(&self) -> Outcome<ReadTxn> {
        let db = open(&self.file.file)?;
        db.begin_read().map_err(|error| self.fail(&error))
    }

    /// A table with one value a key, nested if so given.
    fn table<'s>(&self, snap: &'s ReadTxn) -> Outcome<Table<'s>> {
        let fail = |error: tidalite::Error| self.fail(&error);
        let table = snap.table(&self.table).map_err(fail)?;
        let path = self.path()?;
        let table = table.map(|table| table.nested_at(&path)).transpose();
        table.map_err(fail)?.flatten().ok_or_else(|| {
            let path = self.path.join(", ");
            Failure::not_found(format!("table {} has none under {path}", self.table))
                .hint("tidalite kv scan prints what there is")
        })
    }

    fn is_multi(&self, snap: &ReadTxn) -> Outcome<bool> {
        let multi = snap.is_multi_table(&self.table);
        let multi = multi.map_err(|error| self.fail(&error))?;
        if multi == Some(true) && !self.path.is_empty() {
            return Err(Failure::usage(
                "--in: a table of multi-values has none in it",
            ));
        }
        multi.ok_or_else(|| {
            Failure::not_found(format!("there is no table {}", self.table)).hint(format!(
                "tidalite kv stat {} lists them",
                self.file.file.display()
            ))
        })
    }
}

/// Does something to a whole table; `work` says whether it is there.
fn change(
    path: &Path,
    table: &str,
    work: impl FnOnce(&mut WriteTxn) -> tidalite::Result<bool>,
) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let mut tx = open_to_write(path)?.begin_write().map_err(fail)?;
    if !work(&mut tx).map_err(fail)? {
        let failure = Failure::not_found(format!("there is no table {table}"));
        return Err(failure.hint(format!("tidalite kv stat {} lists them", path.display())));
    }
    store::commit(tx).map_err(fail)
}

fn absent(key: &str) -> Failure {
    Failure::not_found(format!("there is no key {key}, or not with this value"))
        .hint("tidalite kv scan prints what there is")
}

fn get(place: &KvPlace, key: &str, terminal: &mut Terminal<'_>) -> Outcome {
    let (snap, bytes) = (place.snapshot()?, place.bytes(key)?);
    let fail = |error: tidalite::Error| place.fail(&error);
    if place.is_multi(&snap)? {
        let Some(table) = snap.multi_table(&place.table).map_err(fail)? else {
            return Err(absent(key));
        };
        let mut cursor = table.cursor();
        let mut found = cursor.seek_key(&bytes).map_err(fail)?;
        if !found {
            return Err(absent(key));
        }
        while found {
            writeln!(terminal.out, "{}", place.text(cursor.value()))?;
            found = cursor.next_dup().map_err(fail)?;
        }
        return Ok(terminal.out.flush()?);
    }
    let table = place.table(&snap)?;
    let mut cursor = table.cursor();
    if cursor.seek(&bytes).map_err(fail)? && cursor.is_nested() {
        return Err(Failure::bad_input(format!("{key} holds a table"))
            .hint(format!("tidalite kv scan ... --in {key} prints it")));
    }
    let value = table.get(&bytes).map_err(fail)?;
    let value = value.ok_or_else(|| absent(key))?;
    writeln!(terminal.out, "{}", place.text(&value))?;
    Ok(terminal.out.flush()?)
}

fn put(place: &KvPlace, (key, value): (&str, &str), new: bool) -> Outcome {
    let (key_bytes, value) = (place.bytes(key)?, place.bytes(value)?);
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let multi = {
        let snap = db.begin_read().map_err(fail)?;
        snap.is_multi_table(&place.table).map_err(fail)?.is_some() && place.is_multi(&snap)?
    };
    let mut tx = db.begin_write().map_err(fail)?;
    let stored = if multi {
        let mut table = tx.multi_table(&place.table).map_err(fail)?;
        table.put(&key_bytes, &value).map_err(fail)?
    } else {
        let mut table = tx.table(&place.table).map_err(fail)?;
        let mut table = table.nested_at(&place.path()?);
        if holds_a_table(&table, &key_bytes).map_err(fail)? {
            return Err(Failure::bad_input(format!("{key} holds a table")).hint(
                "tidalite kv del removes it with all that is in it; --in puts something into it",
            ));
        }
        if new {
            table.insert(&key_bytes, &value).map_err(fail)?
        } else {
            table.put(&key_bytes, &value).map_err(fail)?;
            true
        }
    };
    if new && !stored {
        return Err(Failure::bad_input(format!("{key} is there already"))
            .hint("without --new its value is replaced"));
    }
    store::commit(tx).map_err(fail)?;
    Ok(())
}

fn holds_a_table(table: &tidalite::TableMut<'_>, key: &[u8]) -> tidalite::Result<bool> {
    let Some(view) = table.try_view()? else {
        return Ok(false);
    };
    let mut cursor = view.cursor();
    Ok(cursor.seek(key)? && cursor.is_nested())
}

fn del(place: &KvPlace, key: &str, value: Option<&str>, all: bool) -> Outcome {
    let bytes = place.bytes(key)?;
    let multi = place.is_multi(&place.snapshot()?)?;
    let value = value.map(|value| place.bytes(value)).transpose()?;
    let db = open_or_create(&place.file.file)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut tx = db.begin_write().map_err(fail)?;
    let removed = if multi {
        let mut table = tx.multi_table(&place.table).map_err(fail)?;
        match (&value, all) {
            (Some(value), _) => table.remove(&bytes, value).map_err(fail)?,
            (None, true) => table.remove_all(&bytes).map_err(fail)? > 0,
            (None, false) => match table.take(&bytes) {
                Err(error @ tidalite::Error::Ambiguous { .. }) => {
                    return Err(Failure::usage(error).hint("give the value, or --all"));
                }
                taken => taken.map_err(fail)?.is_some(),
            },
        }
    } else {
        let mut table = tx.table(&place.table).map_err(fail)?;
        let mut table = table.nested_at(&place.path()?);
        match &value {
            Some(value) => table.remove_if(&bytes, value).map_err(fail)?,
            None => table.remove(&bytes).map_err(fail)?,
        }
    };
    if !removed {
        return Err(absent(key));
    }
    store::commit(tx).map_err(fail)?;
    Ok(())
}

struct Bounds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    limit: u64,
    reverse: bool,
}

impl Bounds {
    fn beyond(&self, key: &[u8]) -> bool {
        if self.reverse {
            self.from.as_deref().is_some_and(|from| key < from)
        } else {
            self.to.as_deref().is_some_and(|to| key >= to)
        }
    }
}

fn scan(place: &KvPlace, bounds: &Bounds, terminal: &mut Terminal<'_>) -> Outcome {
    let snap = place.snapshot()?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut left = bounds.limit;
    if place.is_multi(&snap)? {
        let Some(table) = snap.multi_table(&place.table).map_err(fail)? else {
            return Ok(());
        };
        let mut cursor = table.cursor();
        let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
            (false, Some(from), _) => cursor.seek_key_ge(from),
            (false, None, _) => cursor.first(),
            (true, _, Some(to)) => cursor.seek_lt(to, &[]),
            (true, _, None) => cursor.last(),
        }
        .map_err(fail)?;
        while found && left > 0 && !bounds.beyond(cursor.key()) {
            let (key, value) = (place.text(cursor.key()), place.text(cursor.value()));
            writeln!(terminal.out, "{key}\t{value}")?;
            left -= 1;
            found = if bounds.reverse {
                cursor.prev_pair().map_err(fail)?
            } else {
                cursor.next_pair().map_err(fail)?
            };
        }
        return Ok(terminal.out.flush()?);
    }
    let table = place.table(&snap)?;
    let mut cursor = table.cursor();
    let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
        (false, Some(from), _) => cursor.seek_ge(from),
        (false, None, _) => cursor.first(),
        (true, _, Some(to)) => cursor.seek_lt(to),
        (true, _, None) => cursor.last(),
    }
    .map_err(fail)?;
    while found && left > 0 && !bounds.beyond(cursor.key()) {
        let key = place.text(cursor.key());
        let value = shown(place, &table, &cursor).map_err(fail)?;
        writeln!(terminal.out, "{key}\t{value}")?;
        left -= 1;
        found = if bounds.reverse {
            cursor.previous().map_err(fail)?
        } else {
            cursor.next().map_err(fail)?
        };
    }
    Ok(terminal.out.flush()?)
}

fn shown(place: &KvPlace, table: &Table<'_>, cursor: &TableCursor<'_>) -> tidalite::Result<String> {
    if cursor.is_nested() {
        let below = table.nested(cursor.key())?;
        let rows = below.map_or(0, |below| below.count());
        return Ok(format!("({} pairs)", grouped(rows)));
    }
    Ok(place.text(&cursor.value()?))
}

fn stat(path: &Path, terminal: &mut Terminal<'_>) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let snap = open(path)?.begin_read().map_err(fail)?;
    for name in snap.tables().map_err(fail)? {
        if let Some(true) = snap.is_multi_table(&name).map_err(fail)? {
            let table = snap.multi_table(&name).map_err(fail)?;
            let counts = table.map_or((0, 0), |table| (table.count(), table.count_keys()));
            let (pairs, keys) = (grouped(counts.0), grouped(counts.1));
            writeln!(terminal.out, "{name}\t{pairs} pairs\t{keys} keys")?;
            continue;
        }
        let table = snap.table(&name).map_err(fail)?;
        let pairs = grouped(table.map_or(0, |table| table.count()));
        writeln!(terminal.out, "{name}\t{pairs} pairs")?;
    }
    Ok(terminal.out.flush()?)
}
