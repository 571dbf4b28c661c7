//! Series that keep all rows of a time, or all different ones. Every query is compared with a plain list in the order
//! of time and arrival, wherever the rows are stored, for any options, while the merge policy changes back and forth.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::limits::time_rows_max;
use tidalite::maintenance::{Change, Salvage};
use tidalite::query::{CandleSize, Join};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{
    Column, ColumnType, Database, Direction, Durability, Error, ErrorKind, MergePolicy, Options,
    Query, Selection, Series, SeriesMut, Steps, Timestamp, Tuning,
};
use tidalite_testkit::rng::Rng;

type Row = (i64, [u64; 2]);
/// The rows of each time, in the order in which they arrived.
type Model = BTreeMap<i64, Vec<[u64; 2]>>;

const NAME: &str = "a";
const TIMES: i64 = 5_000;

fn options(rng: &mut Rng) -> Options {
    Options::new().page_size(1 << rng.between(10, 16)).tuning(
        Tuning::new()
            .write_buffer_bytes(1 << rng.between(10, 22))
            .dirty_bytes(1 << rng.between(16, 26))
            .leaf_vectors(rng.between(1, 16) as usize)
            .map(rng.one_in(2))
            .verify(*rng.pick(&[Verify::Always, Verify::OnFirstTouch])),
    )
}

fn open(storage: &Arc<MemoryStorage>, options: &Options) -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(storage);
    options.open_storage(storage).expect("it opens")
}

fn rows_of(model: &Model, from: i64, to: i64) -> Vec<Row> {
    if from >= to {
        return Vec::new();
    }
    let times = model.range(from..to);
    let rows = times.flat_map(|(&time, rows)| rows.iter().map(move |&row| (time, row)));
    rows.collect()
}

/// Inserts a row into the model as the merge policy says; returns false if the policy refuses the row.
fn insert(model: &mut Model, merge: MergePolicy, time: i64, row: [u64; 2]) -> bool {
    let rows = model.entry(time).or_default();
    match merge {
        _ if rows.is_empty() => rows.push(row),
        MergePolicy::KeepDistinct if rows.contains(&row) => {}
        MergePolicy::KeepAll | MergePolicy::KeepDistinct if rows.len() == time_rows_max(2) => {
            return false;
        }
        MergePolicy::KeepAll | MergePolicy::KeepDistinct => rows.push(row),
        MergePolicy::KeepFirst => {}
        MergePolicy::Error => return false,
        _ => *rows = vec![row],
    }
    true
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Limit)
}

fn scanned(range: &Query<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let put = |time: i64, words: &[u64]| rows.push((time, [words[0], words[1]]));
    let told = range.for_each(put).expect("a scan");
    assert_eq!(told, rows.len() as u64);
    rows
}

fn row_of(row: &tidalite::Row) -> Row {
    (row.time, [row.words[0], row.words[1]])
}

fn value(row: &Row) -> f64 {
    f64::from_bits(row.1[1])
}

fn scans(range: &Query<'_>, expected: &[Row]) {
    assert_eq!(scanned(range), expected);
    assert_eq!(range.count().expect("count"), expected.len() as u64);
    let mut rows = Vec::new();
    let forward = range.for_each_vector(|vector| {
        assert!((1..=1024).contains(&vector.times().len()));
        for (i, &time) in vector.times().iter().enumerate() {
            rows.push((time, [vector.words(0)[i], vector.words(1)[i]]));
        }
    });
    assert_eq!(forward.expect("a scan"), expected.len() as u64);
    assert_eq!(rows, expected);
    rows.clear();
    let backward = range.clone().reverse().for_each_vector(|vector| {
        for (i, &time) in vector.times().iter().enumerate().rev() {
            rows.push((time, [vector.words(0)[i], vector.words(1)[i]]));
        }
    });
    assert_eq!(backward.expect("a scan"), expected.len() as u64);
    rows.reverse();
    assert_eq!(rows, expected);
    for direction in [Direction::Forward, Direction::Backward] {
        rows.clear();
        let query = range.clone().filter(1, 3.0..=5.0);
        let query = match direction {
            Direction::Forward => query,
            Direction::Backward => query.reverse(),
        };
        let found = query.columns([0, 1]).for_each_vector(|vector| {
            let part = (0..vector.times().len())
                .map(|i| (vector.times()[i], [vector.words(0)[i], vector.words(1)[i]]));
            match direction {
                Direction::Forward => rows.extend(part),
                Direction::Backward => rows.extend(part.rev()),
            }
        });
        if direction == Direction::Backward {
            rows.reverse();
        }
        let wanted = |row: &&Row| (3.0..=5.0).contains(&value(row));
        let wanted: Vec<Row> = expected.iter().filter(wanted).copied().collect();
        assert_eq!(found.expect("a filter"), wanted.len() as u64);
        assert_eq!(rows, wanted);
    }
}

