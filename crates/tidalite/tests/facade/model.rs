//! Random transactions are compared with plain maps: series of several schemas and ranges of times, tables, reads
//! inside the transaction, rollback, and reopening a real file.

use crate::aged;
use crate::common::{Content, Folder, Pairs, Rows, assert_clean, content_of, in_memory, pairs_of};
use crate::oracle::{a_time, compare};
use std::sync::Arc;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{
    ColumnType, Database, Durability, Options, Schema, Steps, Table, Tuning, Unit, WriteTxn,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

/// Number of rows of a series above which the test deletes intervals.
const ROWS_MAX: usize = 25_000;

/// The way in which the times of a series are chosen.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// Small numbers that are close together, so that many rows are overwritten.
    Dense,
    /// Numbers from the whole range of i64, including its ends.
    Whole,
    /// Ticks of .NET, beginning with 0001-01-01.
    YearOne,
    /// Nanoseconds of this century, at partly irregular intervals.
    Nanos,
}

const CLOCKS: [Clock; 4] = [Clock::Dense, Clock::Whole, Clock::YearOne, Clock::Nanos];
/// Number of .NET ticks in ten seconds.
const TICKS_STEP: i64 = 100_000_000;

impl Clock {
    fn time(self, rng: &mut Rng) -> i64 {
        match self {
            Self::Dense => rng.between(-2_000, 30_000),
            Self::Whole => match rng.below(6) {
                0 => i64::MIN + rng.between(0, 3),
                1 => i64::MAX - rng.between(0, 3),
                2 => rng.between(-3, 3),
                _ => rng.u64() as i64,
            },
            Self::YearOne => rng.between(0, 40_000) * TICKS_STEP + i64::from(rng.one_in(9)),
            Self::Nanos => 1_400_000_000_000_000_000 + rng.between(0, 50_000) * 1_000_000_007,
        }
    }

    fn step(self, rng: &mut Rng) -> i64 {
        match self {
            Self::Dense => rng.between(1, 3),
            Self::Whole => rng.between(1, 1 << 48),
            Self::YearOne => TICKS_STEP,
            Self::Nanos => *rng.pick(&[1_000_000_007, 1_000_000_000, 1]),
        }
    }
}

fn schemas() -> [(Schema, Clock); 6] {
    use ColumnType::{F64, I64, U64};
    [
        (Schema::point(), CLOCKS[0]),
        (Schema::point(), CLOCKS[3]),
        (Schema::new(Unit::Ticks, [("x", U64)]), CLOCKS[2]),
        (
            Schema::new(Unit::Nanos, [("a", F64), ("b", F64), ("c", U64)]),
            CLOCKS[1],
        ),
        (
            Schema::new(
                Unit::Millis,
                [("a", I64), ("b", U64), ("c", F64), ("d", F64)],
            ),
            CLOCKS[0],
        ),
        (
            Schema::new(
                Unit::Ticks,
                [("a", I64), ("b", F64), ("c", I64), ("d", U64), ("e", F64)],
            ),
            CLOCKS[2],
        ),
    ]
}

/// A random float of many kinds. `style` selects how values repeat, so that vectors are encoded differently.
fn a_float(rng: &mut Rng, style: u64, i: i64) -> u64 {
    let odd = match rng.below(60) {
        0 => f64::from_bits(0x7ff8_0000_0000_0000 | rng.below(1 << 51)),
        1 => f64::from_bits(0xfff0_0000_0000_0001 + rng.below(1 << 50)),
        2 => -0.0,
        3 if style == 3 => *rng.pick(&[f64::INFINITY, f64::NEG_INFINITY]),
        4 => *rng.pick(&[0.0, 5e-324, -5e-324, 1e140, -1e140]),
        _ => f64::NAN,
    };
    let plain = match style {
        0 => return 7.25f64.to_bits(),
        1 => return (i as f64 / 8.0).to_bits(),
        2 => rng.between(-99_999, 99_999) as f64 / 100.0,
        _ => rng.f64() * 1e6,
    };
    if odd.to_bits() == f64::NAN.to_bits() {
        plain.to_bits()
    } else {
        odd.to_bits()
    }
}

fn a_word(rng: &mut Rng, ty: ColumnType, style: u64, i: i64) -> u64 {
    match (ty, style) {
        (ColumnType::F64, _) => a_float(rng, style, i),
        (_, 0) => 42,
        (_, 1) => (i * 12) as u64,
        (_, 2) => rng.below(1000),
        _ if rng.one_in(30) => *rng.pick(&[0, 1, u64::MAX, 1 << 63, (1 << 63) - 1]),
        _ => rng.u64() >> rng.below(64),
    }
}

