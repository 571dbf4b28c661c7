//! `hash stat`: hash tables with their records, indexes and options.

use super::place::{Opened, hash_failure};
use crate::args::HashStatArgs;
use crate::database::{failure, open};
use crate::exit::Outcome;
use crate::output::{plural, printable};
use crate::terminal::Terminal;
use std::io::Write;
use std::path::Path;
use tidalite::hash_table::{HashOptions, HashStat, History, KeyForm};
use tidalite::{ReadTxn, TableLayout};

/// Runs the command `tidalite hash stat`.
pub(super) fn run(args: &HashStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let snap = open(path)?.begin_read().map_err(fail)?;
    let out = &mut *terminal.out;
    let names = match &args.table {
        Some(table) => vec![table.clone()],
        None => hash_tables(&snap).map_err(fail)?,
    };
    for name in &names {
        let described = Described::of(&snap, path, name)?;
        if args.format.is_json() {
            writeln!(out, "{}", described.json(name))?;
        } else if args.table.is_some() {
            described.print(name, out)?;
        } else {
            let keys = plural(described.keys, "key", "keys");
            let records = plural(described.records, "record", "records");
            writeln!(out, "{}\t{keys}\t{records}", printable(name))?;
        }
    }
    Ok(out.flush()?)
}

/// The names of the hash tables of a file.
fn hash_tables(snap: &ReadTxn) -> tidalite::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in snap.tables()? {
        let types = snap.table_types(&name)?;
        if types.is_some_and(|types| types.layout() == TableLayout::Hash) {
            names.push(name);
        }
    }
    Ok(names)
}

struct Described {
    key_type: String,
    value_type: String,
    keys: u64,
    records: u64,
    stat: HashStat,
    options: HashOptions,
}

impl Described {
    fn of(snap: &ReadTxn, path: &Path, name: &str) -> Outcome<Self> {
        let fail = |error: tidalite::Error| hash_failure(path, name, &error);
        let Opened { types, table } = Opened::of(snap, path, name)?;
        Ok(Self {
            key_type: types.key().to_owned(),
            value_type: types.value().to_owned(),
            keys: table.count().map_err(fail)?,
            records: table.count_records().map_err(fail)?,
            stat: table.stat().map_err(fail)?,
            options: table.options(),
        })
    }

    fn print(&self, name: &str, out: &mut dyn Write) -> Outcome {
        let Self { stat, options, .. } = self;
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        let index = match options.key {
            KeyForm::Whole { bytes_max } => format!("whole keys of up to {bytes_max} bytes"),
            KeyForm::Hashed => "hashes of 128 bits".to_owned(),
            KeyForm::Compact => "hashes of 64 bits".to_owned(),
        };
        let history = match options.history {
            History::None => "none".to_owned(),
            History::All => "all versions".to_owned(),
            History::Last(versions) => plural(u64::from(versions), "version", "versions"),
        };
        writeln!(out, "Status of {}", printable(name))?;
        writeln!(out, "  Types: {} -> {}", self.key_type, self.value_type)?;
        writeln!(out, "  Index: {index}")?;
        writeln!(out, "  Duplicates: {}", yes(options.duplicates))?;
        writeln!(out, "  Case of letters ignored: {}", yes(options.fold_case))?;
        writeln!(out, "  History: {history}")?;
        writeln!(out, "  Keys: {}", self.keys)?;
        writeln!(out, "  Records: {}", self.records)?;
        writeln!(out, "  Stored records: {}", stat.records)?;
        writeln!(out, "  Dead records: {}", stat.dead)?;
        writeln!(out, "  Next record: {}", stat.next_record)?;
        writeln!(out, "  Index bytes: {}", stat.main_bytes)?;
        writeln!(out, "  Runs: {}", stat.runs)?;
        writeln!(out, "  Run entries: {}", stat.run_entries)?;
        writeln!(out, "  Run bytes: {}", stat.run_bytes)?;
        Ok(())
    }

    fn json(&self, name: &str) -> serde_json::Value {
        let Self { stat, options, .. } = self;
        let (index, key_bytes_max) = match options.key {
            KeyForm::Whole { bytes_max } => ("whole", Some(bytes_max)),
            KeyForm::Hashed => ("hashed", None),
            KeyForm::Compact => ("compact", None),
        };
        let history = match options.history {
            History::None => serde_json::json!("none"),
            History::All => serde_json::json!("all"),
            History::Last(versions) => serde_json::json!(versions),
        };
        serde_json::json!({
            "table": name,
            "key_type": self.key_type,
            "value_type": self.value_type,
            "index": index,
            "key_bytes_max": key_bytes_max,
            "duplicates": options.duplicates,
            "fold_case": options.fold_case,
            "history": history,
            "keys": self.keys,
            "records": self.records,
            "stored_records": stat.records,
            "dead_records": stat.dead,
            "next_record": stat.next_record,
            "index_bytes": stat.main_bytes,
            "runs": stat.runs,
            "run_entries": stat.run_entries,
            "run_bytes": stat.run_bytes,
        })
    }
}