/// Statistics of some rows: count, sum, first and last value, first and last time.
type Told = (u64, f64, Option<f64>, Option<f64>, Option<(i64, i64)>);

fn told_of(rows: &[Row]) -> Told {
    (
        rows.len() as u64,
        rows.iter().map(value).sum(),
        rows.first().map(value),
        rows.last().map(value),
        rows.first().zip(rows.last()).map(|(a, b)| (a.0, b.0)),
    )
}

fn told(aggregate: &tidalite::Aggregate) -> Told {
    (
        aggregate.count(),
        aggregate.sum(),
        aggregate.first(),
        aggregate.last(),
        aggregate.times(),
    )
}

fn aggregates(range: &Query<'_>, rows: &[Row], rng: &mut Rng) {
    let whole = range.aggregate(1).expect("an aggregate");
    assert_eq!(told(&whole), told_of(rows));
    let least = rows.iter().map(value).reduce(f64::min);
    assert_eq!(whole.min().map(|(least, _)| least), least);
    let width = rng.between(1, 900);
    let windows = range.windows((Steps(width), Steps(7)), 1).expect("windows");
    let parts: Vec<&[Row]> = rows
        .chunk_by(|a, b| (a.0 - 7).div_euclid(width) == (b.0 - 7).div_euclid(width))
        .collect();
    assert_eq!(windows.len(), parts.len());
    for (window, part) in windows.iter().zip(parts) {
        assert_eq!(told(&window.aggregate), told_of(part));
    }
    for size in [
        CandleSize::Level(0),
        CandleSize::Level(1),
        CandleSize::Width(rng.between(1, 700) as u64),
    ] {
        let (mut at, mut before) = (0, None);
        for candle in range.candles(size, 1).expect("candles") {
            let end = at + candle.aggregate.count() as usize;
            assert_eq!(told(&candle.aggregate), told_of(&rows[at..end]));
            // All rows of one time are in the same candle.
            assert!(before < Some(rows[at].0));
            before = Some(rows[end - 1].0);
            at = end;
        }
        assert_eq!(at, rows.len());
    }
}

fn steps(series: &Series<'_>, rows: &[Row], rng: &mut Rng) {
    let t = rng.between(-2, TIMES + 2);
    let mut cursor = series.cursor();
    let mut at = rows.partition_point(|row| row.0 <= t);
    let found = cursor.search(Steps(t)).expect("a search");
    assert_eq!(
        found.as_ref().map(row_of),
        at.checked_sub(1).map(|at| rows[at])
    );
    if at > 0 {
        at -= 1;
        for _ in 0..rng.below(60) {
            if rng.one_in(2) {
                let next = cursor.next().expect("a step");
                assert_eq!(next.as_ref().map(row_of), rows.get(at + 1).copied());
                if next.is_none() {
                    break;
                }
                at += 1;
            } else {
                let previous = cursor.previous().expect("a step");
                let before = at.checked_sub(1).map(|before| rows[before]);
                assert_eq!(previous.as_ref().map(row_of), before);
                if previous.is_none() {
                    break;
                }
                at -= 1;
            }
        }
    }
    let first = cursor.first().expect("a step");
    assert_eq!(first.as_ref().map(row_of), rows.first().copied());
    let last = cursor.last().expect("a step");
    assert_eq!(last.as_ref().map(row_of), rows.last().copied());
    let latest = series.latest().expect("latest");
    assert_eq!(latest.as_ref().map(row_of), rows.last().copied());
    let here = series.at(Steps(t)).expect("a row");
    let last_here = rows.iter().rfind(|row| row.0 == t);
    assert_eq!(here.as_ref().map(row_of), last_here.copied());
    let ahead = series.nearest(Steps(t), Direction::Forward).expect("a row");
    let expected = rows.iter().find(|row| row.0 >= t);
    assert_eq!(ahead.as_ref().map(row_of), expected.copied());
    let behind = series
        .nearest(Steps(t), Direction::Backward)
        .expect("a row");
    let expected = rows.iter().rfind(|row| row.0 < t);
    assert_eq!(behind.as_ref().map(row_of), expected.copied());
    let current = scanned(&series.query(Steps(t)..).from_current());
    let from = rows.iter().rfind(|row| row.0 <= t).map_or(t, |row| row.0);
    let expected: Vec<Row> = rows.iter().filter(|row| row.0 >= from).copied().collect();
    assert_eq!(current, expected);
}

