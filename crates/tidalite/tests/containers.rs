//! Containers: messages, their rows in series, transactions, and what maintenance does with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "seeds belong in the log of a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tidalite::containers::{
    AggregateQuery, Append, AppendOutcome, ContainerOptions, ContainerOverflow,
    ContainerTableOptions, Containers, DeleteRange, Document, Expression, FieldNumber, FieldValue,
    Handed, MessageFigure, MessageQuery, OnDuplicate, Projection, RestoreRange, Select, Thinning,
    ThinningFigure, ThinningRule,
};
use tidalite::maintenance::Salvage;
use tidalite::queue::{DEFAULT_GROUP, LeaseLimits, NewMessage};
use tidalite::retention::{Budget, Clocks, Retention};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, ErrorKind, MergePolicy, Options, ReadTxn, Schema, Steps,
    TableLayout, Timestamp, Tuning, Unit, Value,
};
use tidalite_testkit::rng::Rng;

const SECOND: i64 = 1_000_000_000;

/// A database in memory, with a clock that a test moves.
fn with_clock() -> (Database, Arc<AtomicI64>) {
    tidalite_testkit::watch();
    let time = Arc::new(AtomicI64::new(1_700_000_000 * SECOND));
    let own = Arc::clone(&time);
    let clocks = move || {
        let wall_ns = own.load(Ordering::Relaxed);
        Clocks {
            wall_ns,
            since_boot_ns: wall_ns.unsigned_abs(),
            boot: 1,
        }
    };
    let options = Options::new().tuning(Tuning::new().clock(clocks));
    let storage = Arc::new(MemoryStorage::new());
    (options.open_storage(storage).unwrap(), time)
}

fn json(text: &str) -> Document {
    Document::from_json(text).unwrap()
}

/// Time and numbers of a row, by name.
type NumberedRow = (i64, BTreeMap<String, String>);

fn row_of(time: i64, numbers: impl Iterator<Item = (String, f64)>) -> NumberedRow {
    (
        time,
        numbers.map(|(name, x)| (name, format!("{x:?}"))).collect(),
    )
}

/// The rows that the messages of a container must have in its series. All numbers of the tests fit their columns.
fn expected_rows(containers: &Containers<'_>, container: &str) -> Vec<NumberedRow> {
    let mut rows = Vec::new();
    let containers = containers.page(container, &Select::default()).unwrap();
    assert_eq!(containers.next, None);
    for message in containers.messages {
        let numbers = message.document.numbers().map(|(name, number)| {
            let number = match number {
                FieldNumber::Integer(x) => x as f64,
                FieldNumber::Float(x) => x,
            };
            (name.into_owned(), number)
        });
        let row = row_of(message.time.0, numbers);
        if !row.1.is_empty() {
            rows.push(row);
        }
    }
    rows.sort();
    rows
}

fn stored_rows(snap: &ReadTxn, name: &str) -> Vec<NumberedRow> {
    let Some(series) = snap.series(name).unwrap() else {
        return Vec::new();
    };
    let columns: Vec<String> = series
        .info()
        .schema
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let mut rows = Vec::new();
    let all = &series.info().schema.columns;
    series
        .query(..)
        .for_each(|time, words| {
            let values = all
                .iter()
                .zip(words)
                .map(|(column, word)| column.value(*word));
            let numbers = columns.iter().zip(values).filter_map(|(name, value)| {
                let number = match value {
                    Value::F64(x) => x,
                    Value::I64(x) => x as f64,
                    Value::U64(x) => x as f64,
                    _ => return None,
                };
                Some((name.clone(), number))
            });
            rows.push(row_of(time, numbers));
        })
        .unwrap();
    rows.sort();
    rows
}