struct World {
    rng: Rng,
    series: [(Schema, Clock); 6],
}

fn series_name(i: usize) -> String {
    format!("m{i}{{kind=\"model\"}}")
}

impl World {
    /// Makes one random change of a series, in the database and in the map.
    fn change_series(&mut self, tx: &mut WriteTxn, content: &mut Content) {
        let rng = &mut self.rng;
        let which = rng.index(self.series.len());
        let (schema, clock) = &self.series[which];
        let types = schema.types();
        let rows = content.series.entry(series_name(which)).or_default();
        let mut series = tx.series_with(&series_name(which), schema).unwrap();
        let style = rng.below(4);
        let row = |rng: &mut Rng, i: i64| -> Vec<u64> {
            types.iter().map(|&ty| a_word(rng, ty, style, i)).collect()
        };
        match rng.below(10) {
            _ if rows.len() > ROWS_MAX => {
                let (from, to) = (a_time(rng, rows), a_time(rng, rows));
                delete(&mut series, rows, from.min(to), from.max(to));
            }
            0 => {
                let (from, to) = (a_time(rng, rows), a_time(rng, rows));
                let to = if rng.one_in(3) {
                    to
                } else {
                    from.saturating_add(to.wrapping_sub(from) >> 5)
                };
                delete(&mut series, rows, from, to);
            }
            1..=4 => {
                for i in 0..rng.between(1, 30) {
                    let time = clock.time(rng);
                    let words = row(rng, i);
                    series.insert_row(Steps(time), &words).unwrap();
                    rows.insert(time, words);
                }
            }
            kind => {
                // The rows are consecutive after the last row, or anywhere: new, late, or over existing rows.
                let count = *rng.pick(&[5, 70, 300, 1024, 1025, 2500]);
                let step = clock.step(rng);
                let last = rows.last_key_value().map(|(&time, _)| time);
                let start = match last {
                    Some(last) if kind < 8 && last < i64::MAX / 2 => last + step,
                    _ => clock.time(rng),
                };
                let mut times = Vec::new();
                let mut columns = vec![Vec::new(); types.len()];
                for i in 0..count {
                    let Some(time) = step.checked_mul(i).and_then(|far| start.checked_add(far))
                    else {
                        break;
                    };
                    let words = row(rng, i);
                    times.push(time);
                    for (column, &word) in columns.iter_mut().zip(&words) {
                        column.push(word);
                    }
                    rows.insert(time, words);
                }
                let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
                series.append_rows(&times, &columns).unwrap();
            }
        }
        if rng.one_in(4) {
            compare(rng, &series.view().unwrap(), rows);
        }
    }

    /// Makes one random change of a table, in the database and in the map.
    fn change_table(&mut self, tx: &mut WriteTxn, content: &mut Content) {
        let rng = &mut self.rng;
        let name = format!("t{}", rng.below(11));
        let pairs = content.tables.entry(name.clone()).or_default();
        let mut table = tx.table(&name).unwrap();
        let key = |rng: &mut Rng| {
            let mut key = vec![0; *rng.pick(&[0, 1, 2, 2, 2, 3, 40, 170])];
            rng.fill(&mut key);
            key
        };
        let value = |rng: &mut Rng| {
            let most = *rng.pick(&[1, 20, 20, 200, 3_000, 90_000]);
            vec![rng.u64() as u8; rng.index(most)]
        };
        match rng.below(16) {
            0 if rng.one_in(4) => {
                table.clear().unwrap();
                pairs.clear();
            }
            0..=5 => {
                for _ in 0..rng.between(1, 40) {
                    let near = pairs.range(key(rng)..).next().map(|(key, _)| key.clone());
                    if let Some(key) = near {
                        assert!(table.remove(&key).unwrap());
                        pairs.remove(&key);
                    }
                    let any = key(rng);
                    assert_eq!(table.remove(&any).unwrap(), pairs.remove(&any).is_some());
                }
            }
            6 => {
                let start = pairs
                    .last_key_value()
                    .map_or(0, |(key, _)| key.first().copied().unwrap_or(0));
                let count = rng.between(1, 600) as u16;
                let many: Vec<_> = (0..count)
                    .map(|i| (vec![start, 255, (i >> 8) as u8, i as u8], value(rng)))
                    .map(|(key, value)| (key, value[..value.len().min(300)].to_vec()))
                    .collect();
                let new = many
                    .iter()
                    .filter(|(key, _)| !pairs.contains_key(key))
                    .count();
                assert_eq!(table.extend(many.clone()).unwrap(), new as u64);
                pairs.extend(many);
            }
            _ => {
                for _ in 0..rng.between(1, 25) {
                    let (key, value) = (key(rng), value(rng));
                    assert_eq!(table.put(&key, &value).unwrap(), !pairs.contains_key(&key));
                    assert_eq!(table.get(&key).unwrap().as_ref(), Some(&value));
                    pairs.insert(key, value);
                }
            }
        }
        if rng.one_in(4) {
            compare_table(rng, &table.view().unwrap(), pairs);
        }
    }

