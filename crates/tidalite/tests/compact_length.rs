//! A compacted file is about as short as a packed copy of it, whatever was removed, and keeps its content.

#![expect(clippy::print_stdout, reason = "a test tells its figures")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidalite::maintenance::Compaction;
use tidalite::{Database, Options, ReadTxn, Steps, Tuning};
use tidalite_testkit::rng::Rng;

/// Number of pages by which a compacted file may exceed its copy, in addition to 5 %.
const PAGES_MORE: u64 = 8;
/// Maximum number of bytes moved by one compaction, as a multiple of the file's length before it.
const MOVED_MAX: u64 = 3;
/// Maximum length of a compacted file, as a multiple of its copy, for rows of small commits: compaction moves their
/// short vectors as they are, but a copy encodes them anew in whole vectors.
const SHORT_VECTORS: f64 = 1.35;
const SERIES: u64 = 9;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        tidalite_testkit::watch();
        let name = format!("tidalite-compact-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The content of a database: the name of each table or series, with all its rows as bytes.
type Content = BTreeMap<String, Vec<u8>>;

fn content_of(read: &ReadTxn) -> Content {
    let mut content = Content::new();
    for name in read.tables().unwrap() {
        let mut bytes = Vec::new();
        let mut put = |key: &[u8], value: &[u8]| {
            bytes.extend((key.len() as u64).to_le_bytes());
            bytes.extend(key);
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
        };
        match read.set_table(&name) {
            Ok(Some(table)) => table.for_each(&mut put).unwrap(),
            _ => {
                let table = read.table(&name).unwrap().unwrap();
                table.for_each(&mut put).unwrap();
            }
        }
        content.insert(name, bytes);
    }
    for info in read.list("").unwrap() {
        let mut bytes = Vec::new();
        let series = read.series_by_id(info.id).unwrap().unwrap();
        let row = |time: i64, words: &[u64]| {
            bytes.extend(time.to_le_bytes());
            words
                .iter()
                .for_each(|word| bytes.extend(word.to_le_bytes()));
        };
        series.query(..).for_each(row).unwrap();
        content.insert(info.label(), bytes);
    }
    content
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn compact(db: &Database, step: u64) -> (u64, Compaction) {
    let (mut moved, mut steps) = (0, 0);
    loop {
        let done = db.compact(step).unwrap();
        moved += done.moved_bytes;
        steps += 1;
        assert!(steps < 1_000, "{done:?}");
        if done.done {
            return (moved, done);
        }
    }
}

/// Adds rows to all series in many commits, so that the pages of each commit are contiguous.
fn append(db: &Database, commits: u64, rows: u64, rng: &mut Rng) {
    append_and(db, commits, rows, rng, || ());
}

fn append_and(db: &Database, commits: u64, rows: u64, rng: &mut Rng, mut then: impl FnMut()) {
    for commit in 0..commits {
        let mut tx = db.begin_write().unwrap();
        for series in 0..SERIES {
            let from = (commit * rows) as i64;
            let times: Vec<i64> = (from..from + rows as i64).map(|i| i * 10).collect();
            let flags = vec![0; times.len()];
            let values: Vec<u64> = times.iter().map(|_| rng.u64() >> 20).collect();
            let name = format!("s{series}");
            let mut to = tx.series(&name).unwrap();
            to.append_rows(&times, &[&flags, &values]).unwrap();
        }
        tx.commit().unwrap();
        then();
    }
}

/// Puts pairs into a table in random order, with values of up to `most` bytes.
fn put(db: &Database, name: &str, pairs: u64, most: u64, rng: &mut Rng) {
    for _ in 0..10 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table(name).unwrap();
        for _ in 0..pairs / 10 {
            let value = vec![rng.below(256) as u8; 1 + rng.below(most) as usize];
            table.put(&rng.u64().to_be_bytes(), &value).unwrap();
        }
        tx.commit().unwrap();
    }
}

/// Deletes the rows in these time ranges from the selected series.
fn delete(db: &Database, which: impl Fn(u64) -> bool, ranges: &[(i64, i64)]) {
    let mut tx = db.begin_write().unwrap();
    for series in (0..SERIES).filter(|series| which(*series)) {
        let mut series = tx.series(&format!("s{series}")).unwrap();
        for (from, to) in ranges {
            series.delete(Steps(*from)..Steps(*to)).unwrap();
        }
    }
    tx.commit().unwrap();
}

/// Removes all pairs of a table except every `keep`-th.
fn thin(db: &Database, name: &str, keep: usize) {
    let mut keys = Vec::new();
    let read = db.begin_read().unwrap();
    let table = read.table(name).unwrap().unwrap();
    table.for_each(|key, _| keys.push(key.to_vec())).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table(name).unwrap();
    for (at, key) in keys.iter().enumerate() {
        if at % keep > 0 {
            table.remove(key).unwrap();
        }
    }
    tx.commit().unwrap();
}

/// A way to fill a database and to remove most of it.
struct Shape {
    name: &'static str,
    fill: fn(&Database, &mut Rng),
    remove: fn(&Database),
    /// Maximum length of the compacted file, as a multiple of the length of the copy.
    length_max: f64,
}

fn long_series(db: &Database, rng: &mut Rng) {
    append(db, 8, 6_000, rng);
}

fn every(_: u64) -> bool {
    true
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "the first fifth of all series",
        fill: long_series,
        remove: |db| delete(db, every, &[(0, 96_000)]),
        length_max: 1.05,
    },
    Shape {
        name: "the first half of all series",
        fill: long_series,
        remove: |db| delete(db, every, &[(0, 240_000)]),
        length_max: 1.05,
    },
    Shape {
        name: "the second half of all series",
        fill: long_series,
        remove: |db| delete(db, every, &[(240_000, i64::MAX)]),
        length_max: 1.05,
    },
    Shape {
        name: "the middle of all series",
        fill: long_series,
        remove: |db| delete(db, every, &[(50_000, 430_000)]),
        length_max: 1.05,
    },
    Shape {
        name: "each third series",
        fill: long_series,
        remove: |db| delete(db, |series| series % 3 == 0, &[(i64::MIN, i64::MAX)]),
        length_max: 1.05,
    },
    Shape {
        name: "all series but one",
        fill: long_series,
        remove: |db| delete(db, |series| series != 4, &[(i64::MIN, i64::MAX)]),
        length_max: 1.05,
    },
    Shape {
        name: "each second part of all series",
        fill: long_series,
        remove: |db| {
            let ranges: Vec<_> = (0..24).map(|i| (i * 20_000, i * 20_000 + 10_000)).collect();
            delete(db, every, &ranges);
        },
        length_max: 1.05,
    },
    Shape {
        name: "rows that came in small commits",
        fill: |db, rng| append(db, 150, 130, rng),
        remove: |db| delete(db, every, &[(0, 60_000)]),
        length_max: SHORT_VECTORS,
    },
    Shape {
        name: "most of a series file beside large values",
        fill: |db, rng| {
            long_series(db, rng);
            put(db, "large", 100, 60_000, rng);
        },
        remove: |db| {
            delete(db, every, &[(100_000, 400_000)]);
            thin(db, "large", 4);
        },
        length_max: 1.05,
    },
    Shape {
        name: "nothing, of small commits",
        fill: |db, rng| append(db, 150, 130, rng),
        remove: |_| (),
        length_max: SHORT_VECTORS,
    },
];