fn equal(series: &Series<'_>, model: &Model, rng: &mut Rng) {
    let all = rows_of(model, i64::MIN, i64::MAX);
    let span = all.first().zip(all.last()).map(|(a, b)| (a.0, b.0));
    assert_eq!(series.span(), span);
    scans(&series.query(..), &all);
    let from = rng.between(-2, TIMES);
    let to = from + rng.between(0, 2000);
    let inside = rows_of(model, from, to);
    scans(&series.query(Steps(from)..Steps(to)), &inside);
    aggregates(&series.query(..), &all, rng);
    aggregates(&series.query(Steps(from)..Steps(to)), &inside, rng);
    for _ in 0..3 {
        steps(series, &all, rng);
    }
}

fn some_row(rng: &mut Rng) -> [u64; 2] {
    // There are few different values, so that many rows are equal.
    let most = if rng.one_in(2) { 8 } else { 1000 };
    [rng.below(9), (rng.below(most) as f64).to_bits()]
}

fn one_row(series: &mut SeriesMut<'_>, model: &mut Model, rng: &mut Rng) {
    let merge = series.info().merge;
    let newest = model.keys().next_back().copied().unwrap_or(0);
    let time = match rng.below(6) {
        0 => rng.between(0, TIMES),
        1 => rng.between(0, TIMES / 100) * 100,
        2..=4 => newest,
        _ => newest + rng.between(1, 3),
    };
    let row = some_row(rng);
    let done = series.insert_point(Steps(time), row[0] as i64, f64::from_bits(row[1]));
    match (insert(model, merge, time, row), done) {
        (true, Ok(())) => {}
        (false, Err(error)) => assert!(is_refusal(&error), "{error}"),
        (expected, found) => panic!("row at {time}: {expected}, {found:?}"),
    }
}

fn many_rows(series: &mut SeriesMut<'_>, model: &mut Model, rng: &mut Rng) {
    let merge = series.info().merge;
    let newest = model.keys().next_back().copied().unwrap_or(0);
    let longest = if rng.one_in(4) { 6_000 } else { 300 };
    let count = rng.between(1, longest);
    let shape = rng.below(4);
    let each = rng.between(1, 40);
    let around = rng.between(0, TIMES);
    let times = (0..count).map(|i| match shape {
        0 => rng.between(0, TIMES),
        // From the newest existing time on, several rows of each time.
        1 => newest + i / each,
        // All rows at one time or just after it, so that this time may get very many rows.
        2 => around + rng.between(0, 3) * i64::from(rng.one_in(3)),
        _ => newest + 1 + i,
    });
    let times: Vec<i64> = times.collect();
    let (flags, values): (Vec<u64>, Vec<u64>) = times
        .iter()
        .map(|_| some_row(rng))
        .map(|row| (row[0], row[1]))
        .unzip();
    let done = series.append_rows(&times, &[&flags, &values]);
    let mut next = model.clone();
    let fits = (0..times.len()).all(|i| insert(&mut next, merge, times[i], [flags[i], values[i]]));
    match (fits, done) {
        (true, Ok(())) => *model = next,
        (false, Err(error)) => assert!(is_refusal(&error), "{error}"),
        (expected, found) => panic!("{} rows: {expected}, {found:?}", times.len()),
    }
}

