//! Every function that walks over tables must reach nested tables and tables of sets too: diff, salvage, copy, page
//! walk.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::maintenance::{Change, Place, Salvage, SalvageReport};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, ErrorKind, Options, ReadTxn, Table};
use tidalite_testkit::rng::Rng;

const PAGE: usize = 1024;

/// All entries of a database. An entry is addressed by the name of its table and the keys on its path, and maps to its
/// value, or to `None` for a nested table. In a table of sets the path is key and value, and the entry maps to empty
/// bytes.
type Content = BTreeMap<(String, Vec<Vec<u8>>), Option<Vec<u8>>>;

fn memory() -> (Arc<MemoryStorage>, Database) {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = Options::new().page_size(PAGE).open_storage(storage.clone());
    (storage, db.unwrap())
}

fn rows(name: &str, table: &Table<'_>, path: &mut Vec<Vec<u8>>, content: &mut Content) {
    let mut cursor = table.cursor();
    while cursor.next().unwrap() {
        path.push(cursor.key().to_vec());
        let place = (name.to_owned(), path.clone());
        if cursor.is_nested() {
            content.insert(place, None);
            let below = cursor.nested().unwrap().unwrap();
            let by_key = table.nested(cursor.key()).unwrap().unwrap();
            assert_eq!(below.count(), by_key.count());
            rows(name, &below, path, content);
        } else {
            assert!(cursor.nested().unwrap().is_none());
            content.insert(place, Some(cursor.value().unwrap()));
        }
        path.pop();
    }
}

fn content_of(snap: &ReadTxn) -> Content {
    let mut content = Content::new();
    for name in snap.tables().unwrap() {
        if snap.is_set_table(&name).unwrap() == Some(true) {
            let table = snap.set_table(&name).unwrap().unwrap();
            let mut cursor = table.cursor();
            while cursor.next().unwrap() {
                let pair = vec![cursor.key().to_vec(), cursor.value().to_vec()];
                content.insert((name.clone(), pair), Some(Vec::new()));
            }
        } else {
            let table = snap.table(&name).unwrap().unwrap();
            rows(&name, &table, &mut Vec::new(), &mut content);
        }
    }
    content
}

fn value(rng: &mut Rng) -> Vec<u8> {
    let most = if rng.one_in(30) { 6000 } else { 50 };
    vec![rng.below(256) as u8; rng.index(most)]
}

fn change(db: &Database, rng: &mut Rng, operations: usize) {
    let mut tx = db.begin_write().unwrap();
    for _ in 0..operations {
        let path: Vec<Vec<u8>> = (0..rng.index(4))
            .map(|_| vec![b'p', rng.below(4) as u8])
            .collect();
        let key = vec![b'k', rng.below(60) as u8];
        match rng.below(20) {
            0..9 => {
                let value = value(rng);
                let mut table = tx.table("topics").unwrap();
                table.nested_at(&path).put(&key, &value).unwrap();
            }
            9..11 => {
                let mut table = tx.table("topics").unwrap();
                table.nested_at(&path).remove(&key).unwrap();
            }
            11 if path.len() > 1 && rng.one_in(8) => {
                let mut table = tx.table("topics").unwrap();
                table.nested_at(&path).clear().unwrap();
            }
            12 if rng.one_in(30) => {
                let mut table = tx.table("topics").unwrap();
                table.remove(&[b'p', rng.below(4) as u8]).unwrap();
            }
            13 => {
                // Replaces a nested table with a value; below, a value with a nested table.
                let mut table = tx.table("topics").unwrap();
                let at = [b'q', rng.below(3) as u8];
                if let Err(error) = table.put(&at, b"value") {
                    assert!(error.kind() == ErrorKind::WrongType, "{error:?}");
                    assert!(table.remove(&at).unwrap() && table.put(&at, b"value").unwrap());
                }
                let at = [b'q', rng.below(3) as u8];
                if table.remove(&at).unwrap() {
                    table.nested(&at).put(&key, b"below").unwrap();
                }
            }
            14..19 => {
                let key = [b'm', rng.below(30) as u8];
                let value = (rng.below(300) as u16).to_be_bytes();
                let mut table = tx.set_table("pairs").unwrap();
                if rng.one_in(4) {
                    table.remove(&key, &value).unwrap();
                } else {
                    table.put(&key, &value).unwrap();
                }
            }
            _ if rng.one_in(4) => {
                let mut table = tx.set_table("pairs").unwrap();
                table.remove_all(&[b'm', rng.below(30) as u8]).unwrap();
            }
            _ => {}
        }
    }
    tx.commit().unwrap();
}

