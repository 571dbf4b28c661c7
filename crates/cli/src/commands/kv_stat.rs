//! `kv stat`: prints tables and their pages, in the familiar layout of `mdb_stat` and `mdbx_stat`.

use super::key_forms::bytes_of;
use super::kv_types::{buffered_without, is_hash_table, layout_of, refuse_other_layouts};
use super::layouts::word;
use crate::args::{KvForm, KvStatArgs, ReportFormat};
use crate::database::{failure, open};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::terminal::Terminal;
use std::io::Write;
use tidalite::limits::READERS_MAX;
use tidalite::maintenance::TableShape;
use tidalite::monitor::Reader;
use tidalite::table::BufferedStat;
use tidalite::{Database, ReadTxn, TableLayout};

/// Runs the command `tidalite kv stat`.
pub(crate) fn run(args: &KvStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let db = open(path)?;
    // The readers are listed before this command registers a reader of its own.
    let readers = db.readers().map_err(fail)?;
    let out = &mut *terminal.out;
    if args.format == ReportFormat::Json {
        if args.env || args.readers || args.free {
            return Err(Failure::usage(
                "--format json describes tables, not --env, --free or --readers",
            )
            .hint("`tidalite stat` and `tidalite readers` print these as JSON"));
        }
        let snap = db.begin_read().map_err(fail)?;
        let names = match &args.table {
            Some(table) => vec![table.clone()],
            None => snap.tables().map_err(fail)?,
        };
        for name in names {
            writeln!(out, "{}", Described::of(&snap, &name, args)?.json(&name))?;
        }
        return Ok(out.flush()?);
    }
    if args.env {
        environment(&db, readers.len(), out, fail)?;
    }
    if args.readers {
        reader_table(&readers, out)?;
    }
    if args.free {
        let stat = db.stat().map_err(fail)?;
        writeln!(out, "Freelist Status")?;
        writeln!(out, "  Free pages: {}", stat.pages_free)?;
        writeln!(out, "  Longest free range: {}", stat.longest_free_pages)?;
        writeln!(out, "  Waiting for readers: {}", stat.pages_pending)?;
    }
    let snap = db.begin_read().map_err(fail)?;
    match &args.table {
        Some(table) => one(&snap, table, args, out)?,
        None if args.all => {
            for name in snap.tables().map_err(fail)? {
                one(&snap, &name, args, out)?;
            }
        }
        None if args.env || args.readers || args.free => {}
        None => list(&snap, out, fail)?,
    }
    Ok(out.flush()?)
}

fn environment(
    db: &Database,
    readers: usize,
    out: &mut dyn Write,
    fail: impl Fn(tidalite::Error) -> Failure,
) -> Outcome {
    let stat = db.stat().map_err(fail)?;
    let used = stat.pages_total.saturating_sub(stat.pages_free);
    writeln!(out, "Environment Info")?;
    writeln!(out, "  Page size: {}", stat.page_size)?;
    writeln!(out, "  File size: {}", stat.file_bytes)?;
    writeln!(out, "  Number of pages: {}", stat.pages_total)?;
    writeln!(out, "  Number of pages used: {used}")?;
    writeln!(out, "  Last transaction ID: {}", stat.txn.0)?;
    writeln!(out, "  Max readers: {READERS_MAX}")?;
    writeln!(out, "  Number of readers used: {readers}")?;
    Ok(())
}

fn reader_table(readers: &[Reader], out: &mut dyn Write) -> Outcome {
    writeln!(out, "Reader Table Status")?;
    if readers.is_empty() {
        writeln!(out, "(no active readers)")?;
        return Ok(());
    }
    writeln!(out, "    pid     thread     txnid        lag")?;
    for reader in readers {
        let (process, thread) = (reader.process, reader.thread);
        let (txn, lag) = (reader.txn.0, reader.lag_txns);
        writeln!(out, "{process:>7} {thread:>10} {txn:>9} {lag:>10}")?;
    }
    Ok(())
}

/// The number of items in a table of topics, a queue, a bucket, a table of containers or a relation, with the singular
/// and the plural of their noun; `None` for tables of other layouts.
fn messages(
    snap: &ReadTxn,
    name: &str,
    layout: TableLayout,
) -> tidalite::Result<Option<(u64, &'static str, &'static str)>> {
    let count = match layout {
        TableLayout::Rows | TableLayout::Hash | TableLayout::Buffered => return Ok(None),
        TableLayout::Topics => {
            let topics = snap.topics(name)?.map(|topics| topics.stat());
            topics.transpose()?.map(|stat| stat.messages)
        }
        TableLayout::Queue => {
            let queue = snap.queue(name)?.map(|queue| queue.stat());
            queue.transpose()?.map(|stat| stat.messages)
        }
        TableLayout::Bucket => {
            let bucket = snap.bucket(name)?.map(|bucket| bucket.stat());
            bucket.transpose()?.map(|stat| stat.objects)
        }
        TableLayout::Relation => snap.relation(name)?.map(|relation| relation.count()),
        TableLayout::Containers => {
            let containers = snap.containers(name)?.map(|containers| containers.stat());
            containers.transpose()?.map(|stat| stat.messages)
        }
    };
    let (one, many) = match layout {
        TableLayout::Bucket => ("object", "objects"),
        TableLayout::Relation => ("row", "rows"),
        _ => ("message", "messages"),
    };
    Ok(Some((count.unwrap_or(0), one, many)))
}