fn work(series: &mut SeriesMut<'_>, next: &mut Model, rng: &mut Rng) {
    match rng.below(14) {
        0 => {
            let from = rng.between(0, TIMES);
            let to = from + rng.between(0, 900);
            let before = rows_of(next, i64::MIN, i64::MAX).len();
            next.retain(|&time, _| time < from || time >= to);
            let removed = series.delete(Steps(from)..Steps(to)).expect("a delete");
            let left = rows_of(next, i64::MIN, i64::MAX).len();
            assert_eq!(removed as usize, before - left);
        }
        1 => equal(&series.view().expect("a view"), next, rng),
        2 => {
            // Policies that keep several rows of a time are chosen more often.
            let several = [MergePolicy::KeepAll, MergePolicy::KeepDistinct];
            let some: &[_] = if rng.one_in(2) {
                &MergePolicy::ALL
            } else {
                &several
            };
            let merge = *rng.pick(some);
            series.set_merge(merge).expect("a policy");
        }
        #[cfg(feature = "cold")]
        3 => {
            let rows_max = *rng.pick(&[0, 1, u64::MAX]);
            series
                .rewrite_cold(rng.between(0, TIMES), rows_max)
                .expect("cold leaves");
        }
        4..=6 => many_rows(series, next, rng),
        _ => {
            for _ in 0..rng.below(120) {
                one_row(series, next, rng);
            }
        }
    }
}

/// The times at which two models differ.
fn changed(a: &Model, b: &Model) -> Vec<i64> {
    let mut times: Vec<i64> = a.keys().chain(b.keys()).copied().collect();
    times.sort_unstable();
    times.dedup();
    times.retain(|time| a.get(time) != b.get(time));
    times
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let storage = Arc::new(MemoryStorage::new());
    let first = options(&mut rng);
    let mut db = open(&storage, &first);
    let mut model = Model::new();
    let mut tx = db.begin_write().expect("a transaction");
    let merge = [MergePolicy::KeepAll, MergePolicy::KeepDistinct][seed as usize % 2];
    tx.open_series(NAME).merge(merge).open().expect("a series");
    tx.commit().expect("a commit");
    let commits = if seed % 8 == 7 { 90 } else { 24 };
    for _ in 0..commits {
        let base = db.begin_read().expect("a snapshot");
        let was = model.clone();
        let mut tx = db.begin_write().expect("a transaction");
        let mut series = tx.series(NAME).expect("a series");
        let mut next = model.clone();
        for _ in 0..rng.below(6) {
            work(&mut series, &mut next, &mut rng);
        }
        if rng.one_in(4) {
            let savepoint = tx.savepoint().expect("a savepoint");
            let mut series = tx.series(NAME).expect("a series");
            let mut undone = next.clone();
            work(&mut series, &mut undone, &mut rng);
            one_row(&mut series, &mut undone, &mut rng);
            tx.rollback_to(&savepoint).expect("the way back");
            let mut series = tx.series(NAME).expect("a series");
            one_row(&mut series, &mut next, &mut rng);
            work(&mut series, &mut next, &mut rng);
        }
        if rng.one_in(6) {
            drop(tx);
        } else {
            let how = [Durability::Durable, Durability::OneFlush, Durability::Lazy];
            tx.commit_with(*rng.pick(&how)).expect("a commit");
            model = next;
        }
        let snap = db.begin_read().expect("a snapshot");
        let series = snap.series(NAME).expect("a series").expect("it is there");
        equal(&series, &model, &mut rng);
        let mut ranges = Vec::new();
        snap.diff(&base, &mut |change| {
            if let Change::Rows { from, to, .. } = change {
                ranges.push((from, to));
            }
            Ok(())
        })
        .expect("a diff");
        let differ = changed(&was, &model);
        let told = |time: &i64| ranges.iter().any(|(from, to)| (from..=to).contains(&time));
        assert!(differ.iter().all(told), "all that differs is told");
        let inside = |&(from, to): &(i64, i64)| {
            let same = was
                .iter()
                .chain(&model)
                .filter(|(time, _)| (from..=to).contains(time));
            same.into_iter()
                .all(|(time, _)| differ.binary_search(time).is_ok())
        };
        assert!(
            ranges.iter().all(inside),
            "nothing else is told: {ranges:?}"
        );
        drop(series);
        drop((snap, base));
        if rng.one_in(5) {
            db.compact(1 << 20).expect("a step");
        }
        if rng.one_in(5) {
            let tx = db.begin_write().expect("a transaction");
            tx.commit().expect("a commit");
            drop(db);
            db = open(&storage, &first);
        }
    }
    let report = db.check().expect("a check");
    assert!(report.is_clean(), "{:?}", report.problems);
    // A durable commit writes the lazy changes to the file, which the salvage reads.
    let tx = db.begin_write().expect("a transaction");
    tx.commit().expect("a commit");
    elsewhere(&db, storage, &model, &mut rng);
}