/// Applies every change of the diff to the content of the base, and returns the result.
fn patched(base: &Content, new: &Content, told: &[(Told, String, Vec<Vec<u8>>)]) -> Content {
    let mut content = base.clone();
    for (what, table, path) in told {
        let place = (table.clone(), path.clone());
        let below = |content: &mut Content| {
            content.retain(|(name, at), _| name != table || !at.starts_with(path));
        };
        match what {
            Told::Inserted => {
                assert!(!content.contains_key(&place), "{place:?}");
                content.insert(place.clone(), new[&place].clone());
            }
            Told::Changed => {
                assert!(content[&place] != new[&place], "{place:?}");
                below(&mut content);
                content.insert(place.clone(), new[&place].clone());
            }
            Told::Removed => {
                assert!(content.contains_key(&place) && !new.contains_key(&place));
                below(&mut content);
            }
        }
    }
    content
}

#[derive(Clone, Copy, Debug)]
enum Told {
    Inserted,
    Changed,
    Removed,
}

#[test]
fn differences_are_reported_inside_nested_tables_and_sets() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let (_, db) = memory();
        change(&db, &mut rng, 10);
        let mut told_all = 0;
        for step in 0..40 {
            let base = db.begin_read().unwrap();
            let operations = rng.index(if step % 4 == 0 { 400 } else { 12 });
            change(&db, &mut rng, operations);
            let snap = db.begin_read().unwrap();
            let mut told = Vec::new();
            snap.diff(&base, &mut |change| {
                let (what, table, path, key) = match change {
                    Change::Inserted {
                        table, path, key, ..
                    } => (Told::Inserted, table, path, key),
                    Change::Changed {
                        table, path, key, ..
                    } => (Told::Changed, table, path, key),
                    Change::Removed {
                        table, path, key, ..
                    } => (Told::Removed, table, path, key),
                    Change::TableCreated(_) => return Ok(()),
                    other => panic!("{other:?}"),
                };
                let path = [path, &[key.to_vec()]].concat();
                told.push((what, table.to_owned(), path));
                Ok(())
            })
            .unwrap();
            let (old, new) = (content_of(&base), content_of(&snap));
            assert!(patched(&old, &new, &told) == new, "step {step}");
            told_all += told.len();
        }
        assert!(told_all > 500, "{told_all}");
        assert!(db.check().unwrap().is_clean());
    }
}

struct Image {
    bytes: Vec<u8>,
    content: Content,
}

fn image(seed: u64) -> Image {
    let mut rng = Rng::new(seed);
    let (storage, db) = memory();
    for _ in 0..6 {
        change(&db, &mut rng, 250);
    }
    let content = content_of(&db.begin_read().unwrap());
    drop(db);
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    Image { bytes, content }
}

fn saved(bytes: Vec<u8>) -> (Content, SalvageReport) {
    tidalite_testkit::watch();
    let (_, db) = memory();
    let damaged = Arc::new(MemoryStorage::from_image(bytes));
    let report = Salvage::of_storage(damaged).to_database(&db).unwrap();
    assert!(db.check().unwrap().is_clean());
    (content_of(&db.begin_read().unwrap()), report)
}

/// Counts the entries that are missing from the salvaged file: first those not covered by a reported loss, then those
/// covered by one.
fn missing(image: &Image, found: &Content, report: &SalvageReport) -> (usize, usize) {
    let (mut silent, mut reported) = (0, 0);
    for (place, value) in &image.content {
        if found.get(place) == Some(value) {
            continue;
        }
        let key = &place.1[0];
        let told = report.lost.iter().any(|lost| match &lost.place {
            Place::Table { name, from, to, .. } => {
                *name == place.0 && from <= key && to.as_ref().is_none_or(|to| key < to)
            }
            Place::Catalog { .. } => true,
            _ => false,
        });
        if told {
            reported += 1;
        } else {
            silent += 1;
        }
    }
    (silent, reported)
}

#[test]
fn an_intact_file_is_salvaged_with_all_that_is_nested() {
    let image = image(1);
    let (found, report) = saved(image.bytes.clone());
    assert!(found == image.content, "{report:#?}");
    assert!(report.is_complete());
    assert!(image.content.len() > 500, "{}", image.content.len());
}

