//! Reads the contents of a database through the engine's public interface.

use super::message_answers as messages;
use super::relations;
use std::collections::BTreeSet;
use std::time::Duration;
use tidalite::retention::KeepFrom;
use tidalite::table::TableTypes;
use tidalite::{Database, MergePolicy, ReadTxn, Series, SetTable, Table, TableLayout, Unit};
use tidalite_reader::catalog::{Column, MERGES, Policy, SeriesEntry, TYPES, UNITS};
use tidalite_reader::export::{self, Cell, Contents, TableContents};
use tidalite_reader::hash_table::{HashTable, Key, Record};
use tidalite_reader::table::{Rows, Value};

pub(crate) fn contents(db: &Database) -> Contents {
    let snap = db.begin_read().expect("a snapshot");
    let pins = db.pins().expect("pins").into_iter();
    Contents {
        user_data: snap.user_data().to_vec(),
        pins: pins.map(|pin| (pin.name, pin.txn.0)).collect(),
        tables: tables(db, &snap),
        series: series(&snap),
        policies: policies(&snap),
    }
}

fn tables(db: &Database, snap: &ReadTxn) -> Vec<export::Table> {
    let names = snap.tables().expect("names of tables").into_iter();
    let tables = names.map(|name| {
        let types = snap.table_types(&name).expect("types");
        let layout = types.as_ref().map(TableTypes::layout);
        let contents = match layout.unwrap_or(TableLayout::Rows) {
            TableLayout::Rows => {
                let is_set = snap.is_set_table(&name).expect("a kind") == Some(true);
                TableContents::Rows(if is_set {
                    sets(&snap.set_table(&name).expect("a table").expect("a table"))
                } else {
                    rows(&snap.table(&name).expect("a table").expect("a table"))
                })
            }
            TableLayout::Hash => TableContents::Hash(hash_table(snap, &name)),
            TableLayout::Buffered => TableContents::Rows(buffered(snap, &name)),
            TableLayout::Topics => TableContents::Topics(messages::topics(snap, &name)),
            TableLayout::Queue => TableContents::Queue(messages::queue(db, snap, &name)),
            TableLayout::Bucket => TableContents::Bucket(messages::bucket(snap, &name)),
            TableLayout::Relation => TableContents::Relation(relations::relation(snap, &name)),
            TableLayout::Containers => {
                TableContents::Containers(messages::containers(db, snap, &name))
            }
        };
        let types = types.filter(|types| !types.key().is_empty());
        export::Table {
            types: types.map(|types| (types.key().to_owned(), types.value().to_owned())),
            contents,
            name,
        }
    });
    tables.collect()
}

fn buffered(snap: &ReadTxn, name: &str) -> Rows {
    let table = snap.buffered_table::<[u8], [u8]>(name).expect("a table");
    let table = table.expect("a table");
    let entries = table.range(..).expect("a range");
    let rows = entries.map(|entry| entry.expect("an entry"));
    Rows {
        rows: rows
            .map(|(key, value)| (key, Value::Bytes(value)))
            .collect(),
        ..Rows::default()
    }
}

fn rows(table: &Table<'_>) -> Rows {
    let mut rows = Vec::new();
    let mut cursor = table.cursor();
    let mut found = cursor.first().expect("a first row");
    while found {
        let value = match cursor.nested().expect("a nested table") {
            Some(nested) => Value::Table(self::rows(&nested)),
            None => Value::Bytes(cursor.value().expect("a value")),
        };
        rows.push((cursor.key().to_vec(), value));
        found = cursor.next().expect("a next row");
    }
    Rows {
        sequence: table.sequence(),
        rows,
    }
}

fn sets(table: &SetTable<'_>) -> Rows {
    let mut rows: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
    table
        .for_each(|key, value| match rows.last_mut() {
            Some((last, values)) if last == key => values.push(value.to_vec()),
            _ => rows.push((key.to_vec(), vec![value.to_vec()])),
        })
        .expect("pairs");
    let rows = rows.into_iter();
    Rows {
        sequence: table.sequence(),
        rows: rows
            .map(|(key, values)| (key, Value::Set(values)))
            .collect(),
    }
}

