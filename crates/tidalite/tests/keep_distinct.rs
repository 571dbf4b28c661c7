//! Series that keep the different rows of a time: rows are compared correctly in every type of column, wherever they
//! are stored and however they arrive. keep_all.rs tests that every query sees these rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::limits::time_rows_max;
use tidalite::maintenance::Salvage;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{
    Column, ColumnType, Database, Decimal, Error, ErrorKind, MergePolicy, Options, Record, Schema,
    Series, SeriesMut, Steps, Tuning, Unit, Value,
};
use tidalite_testkit::rng::Rng;

const NAME: &str = "a";
/// Number of different times; they are few, so that each has many rows.
const TIMES: i64 = 40;

/// The values of a row as texts; a float is written as its bits.
type Said = Vec<String>;
/// The rows of each time as texts, in the order of first arrival.
type Model = BTreeMap<i64, Vec<Said>>;

fn open(storage: &Arc<MemoryStorage>, rng: &mut Rng) -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(storage);
    Options::new()
        .page_size(1 << rng.between(12, 15))
        .tuning(Tuning::new().write_buffer_bytes(1 << rng.between(10, 22)))
        .open_storage(storage)
        .expect("it opens")
}

fn schema() -> Schema {
    Schema::new(Unit::Nanos, [("number", ColumnType::F64)])
        .with(Column::nullable("narrow", ColumnType::F32))
        .with(Column::nullable("message", ColumnType::String))
        .with(Column::new("source", ColumnType::Guid))
}

/// The columns that are added to the series later.
fn later() -> [Column; 3] {
    [
        Column::nullable("units", ColumnType::Decimal(2)),
        Column::new("raw", ColumnType::Bytes),
        Column::new("on", ColumnType::Bool),
    ]
}

fn said(value: &Value) -> String {
    match value {
        Value::F64(value) => format!("{:016x}", value.to_bits()),
        other => format!("{other:?}"),
    }
}

fn number(rng: &mut Rng) -> f64 {
    let other_nan = f64::from_bits(f64::NAN.to_bits() ^ 1 << 51 | 1 << 50);
    *rng.pick(&[0.0, -0.0, f64::NAN, other_nan, 1.5])
}

/// One of few random texts, so that equal rows are common. Some texts are too long for the dictionary.
fn text(rng: &mut Rng) -> String {
    let length = *rng.pick(&[0, 1, 128, 129, 129, 500, 70_000]);
    let letter = *rng.pick(&["a", "b"]);
    // Only rarely a text is so long that it fills a block alone.
    if length == 70_000 && !rng.one_in(8) {
        return "c".repeat(300) + letter;
    }
    letter.repeat(length)
}

fn values(rng: &mut Rng, columns: usize) -> Vec<Value> {
    let null = |rng: &mut Rng| rng.one_in(3);
    let mut row = vec![
        number(rng).into(),
        match null(rng) {
            true => Value::Null,
            false => Value::F64(f64::from(*rng.pick(&[0.0f32, -0.0, 0.1, f32::NAN]))),
        },
        match null(rng) {
            true => Value::Null,
            false => text(rng).into(),
        },
        rng.pick(&[[0u8; 16], [7; 16]]).to_owned().into(),
        match null(rng) {
            true => Value::Null,
            false => Decimal { units: 7, scale: 2 }.into(),
        },
        match rng.one_in(2) {
            true => Value::Bytes(Vec::new()),
            false => Value::Bytes(text(rng).into_bytes()),
        },
        rng.one_in(4).into(),
    ];
    row.truncate(columns);
    row
}

/// Appends to each row of the model the values that existing rows have in the columns added later.
fn widen(model: &mut Model) {
    for row in model.values_mut().flatten() {
        row.push(said(&Value::Null));
        row.push(said(&Value::Bytes(Vec::new())));
        row.push(said(&Value::Bool(false)));
    }
}

fn insert(model: &mut Model, time: i64, row: &[Value]) {
    let row: Said = row.iter().map(said).collect();
    let same = model.entry(time).or_default();
    if !same.contains(&row) {
        same.push(row);
    }
}