/// The statistics of one table, of any layout.
struct Described {
    shape: TableShape,
    /// Number of pairs; of records in a hash table; of messages in topics, queues and containers; of objects in a
    /// bucket; of rows in a relation.
    entries: u64,
    /// Number of distinct keys, for a table of sets or a hash table.
    keys: Option<u64>,
    layout: TableLayout,
    /// Statistics of a buffered table.
    buffered: Option<BufferedStat>,
    types: Option<String>,
}

impl Described {
    fn of(snap: &ReadTxn, name: &str, args: &KvStatArgs) -> Outcome<Self> {
        let path = &args.file.file;
        let fail = |error: tidalite::Error| failure(path, &error);
        let form = if args.hex { KvForm::Hex } else { args.keys };
        let nested = args.path.iter().map(|key| bytes_of(form, key));
        let nested: Vec<Vec<u8>> = nested.collect::<Outcome<_>>()?;
        let none = || {
            let way = args.path.iter().map(|key| format!(", {key}"));
            Failure::not_found(format!(
                "there is no table {name}{}",
                way.collect::<String>()
            ))
            .hint(format!("tidalite kv stat {} lists them", path.display()))
        };
        let types = snap.table_types(name).map_err(fail)?;
        let types = types.filter(|_| nested.is_empty());
        let types = types.map(|types| types.to_string());
        if snap.is_set_table(name).map_err(fail)? == Some(true) {
            if !nested.is_empty() {
                return Err(Failure::usage("--in: a table of sets has no nested tables"));
            }
            let table = snap.set_table(name).map_err(fail)?.ok_or_else(none)?;
            return Ok(Self {
                shape: table.shape().map_err(fail)?,
                entries: table.count(),
                keys: Some(table.count_keys()),
                layout: TableLayout::Rows,
                buffered: None,
                types,
            });
        }
        if is_hash_table(snap, name).map_err(fail)? {
            if !nested.is_empty() {
                refuse_other_layouts(snap, path, name)?;
            }
            let rows = snap.raw_table(name).map_err(fail)?.ok_or_else(none)?;
            let table = snap.hash_table::<[u8], [u8]>(name).map_err(fail)?;
            let table = table.ok_or_else(none)?;
            return Ok(Self {
                shape: rows.shape().map_err(fail)?,
                entries: table.count_records().map_err(fail)?,
                keys: Some(table.count().map_err(fail)?),
                layout: TableLayout::Hash,
                buffered: None,
                types,
            });
        }
        let layout = layout_of(snap, name).map_err(fail)?;
        if let Some((entries, ..)) = messages(snap, name, layout).map_err(fail)? {
            if !nested.is_empty() {
                refuse_other_layouts(snap, path, name)?;
            }
            let rows = snap.raw_table(name).map_err(fail)?.ok_or_else(none)?;
            return Ok(Self {
                shape: rows.shape().map_err(fail)?,
                entries,
                keys: None,
                layout,
                buffered: None,
                types,
            });
        }
        if layout == TableLayout::Buffered {
            if !nested.is_empty() {
                return Err(buffered_without(name, "nested tables"));
            }
            let rows = snap.raw_table(name).map_err(fail)?.ok_or_else(none)?;
            let table = snap.buffered_table::<[u8], [u8]>(name).map_err(fail)?;
            let table = table.ok_or_else(none)?;
            return Ok(Self {
                shape: rows.shape().map_err(fail)?,
                entries: table.count().map_err(fail)?,
                keys: None,
                layout,
                buffered: Some(table.stat().map_err(fail)?),
                types,
            });
        }
        let table = snap.table(name).map_err(fail)?.ok_or_else(none)?;
        let table = table.nested_at(&nested).map_err(fail)?.ok_or_else(none)?;
        Ok(Self {
            shape: table.shape().map_err(fail)?,
            entries: table.count(),
            keys: None,
            layout,
            buffered: None,
            types,
        })
    }