/// Checks the database, and that each series has exactly the rows of the messages.
fn assert_in_step(db: &Database, table: &str) {
    let snap = db.begin_read().unwrap();
    let containers = snap.containers(table).unwrap().unwrap();
    let mut series = 0;
    for info in containers.list("", None, 1000).unwrap() {
        let name = containers.series_name(&info.name).unwrap();
        let expected = expected_rows(&containers, &info.name);
        assert_eq!(stored_rows(&snap, &name), expected, "{name}");
        series += usize::from(snap.series(&name).unwrap().is_some());
    }
    assert_eq!(snap.list(table).unwrap().len(), series, "no other series");
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

fn random_document(rng: &mut Rng) -> Document {
    let mut document = Document::default();
    for field in 0..rng.below(6) {
        let value = match rng.below(6) {
            0 => FieldValue::Null,
            1 => "on".into(),
            2 => rng.below(1000).into(),
            3 => FieldValue::Object(vec![("x".into(), (rng.below(100) as f64 / 8.0).into())]),
            _ => (rng.below(10_000) as f64 / 16.0).into(),
        };
        document.set(&format!("field {}", (field + rng.below(3)) % 7), value);
    }
    document
}

fn random_run(seed: u64, rule: OnDuplicate) {
    println!("seed {seed}, {rule:?}");
    let (db, time) = with_clock();
    let rng = &mut Rng::new(seed);
    let options = ContainerTableOptions {
        defaults: ContainerOptions {
            on_duplicate: rule,
            ttl: Some(Duration::from_secs(400)),
            keep_deleted: Duration::from_secs(100),
            messages_max: Some(60),
            overflow: ContainerOverflow::DropOldest,
            protect: Some("field 0".to_owned()),
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    };
    let mut tx = db.begin_write().unwrap();
    tx.containers_with("devices", &options).unwrap();
    tx.commit().unwrap();
    let names = ["a", "b", "c \"d\""];
    for round in 0..60 {
        let now = time.fetch_add((rng.below(20) as i64) * SECOND, Ordering::Relaxed);
        let mut tx = db.begin_write().unwrap();
        let mut containers = tx.containers("devices").unwrap();
        for _ in 0..rng.below(4) {
            let name = names[rng.below(3) as usize];
            let at = now - rng.below(300) as i64 * SECOND;
            match rng.below(9) {
                0..4 => {
                    let documents: Vec<Document> =
                        (0..rng.below(40)).map(|_| random_document(rng)).collect();
                    let messages: Vec<Append> = documents
                        .iter()
                        .map(|document| {
                            let name = names[rng.below(3) as usize];
                            let at = now - rng.below(420) as i64 * SECOND;
                            Append::new(name, Timestamp(at), document)
                        })
                        .collect();
                    let appended = containers.append_batch(&messages).unwrap();
                    assert_eq!(appended.outcomes.len(), messages.len());
                }
                4 => {
                    let range = DeleteRange {
                        from: Timestamp(at),
                        to: Timestamp(at + 50 * SECOND),
                        ..DeleteRange::default()
                    };
                    let filter = Expression::parse("exists(`field 1`)").unwrap();
                    let filter = rng.one_in(2).then_some(&filter);
                    if containers
                        .view()
                        .unwrap()
                        .container(name)
                        .unwrap()
                        .is_some()
                    {
                        containers.delete_messages(name, &range, filter).unwrap();
                    }
                }
                5 => {
                    if containers
                        .view()
                        .unwrap()
                        .container(name)
                        .unwrap()
                        .is_some()
                    {
                        containers
                            .restore_messages(name, &RestoreRange::default())
                            .unwrap();
                    }
                }
                6 => {
                    let found = match containers.view().unwrap().container(name).unwrap() {
                        Some(_) => {
                            let select = Select {
                                query: MessageQuery {
                                    from: Timestamp(at),
                                    limit: 1,
                                    ..MessageQuery::default()
                                },
                                ..Select::default()
                            };
                            let view = containers.view().unwrap();
                            view.page(name, &select).unwrap().messages.pop()
                        }
                        None => None,
                    };
                    if let Some(found) = found {
                        let key = (found.time, found.tie);
                        let document = random_document(rng);
                        let old = match rng.one_in(2) {
                            true => containers.replace_message(name, key, &document).unwrap(),
                            false => containers.delete_message(name, key).unwrap(),
                        };
                        assert!(old.is_some());
                    }
                }
                7 => {
                    containers.maintain(rng.below(100)).unwrap();
                }
                _ => {
                    if containers
                        .view()
                        .unwrap()
                        .container(name)
                        .unwrap()
                        .is_some()
                    {
                        match rng.below(3) {
                            0 => {
                                containers.rename_container(name, "other").unwrap();
                                containers.rename_container("other", name).unwrap();
                            }
                            1 => {
                                containers.drop_container(name).unwrap();
                                containers.restore_container(name, name).unwrap();
                            }
                            _ => drop(containers.drop_container(name).unwrap()),
                        }
                    }
                }
            }
        }
        match rng.one_in(8) {
            true => drop(tx),
            false => drop(tx.commit().unwrap()),
        }
        if round % 4 == 3 {
            let mut tx = db.begin_write().unwrap();
            // What has expired is not found, but has rows until it is removed.
            let mut containers = tx.containers("devices").unwrap();
            while containers.maintain(50).unwrap().more {}
            tx.commit().unwrap();
            assert_in_step(&db, "devices");
        }
    }
}

#[test]
fn rows_of_series_follow_the_messages() {
    for (seed, rule) in [
        OnDuplicate::KeepAll,
        OnDuplicate::Replace,
        OnDuplicate::Merge,
        OnDuplicate::KeepFirst,
    ]
    .into_iter()
    .enumerate()
    {
        random_run(seed as u64 + 1, rule);
    }
}

#[test]
fn numbers_get_columns_that_hold_them_exactly() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    let mut cars = tx.containers("cars").unwrap();
    cars.create_container("red", None).unwrap();
    let price = Column::nullable("price", ColumnType::Decimal(2));
    cars.add_columns("red", &[price]).unwrap();
    let wrong = cars.add_columns("red", &[Column::new("x", ColumnType::F64)]);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Schema);
    let wrong = cars.add_columns("blue", &[]);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::NotFound);
    let texts = [
        r#"{"id": 18446744073709551614, "km": 5, "gps": {"lat": 1.5}, "name": "x", "price": 12}"#,
        r#"{"id": 17, "km": 5.25, "price": 0.125, "ok": true, "list": [1, 2]}"#,
        r#"{"id": -9007199254740993, "km": 9007199254740993}"#,
    ];
    let documents: Vec<Document> = texts.iter().map(|text| json(text)).collect();
    for (time, document) in documents.iter().enumerate() {
        cars.append(&Append::new("red", Timestamp(time as i64), document))
            .unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let cars = snap.containers("cars").unwrap().unwrap();
    for (time, document) in documents.iter().enumerate() {
        let found = cars.get("red", Timestamp(time as i64)).unwrap();
        assert_eq!(found, std::slice::from_ref(document));
    }
    let series = snap.series(r#"cars{container="red"}"#).unwrap().unwrap();
    let columns: Vec<String> = series
        .info()
        .schema
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.ty.name()))
        .collect();
    assert_eq!(
        columns,
        ["price decimal(2)", "id u64", "km f64", "gps.lat f64"]
    );
    let row = |time| {
        let row = series.at(tidalite::Steps(time)).unwrap().unwrap();
        let values = series.values(&row).unwrap();
        values.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row(0), ["12.00", "18446744073709551614", "5", "1.5"]);
    assert_eq!(row(1), ["null", "17", "5.25", "null"]);
    assert_eq!(row(2), ["null", "null", "null", "null"]);
}