fn equal(series: &Series<'_>, model: &Model) {
    let mut found = Vec::new();
    let mut cursor = series.cursor();
    while let Some(row) = cursor.next().expect("a step") {
        let values = series.values(&row).expect("its values");
        found.push((row.time, values.iter().map(said).collect::<Said>()));
    }
    let expected: Vec<(i64, Said)> = model
        .iter()
        .flat_map(|(&time, rows)| rows.iter().map(move |row| (time, row.clone())))
        .collect();
    assert_eq!(found.len(), expected.len());
    assert!(found == expected, "rows differ");
    assert_eq!(series.count().expect("a count"), expected.len() as u64);
}

fn some_rows(series: &mut SeriesMut<'_>, model: &mut Model, rng: &mut Rng) {
    let columns = series.info().schema.columns.len();
    let at_once = rng.one_in(3);
    let (mut times, mut words) = (Vec::new(), vec![Vec::new(); columns]);
    for _ in 0..rng.below(120) {
        let time = rng.between(0, TIMES);
        let row = values(rng, columns);
        if !at_once {
            series.insert_values(Steps(time), &row).expect("a row");
            insert(model, time, &row);
            continue;
        }
        times.push(time);
        for (c, value) in row.iter().enumerate() {
            // The empty text has two words; both must be equal to each other.
            let empty = matches!(value, Value::Bytes(bytes) if bytes.is_empty());
            let word = match empty && rng.one_in(2) {
                true => 0,
                false => series.word(c, value).expect("a word"),
            };
            words[c].push(word);
        }
        insert(model, time, &row);
    }
    if at_once {
        let words: Vec<&[u64]> = words.iter().map(Vec::as_slice).collect();
        series.append_rows(&times, &words).expect("rows");
    }
}

fn through_appenders(tx: &mut tidalite::WriteTxn, model: &mut Model, rng: &mut Rng) {
    let mut appenders = tx.appenders(2).expect("appenders");
    for _ in 0..rng.below(60) {
        let mut series = appenders[rng.index(2)].series(NAME).expect("a series");
        let columns = series.info().schema.columns.len();
        let (time, row) = (rng.between(0, TIMES), values(rng, columns));
        series.insert_values(Steps(time), &row).expect("a row");
        insert(model, time, &row);
    }
}

/// Inserts rows in a nested transaction and rolls it back. Later texts reuse the numbers of the undone ones, so cached
/// words must be dropped.
fn undone(tx: &mut tidalite::WriteTxn, model: &Model, rng: &mut Rng) {
    let mut undone = model.clone();
    let done = tx.nested(|tx| {
        if rng.one_in(3) {
            through_appenders(tx, &mut undone, rng);
        }
        let mut series = tx.series(NAME)?;
        some_rows(&mut series, &mut undone, rng);
        equal(&series.view()?, &undone);
        // An invalid row ends the nested transaction with an error, which rolls it back.
        series.insert_values(Steps(0), &[])
    });
    assert!(
        matches!(done, Err(ref error) if error.kind() == ErrorKind::Schema),
        "{done:?}"
    );
}

