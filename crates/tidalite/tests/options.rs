//! The same operations give the same results under random options; and a file stays small however often it is opened
//! and closed.

use crate::aged;
use std::sync::Arc;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{Database, Direction, Durability, MergePolicy, Options, Steps, Tuning};
use tidalite_testkit::rng::Rng;

/// Random options of one run, which must not affect its results.
#[derive(Debug)]
struct Setup {
    page_size: usize,
    write_buffer_bytes: usize,
    dirty_bytes: usize,
    write_behind_bytes: u64,
    leaf_vectors: usize,
    /// Number of runs that the delta merges into one.
    fan_in: usize,
    growth: (u64, u64),
    map: bool,
    verify: Verify,
    /// Seed of a separate generator for commits and reopenings, so that the operations are the same in all runs.
    seed: u64,
}

impl Setup {
    fn random(rng: &mut Rng) -> Self {
        Self {
            page_size: 1 << rng.between(10, 16),
            write_buffer_bytes: 1 << rng.between(10, 24),
            dirty_bytes: 1 << rng.between(16, 26),
            write_behind_bytes: 1 << rng.between(12, 24),
            leaf_vectors: rng.between(1, 16) as usize,
            fan_in: rng.between(2, 16) as usize,
            growth: (1 << rng.between(12, 20), 1 << rng.between(20, 24)),
            map: rng.one_in(2),
            verify: *rng.pick(&[Verify::Always, Verify::OnFirstTouch]),
            seed: rng.u64(),
        }
    }

    fn open(&self, storage: &Arc<MemoryStorage>) -> Database {
        tidalite_testkit::watch();
        tidalite_delta::set_fan_in(self.fan_in);
        let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(storage);
        Options::new()
            .page_size(self.page_size)
            .tuning(
                Tuning::new()
                    .write_buffer_bytes(self.write_buffer_bytes)
                    .dirty_bytes(self.dirty_bytes)
                    .write_behind_bytes(self.write_behind_bytes)
                    .leaf_vectors(self.leaf_vectors)
                    .growth_bytes(self.growth.0, self.growth.1)
                    .map(self.map)
                    .verify(self.verify),
            )
            .open_storage(storage)
            .expect("it opens")
    }
}

/// Names of series, one for each merge policy.
const SERIES: [&str; 5] = ["a", "b{site=\"n\"}", "b{site=\"s\"}", "c", "d"];
const TIMES: i64 = 20_000;

/// Does one random operation and appends its result to `told`.
fn operation(tx: &mut tidalite::WriteTxn, rng: &mut Rng, told: &mut Vec<String>) {
    let i = rng.index(SERIES.len());
    let merge = MergePolicy::ALL[i];
    let mut series = tx
        .open_series(SERIES[i])
        .merge(merge)
        .open()
        .expect("a series");
    match rng.below(12) {
        0..=3 => {
            let start = rng.between(0, TIMES);
            for k in 0..rng.between(1, 60) {
                // The values are whole numbers, because their sums are exact in any order.
                let value = rng.between(-1000, 1000) as f64;
                let done = series.insert_point(Steps(start + 3 * k), rng.between(0, 3), value);
                told.extend(done.err().map(|error| error.to_string()));
            }
        }
        4..=5 => {
            let start = rng.between(0, TIMES);
            let count = rng.between(1, 3000);
            let times: Vec<i64> = (0..count).map(|k| start + k).collect();
            let flags: Vec<u64> = times.iter().map(|_| rng.below(4)).collect();
            let values = times.iter().map(|_| (rng.between(-9, 9) as f64).to_bits());
            let values: Vec<u64> = values.collect();
            let done = series.append_rows(&times, &[&flags, &values]);
            told.extend(done.err().map(|error| error.to_string()));
        }
        6 => {
            let from = rng.between(0, TIMES);
            let removed = series.delete(Steps(from)..Steps(from + rng.between(0, 2500)));
            told.push(format!("{} removed", removed.expect("a delete")));
        }
        7 => {
            let view = series.view().expect("a view");
            told.push(format!(
                "{:?} {}",
                view.span(),
                view.count().expect("count")
            ));
        }
        8 => {
            let key = format!("k{}", rng.below(4));
            let old = series.annotation(&key).expect("an annotation");
            let new = format!("{}", rng.below(9));
            let done = series.compare_annotation(&key, old.as_deref(), Some(&new));
            told.push(format!("{old:?} {}", done.expect("a change")));
        }
        _ => {
            let mut table = tx.table("t").expect("a table");
            for _ in 0..rng.below(40) {
                let key = rng.below(500).to_be_bytes();
                let longest = if rng.one_in(30) { 9000 } else { 60 };
                let mut value = vec![0; rng.index(longest)];
                rng.fill(&mut value);
                table.put(&key, &value).expect("a put");
            }
            let (from, to) = (rng.below(500), rng.below(60));
            let removed = table.remove_range(from.to_be_bytes()..(from + to).to_be_bytes());
            told.push(format!("{} entries", removed.expect("a removal")));
        }
    }
}

