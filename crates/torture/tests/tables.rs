//! Power cuts over all table operations: tables of sets, nested tables, range deletes, renames, sequences, savepoints,
//! checkpoints. After every operation of a recorded run, each image that a cut could leave must open, check clean, and
//! hold the newest acknowledged commit or the commit in progress.
//!
//! To run more seeds: `TIDALITE_TABLE_SEEDS=500 cargo test -p tidalite-torture --test tables`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::{
    Database, Durability, Error, ErrorKind, Options, Result, SetTableMut, Table, WriteTxn,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Op, Replay, SimDisk};

const SEEDS: u64 = 6;
const COMMITS: u64 = 10;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// Pairs of the plain tables, by name of the table; `t` is sometimes renamed to `u`.
    plain: BTreeMap<String, Pairs>,
    multi: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// Values of the nested tables, by topic of two words and key in the topic's table.
    topics: BTreeMap<(u8, u8, Vec<u8>), Vec<u8>>,
    sequence: u64,
    /// The next sequence number of each topic's table.
    numbers: BTreeMap<(u8, u8), u64>,
}

fn options() -> Options {
    Options::new().page_size(512)
}

fn pairs(table: &Table<'_>) -> Result<Pairs> {
    let mut pairs = Pairs::new();
    table.for_each(|key, value| {
        pairs.insert(key.to_vec(), value.to_vec());
    })?;
    Ok(pairs)
}

/// Reads the whole content of a file.
fn content(db: &Database) -> Result<Model> {
    let snap = db.begin_read()?;
    let mut model = Model::default();
    for name in snap.tables()? {
        if name == "m" {
            let table = snap.set_table("m")?.unwrap();
            let mut cursor = table.cursor();
            while cursor.next()? {
                let set = model.multi.entry(cursor.key().to_vec()).or_default();
                set.insert(cursor.value().to_vec());
            }
            continue;
        }
        let table = snap.table(&name)?.unwrap();
        if name != "topics" {
            model.sequence = model.sequence.max(table.sequence());
            model.plain.insert(name, pairs(&table)?);
            continue;
        }
        let mut first = table.cursor();
        while first.next()? {
            let below = table.nested(first.key())?.unwrap();
            let mut second = below.cursor();
            while second.next()? {
                let leaf = below.nested(second.key())?.unwrap();
                let topic = (first.key()[0], second.key()[0]);
                if leaf.sequence() > 0 {
                    model.numbers.insert(topic, leaf.sequence());
                }
                for (key, value) in pairs(&leaf)? {
                    let topic = (first.key()[0], second.key()[0], key);
                    model.topics.insert(topic, value);
                }
            }
        }
    }
    Ok(model)
}

fn operation(tx: &mut WriteTxn, model: &mut Model, rng: &mut Rng) -> Result<()> {
    let mut key = vec![b'k', rng.below(120) as u8];
    if rng.one_in(7) {
        // The key is too long for a page, and keys differ only in the part that is stored outside the page.
        key.resize(600, b'l');
        key.push(rng.below(3) as u8);
    }
    let most = if rng.one_in(12) { 2000 } else { 60 };
    let value = vec![rng.below(256) as u8; rng.index(most)];
    match rng.below(12) {
        0..3 => {
            tx.table("t")?.put(&key, &value)?;
            model
                .plain
                .entry("t".into())
                .or_default()
                .insert(key, value);
        }
        3 => {
            let to = vec![b'k', key[1].saturating_add(40)];
            tx.table("t")?.remove_range(key.clone()..to.clone())?;
            let pairs = model.plain.entry("t".into()).or_default();
            pairs.retain(|found, _| !(key <= *found && *found < to));
        }
        4..7 => {
            let (key, value) = (
                vec![b'm', rng.below(4) as u8],
                vec![rng.below(200) as u8; if rng.one_in(9) { 700 } else { 9 }],
            );
            let mut table = tx.set_table("m")?;
            match rng.below(4) {
                0 => many_pairs(&mut table, &mut model.multi, rng)?,
                1 => {
                    let set = model.multi.entry(key.clone()).or_default();
                    let behind = set.last().is_none_or(|last| *last < value);
                    match table.append_value(&key, &value) {
                        Ok(()) => assert!(behind && set.insert(value)),
                        Err(error) if error.kind() == ErrorKind::OutOfOrder => assert!(!behind),
                        Err(error) => return Err(error),
                    }
                }
                _ => {
                    table.put(&key, &value)?;
                    model.multi.entry(key).or_default().insert(value);
                }
            }
        }
        7 => {
            let key = vec![b'm', rng.below(4) as u8];
            tx.set_table("m")?.remove_all(&key)?;
            model.multi.remove(&key);
        }
        8..10 => {
            let (first, second) = (rng.below(3) as u8, rng.below(6) as u8);
            let mut topics = tx.table("topics")?;
            let mut leaf = topics.nested_at(&[[first], [second]]);
            leaf.put(&key, &value)?;
            model.topics.insert((first, second, key), value);
            if rng.one_in(3) {
                leaf.take_sequence(3)?;
                *model.numbers.entry((first, second)).or_default() += 3;
            }
        }
        10 => {
            let first = rng.below(3) as u8;
            tx.table("topics")?.remove(&[first])?;
            model.topics.retain(|topic, _| topic.0 != first);
            model.numbers.retain(|topic, _| topic.0 != first);
        }
        _ => {
            // Renames the table `t` to `u`, which replaces the old table `u`.
            tx.drop_table("u")?;
            model.plain.remove("u");
            if tx.rename_table("t", "u")? {
                let pairs = model.plain.remove("t").unwrap();
                model.plain.insert("u".into(), pairs);
            }
            let mut table = tx.table("t")?;
            table.take_sequence(1 + model.sequence)?;
            model.sequence += 1;
            model.plain.insert("t".into(), Pairs::new());
        }
    }
    Ok(())
}