#[test]
fn a_message_with_too_many_numbers_keeps_them_all() {
    let (db, _) = with_clock();
    let mut document = Document::default();
    for field in 0..100 {
        document.set(&format!("f{field}"), (field as f64).into());
    }
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    table
        .append(&Append::new("c", Timestamp(5), &document))
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.containers("t").unwrap().unwrap();
    assert_eq!(table.get("c", Timestamp(5)).unwrap(), [document]);
    let series = snap.series(r#"t{container="c"}"#).unwrap().unwrap();
    assert_eq!(series.info().schema.columns.len(), 64);
    assert_eq!(
        series.query(..).aggregate("f63").unwrap().max(),
        Some((63.0, 5))
    );
}

#[test]
fn pages_filters_and_fields() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    let documents: Vec<Document> = (0..200)
        .map(|i| {
            json(&format!(
                r#"{{"i": {i}, "state": "{}"}}"#,
                ["on", "off"][i % 2]
            ))
        })
        .collect();
    let messages: Vec<Append> = documents
        .iter()
        .enumerate()
        .map(|(i, document)| Append::new("c", Timestamp((i / 10) as i64), document))
        .collect();
    table.append_batch(&messages).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.containers("t").unwrap().unwrap();
    for reverse in [false, true] {
        let mut select = Select {
            query: MessageQuery {
                limit: 7,
                reverse,
                ..MessageQuery::default()
            },
            filter: Some(Expression::parse("state == 'on' && i % 4 == 0").unwrap()),
            fields: Some(Projection::new(&["i"]).unwrap()),
        };
        let mut seen = Vec::new();
        loop {
            let page = table.page("c", &select).unwrap();
            assert!(page.messages.len() <= 7);
            seen.extend(page.messages.iter().map(|m| m.document.to_json().unwrap()));
            match page.next {
                Some(next) => select.query.after = Some(next),
                None => break,
            }
        }
        let mut expected: Vec<String> = (0..200)
            .filter(|i| i % 4 == 0)
            .map(|i| format!(r#"{{"i":{i}}}"#))
            .collect();
        if reverse {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    let wrong = Select {
        filter: Some(Expression::parse("state + 1 > 2").unwrap()),
        ..Select::default()
    };
    let error = table.page("c", &wrong).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("character 7"), "{error}");
}

#[test]
fn figures_agree_with_a_plain_computation() {
    let (db, _) = with_clock();
    let rng = &mut Rng::new(5);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    let mut plain: BTreeMap<(i64, String), Vec<Option<i64>>> = BTreeMap::new();
    for time in 0..500_i64 {
        let state = ["on", "off", "idle"][rng.below(3) as usize];
        let x = (!rng.one_in(5)).then(|| rng.below(1 << 40) as i64 - (1 << 39));
        let field = x.map_or(String::new(), |x| format!(r#", "x": {x}"#));
        let document = json(&format!(r#"{{"state": "{state}"{field}}}"#));
        table
            .append(&Append::new("c", Timestamp(time), &document))
            .unwrap();
        let step = time.div_euclid(64) * 64;
        plain.entry((step, state.to_owned())).or_default().push(x);
    }
    let figures = [
        MessageFigure::Count,
        MessageFigure::Min,
        MessageFigure::Max,
        MessageFigure::Sum,
        MessageFigure::First,
        MessageFigure::Last,
        MessageFigure::Increase,
    ];
    let query = AggregateQuery {
        step: Some(Duration::from_nanos(64)),
        group_by: Some("state".to_owned()),
        figures: figures.iter().map(|f| ("x".to_owned(), *f)).collect(),
        ..AggregateQuery::default()
    };
    let rows = table.view().unwrap().aggregate("c", &query).unwrap();
    assert_eq!(rows.len(), plain.len());
    let mut lasts: BTreeMap<String, i64> = BTreeMap::new();
    for (row, ((from, state), all)) in rows.into_iter().zip(&plain) {
        assert_eq!((row.from.0, row.group.as_text()), (*from, Some(&**state)));
        let last = lasts.get(state).copied();
        let xs: Vec<i64> = all.iter().copied().flatten().collect();
        let value = |x: Option<i64>| x.map_or(FieldValue::Null, FieldValue::from);
        let chain: Vec<i64> = last.into_iter().chain(xs.iter().copied()).collect();
        let increases = chain.windows(2).map(|pair| match pair[1] < pair[0] {
            true => pair[1].max(0),
            false => pair[1] - pair[0],
        });
        lasts.extend(xs.last().map(|x| (state.clone(), *x)));
        let expected = [
            (xs.len() as u64).into(),
            value(xs.iter().min().copied()),
            value(xs.iter().max().copied()),
            value((!xs.is_empty()).then(|| xs.iter().sum())),
            value(xs.first().copied()),
            value(xs.last().copied()),
            value((chain.len() > 1).then(|| increases.sum())),
        ];
        assert_eq!(row.figures, expected);
        assert_eq!(row.messages, all.len() as u64);
    }
}

#[test]
fn containers_commit_and_are_maintained_with_everything_else() {
    tidalite_testkit::watch();
    let folder = std::env::temp_dir().join(format!("tidalite-containers-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.tdl");
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("devices").unwrap();
    for i in 0..2000 {
        let document = json(&format!(r#"{{"n": {i}, "name": "device {i}"}}"#));
        let name = format!("d{}", i % 20);
        let outcome = table
            .append(&Append::new(&name, Timestamp(i), &document))
            .unwrap();
        assert!(matches!(outcome, AppendOutcome::Stored { .. }));
    }
    tx.commit().unwrap();
    assert_in_step(&db, "devices");
    let mut tx = db.begin_write().unwrap();
    tx.containers("devices")
        .unwrap()
        .drop_container("d3")
        .unwrap();
    let series = tx.reader().unwrap();
    assert!(
        series
            .series(r#"devices{container="d3"}"#)
            .unwrap()
            .is_none()
    );
    drop((series, tx));
    assert_in_step(&db, "devices");
    let mut tx = db.begin_write().unwrap();
    for refused in [tx.drop_table("devices"), tx.rename_table("devices", "x")] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::WrongType);
    }
    assert!(tx.rename_containers("devices", "machines").unwrap());
    tx.commit().unwrap();
    assert_in_step(&db, "machines");
    assert!(db.begin_read().unwrap().list("devices").unwrap().is_empty());
    let copy = folder.join("copy.tdl");
    db.copy().to(&copy).unwrap();
    assert_in_step(&Database::open(&copy).unwrap(), "machines");
    let saved = folder.join("saved.tdl");
    let report = Salvage::of(&copy).to(&saved).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let saved = Database::open(&saved).unwrap();
    assert_in_step(&saved, "machines");
    let snap = saved.begin_read().unwrap();
    let types = snap.table_types("machines").unwrap().unwrap();
    assert_eq!(types.layout(), TableLayout::Containers);
    assert_eq!(
        snap.containers("machines")
            .unwrap()
            .unwrap()
            .stat()
            .unwrap()
            .messages,
        2000
    );
    let mut tx = db.begin_write().unwrap();
    assert!(tx.drop_containers("machines").unwrap());
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    assert!(snap.tables().unwrap().is_empty() && snap.list("").unwrap().is_empty());
    assert!(db.check().unwrap().is_clean());
    drop((snap, db));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_queue_is_handed_over_once() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    for i in 0..50 {
        let text = match i % 10 {
            9 => "noise".to_owned(),
            _ => format!(r#"{{"i": {i}}}"#),
        };
        tx.queue("inbox")
            .unwrap()
            .push(&NewMessage::new(text.as_bytes()))
            .unwrap();
    }
    tx.commit().unwrap();
    let mut made = |message: &tidalite::queue::QueueMessage| {
        let document = Document::from_json(std::str::from_utf8(&message.payload).ok()?).ok()?;
        let time = document.get("i")?.as_integer()? as i64;
        let container = "c".to_owned();
        Some(Handed {
            container,
            time: Timestamp(time),
            document,
        })
    };
    let limits = LeaseLimits::messages(20);
    let mut total = (0, 0);
    for round in 0.. {
        let mut tx = db.begin_write().unwrap();
        let done = tx
            .hand_over("inbox", DEFAULT_GROUP, limits, "t", &mut made)
            .unwrap();
        if round % 2 == 0 {
            // Rolled back: the same messages come again.
            continue;
        }
        tx.commit().unwrap();
        total = (total.0 + done.done, total.1 + done.dead);
        if done.done + done.dead == 0 {
            break;
        }
    }
    assert_eq!(total, (45, 5));
    assert_in_step(&db, "t");
    let snap = db.begin_read().unwrap();
    assert_eq!(
        snap.containers("t")
            .unwrap()
            .unwrap()
            .stat()
            .unwrap()
            .messages,
        45
    );
    let queue = snap.queue("inbox").unwrap().unwrap();
    assert_eq!(queue.dead_letters(DEFAULT_GROUP, 0, 10).unwrap().len(), 5);
    assert_eq!(queue.stat().unwrap().messages, 5);
}

#[test]
fn latest_values_follow_in_the_same_commit() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    let (first, late) = (json(r#"{"a": 1, "b": "x"}"#), json(r#"{"a": 0, "c": 3}"#));
    table
        .append(&Append::new("c", Timestamp(10), &first))
        .unwrap();
    table
        .append(&Append::new("c", Timestamp(5), &late))
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.containers("t").unwrap().unwrap();
    let latest = table.latest("c").unwrap();
    let latest: Vec<_> = latest
        .iter()
        .map(|value| (&*value.field, value.time.0, value.value.clone()))
        .collect();
    assert_eq!(
        latest,
        [
            ("a", 10, 1.into()),
            ("b", 10, "x".into()),
            ("c", 5, 3.into())
        ]
    );
}

/// Each step of a rule has one unprotected message, with the figures of the messages that it had, in any number of calls.
#[test]
fn thinning_keeps_one_message_a_step() {
    let rng = &mut Rng::new(9);
    for limit in [1, 7, 100_000] {
        let (db, time) = with_clock();
        let start = time.load(Ordering::Relaxed);
        let mut tx = db.begin_write().unwrap();
        let options = ContainerTableOptions {
            defaults: ContainerOptions {
                protect: Some("keep".to_owned()),
                keep_deleted: Duration::from_secs(1),
                ..ContainerOptions::default()
            },
            ..ContainerTableOptions::default()
        };
        let mut table = tx.containers_with("t", &options).unwrap();
        let mut plain: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        let mut kept = 0;
        for i in 0..600 {
            let at = start + i * SECOND + rng.below(3) as i64;
            let x = rng.below(1000) as i64;
            let keep = rng.one_in(20);
            kept += i64::from(keep);
            let document = json(&format!(
                r#"{{"sum": {x}, "mean": {x}, "min": {x}, "max": {x}, "first": {x}, "gone": 1, "keep": {keep}}}"#
            ));
            table
                .append(&Append::new("c", Timestamp(at), &document))
                .unwrap();
            if !keep {
                plain
                    .entry(at.div_euclid(10 * SECOND))
                    .or_default()
                    .push((at, x));
            }
        }
        let figures = [
            ("sum", ThinningFigure::Sum),
            ("mean", ThinningFigure::Mean),
            ("min", ThinningFigure::Min),
            ("max", ThinningFigure::Max),
            ("first", ThinningFigure::First),
            ("gone", ThinningFigure::Drop),
        ];
        let thinning = Thinning {
            rules: vec![ThinningRule {
                age: Duration::from_secs(300),
                step: Duration::from_secs(10),
            }],
            fields: figures
                .iter()
                .map(|(name, f)| ((*name).to_owned(), *f))
                .collect(),
            ..Thinning::default()
        };
        table.set_thinning("c", Some(&thinning)).unwrap();
        assert_eq!(table.view().unwrap().thinning("c").unwrap(), Some(thinning));
        tx.commit().unwrap();
        time.fetch_add(2000 * SECOND, Ordering::Relaxed);
        let mut calls = 0;
        loop {
            let mut tx = db.begin_write().unwrap();
            let done = tx.containers("t").unwrap().thin(limit).unwrap();
            assert!(done.examined <= limit + 12, "{done:?}");
            tx.commit().unwrap();
            calls += 1;
            if !done.more {
                break;
            }
        }
        assert!(calls > 1 || limit > 600);
        assert_in_step(&db, "t");
        let snap = db.begin_read().unwrap();
        let table = snap.containers("t").unwrap().unwrap();
        let page = table.page("c", &Select::default()).unwrap();
        let (protected, thin): (Vec<_>, Vec<_>) = page
            .messages
            .iter()
            .partition(|message| message.document.get("keep") == Some(&true.into()));
        assert_eq!(protected.len() as i64, kept);
        assert_eq!(thin.len(), plain.len());
        for (message, all) in thin.into_iter().zip(plain.values()) {
            let xs: Vec<i64> = all.iter().map(|(_, x)| *x).collect();
            let of = |name| message.document.get(name).cloned();
            assert_eq!(message.time, Timestamp(all[0].0));
            assert_eq!(of("first"), Some(xs[0].into()));
            assert_eq!(of("sum"), Some(xs.iter().sum::<i64>().into()));
            assert_eq!(of("min"), xs.iter().min().map(|x| (*x).into()));
            assert_eq!(of("max"), xs.iter().max().map(|x| (*x).into()));
            let mean = xs.iter().sum::<i64>() as f64 / xs.len() as f64;
            let found = of("mean").unwrap();
            match xs.len() {
                // A step with one message stays as it was.
                1 => assert_eq!((found, of("gone")), (xs[0].into(), Some(1.into()))),
                _ => assert_eq!((found, of("gone")), (mean.into(), None)),
            }
        }
        // Thinned messages are not deleted ones that could be restored.
        assert_eq!(table.stat().unwrap().deleted_messages, 0);
    }
}

/// A device whose clock stands still sends all messages with one time.
#[test]
fn more_messages_of_a_time_than_a_series_has_rows_are_kept() {
    let (db, _) = with_clock();
    let most = tidalite::limits::time_rows_max(64);
    let mut wide = Document::default();
    for field in 0..64 {
        wide.set(&format!("f{field}"), f64::from(field).into());
    }
    let narrow = json(r#"{"a": 1}"#);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    let count = most + 500;
    for chunk in 0..3 {
        let messages = vec![Append::new("c", Timestamp(0), &wide); count / 3 + 1];
        table.append_batch(&messages).unwrap();
        table
            .append(&Append::new("c", Timestamp(1 + chunk), &narrow))
            .unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.containers("t").unwrap().unwrap();
    let stored = table.container("c").unwrap().unwrap().messages;
    assert_eq!(stored, 3 * (count as u64 / 3 + 2));
    let series = snap.series(r#"t{container="c"}"#).unwrap().unwrap();
    let at_zero = series
        .query(tidalite::Steps(0)..=tidalite::Steps(0))
        .aggregate("f1")
        .unwrap()
        .count();
    assert!(at_zero > 0 && at_zero <= most as u64, "{at_zero} of {most}");
    assert!(db.check().unwrap().is_clean());
}

/// The rules for equal times change, and a protected message replaces an expired one.
#[test]
fn rows_follow_through_other_rules_for_equal_times() {
    let (db, time) = with_clock();
    let start = time.load(Ordering::Relaxed);
    let rule = |on_duplicate| ContainerOptions {
        on_duplicate,
        ttl: Some(Duration::from_secs(10)),
        protect: Some("keep".to_owned()),
        ..ContainerOptions::default()
    };
    let (one, two, three) = (
        json(r#"{"a": 1}"#),
        json(r#"{"a": 2}"#),
        json(r#"{"a": 3}"#),
    );
    let kept = json(r#"{"a": 4, "keep": true}"#);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    table
        .create_container("c", Some(&rule(OnDuplicate::KeepAll)))
        .unwrap();
    table
        .append_batch(&[
            Append::new("c", Timestamp(start), &one),
            Append::new("c", Timestamp(start), &two),
        ])
        .unwrap();
    table
        .set_options("c", Some(&rule(OnDuplicate::Replace)))
        .unwrap();
    table
        .append(&Append::new("c", Timestamp(start), &three))
        .unwrap();
    table
        .set_options("c", Some(&rule(OnDuplicate::KeepAll)))
        .unwrap();
    tx.commit().unwrap();
    assert_in_step(&db, "t");
    time.fetch_add(20 * SECOND, Ordering::Relaxed);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    table
        .append(&Append::new("c", Timestamp(start), &kept))
        .unwrap();
    while table.maintain(100).unwrap().more {}
    tx.commit().unwrap();
    assert_in_step(&db, "t");
    let snap = db.begin_read().unwrap();
    let table = snap.containers("t").unwrap().unwrap();
    assert_eq!(table.get("c", Timestamp(start)).unwrap(), [kept]);
}

/// A message without a place in the series takes the row of the message that it replaces away.
#[test]
fn a_replaced_message_leaves_no_row() {
    let (db, _) = with_clock();
    let options = ContainerTableOptions {
        defaults: ContainerOptions {
            on_duplicate: OnDuplicate::Replace,
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    };
    let mut wide = Document::default();
    for field in 0..64 {
        wide.set(&format!("f{field}"), f64::from(field).into());
    }
    let other = json(r#"{"other": 1}"#);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers_with("t", &options).unwrap();
    table
        .append(&Append::new("c", Timestamp(5), &wide))
        .unwrap();
    table
        .append(&Append::new("c", Timestamp(5), &other))
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series(r#"t{container="c"}"#).unwrap().unwrap();
    assert_eq!(series.count().unwrap(), 0);
    assert_eq!(
        snap.containers("t")
            .unwrap()
            .unwrap()
            .get("c", Timestamp(5))
            .unwrap(),
        [other]
    );
}

#[test]
fn a_series_that_is_not_of_a_container_is_left_alone() {
    let (db, _) = with_clock();
    let seconds = Schema::new(Unit::Seconds, [("x", ColumnType::F64)]);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_with(r#"t{container="c"}"#, &seconds).unwrap();
    series.insert_values(Steps(7), &[1.5.into()]).unwrap();
    let document = json(r#"{"x": 1}"#);
    let mut table = tx.containers("t").unwrap();
    let created = table.create_container("c", None).unwrap_err();
    assert_eq!(created.kind(), ErrorKind::AlreadyExists);
    let appended = table
        .append(&Append::new("c", Timestamp(5), &document))
        .unwrap_err();
    assert_eq!(appended.kind(), ErrorKind::Schema);
    // A series with all properties of the series of a container keeps its rows, too.
    let name = r#"t{container="like"}"#;
    let mut nanos = Schema::new(Unit::Nanos, []);
    nanos.columns.push(Column::nullable("x", ColumnType::F64));
    let mut like = tx.series_with(name, &nanos).unwrap();
    like.set_merge(MergePolicy::KeepAll).unwrap();
    like.insert_values(Steps(5), &[7.0.into()]).unwrap();
    let mut table = tx.containers("t").unwrap();
    let appended = table.append(&Append::new("like", Timestamp(5), &document));
    assert_eq!(appended.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let series = tx.series(name).unwrap();
    assert_eq!(series.info().schema, nanos);
    assert!(tx.remove_series(name).unwrap());
    let mut table = tx.containers("t").unwrap();
    table
        .append(&Append::new("like", Timestamp(5), &document))
        .unwrap();
    table
        .append(&Append::new("d", Timestamp(5), &document))
        .unwrap();
    let renamed = table.rename_container("d", "c").unwrap_err();
    assert_eq!(renamed.kind(), ErrorKind::AlreadyExists);
    let long = "\"".repeat(510);
    let refused = table
        .append(&Append::new(&long, Timestamp(5), &document))
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidName);
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    assert!(tx.drop_containers("t").unwrap());
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series(r#"t{container="c"}"#).unwrap().unwrap();
    assert_eq!(series.count().unwrap(), 1);
    assert_eq!(snap.list("").unwrap().len(), 1);
}

/// Every call that would change the series of a container is refused, and changes nothing.
#[test]
fn only_a_container_changes_its_series() {
    #[track_caller]
    fn refused<T>(done: tidalite::Result<T>) {
        let Err(error) = done else {
            panic!("the call changed a series of a container");
        };
        assert_eq!(error.kind(), ErrorKind::WrongType);
        assert!(
            error.to_string().contains("`tidalite container`"),
            "{error}"
        );
    }
    let (db, _) = with_clock();
    let (name, empty) = (r#"t{container="c"}"#, r#"t{container="empty"}"#);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.containers("t").unwrap();
    table.create_container("empty", None).unwrap();
    table
        .append(&Append::new("c", Timestamp(5), &json(r#"{"x": 1}"#)))
        .unwrap();
    let other = tx.series("other").unwrap().id();
    let id = tx.series(name).unwrap().id();
    let mut series = tx.series(name).unwrap();
    refused(series.insert_values(Steps(6), &[1.0.into()]));
    refused(series.insert_row(Steps(6), &[0]));
    refused(series.append_rows(&[6], &[&[0]]));
    refused(series.delete(..));
    refused(series.set_merge(MergePolicy::Replace));
    refused(series.add_columns(&[Column::nullable("y", ColumnType::F64)]));
    assert_eq!(series.view().unwrap().count().unwrap(), 1);
    refused(tx.remove_series(name));
    refused(tx.remove_series_by_id(id));
    refused(tx.rename_series(id, "mine"));
    refused(tx.rename_series(other, empty));
    refused(tx.series(empty));
    refused(tx.set_tag("t", "container", Some("z")));
    refused(
        tx.set_tag("other", "container", None)
            .and(tx.set_tag("t", "more", Some("z"))),
    );
    refused(tx.rename_tag("t", "container", "z"));
    let mut appender = tx.appenders(1).unwrap().remove(0);
    refused(
        appender
            .series_by_id(id)
            .unwrap()
            .insert_values(Steps(6), &[1.0.into()]),
    );
    appender.finish().unwrap();
    // Names without such a container are free.
    for free in [
        r#"t{container="none"}"#,
        r#"t{container="c",more="z"}"#,
        r#"u{container="c"}"#,
    ] {
        tx.series(free).unwrap().insert(Steps(1), 1.0).unwrap();
        assert!(tx.remove_series(free).unwrap());
    }
    let age = Some(std::time::Duration::from_secs(1));
    let policy = Retention {
        keep: age,
        ..Retention::default()
    };
    tx.set_retention("all", &policy).unwrap();
    for time in [1, 2] {
        tx.series("other")
            .unwrap()
            .insert(Steps(time), 1.0)
            .unwrap();
    }
    tx.commit().unwrap();
    let budget = Budget::default();
    assert_eq!(db.preview_maintenance(&budget).unwrap().removals.len(), 1);
    assert_eq!(db.maintain(&budget).unwrap().rows, 2);
    assert_in_step(&db, "t");
    let mut tx = db.begin_write().unwrap();
    refused(tx.series(name).unwrap().delete(..));
    let mut table = tx.containers("t").unwrap();
    table.rename_container("c", "d").unwrap();
    refused(tx.remove_series(r#"t{container="d"}"#));
    tx.series(name).unwrap().insert(Steps(1), 1.0).unwrap();
    assert!(tx.remove_series(name).unwrap());
    assert!(tx.rename_containers("t", "v").unwrap());
    refused(tx.remove_series(r#"v{container="d"}"#));
    tx.commit().unwrap();
    assert_in_step(&db, "v");
}

#[test]
fn a_message_that_cannot_be_stored_does_not_stop_a_hand_over() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    for name in ["good", "", "also good", &"x".repeat(2000)] {
        tx.queue("inbox")
            .unwrap()
            .push(&NewMessage::new(name.as_bytes()))
            .unwrap();
    }
    let mut made = |message: &tidalite::queue::QueueMessage| {
        let container = String::from_utf8(message.payload.clone()).ok()?;
        Some(Handed {
            container,
            time: Timestamp(1),
            document: json(r#"{"x": 1}"#),
        })
    };
    let limits = LeaseLimits::messages(20);
    let done = tx
        .hand_over("inbox", DEFAULT_GROUP, limits, "t", &mut made)
        .unwrap();
    assert_eq!((done.done, done.dead, done.rejected), (2, 2, 0));
    tx.commit().unwrap();
    assert_in_step(&db, "t");
}