    /// Lets a retention policy remove old rows of one series, as of a time chosen for this series; returns false if
    /// nothing was removed.
    fn cut(&mut self, db: &Database, content: &mut Content) -> bool {
        let rng = &mut self.rng;
        let which = rng.index(self.series.len());
        let unit = self.series[which].0.unit;
        let Some(rows) = content.series.get_mut(&series_name(which)) else {
            return false;
        };
        let nanos = |raw: i64| {
            let steps = i128::from(raw) - i128::from(unit.steps_to_1970());
            steps * i128::from(unit.nanos())
        };
        // Policies compute in nanoseconds since 1970, which cannot express all times of coarser units.
        let near = i128::from(i64::MIN / 4)..i128::from(i64::MAX / 4);
        let until = nanos(a_time(rng, rows));
        if !near.contains(&until) {
            return false;
        }
        let keep = rng.between(1, 1 << 40);
        let cut = aged::cut(db, &series_name(which), until as i64 + keep, keep);
        let before = rows.len();
        rows.retain(|&time, _| nanos(time) >= until);
        assert_eq!(cut, (before - rows.len()) as u64, "rows that a policy cuts");
        true
    }

    fn look(&mut self, db: &Database, content: &Content) {
        let snap = db.begin_read().unwrap();
        let rng = &mut self.rng;
        for (name, rows) in &content.series {
            if rng.one_in(2) {
                // `latest` works whether or not the series is already open in the snapshot.
                let info = &snap.list(name).unwrap()[0];
                let latest = snap.latest(info.id).unwrap();
                let newest = rows.last_key_value();
                assert_eq!(
                    latest.map(|row| (row.time, row.words)),
                    newest.map(|(&time, words)| (time, words.clone()))
                );
                compare(rng, &snap.series(name).unwrap().unwrap(), rows);
            }
        }
        for (name, pairs) in &content.tables {
            if rng.one_in(3) {
                compare_table(rng, &snap.table(name).unwrap().unwrap(), pairs);
            }
        }
    }
}

fn delete(series: &mut tidalite::SeriesMut<'_>, rows: &mut Rows, from: i64, to: i64) {
    let before = rows.len();
    rows.retain(|&time, _| time < from || time > to);
    let gone = (before - rows.len()) as u64;
    assert_eq!(
        series.delete(Steps(from)..=Steps(to)).unwrap(),
        gone,
        "delete {from}..={to}"
    );
}

fn compare_table(rng: &mut Rng, table: &Table<'_>, pairs: &Pairs) {
    if rng.one_in(3) {
        assert_eq!(&pairs_of(table).unwrap(), pairs);
    }
    assert_eq!(table.count(), pairs.len() as u64);
    let mut cursor = table.cursor();
    for _ in 0..15 {
        let mut key = vec![0; rng.index(4)];
        rng.fill(&mut key);
        assert_eq!(table.get(&key).unwrap(), pairs.get(&key).cloned());
        let forward = rng.one_in(2);
        let (mut found, mut expected) = match rng.below(4) {
            0 => (cursor.first().unwrap(), pairs.first_key_value()),
            1 => (cursor.last().unwrap(), pairs.last_key_value()),
            2 => (cursor.seek_ge(&key).unwrap(), pairs.range(key..).next()),
            _ => (
                cursor.seek_le(&key).unwrap(),
                pairs.range(..=key).next_back(),
            ),
        };
        for _ in 0..rng.index(60) {
            assert_eq!(found, expected.is_some());
            let Some((key, value)) = expected else { break };
            assert_eq!((cursor.key(), &cursor.value().unwrap()), (&key[..], value));
            if forward {
                let above = (
                    std::ops::Bound::Excluded(key.clone()),
                    std::ops::Bound::Unbounded,
                );
                expected = pairs.range(above).next();
                found = cursor.next().unwrap();
            } else {
                expected = pairs.range(..key.clone()).next_back();
                found = cursor.previous().unwrap();
            }
        }
    }
}