/// Adds pairs of a few keys in one call, mostly in ascending order, then appends some pairs one by one, so that sets of
/// values get pages of their own and give these pages up again.
fn many_pairs(
    table: &mut SetTableMut<'_>,
    model: &mut BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    rng: &mut Rng,
) -> Result<()> {
    let (from, each) = (rng.below(4) as u8, *rng.pick(&[1, 5, 60]));
    let mut pairs = Vec::new();
    for key in from..4 {
        for n in 0..rng.below(each) as u8 {
            pairs.push((vec![b'm', key], vec![n.wrapping_mul(3), key]));
        }
    }
    if rng.one_in(4) && !pairs.is_empty() {
        let other = rng.index(pairs.len());
        pairs.swap(0, other);
    }
    table.extend(pairs.iter().map(|(key, value)| (key, value)))?;
    for (key, value) in pairs {
        model.entry(key).or_default().insert(value);
    }
    for n in 0..rng.below(30) {
        let (key, value) = (vec![b'n', (n / 20) as u8], vec![255, n as u8]);
        let set = model.entry(key.clone()).or_default();
        if set.last().is_none_or(|last| *last < value) {
            table.append(&key, &value)?;
            set.insert(value);
        }
    }
    Ok(())
}

/// Runs random transactions, and returns the content after each commit and checkpoint. The recording has a mark after
/// each commit or checkpoint that was acknowledged.
fn run(seed: u64, disk: &Arc<SimDisk>) -> Vec<Model> {
    let mut rng = Rng::new(seed);
    let db = options().open_storage(disk.clone()).unwrap();
    let mut states = vec![Model::default()];
    disk.mark(0);
    for _ in 1..=COMMITS {
        let mut model = states.last().unwrap().clone();
        let mut tx = db.begin_write().unwrap();
        for _ in 0..rng.index(40) {
            operation(&mut tx, &mut model, &mut rng).unwrap();
            // Makes a checkpoint, which commits but keeps the writer lock.
            if rng.one_in(30) {
                states.push(model.clone());
                (_, tx) = tx.checkpoint(Durability::Durable).unwrap();
                disk.mark(states.len() as u64 - 1);
            }
            if rng.one_in(10) {
                let mut undone = model.clone();
                let refused = tx.nested(|tx| {
                    operation(tx, &mut undone, &mut rng)?;
                    Err::<(), _>(Error::from(std::io::Error::other("undone")))
                });
                assert!(refused.is_err());
            }
        }
        states.push(model);
        tx.commit().unwrap();
        assert_eq!(&content(&db).unwrap(), states.last().unwrap());
        disk.mark(states.len() as u64 - 1);
    }
    states
}

fn power_cuts(seed: u64) -> u64 {
    let disk = Arc::new(SimDisk::new());
    let states = run(seed, &disk);
    let recording = disk.recording();
    let mut rng = Rng::new(seed ^ 0xcafe);
    let mut replay = Replay::new(&recording);
    let mut acknowledged = None;
    let mut images = 0;
    for op in &recording.ops {
        replay.step(op);
        if let Op::Mark(commit) = op {
            acknowledged = Some(*commit as usize);
        }
        let (Some(newest), true) = (acknowledged, replay.at_stake()) else {
            continue;
        };
        images += 1;
        let image = Arc::new(SimDisk::from_image(replay.power_cut(&mut rng)));
        let db = options().open_storage(image).unwrap();
        let report = db.check().unwrap();
        assert!(
            report.problems.is_empty(),
            "seed {seed}: {:?}",
            report.problems
        );
        let found = content(&db).unwrap();
        let promised = &states[newest..states.len().min(newest + 2)];
        assert!(
            promised.contains(&found),
            "seed {seed}, behind commit {newest}"
        );
    }
    images
}

#[test]
fn a_power_cut_leaves_tables_as_a_commit_left_them() {
    let seeds = std::env::var("TIDALITE_TABLE_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let images: u64 = (0..seeds).map(power_cuts).sum();
    assert!(images > seeds * 20, "{images} images");
}
