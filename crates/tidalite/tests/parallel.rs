//! Queries with helper threads equal the same queries with one thread, bit by bit.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{
    ColumnType, Database, Error, Figure, Grid, Options, ReadTxn, Schema, Selection, Steps,
    Timestamp, Unit,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const ROWS: i64 = 1_300_000;
const SERIES: i64 = 40;

/// Creates one series of many rows at irregular times, with gaps, late rows and rows in the delta, and many small
/// series. The file is opened twice: with helper threads and without.
fn world(rng: &mut Rng) -> [Database; 2] {
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().scan_threads(3);
    let db = options
        .open_storage(Monitor::new(Arc::clone(&storage) as _))
        .unwrap();
    let schema = Schema::new(
        Unit::Nanos,
        [("value", ColumnType::F64), ("count", ColumnType::I64)],
    );
    let mut time = -1_000_000;
    let mut tx = db.begin_write().unwrap();
    let mut long = tx.series_with("long", &schema).unwrap();
    for row in 0..ROWS {
        time += rng.between(1, 9);
        if rng.one_in(100_000) {
            time += 2_000_000;
        }
        let value = rng.between(-5000, 5000) as f64 / 100.0;
        long.insert_row(Steps(time), &[value.to_bits(), row as u64])
            .unwrap();
    }
    for n in 0..SERIES {
        let name = format!(r#"host{{n="{n}"}}"#);
        let mut host = tx.series_with(&name, &schema).unwrap();
        let step = rng.between(90, 110);
        for row in 0..30_000 {
            let value = rng.between(-5000, 5000) as f64 / 100.0;
            host.insert_row(Steps(row * step + n), &[value.to_bits(), row as u64])
                .unwrap();
        }
    }
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut long = tx.series_with("long", &schema).unwrap();
    for _ in 0..50 {
        let late = rng.between(-1_500_000, time + 1000);
        long.insert_row(Steps(late), &[1.25f64.to_bits(), 7])
            .unwrap();
    }
    let from = rng.between(0, time);
    long.delete(Steps(from)..Steps(from + 50_000)).unwrap();
    tx.commit().unwrap();
    drop(db);
    [3, 0].map(|threads| {
        let bytes = storage.clone();
        Options::new()
            .scan_threads(threads)
            .read_only(true)
            .open_storage(bytes)
            .unwrap()
    })
}

/// Runs a query in both databases and checks that the results are equal.
fn both<T: PartialEq + std::fmt::Debug>(
    snaps: &[ReadTxn; 2],
    what: &str,
    ask: impl Fn(&ReadTxn) -> T,
) -> T {
    let [helped, alone] = snaps.each_ref().map(&ask);
    assert!(helped == alone, "{what}: threads change the answer");
    alone
}

fn random_interval(rng: &mut Rng, (first, last): (i64, i64)) -> (Bound<Steps>, Bound<Steps>) {
    let mut end = || match rng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Included(rng.between(first - 100, first + 1000)),
        2 => Bound::Excluded(rng.between(last - 1000, last + 100)),
        _ => Bound::Included(rng.between(first, last)),
    };
    (end().map(Steps), end().map(Steps))
}

#[test]
fn parallel_answers_equal_those_of_one_thread() {
    tidalite_testkit::watch();
    let seed = 41;
    println!("seed {seed}");
    let rng = &mut Rng::new(seed);
    let dbs = world(rng);
    let snaps = dbs.each_ref().map(|db| db.begin_read().unwrap());
    let span = both(&snaps, "span", |snap| {
        snap.series("long").unwrap().unwrap().span().unwrap()
    });
    for _ in 0..40 {
        let times = random_interval(rng, span);
        let width = match rng.below(3) {
            0 => rng.between(1, 500),
            1 => rng.between(1000, 10_000),
            _ => rng.between(100_000, 10_000_000),
        };
        let origin = rng.between(-10_000, 10_000);
        let what = format!("{times:?}, windows of {width} from {origin}");
        for column in 0..2 {
            both(&snaps, &what, |snap| {
                let long = snap.series("long").unwrap().unwrap();
                let windows = long
                    .query(times)
                    .windows((Steps(width), Steps(origin)), column)
                    .unwrap();
                let means = long.query(times).figures([Figure::Mean, Figure::Max]);
                (
                    windows,
                    means
                        .windows((Steps(width), Steps(origin)), column)
                        .unwrap(),
                )
            });
        }
    }
    for _ in 0..20 {
        let (from, to) = (rng.between(-1000, 3_000_000), rng.between(-1000, 3_000_000));
        let times = Timestamp(from)..Timestamp(to);
        let grid = Grid::nanos(rng.between(10_000, 2_000_000));
        both(&snaps, &format!("{times:?}, {grid:?}"), |snap| {
            let hosts = snap.select("host").unwrap();
            let all = hosts.query(times.clone());
            let windows = all.windows(&grid, "value").unwrap();
            let means = all.clone().figures(Figure::Mean);
            let means = means.windows(&grid, "value").unwrap();
            (windows, means, all.aggregate("value").unwrap())
        });
    }
}