/// Without superblocks and meta records, salvage finds pages by their headers alone. It must return rows of nested
/// tables to their own tables, not to the outermost one.
#[test]
fn without_its_head_nested_tables_and_sets_arrive_by_headers() {
    for seed in 0..3 {
        println!("seed {seed}");
        let image = image(seed);
        for numbers in [&[0, 3][..], &[1, 2, 4, 5], &[0, 1, 2, 3, 4, 5]] {
            let mut bytes = image.bytes.clone();
            for &number in numbers {
                bytes[number * 4096..(number + 1) * 4096].fill(0x5a);
            }
            let (found, report) = saved(bytes);
            assert_eq!(missing(&image, &found, &report), (0, 0), "{numbers:?}");
            for (name, path) in found.keys() {
                let own = match (name.as_str(), path[0][0]) {
                    ("pairs", b'm') => path.len() == 2,
                    ("topics", b'k') => path.len() == 1,
                    ("topics", b'p' | b'q') => true,
                    _ => false,
                };
                assert!(own, "{name} {path:?}");
            }
        }
    }
}

#[test]
fn a_destroyed_page_loses_exactly_the_reported_rows() {
    let image = image(2);
    let seed = 12;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut lost = 0;
    for page in 24..image.bytes.len() / PAGE {
        if !rng.one_in(4) {
            continue;
        }
        let mut bytes = image.bytes.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xee);
        let (found, report) = saved(bytes);
        let (silent, reported) = missing(&image, &found, &report);
        assert_eq!(silent, 0, "page {page}: {:#?}", report.lost);
        lost += usize::from(reported > 0);
    }
    assert!(lost > 3, "{lost}");
}

#[test]
fn hostile_bytes_in_nested_tables_are_survived() {
    let image = image(3);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut bytes = image.bytes.clone();
        for _ in 0..100 {
            let at = rng.index(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        let (_, db) = memory();
        let damaged = Arc::new(MemoryStorage::from_image(bytes));
        let _ = Salvage::of_storage(damaged).to_database(&db);
    }
}

#[test]
fn copies_and_page_walks_include_nested_tables() {
    let mut rng = Rng::new(9);
    let (_, db) = memory();
    change(&db, &mut rng, 1500);
    let mut tx = db.begin_write().unwrap();
    assert_eq!(tx.table("topics").unwrap().take_sequence(7).unwrap(), 0);
    let mut topics = tx.table("topics").unwrap();
    let mut empty = topics.nested_at(&["numbers", "of its own"]);
    assert_eq!(empty.take_sequence(9).unwrap(), 0);
    topics.put(b"long", &[7; 3 * PAGE]).unwrap();
    let mut pairs = tx.set_table("pairs").unwrap();
    let many: Vec<_> = (0..2000u32).map(u32::to_be_bytes).collect();
    pairs.put_many(b"many", &many).unwrap();
    assert_eq!(pairs.take_sequence(8).unwrap(), 0);
    tx.commit().unwrap();
    let content = content_of(&db.begin_read().unwrap());
    let folder = std::env::temp_dir().join(format!("tidalite-below-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("copy.tdl");
    db.begin_read().unwrap().copy().to(&file).unwrap();
    let copy = Database::open(&file).unwrap();
    let snap = copy.begin_read().unwrap();
    assert!(content_of(&snap) == content);
    let topics = snap.table("topics").unwrap().unwrap();
    assert_eq!(topics.sequence(), 7);
    let empty = topics.nested_at(&["numbers", "of its own"]).unwrap();
    assert_eq!(empty.map(|table| table.sequence()), Some(9));
    assert_eq!(snap.set_table("pairs").unwrap().unwrap().sequence(), 8);
    drop((snap, copy));
    std::fs::remove_dir_all(folder).unwrap();

    let weights = db.weights().unwrap();
    let of = |what: &str| {
        let of = weights.iter().filter(|weight| weight.what.contains(what));
        of.map(|weight| weight.pages).sum::<u64>()
    };
    assert!(
        of("table topics") > 20 && of("table pairs") > 0,
        "{weights:?}"
    );
    let mut pages = 0;
    db.pages(&mut |range| {
        pages += if range.what.contains("table topics") {
            range.pages
        } else {
            0
        };
    })
    .unwrap();
    assert_eq!(pages, of("table topics"));
    // A table's own shape equals the result of the walk over the file.
    let snap = db.begin_read().unwrap();
    let topics = snap.table("topics").unwrap().unwrap().shape().unwrap();
    let pairs = snap.set_table("pairs").unwrap().unwrap().shape().unwrap();
    assert_eq!(topics.pages(), pages);
    assert_eq!(pairs.pages(), of("table pairs"));
    assert!(topics.nested_pages > 0 && topics.overflow_pages > 0 && pairs.nested_pages > 0);
    assert!(topics.depth > 1 && topics.branch_pages > 0 && topics.leaf_pages > topics.branch_pages);
}