/// Checks that a copy and a salvaged file have the same rows, and that comparison with existing rows still works in
/// these files.
fn elsewhere(db: &Database, storage: Arc<MemoryStorage>, model: &Model, rng: &mut Rng) {
    let dir = std::env::temp_dir().join(format!("tidalite-distinct-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir(&dir).expect("a folder");
    let path = dir.join("copy.tdl");
    let snap = db.begin_read().expect("a snapshot");
    snap.copy().to(&path).expect("a copy");
    drop(snap);
    let saved = in_memory();
    Salvage::of_storage(storage)
        .to_database(&saved)
        .expect("what is left");
    for copy in [Database::open(&path).expect("it opens"), saved] {
        let mut model = model.clone();
        let mut tx = copy.begin_write().expect("a transaction");
        let mut series = tx.series(NAME).expect("a series");
        assert_eq!(series.info().merge, MergePolicy::KeepDistinct);
        equal(&series.view().expect("a view"), &model);
        some_rows(&mut series, &mut model, rng);
        tx.commit().expect("a commit");
        let snap = copy.begin_read().expect("a snapshot");
        let series = snap.series(NAME).expect("a series");
        equal(&series.expect("it is there"), &model);
        let report = copy.check().expect("a check");
        assert!(report.is_clean(), "{:?}", report.problems);
    }
    std::fs::remove_dir_all(dir).expect("it was there");
}

#[test]
fn rows_of_every_type_equal_a_set_of_values() {
    // The variable `TIDALITE_MODEL_SEEDS=from..to` selects other seeds.
    let seeds = std::env::var("TIDALITE_MODEL_SEEDS").unwrap_or_default();
    let seeds = seeds.split_once("..").unwrap_or(("0", "8"));
    for seed in seeds.0.parse().unwrap()..seeds.1.parse().unwrap() {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let storage = Arc::new(MemoryStorage::new());
        let mut db = open(&storage, &mut rng);
        let mut model = Model::new();
        let mut tx = db.begin_write().expect("a transaction");
        tx.open_series(NAME)
            .schema(&schema())
            .merge(MergePolicy::KeepDistinct)
            .open()
            .expect("a series");
        tx.commit().expect("a commit");
        for round in 0..14 {
            let mut next = model.clone();
            let mut tx = db.begin_write().expect("a transaction");
            // Fills the dictionary, so that later short texts are stored in blocks, too.
            if round == 3 && seed % 3 == 0 {
                let mut series = tx.series(NAME).expect("a series");
                for n in 0..4096 {
                    series.word(2, &format!("{n}").into()).expect("a word");
                }
            }
            for _ in 0..rng.between(1, 4) {
                if rng.one_in(4) {
                    through_appenders(&mut tx, &mut next, &mut rng);
                }
                if rng.one_in(5) {
                    undone(&mut tx, &next, &mut rng);
                }
                let mut series = tx.series(NAME).expect("a series");
                some_rows(&mut series, &mut next, &mut rng);
                if rng.one_in(4) {
                    equal(&series.view().expect("a view"), &next);
                }
                if rng.one_in(6) {
                    let from = rng.between(0, TIMES);
                    series
                        .delete(Steps(from)..Steps(from + 7))
                        .expect("a delete");
                    next.retain(|time, _| !(from..from + 7).contains(time));
                }
                if round == 7 && series.info().schema.columns.len() == 4 {
                    series.add_columns(&later()).expect("more columns");
                    widen(&mut next);
                }
            }
            if rng.one_in(8) && round != 7 {
                continue;
            }
            tx.commit().expect("a commit");
            model = next;
            model.retain(|_, rows| !rows.is_empty());
            let snap = db.begin_read().expect("a snapshot");
            equal(&snap.series(NAME).unwrap().expect("it is there"), &model);
            drop(snap);
            if rng.one_in(4) {
                drop(db);
                db = open(&storage, &mut rng);
            }
        }
        let report = db.check().expect("a check");
        assert!(report.is_clean(), "{:?}", report.problems);
        elsewhere(&db, storage, &model, &mut rng);
    }
}

fn in_memory() -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).expect("it opens")
}

fn points(series: &Series<'_>) -> Vec<(i64, f64)> {
    let mut found = Vec::new();
    let put = |time: i64, words: &[u64]| found.push((time, f64::from_bits(words[1])));
    series.query(..).for_each(put).expect("a scan");
    found
}