fn run(seed: u64, page_size: usize, transactions: usize) {
    println!("seed {seed}, pages of {page_size}, {transactions} transactions");
    let folder = Folder::new("model");
    let path = folder.file("plant.tdl");
    let mut world = World {
        rng: Rng::new(seed),
        series: schemas(),
    };
    let verify = [Verify::OnFirstTouch, Verify::Always, Verify::Never][seed as usize % 3];
    // Memory limits are small, so that transactions must write to the file before they commit.
    let options = Options::new().page_size(page_size).tuning(
        Tuning::new()
            .growth_bytes(64 << 10, 1 << 20)
            .dirty_bytes(64 << 10)
            .write_buffer_bytes(300_000)
            .verify(verify)
            .map(!seed.is_multiple_of(4)),
    );
    let mut db = options.open(&path).unwrap();
    // The expected contents of the newest commit, and of the newest durable commit.
    let (mut newest, mut durable) = (Content::default(), Content::default());
    for number in 0..transactions {
        let mut content = newest.clone();
        let mut tx = db.begin_write().unwrap();
        for _ in 0..world.rng.between(1, 8) {
            if world.rng.one_in(3) {
                world.change_table(&mut tx, &mut content);
            } else {
                world.change_series(&mut tx, &mut content);
            }
        }
        match world.rng.below(10) {
            0..=1 => drop(tx),
            2..=3 => {
                tx.commit_with(Durability::None).unwrap();
                newest = content;
            }
            _ => {
                tx.commit().unwrap();
                newest.clone_from(&content);
                durable = content;
            }
        }
        if world.rng.one_in(12) {
            // The commit that applies the policy is durable, so earlier commits become durable with it.
            if world.cut(&db, &mut newest) {
                durable.clone_from(&newest);
            }
        }
        if world.rng.one_in(3) {
            world.look(&db, &newest);
        }
        if world.rng.one_in(9) {
            drop(db);
            db = options.open(&path).unwrap();
            newest.clone_from(&durable);
            world.look(&db, &newest);
        }
        if number % 40 == 39 {
            assert_clean(&db);
        }
    }
    assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), newest);
    assert_clean(&db);
    let stat = db.stat().unwrap();
    println!(
        "{} rows in leaves, {} in front, {} pairs",
        stat.leaf_rows, stat.delta_rows, stat.table_entries
    );
}

/// Thousands of transactions of a few rows each create and merge runs of several tiers, with deletes and reopening in
/// between.
fn run_small(seed: u64, page_size: usize, transactions: usize) {
    tidalite_testkit::watch();
    println!("seed {seed}, pages of {page_size}, {transactions} small transactions");
    let mut rng = Rng::new(seed);
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().page_size(page_size);
    let open = || {
        options
            .open_storage(Monitor::new(Arc::clone(&storage) as Arc<dyn Storage>))
            .unwrap()
    };
    let mut db = open();
    let schemas = schemas();
    let mut content = Content::default();
    let mut highest_runs = 0;
    for number in 0..transactions {
        let mut tx = db.begin_write().unwrap();
        for _ in 0..rng.between(1, 3) {
            let which = rng.index(schemas.len());
            let (schema, clock) = &schemas[which];
            let types = schema.types();
            let rows = content.series.entry(series_name(which)).or_default();
            let mut series = tx.series_with(&series_name(which), schema).unwrap();
            if rng.one_in(200) {
                let (from, to) = (a_time(&mut rng, rows), a_time(&mut rng, rows));
                let far = to.wrapping_sub(from) / *rng.pick(&[1, 20, 500]);
                delete(&mut series, rows, from, from.saturating_add(far));
            }
            let last = rows.last_key_value().map_or(0, |(&time, _)| time);
            let behind = !rng.one_in(7) && last < i64::MAX / 2;
            let (step, style) = (clock.step(&mut rng), rng.below(4));
            for i in 1..=rng.between(1, 9) {
                let time = if behind {
                    last + i * step
                } else {
                    clock.time(&mut rng)
                };
                let words: Vec<u64> = types
                    .iter()
                    .map(|&ty| a_word(&mut rng, ty, style, i))
                    .collect();
                series.insert_row(Steps(time), &words).unwrap();
                rows.insert(time, words);
            }
        }
        tx.commit().unwrap();
        if number % 250 == 0 {
            let runs = db.stat().unwrap().tier_runs.into_iter().max().unwrap_or(0);
            highest_runs = highest_runs.max(runs);
            assert!(
                runs <= tidalite_delta::TIER_RUNS_MAX,
                "{runs} runs in a tier"
            );
            let snap = db.begin_read().unwrap();
            let (name, rows) = content
                .series
                .iter()
                .nth(rng.index(content.series.len()))
                .unwrap();
            compare(&mut rng, &snap.series(name).unwrap().unwrap(), rows);
        }
        if rng.one_in(500) {
            drop(db);
            db = open();
        }
    }
    assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), content);
    assert_clean(&db);
    let stat = db.stat().unwrap();
    let (leaf, delta) = (stat.leaf_rows, stat.delta_rows);
    println!(
        "{leaf} rows in leaves, {delta} in front, tiers {:?}, highest {highest_runs}",
        stat.tier_runs
    );
}