/// Fills a database, removes most of it, compacts it, and compares its length with the length of a packed copy. Returns
/// the problems found.
fn check(shape: &Shape, options: &Options, seed: u64) -> Vec<String> {
    let folder = Folder::new(&format!("{seed}-{}", shape.name.len()));
    let path = folder.file("a.tdl");
    let db = options.open(&path).unwrap();
    let mut rng = Rng::new(seed);
    (shape.fill)(&db, &mut rng);
    (shape.remove)(&db);
    let before = length(&path);
    let content = content_of(&db.begin_read().unwrap());
    let (moved, done) = compact(&db, 4 << 20);
    assert_eq!(content_of(&db.begin_read().unwrap()), content);
    let (again, _) = compact(&db, 4 << 20);
    // A new handle does not know that the compaction has finished, so it examines the file again.
    db.close().unwrap();
    let once = length(&path);
    let db = options.open(&path).unwrap();
    compact(&db, 4 << 20);
    assert!(db.check().unwrap().is_clean());
    db.close().unwrap();
    let short = length(&path);
    let copy = folder.file("copy.tdl");
    let db = Database::open(&path).unwrap();
    assert_eq!(content_of(&db.begin_read().unwrap()), content);
    db.copy().to(&copy).unwrap();
    let fresh = length(&copy);
    println!(
        "{}: {before} bytes, {moved} moved, then {again}; {short}, a copy has {fresh}: {:.3}; {done:?}",
        shape.name,
        short as f64 / fresh as f64
    );
    let page = db.stat().unwrap().page_size as u64;
    let bound = (fresh as f64 * shape.length_max) as u64 + PAGES_MORE * page;
    let mut problems = Vec::new();
    if short > bound {
        problems.push(format!("{}: {short} bytes, not {bound}", shape.name));
    }
    if moved > MOVED_MAX * before {
        problems.push(format!("{}: {moved} of {before} moved", shape.name));
    }
    if once > short + short / 100 {
        problems.push(format!(
            "{}: a second one came to {short}, not {once}",
            shape.name
        ));
    }
    if again > 0 {
        problems.push(format!("{}: a second call moved {again}", shape.name));
    }
    problems
}