#[test]
fn a_row_is_left_out_wherever_its_equal_is() {
    let db = in_memory();
    let mut expected = Vec::new();
    // The first row of each of 3000 times goes to a leaf, a second one to a run, and a third one of some times to the
    // tail page.
    for (value, step) in [(1.0, 1), (2.0, 2), (3.0, 300)] {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx
            .open_series(NAME)
            .merge(MergePolicy::KeepDistinct)
            .open()
            .unwrap();
        for time in (0..3000).step_by(step) {
            series.insert(Steps(time), value).unwrap();
            expected.push((time, value));
        }
        tx.commit().unwrap();
    }
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    // Inserts all rows again, in reverse order and then as one batch. This is done once in a transaction, then twice in
    // another.
    let again = |tx: &mut tidalite::WriteTxn| {
        let mut series = tx.series(NAME).unwrap();
        for &(time, value) in expected.iter().rev() {
            series.insert(Steps(time), value).unwrap();
        }
        let times: Vec<i64> = expected.iter().map(|row| row.0).collect();
        let flags = vec![0; times.len()];
        let values: Vec<u64> = expected.iter().map(|row| row.1.to_bits()).collect();
        series.append_rows(&times, &[&flags, &values]).unwrap();
    };
    for times in [1, 2] {
        let mut tx = db.begin_write().unwrap();
        for _ in 0..times {
            again(&mut tx);
        }
        let written = tx.commit().unwrap().bytes_written;
        assert!(written < 64 << 10, "nothing is new: {written} bytes");
        let snap = db.begin_read().unwrap();
        let series = snap.series(NAME).unwrap().unwrap();
        assert_eq!(points(&series), expected);
        // Inserting the first row again did not make it the newest: rows keep the order of first arrival.
        assert_eq!(
            series.at(Steps(300)).unwrap().unwrap().words[1],
            3.0f64.to_bits()
        );
    }
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn the_cache_of_a_time_is_dropped_when_its_rows_change() {
    let db = in_memory();
    for stored in [false, true] {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx
            .open_series(NAME)
            .merge(MergePolicy::KeepDistinct)
            .open()
            .unwrap();
        let values = |series: &mut SeriesMut<'_>| -> Vec<f64> {
            points(&series.view().unwrap())
                .iter()
                .map(|row| row.1)
                .collect()
        };
        series.insert(Steps(9), 0.0).unwrap();
        series.delete(..Steps(9)).unwrap();
        for value in [1.0, 2.0, 1.0] {
            series.insert(Steps(7), value).unwrap();
        }
        if stored {
            tx.commit().unwrap();
            tx = db.begin_write().unwrap();
            series = tx.series(NAME).unwrap();
            series.insert(Steps(7), 2.0).unwrap();
        }
        // Only one row of this batch is new.
        let batch = [2.0f64, 3.0, 3.0].map(f64::to_bits);
        series.append_rows(&[7; 3], &[&[0; 3], &batch]).unwrap();
        series.insert(Steps(7), 3.0).unwrap();
        assert_eq!(values(&mut series), [1.0, 2.0, 3.0, 0.0]);
        series.delete(Steps(7)..Steps(8)).unwrap();
        series.insert(Steps(7), 2.0).unwrap();
        assert_eq!(values(&mut series), [2.0, 0.0]);
        // The test adds a column, in which existing rows are null: a new row with null there is equal to an existing
        // one.
        let columns = series.info().schema.columns.len();
        let name = format!("c{columns}");
        series
            .add_columns(&[Column::nullable(name, ColumnType::U64)])
            .unwrap();
        let mut row = vec![Value::I64(0), Value::F64(2.0)];
        row.resize(columns + 1, Value::Null);
        series.insert_values(Steps(7), &row).unwrap();
        row[columns] = Value::U64(1);
        series.insert_values(Steps(7), &row).unwrap();
        assert_eq!(values(&mut series), [2.0, 2.0, 0.0]);
        tx.remove_series(NAME).unwrap();
        tx.commit().unwrap();
    }
}

#[test]
fn equal_rows_need_no_room() {
    let db = in_memory();
    let most = time_rows_max(2);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx
        .open_series(NAME)
        .merge(MergePolicy::KeepDistinct)
        .open()
        .unwrap();
    for round in 0..3 {
        for i in 0..most {
            series.insert(Steps(7), i as f64).unwrap();
        }
        if round == 1 {
            series.view().unwrap();
        }
    }
    let full = |error: Error| {
        assert!(
            error.limit().is_some_and(|(_, limit)| limit == 1024),
            "{error}"
        )
    };
    full(series.insert(Steps(7), 0.5).unwrap_err());
    series.insert(Steps(7), 3.0).unwrap();
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(NAME).unwrap();
    let values: Vec<u64> = (0..3000).map(|i| ((i % most) as f64).to_bits()).collect();
    let (times, flags) = (vec![7; values.len()], vec![0; values.len()]);
    series.append_rows(&times, &[&flags, &values]).unwrap();
    full(
        series
            .append_rows(&[6, 7], &[&[0, 0], &[0, 0.5f64.to_bits()]])
            .unwrap_err(),
    );
    full(series.insert(Steps(7), 0.5).unwrap_err());
    assert_eq!(series.view().unwrap().count().unwrap(), most as u64);
    // Equal rows stored under `KeepAll` both stay, and further rows equal to these are ignored.
    series.set_merge(MergePolicy::KeepAll).unwrap();
    series.insert(Steps(8), 1.0).unwrap();
    series.insert(Steps(8), 1.0).unwrap();
    series.set_merge(MergePolicy::KeepDistinct).unwrap();
    series.insert(Steps(8), 1.0).unwrap();
    series.insert(Steps(8), 2.0).unwrap();
    let view = series.view().unwrap();
    let eight: Vec<f64> = points(&view)[most..].iter().map(|row| row.1).collect();
    assert_eq!(eight, [1.0, 1.0, 2.0]);
}