/// A few changes of many rows each: leaves are cut, merged and rewritten in the middle.
fn run_large(seed: u64, changes: usize) {
    println!("seed {seed}, {changes} large changes");
    let mut rng = Rng::new(seed);
    let db = in_memory(
        &Options::new().tuning(
            Tuning::new()
                .write_buffer_bytes(2 << 20)
                .dirty_bytes(1 << 20),
        ),
    );
    let schema = Schema::new(
        Unit::Nanos,
        [("a", ColumnType::F64), ("b", ColumnType::U64)],
    );
    let types = schema.types();
    let mut rows = Rows::new();
    let mut highest = 0;
    for _ in 0..changes {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("large", &schema).unwrap();
        let last = rows.last_key_value().map_or(0, |(&time, _)| time);
        if rng.one_in(4) {
            let from = rng.between(0, last);
            let far = *rng.pick(&[10, 1_000, 100_000, last / 20]);
            delete(&mut series, &mut rows, from, from + far);
        }
        let bits = rng.between(2, 16);
        let count = rng.between(1, 1 << bits);
        let (start, step) = match rng.below(3) {
            0 => (rng.between(0, last), rng.between(1, 40)),
            _ => (last + 10, 10),
        };
        let style = rng.below(4);
        let times: Vec<i64> = (0..count).map(|i| start + i * step).collect();
        let mut columns = [Vec::new(), Vec::new()];
        for (i, &time) in times.iter().enumerate() {
            let words: Vec<u64> = types
                .iter()
                .map(|&ty| a_word(&mut rng, ty, style, i as i64))
                .collect();
            columns[0].push(words[0]);
            columns[1].push(words[1]);
            rows.insert(time, words);
        }
        series
            .append_rows(&times, &[&columns[0], &columns[1]])
            .unwrap();
        if rng.one_in(3) {
            compare(&mut rng, &series.view().unwrap(), &rows);
        }
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let series = snap.series("large").unwrap().unwrap();
        compare(&mut rng, &series, &rows);
        highest = highest.max(series.height());
    }
    assert_clean(&db);
    println!("{} rows at the end, at most {highest} levels", rows.len());
    assert!(highest >= 1);
}

/// The test's own seeds, unless `TIDALITE_MODEL_SEEDS=from..to` gives others.
fn seeds(own: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let Ok(given) = std::env::var("TIDALITE_MODEL_SEEDS") else {
        return own;
    };
    let (from, to) = given.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn pages_of_512_bytes() {
    for seed in seeds(1..4) {
        run(seed, 512, 90);
    }
}

#[test]
fn pages_of_4_kib() {
    for seed in seeds(101..105) {
        run(seed, 4096, 90);
    }
}

#[test]
fn small_transactions_into_small_pages() {
    for seed in seeds(1..2) {
        run_small(seed, 512, 10_000);
    }
}

#[test]
fn small_transactions_into_ordinary_pages() {
    for seed in seeds(1..2) {
        run_small(seed, 4096, 15_000);
    }
}

#[test]
fn large_changes() {
    for seed in seeds(1..2) {
        run_large(seed, 60);
    }
}