    fn json(&self, name: &str) -> serde_json::Value {
        let shape = &self.shape;
        let buffered = self.buffered.as_ref();
        serde_json::json!({
            "table": name,
            "layout": word(self.layout),
            "sets": self.keys.is_some() && self.layout != TableLayout::Hash,
            "hash": self.layout == TableLayout::Hash,
            "buffered": buffered.is_some(),
            "entries": self.entries,
            "keys": self.keys.unwrap_or(self.entries),
            "rows": buffered.map(|stat| stat.rows),
            "runs": buffered.map(|stat| stat.runs),
            "run_entries": buffered.map(|stat| stat.run_entries),
            "run_bytes": buffered.map(|stat| stat.run_bytes),
            "types": self.types,
            "depth": shape.depth,
            "branch_pages": shape.branch_pages,
            "leaf_pages": shape.leaf_pages,
            "overflow_pages": shape.overflow_pages,
            "nested_pages": shape.nested_pages,
        })
    }
}

/// Prints the statistics of one table.
fn one(snap: &ReadTxn, name: &str, args: &KvStatArgs, out: &mut dyn Write) -> Outcome {
    let Described {
        shape,
        entries,
        keys,
        layout: _,
        buffered,
        types,
    } = Described::of(snap, name, args)?;
    writeln!(out, "Status of {}", printable(name))?;
    if let Some(types) = types {
        writeln!(out, "  Types: {types}")?;
    }
    writeln!(out, "  Tree depth: {}", shape.depth)?;
    writeln!(out, "  Branch pages: {}", shape.branch_pages)?;
    writeln!(out, "  Leaf pages: {}", shape.leaf_pages)?;
    writeln!(out, "  Overflow pages: {}", shape.overflow_pages)?;
    writeln!(out, "  Nested pages: {}", shape.nested_pages)?;
    writeln!(out, "  Entries: {entries}")?;
    if let Some(keys) = keys {
        writeln!(out, "  Keys: {keys}")?;
    }
    if let Some(stat) = buffered {
        writeln!(out, "  Rows: {}", stat.rows)?;
        writeln!(out, "  Runs: {}", stat.runs)?;
        writeln!(out, "  Run entries: {}", stat.run_entries)?;
        writeln!(out, "  Run bytes: {}", stat.run_bytes)?;
    }
    Ok(())
}

/// Prints one line per table.
fn list(snap: &ReadTxn, out: &mut dyn Write, fail: impl Fn(tidalite::Error) -> Failure) -> Outcome {
    for name in snap.tables().map_err(&fail)? {
        let shown = printable(&name);
        if let Some(true) = snap.is_set_table(&name).map_err(&fail)? {
            let table = snap.set_table(&name).map_err(&fail)?;
            let counts = table.map_or((0, 0), |table| (table.count(), table.count_keys()));
            let pairs = plural(counts.0, "pair", "pairs");
            let keys = plural(counts.1, "key", "keys");
            writeln!(out, "{shown}\t{pairs}\t{keys}")?;
            continue;
        }
        if is_hash_table(snap, &name).map_err(&fail)? {
            let table = snap.hash_table::<[u8], [u8]>(&name).map_err(&fail)?;
            let counts = table.map(|table| Ok((table.count()?, table.count_records()?)));
            let (keys, records) = counts.transpose().map_err(&fail)?.unwrap_or_default();
            let keys = plural(keys, "key", "keys");
            let records = plural(records, "record", "records");
            writeln!(out, "{shown}\thash table\t{keys}\t{records}")?;
            continue;
        }
        let layout = layout_of(snap, &name).map_err(&fail)?;
        if let Some((count, one, many)) = messages(snap, &name, layout).map_err(&fail)? {
            writeln!(
                out,
                "{shown}\t{}\t{}",
                word(layout),
                plural(count, one, many)
            )?;
            continue;
        }
        if layout == TableLayout::Buffered {
            let table = snap.buffered_table::<[u8], [u8]>(&name).map_err(&fail)?;
            let counts = table.map(|table| Ok((table.count()?, table.stat()?)));
            let (pairs, stat) = counts.transpose().map_err(&fail)?.unwrap_or_default();
            let pairs = plural(pairs, "pair", "pairs");
            let rows = plural(stat.rows, "row", "rows");
            let runs = plural(stat.runs, "run", "runs");
            let entries = plural(stat.run_entries, "entry", "entries");
            let figures = format!("{pairs}\t{rows}\t{runs}\t{entries} in runs");
            writeln!(out, "{shown}\tbuffered table\t{figures}")?;
            continue;
        }
        let table = snap.table(&name).map_err(&fail)?;
        let pairs = table.map_or(0, |table| table.count());
        writeln!(out, "{shown}\t{}", plural(pairs, "pair", "pairs"))?;
    }
    Ok(())
}