#[test]
fn a_compacted_file_is_as_short_as_a_copy() {
    let mut problems = Vec::new();
    for (at, shape) in SHAPES.iter().enumerate() {
        for page_size in [1024, 4096] {
            let options = Options::new().page_size(page_size);
            problems.extend(check(shape, &options, at as u64 + 1));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Reads the addresses of the table of pins and of the commit clock's table from the newest meta record
/// (docs/format.md, section 3).
fn pins_and_clock(path: &Path) -> [u64; 2] {
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (sequence, pins, clock) = (48, 152, 184);
    let copies = [4096, 8192];
    let newest = copies.into_iter().max_by_key(|at| word(at + sequence));
    let newest = newest.unwrap();
    [pins, clock].map(|pointer| word(newest + pointer))
}

/// Compaction must also move the commit clock's table when it lies after all other pages. Otherwise it would keep the
/// file long, because commits rewrite it only once a clock step.
#[test]
fn the_clock_does_not_keep_a_file_long() {
    let folder = Folder::new("clock");
    let path = folder.file("a.tdl");
    let rng = &mut Rng::new(20_261_127);
    let each = Options::new().tuning(Tuning::new().clock_step(std::time::Duration::ZERO));
    let db = each.open(&path).unwrap();
    // While readers hold every version, no page becomes free, and all new pages are written after the existing ones.
    let mut readers = Vec::new();
    append_and(&db, 40, 2000, rng, || {
        readers.push(db.begin_read().unwrap());
    });
    drop((readers, db));
    // These commits follow too soon after the last clock step to rewrite the clock's table.
    let db = Database::open(&path).unwrap();
    delete(&db, every, &[(i64::MIN, 600_000)]);
    let (before, clock) = (length(&path), pins_and_clock(&path)[1]);
    assert!(clock * 10 > before * 8, "{clock} of {before}");
    let (_, done) = compact(&db, 1 << 20);
    println!("{before}, clock at {clock}: {done:?}");
    assert!(done.file_bytes * 5 < clock * 4, "{done:?} of {before}");
    drop(db);
    let copy = folder.file("copy.tdl");
    Database::open(&path).unwrap().copy().to(&copy).unwrap();
    // Pages of a copy are full, while compaction moves pages as they are, so the bound is twice as generous.
    let most = length(&copy) + length(&copy) / 20 + 2 * PAGES_MORE * 4096;
    assert!(length(&path) <= most, "{} {}", length(&path), most);
}

/// Compaction moves the table of pins even if an unpin wrote it after all other pages. Pages retained by a pin stay in
/// place until the pin is removed.
#[test]
fn the_table_of_pins_does_not_keep_a_file_long() {
    let folder = Folder::new("pins");
    let path = folder.file("a.tdl");
    let rng = &mut Rng::new(20_261_128);
    let db = Database::open(&path).unwrap();
    append(&db, 1, 100, rng);
    db.pin("old").unwrap();
    let mut readers = Vec::new();
    append_and(&db, 40, 2000, rng, || {
        readers.push(db.begin_read().unwrap());
    });
    // Pins are set and removed until the single free pages near the front are used up and the table of pins is at the
    // end of the file.
    let at_end = (0..500).any(|_| {
        db.pin("new").unwrap();
        readers.push(db.begin_read().unwrap());
        db.unpin("new").unwrap();
        readers.push(db.begin_read().unwrap());
        pins_and_clock(&path)[0] * 10 > length(&path) * 8
    });
    assert!(at_end, "{:?} of {}", pins_and_clock(&path), length(&path));
    drop(readers);
    delete(&db, every, &[(i64::MIN, i64::MAX)]);
    let (before, table) = (length(&path), pins_and_clock(&path)[0]);
    let (_, done) = compact(&db, 1 << 20);
    println!("{before}, table at {table}: {done:?}");
    // The table has moved forward, and the file now ends before its old address. Pages retained by the pin have not
    // moved.
    let now = pins_and_clock(&path)[0];
    assert!(now * 10 < table && done.file_bytes <= table, "{done:?}");
    assert!(done.used_bytes * 10 < table, "{done:?}");
    let pins = db.pins().unwrap();
    assert_eq!(pins.len(), 1);
    let read = db.begin_read_at("old").unwrap();
    assert_eq!(content_of(&read).len(), SERIES as usize);
    assert!(db.check().unwrap().is_clean());
    // The pin still exists after the database is closed and opened again.
    drop((read, db));
    let db = Database::open(&path).unwrap();
    assert_eq!(db.pins().unwrap(), pins);
    assert!(db.unpin("old").unwrap());
    let (_, done) = compact(&db, 1 << 20);
    assert!(done.file_bytes * 10 < table, "{done:?}");
}