fn hash_table(snap: &ReadTxn, name: &str) -> HashTable {
    let table = snap.hash_table::<[u8], [u8]>(name).expect("a table");
    let table = table.expect("a table");
    let mut records = Vec::new();
    let mut given = BTreeSet::new();
    table
        .each_record(0, |record| {
            given.insert(record.key.clone());
            records.push(Record {
                number: record.number,
                key: record.key,
                value: record.value,
            });
            true
        })
        .expect("records");
    let mut live = BTreeSet::new();
    let keys = given.into_iter().map(|key| {
        let of_key = table.duplicates(&key).expect("records of a key");
        let newest = of_key.max().map(|number| {
            let record = table.record(number).expect("a record");
            record.and_then(|record| record.value).expect("a value")
        });
        assert_eq!(table.get(&key).expect("a value"), newest);
        live.extend(of_key.iter());
        let history = table.history(&key).expect("versions");
        Key {
            key,
            records: of_key.iter().collect(),
            history: history.iter().map(|version| version.number).collect(),
        }
    });
    let keys = keys.collect();
    let walked = table.records_in(..).expect("records of all keys");
    assert!(walked.iter().eq(live.iter().copied()));
    let stat = table.stat().expect("figures");
    HashTable {
        next_record: stat.next_record,
        main_keys: stat.main_keys,
        runs: stat.runs,
        run_entries: stat.run_entries,
        dead: stat.dead,
        records,
        keys,
    }
}

fn series(snap: &ReadTxn) -> Vec<export::Series> {
    let infos = snap.list("").expect("all series").into_iter();
    let mut all: Vec<export::Series> = infos
        .map(|info| {
            let unit = match info.schema.unit {
                Unit::Nanos => 0,
                Unit::Micros => 1,
                Unit::Millis => 2,
                Unit::Seconds => 3,
                Unit::Ticks => 4,
            };
            let merge = MergePolicy::ALL
                .iter()
                .position(|policy| *policy == info.merge);
            let columns = info.schema.columns.iter().map(|column| {
                let name = column.ty.name();
                let (kind, scale) = match name.split_once('(') {
                    Some((kind, scale)) => (kind, scale.trim_end_matches(')')),
                    None => (&*name, "0"),
                };
                let kind = TYPES.iter().position(|known| *known == kind);
                Column {
                    name: column.name.clone(),
                    kind: kind.expect("a known type") as u8 + 1,
                    nulls: column.nullable,
                    scale: scale.parse().expect("a scale"),
                }
            });
            let series = snap.series_by_id(info.id).expect("a series");
            let series = series.expect("a series");
            export::Series {
                entry: SeriesEntry {
                    id: info.id.0,
                    name: info.name.as_ref().map(ToString::to_string),
                    guid: info.guid,
                    unit: UNITS[unit],
                    merge: MERGES[merge.expect("a known policy")],
                    equal_times: info.several,
                    columns: columns.collect(),
                },
                annotations: series.annotations().expect("annotations"),
                rows: cells(&series),
            }
        })
        .collect();
    all.sort_by_key(|series| series.entry.id);
    all
}

fn cells(series: &Series<'_>) -> Vec<(i64, Vec<Cell>)> {
    let mut words: Vec<(i64, Vec<u64>)> = Vec::new();
    series
        .query(..)
        .for_each(|time, row| words.push((time, row.to_vec())))
        .expect("rows");
    let cell = |(column, word): (usize, &u64)| match series.value(column, *word).expect("a value") {
        tidalite::Value::Null => Cell::Null,
        tidalite::Value::F64(float) => Cell::Float(float.to_bits()),
        tidalite::Value::I64(number) => Cell::I64(number),
        tidalite::Value::U64(number) => Cell::U64(number),
        tidalite::Value::Bool(bool) => Cell::Bool(bool),
        tidalite::Value::Decimal(decimal) => Cell::Decimal(decimal.units, decimal.scale),
        tidalite::Value::String(text) => Cell::Text(text.into_bytes()),
        tidalite::Value::Bytes(bytes) => Cell::Text(bytes),
        tidalite::Value::Guid(guid) => Cell::Text(guid.to_vec()),
        other => panic!("a value of another type: {other:?}"),
    };
    let rows = words.iter();
    rows.map(|(time, words)| (*time, words.iter().enumerate().map(cell).collect()))
        .collect()
}

fn policies(snap: &ReadTxn) -> Vec<Policy> {
    let nanos = |bound: Option<Duration>| bound.map_or(0, |bound| bound.as_nanos() as u64);
    let policies = snap.retentions().expect("policies").into_iter();
    let policies = policies.map(|(name, policy)| Policy {
        name,
        keep_nanos: nanos(policy.keep),
        from_newest: policy.keep_from == KeepFrom::Newest,
        bytes_max: policy.bytes.unwrap_or(0),
        cold_nanos: nanos(policy.cold),
        pattern: policy.pattern,
        downsample: match policy.downsample {
            None => String::new(),
            // The rule of make/tables.rs, as docs/format/reading.md says.
            Some(rule) => {
                let figures: Vec<String> = rule.figures.iter().map(ToString::to_string).collect();
                let head = "window 3600000000000ns\nzone UTC\nsuffix";
                format!("{head} {}\nfigures {}\n", rule.suffix, figures.join(","))
            }
        },
    });
    policies.collect()
}