/// Checks that a copy and a salvaged file hold the same rows.
fn elsewhere(db: &Database, storage: Arc<MemoryStorage>, model: &Model, rng: &mut Rng) {
    // The copy gets a folder of its own, because its lock file is next to it.
    let dir = std::env::temp_dir().join(format!("tidalite-keep-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir(&dir).expect("a folder");
    let path = dir.join("copy.tdl");
    let merge = {
        let snap = db.begin_read().expect("a snapshot");
        snap.copy().to(&path).expect("a copy");
        let series = snap.series(NAME).expect("a series").expect("it is there");
        series.info().merge
    };
    let saved = in_memory();
    Salvage::of_storage(storage)
        .to_database(&saved)
        .expect("what is left");
    for copy in [Database::open(&path).expect("it opens"), saved] {
        let report = copy.check().expect("a check");
        assert!(report.is_clean(), "{:?}", report.problems);
        let snap = copy.begin_read().expect("a snapshot");
        let series = snap.series(NAME).expect("a series").expect("it is there");
        assert_eq!(series.info().merge, merge);
        equal(&series, model, rng);
    }
    std::fs::remove_dir_all(dir).expect("it was there");
}

#[test]
fn every_question_equals_a_list_in_the_order_of_arrival() {
    for seed in 0..24 {
        println!("seed {seed}");
        run(seed);
    }
}

fn in_memory() -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).expect("it opens")
}