/// Runs queries of every kind and appends their results to `told`.
fn ask(db: &Database, rng: &mut Rng, told: &mut Vec<String>) {
    let snap = db.begin_read().expect("a snapshot");
    for name in SERIES {
        let (from, to) = (rng.between(0, TIMES), rng.between(0, TIMES + 3000));
        let (width, at) = (rng.between(1, 4000), rng.between(0, TIMES));
        let Some(series) = snap.series(name).expect("a series") else {
            told.push("none".to_owned());
            continue;
        };
        let range = series.query(Steps(from)..Steps(to));
        let whole = range.aggregate(1).expect("aggregate");
        told.push(format!(
            "{} {:?} {} {:?} {:?} {:?} {:?}",
            range.count().expect("count"),
            whole.times(),
            whole.sum(),
            whole.min(),
            whole.max(),
            whole.first(),
            whole.last(),
        ));
        for window in range.windows((Steps(width), Steps(7)), 1).expect("windows") {
            let sum = window.aggregate.sum();
            told.push(format!(
                "{} {} {sum}",
                window.start,
                window.aggregate.count()
            ));
        }
        let mut rows = Vec::new();
        let forward = range.for_each(|time, words| rows.push((time, words.to_vec())));
        forward.expect("a scan");
        let mut back = Vec::new();
        let backward = range.clone().reverse().for_each_vector(|vector| {
            for row in (0..vector.times().len()).rev() {
                let words: Vec<u64> = (0..2).map(|c| vector.words(c)[row]).collect();
                back.push((vector.times()[row], words));
            }
        });
        backward.expect("a scan");
        back.reverse();
        assert_eq!(rows, back, "{name}");
        told.push(format!("{rows:?}"));
        let mut matches = Vec::new();
        let found = range
            .filter(1, 3.0..=5.0)
            .columns::<usize>([])
            .for_each_vector(|vector| {
                matches.extend_from_slice(vector.times());
            });
        found.expect("a filter");
        told.push(format!("{matches:?}"));
        let mut cursor = series.cursor();
        told.push(format!("{:?}", cursor.search(Steps(at)).expect("a search")));
        for _ in 0..rng.below(5) {
            told.push(format!("{:?}", cursor.previous().expect("a step")));
        }
        told.push(format!("{:?}", cursor.next().expect("a step")));
        let near = series
            .nearest(Steps(at), Direction::Backward)
            .expect("nearest");
        told.push(format!("{near:?} {:?}", series.latest().expect("latest")));
        told.push(format!("{:?}", series.annotations().expect("annotations")));
    }
    if let Some(table) = snap.table("t").expect("a table") {
        let mut entries = Vec::new();
        let put = |key: &[u8], value: &[u8]| entries.push((key.to_vec(), value.to_vec()));
        table.for_each(put).expect("entries");
        told.push(format!("{entries:?}"));
    }
}

fn run(seed: u64, setup: &Setup) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let mut own = Rng::new(setup.seed);
    let storage = Arc::new(MemoryStorage::new());
    let mut db = setup.open(&storage);
    let mut told = Vec::new();
    for _ in 0..25 {
        let mut tx = db.begin_write().expect("a transaction");
        for _ in 0..rng.below(6) {
            operation(&mut tx, &mut rng, &mut told);
        }
        if own.one_in(5) {
            drop(tx.savepoint().expect("a savepoint"));
        }
        if rng.one_in(8) {
            drop(tx);
        } else {
            let how = [
                Durability::Durable,
                Durability::OneFlush,
                Durability::Lazy,
                Durability::None,
            ];
            tx.commit_with(*own.pick(&how)).expect("a commit");
        }
        if rng.one_in(6) {
            let (now, keep) = (rng.between(0, 2 * TIMES), rng.between(TIMES / 2, TIMES));
            let cut = aged::cut(&db, ["a", "b", "c", "d"][rng.index(4)], now, keep);
            told.push(format!("{cut} rows too old"));
        }
        if own.one_in(6) {
            // Here the lock area is in memory and ends with the handle, so commits that are not durable survive only if
            // a durable commit follows them.
            let tx = db.begin_write().expect("a transaction");
            tx.commit().expect("a commit");
            drop(db);
            db = setup.open(&storage);
        }
        if own.one_in(6) {
            db.compact(1 << 20).expect("a step of compaction");
        }
        if rng.one_in(3) {
            ask(&db, &mut rng, &mut told);
        }
    }
    ask(&db, &mut rng, &mut told);
    let report = db.check().expect("a check");
    assert!(report.is_clean(), "seed {seed}: {:?}", report.problems);
    told
}