#[derive(Record, Clone)]
#[record(unit = "s")]
struct Event {
    time: i64,
    level: u8,
    message: Option<String>,
}

/// A random text, which hardly compresses.
fn noise(rng: &mut Rng, length: usize) -> String {
    let chars = (0..length).map(|_| (b'!' + rng.below(90) as u8) as char);
    chars.collect()
}

#[test]
fn events_that_come_again_leave_no_texts_behind() {
    let db = in_memory();
    let mut rng = Rng::new(11);
    let events: Vec<Event> = (0..400)
        .map(|i| Event {
            time: i / 40,
            level: rng.below(2) as u8,
            // Some texts fill a block alone.
            message: Some(noise(&mut rng, if i % 80 == 7 { 40_000 } else { 400 })),
        })
        .collect();
    let mut written = Vec::new();
    for _ in 0..2 {
        let mut tx = db.begin_write().unwrap();
        tx.open_series("events")
            .schema(&Event::schema())
            .merge(MergePolicy::KeepDistinct)
            .open()
            .unwrap();
        let mut series = tx.series_of::<Event>("events").unwrap();
        for event in &events {
            series.insert_record(event).unwrap();
        }
        for event in &events {
            let values = [
                u64::from(event.level).into(),
                event.message.clone().unwrap().into(),
            ];
            series.insert_values(Steps(event.time), &values).unwrap();
        }
        written.push(tx.commit().unwrap().bytes_written);
    }
    assert!(written[0] > 350_000 && written[1] < 40_000, "{written:?}");
    let snap = db.begin_read().unwrap();
    let series = snap.series("events").unwrap().unwrap();
    let mut found = Vec::new();
    let put = |event: Event| found.push((event.time, event.level, event.message));
    series.query(..).for_each_record(put).unwrap();
    let all = events.into_iter();
    let all: Vec<_> = all
        .map(|event| (event.time, event.level, event.message))
        .collect();
    assert_eq!(found, all);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn events_that_find_no_room_leave_no_texts_behind() {
    for merge in [MergePolicy::KeepDistinct, MergePolicy::KeepAll] {
        let db = in_memory();
        let mut rng = Rng::new(12);
        let mut event = |length| Event {
            time: 7,
            level: 1,
            message: Some(noise(&mut rng, length)),
        };
        let mut tx = db.begin_write().unwrap();
        tx.open_series("events")
            .schema(&Event::schema())
            .merge(merge)
            .open()
            .unwrap();
        let mut series = tx.series_of::<Event>("events").unwrap();
        for _ in 0..time_rows_max(2) {
            series.insert_record(&event(20)).unwrap();
        }
        tx.commit().unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_of::<Event>("events").unwrap();
        for _ in 0..100 {
            let refused = series.insert_record(&event(3000)).unwrap_err();
            assert!(refused.kind() == ErrorKind::Limit, "{refused}");
        }
        let written = tx.commit().unwrap().bytes_written;
        assert!(written < 40_000, "{}: {written}", merge.name());
        assert!(db.check().unwrap().is_clean());
    }
}

#[test]
fn threads_bring_the_same_rows() {
    let db = in_memory();
    for _ in 0..2 {
        let mut tx = db.begin_write().unwrap();
        tx.open_series(NAME)
            .merge(MergePolicy::KeepDistinct)
            .open()
            .unwrap();
        std::thread::scope(|scope| {
            for mut appender in tx.appenders(3).unwrap() {
                scope.spawn(move || {
                    for i in 0..600_i64 {
                        let mut series = appender.series(NAME).unwrap();
                        series.insert(Steps(i / 100), (i % 50) as f64).unwrap();
                    }
                    appender.finish().unwrap();
                });
            }
        });
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let found = points(&snap.series(NAME).unwrap().unwrap());
        assert_eq!(found.len(), 300);
        for (time, same) in found.chunk_by(|a, b| a.0 == b.0).enumerate() {
            let mut values: Vec<f64> = same.iter().map(|row| row.1).collect();
            values.sort_by(f64::total_cmp);
            assert_eq!(same[0].0, time as i64);
            assert!(
                values
                    .iter()
                    .enumerate()
                    .all(|(i, &value)| value == i as f64)
            );
        }
    }
}