#[test]
fn a_time_has_room_for_as_many_rows_as_a_vector() {
    let db = in_memory();
    let most = time_rows_max(2);
    assert_eq!(
        (most, time_rows_max(5), time_rows_max(64)),
        (1024, 1024, 112)
    );
    let mut tx = db.begin_write().unwrap();
    let mut series = tx
        .open_series(NAME)
        .merge(MergePolicy::KeepAll)
        .open()
        .unwrap();
    for i in 0..most {
        series.insert(Steps(7), i as f64).unwrap();
    }
    let told = "rows of one time in a series of so many columns: 1025 exceeds the limit of 1024";
    let full = |error: Error| assert!(error.to_string().starts_with(told), "{error}");
    full(series.insert(Steps(7), 0.5).unwrap_err());
    series.insert(Steps(8), 0.5).unwrap();
    tx.commit().unwrap();
    // The maximum number of rows also holds for a row in a later transaction, and for a batch, which is stored as a
    // whole or not at all.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(NAME).unwrap();
    full(series.insert(Steps(7), 0.5).unwrap_err());
    let words = [0u64; 3];
    full(
        series
            .append_rows(&[9, 7, 6], &[&words, &words])
            .unwrap_err(),
    );
    assert_eq!(series.view().unwrap().count().unwrap(), most as u64 + 1);
    // With four more columns, a block could not hold all rows of the full time, so adding the columns is refused.
    let columns: Vec<Column> = (0..4)
        .map(|i| Column::new(format!("c{i}"), ColumnType::F64))
        .collect();
    let refused = series.add_columns(&columns).unwrap_err();
    assert!(
        refused.limit().is_some_and(|(_, limit)| limit == 1011),
        "{refused}"
    );
    series.add_columns(&columns[..3]).unwrap();
    assert_eq!(series.delete(Steps(7)..Steps(8)).unwrap(), most as u64);
    series.add_columns(&columns[3..]).unwrap();
    tx.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn joins_take_the_last_row_of_a_time_and_merges_all() {
    let db = in_memory();
    let mut tx = db.begin_write().unwrap();
    for (name, first) in [("a", 10.0), ("b", 20.0)] {
        let mut series = tx
            .open_series(name)
            .merge(MergePolicy::KeepAll)
            .open()
            .unwrap();
        for (time, value) in [(1_i64, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (3, 4.0)] {
            series.insert(Steps(time), first + value).unwrap();
        }
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let selection = Selection::of(
        ["a", "b"]
            .map(|name| snap.series(name).unwrap().unwrap())
            .into(),
    );
    let mut rows = selection.query(..).rows().unwrap();
    let mut merged = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        merged.push((row.series, row.time.0, f64::from_bits(row.words[1])));
    }
    let at_one = [(0, 1, 10.0), (0, 1, 11.0), (1, 1, 20.0), (1, 1, 21.0)];
    assert_eq!(merged[..4], at_one);
    assert_eq!(merged.len(), 10);
    let mut joined = selection
        .query(Timestamp(2)..Timestamp(4))
        .join(Join::Inner)
        .unwrap();
    let mut values = Vec::new();
    while let Some(row) = joined.next().unwrap() {
        values.push([0, 1].map(|i| f64::from_bits(row.words(i).unwrap()[1])));
    }
    assert_eq!(values, [[12.0, 22.0], [14.0, 24.0]]);
}

#[test]
fn threads_append_to_one_time() {
    let db = in_memory();
    let mut tx = db.begin_write().unwrap();
    tx.open_series(NAME)
        .merge(MergePolicy::KeepAll)
        .open()
        .unwrap();
    std::thread::scope(|scope| {
        for (n, mut appender) in tx.appenders(3).unwrap().into_iter().enumerate() {
            scope.spawn(move || {
                for i in 0..300_i64 {
                    let value = (n * 1000) as f64 + i as f64;
                    appender
                        .series(NAME)
                        .unwrap()
                        .insert(Steps(i / 100), value)
                        .unwrap();
                }
                appender.finish().unwrap();
            });
        }
    });
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series(NAME).unwrap().unwrap();
    assert_eq!(series.count().unwrap(), 900);
    let rows = scanned(&series.query(..));
    for n in 0..3 {
        let own = rows
            .iter()
            .map(value)
            .filter(|value| (value / 1000.0) as usize == n);
        let own: Vec<f64> = own.collect();
        assert_eq!(own.len(), 300);
        assert!(own.is_sorted(), "those of a thread are in its order");
    }
}

/// The rows of a series were looked at before its merge policy changed, so that the write buffer has an empty place for them.
#[test]
fn a_policy_that_changes_after_a_reading_holds_for_the_next_rows() {
    use MergePolicy::{KeepAll, KeepDistinct, Replace};
    let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
    for (first, then, values) in [
        (Replace, KeepAll, &[1.0, 2.0][..]),
        (Replace, KeepDistinct, &[1.0, 2.0]),
        (KeepAll, Replace, &[2.0]),
        (KeepDistinct, Replace, &[2.0]),
    ] {
        let name = format!("{}-{}", first.name(), then.name());
        let mut tx = db.begin_write().expect("a transaction");
        let mut series = tx.open_series(&name).merge(first).open().expect("a series");
        assert!(series.latest().expect("an answer").is_none());
        series.set_merge(then).expect("a policy");
        for value in [1.0, 2.0] {
            series.insert(Steps(1), value).expect("a row");
        }
        tx.commit().expect("a commit");
        let snap = db.begin_read().expect("a snapshot");
        let series = snap.series(&name).expect("an answer").expect("a series");
        let mut found = Vec::new();
        let each = |_, words: &[u64]| found.push(f64::from_bits(words[1]));
        series.query(..).for_each(each).expect("rows");
        assert_eq!(found, values, "{name}");
    }
}