#[test]
fn answers_do_not_depend_on_options() {
    for seed in 0..16 {
        let mut rng = Rng::new(seed ^ 0x0a77);
        let first = Setup::random(&mut rng);
        let expected = run(seed, &first);
        for _ in 0..3 {
            let setup = Setup::random(&mut rng);
            let told = run(seed, &setup);
            let differs = told.iter().zip(&expected).position(|(a, b)| a != b);
            if let Some(at) = differs {
                let (a, b): (String, String) = (
                    told[at].chars().take(300).collect(),
                    expected[at].chars().take(300).collect(),
                );
                panic!("seed {seed}, answer {at}: {a} with {setup:?}, {b} with {first:?}");
            }
            assert_eq!(
                told.len(),
                expected.len(),
                "seed {seed}: {setup:?}, {first:?}"
            );
        }
    }
}

#[test]
fn compactions_merge_the_configured_number_of_runs() {
    tidalite_testkit::watch();
    let runs = [2, 16].map(|fan_in| {
        tidalite_delta::set_fan_in(fan_in);
        let options = Options::new().page_size(1024);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let db = options.open_storage(storage).unwrap();
        for time in 0..15_i64 {
            let mut tx = db.begin_write().unwrap();
            for series in 0..100 {
                tx.series(&format!("s{series}"))
                    .unwrap()
                    .insert(Steps(time), 0.5)
                    .unwrap();
            }
            tx.commit().unwrap();
        }
        db.stat().unwrap().runs
    });
    assert!(2 * runs[0] < runs[1], "{runs:?} runs are left");
}

#[test]
fn leaves_have_the_configured_size() {
    tidalite_testkit::watch();
    for (vectors, leaves) in [(1, 40), (4, 10), (16, 3)] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let options = Options::new().tuning(Tuning::new().leaf_vectors(vectors));
        let db = options.open_storage(storage).unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("a").unwrap();
        for time in 0..40 * 1024 {
            series.insert_point(Steps(time * time), 0, 0.5).unwrap();
        }
        tx.commit().unwrap();
        let report = db.check().unwrap();
        assert!(report.is_clean());
        assert_eq!(report.leaves, leaves, "leaves of {vectors} vectors");
    }
}

#[test]
fn five_hundred_openings_leave_height_and_bytes_bounded() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let open = || {
        let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(&storage);
        Options::new().open_storage(storage).expect("it opens")
    };
    // A small file grows by its own length at a time, so the bound holds for its total size.
    const EMPTY_BYTES_MAX: u64 = 1 << 20;
    for cycle in 0..500_i64 {
        let db = open();
        let mut tx = db.begin_write().unwrap();
        for series in 0..4 {
            // The test inserts one row after all others, one late row, and one row that is overwritten in each cycle.
            let mut series = tx.series(&format!("s{series}")).unwrap();
            series.insert(Steps(10 * cycle), 0.5).unwrap();
            series.insert(Steps(5 * cycle + 1), 0.25).unwrap();
            series.insert(Steps(0), cycle as f64).unwrap();
        }
        tx.table("t")
            .unwrap()
            .put(b"cycle", &cycle.to_be_bytes())
            .unwrap();
        tx.commit().unwrap();
        let stat = db.stat().unwrap();
        assert!(stat.series_height_max <= 1, "cycle {cycle}: {stat:?}");
        assert!(stat.runs <= 40, "cycle {cycle}: {stat:?}");
        // Bytes of all rows so far if stored uncompressed: 4 series x 2 new rows x 24 bytes in each cycle.
        let raw = 4 * 2 * 24 * u64::try_from(cycle).unwrap();
        let most = EMPTY_BYTES_MAX + 3 * raw;
        assert!(stat.file_bytes <= most, "cycle {cycle}: {stat:?}, {most}");
    }
    let db = open();
    assert!(db.check().unwrap().is_clean());
    let snap = db.begin_read().unwrap();
    let rows = snap.series("s3").unwrap().unwrap().count().unwrap();
    let mut times: Vec<i64> = (0..500).flat_map(|i| [10 * i, 5 * i + 1, 0]).collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!(rows as usize, times.len());
}