#[test]
fn parts_of_an_interval_hold_each_row_once() {
    tidalite_testkit::watch();
    let seed = 43;
    println!("seed {seed}");
    let rng = &mut Rng::new(seed);
    let dbs = world(rng);
    let snap = dbs[0].begin_read().unwrap();
    let long = snap.series("long").unwrap().unwrap();
    let span = long.span().unwrap();
    for _ in 0..20 {
        let whole = long.query(random_interval(rng, span));
        let rows = whole.count().unwrap();
        let parts = rng.between(1, 20) as usize;
        let split = whole.split(parts).unwrap();
        assert!(split.len() <= parts);
        let counts: Vec<u64> = split.iter().map(|part| part.count().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), rows);
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        if rows > 10_000 {
            assert_eq!(split.len(), parts);
            assert!(*least * 100 > *most * 85, "about equal: {counts:?}");
        }
        // The parts are in order and contain each row once, whichever thread reads them.
        let parts = whole.in_parallel(|part| {
            let mut numbers = Vec::new();
            part.for_each(|time, words| numbers.push((time, words[1])))?;
            Ok(numbers)
        });
        let mut all = Vec::new();
        whole
            .for_each(|time, words| all.push((time, words[1])))
            .unwrap();
        assert!(parts.unwrap().concat() == all, "rows of parts in order");
    }
    // Four threads get four parts each; a range of few rows is not divided.
    assert_eq!(long.query(..).in_parallel(|_| Ok(())).unwrap().len(), 16);
    let few = snap.select(r#"host{n="3"}"#).unwrap();
    let few = few.series().unwrap()[0].query(..);
    assert_eq!(few.in_parallel(|part| part.count()).unwrap(), [30_000]);
    let nothing = long.query(Steps(5)..Steps(5));
    assert_eq!(nothing.split(4).unwrap().len(), 1);
    assert_eq!(nothing.in_parallel(|part| part.count()).unwrap(), [0]);
}

#[test]
fn series_are_queried_in_order_and_the_first_error_is_returned() {
    tidalite_testkit::watch();
    let rng = &mut Rng::new(47);
    let dbs = world(rng);
    let snap = dbs[0].begin_read().unwrap();
    let hosts = snap.select("host").unwrap();
    let ids: Vec<_> = hosts
        .series()
        .unwrap()
        .iter()
        .map(|host| host.id())
        .collect();
    assert_eq!(hosts.in_parallel(|host| Ok(host.id())).unwrap(), ids);
    let problem = |n: usize| Error::schema(n.to_string());
    let failed = hosts.in_parallel(|host| {
        let n = ids.iter().position(|id| *id == host.id()).unwrap();
        if n >= 11 { Err(problem(n)) } else { Ok(()) }
    });
    assert_eq!(failed.unwrap_err().to_string(), problem(11).to_string());

    // The threads' reads are added to the snapshot's counters when they have finished.
    let counted = |threads: usize| {
        let snap = dbs[usize::from(threads == 0)].begin_read().unwrap();
        let hosts = snap.select("host").unwrap();
        let grid = Grid::nanos(70_001);
        hosts.query(..).windows(&grid, "value").unwrap();
        let counters = snap.counters();
        counters
            .vectors_decoded
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!(counted(3), counted(0));

    // A selection may mix series of two snapshots; each series is read through its own snapshot.
    let mut tx_snap = dbs[0].begin_read().unwrap();
    tx_snap.renew().unwrap();
    let mut mixed = Vec::new();
    for host in hosts.series().unwrap() {
        mixed.extend(tx_snap.series_by_id(host.id()).unwrap());
        mixed.extend(snap.series_by_id(host.id()).unwrap());
    }
    let mixed = Selection::of(mixed);
    let counts = mixed.in_parallel(|host| host.count());
    assert_eq!(counts.unwrap(), vec![30_000_u64; 2 * SERIES as usize]);
}
