//! The part of the long search for hostile files (files changed under correct checksums) that runs with the test suite.
//!
//! To run more: `cargo run --release -p tidalite-torture -- hostile --files N --seed S`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{ErrorKind, Options};
use tidalite_torture::hostile::exercise::Went;
use tidalite_torture::hostile::files::Files;
use tidalite_torture::hostile::graph::Graph;
use tidalite_torture::hostile::{bases, kinds, sound};

#[test]
fn the_sound_files_hold_every_kind_of_block() {
    let kinds = kinds().unwrap();
    println!("{kinds:?}");

    for number in 1..=kinds_known() {
        let kind = format!("{:?}", tidalite_pager::Kind::from_u8(number));
        assert!(kinds.contains_key(&kind), "{kind} is in no sound file");
    }
    assert!(kinds.contains_key("None"), "payloads of leaves");
}

/// The graph of blocks must reach every page of the valid files, because the search never changes a page that the graph
/// does not reach.
#[test]
fn the_search_reaches_every_page_of_the_sound_files() {
    tidalite_testkit::watch();
    for base in bases::all().unwrap() {
        let db = base.files.open(Options::new().read_only(true)).unwrap();
        let page_bytes = db.stat().unwrap().page_size as u64;
        let blocks = || base.graph.blocks.iter();
        let mut missed = BTreeMap::<String, u64>::new();
        db.pages(&mut |range| {
            for page in range.first..range.first + range.pages {
                let from = base.files.place(page * page_bytes).unwrap() as u64;
                let touches = |at: u64, len: u64| at < from + page_bytes && at + len > from;
                if !blocks().any(|block| touches(block.at as u64, block.len as u64)) {
                    *missed.entry(range.what.to_owned()).or_default() += 1;
                }
            }
        })
        .unwrap();
        println!(
            "{}: {missed:?} beside {} blocks",
            base.name,
            blocks().count()
        );
        // Extents may contain unused pages, and commits in the log are not in pages yet, so only pages of tables are
        // counted.
        let of_tables = missed.keys().filter(|what| what.contains(": table "));
        assert!(
            base.name == "logged" || of_tables.count() == 0,
            "{missed:?}"
        );
    }
}

/// Every operation must succeed on a valid file; otherwise its errors on hostile files would prove nothing.
#[test]
fn every_operation_on_hostile_files_succeeds_on_a_sound_file() {
    tidalite_testkit::watch();
    for (name, went) in sound().unwrap() {
        assert_eq!(went, Went::Used, "{name}");
    }
}

/// The number of kinds of blocks that the format has.
fn kinds_known() -> u8 {
    (1..=u8::MAX)
        .take_while(|&n| tidalite_pager::Kind::from_u8(n) != tidalite_pager::Kind::None)
        .count() as u8
}

#[test]
fn no_hostile_file_makes_it_panic_hang_or_take_memory() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidalite-torture"))
        .args([
            "hostile", "--files", "4000", "--seed", "0", "--first", "5000",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}

/// Compaction must end although the catalog is damaged: the first name in a leaf was made smaller than the names before
/// it, so that the search for the next name leads back to earlier names.
#[test]
fn compaction_ends_where_the_names_of_tables_lead_back() {
    tidalite_testkit::watch();
    let options = || Options::new().page_size(512);
    let file: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let db = options().open_storage(Arc::clone(&file)).unwrap();
    let mut tx = db.begin_write().unwrap();
    for letter in 'b'..='z' {
        // The names are long, so that the catalog has several leaves.
        let mut table = tx.table(&format!("{letter}-table{:60}", "")).unwrap();
        table.put(b"key", &[1; 200]).unwrap();
    }
    // Creates free space, so that compaction has pages to move.
    let mut gone = tx.table("a-room").unwrap();
    for key in 0..1_000_u32 {
        gone.put(&key.to_be_bytes(), &[0; 100]).unwrap();
    }
    tx.commit().unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.drop_table("a-room").unwrap();
    tx.commit().unwrap();
    drop(db);
    let mut image = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut image).unwrap();

    // A name is stored in its cell, and its first four bytes are stored again as a number in the array of key prefixes.
    let graph = Graph::of(&Files::one(image.clone()));
    let stands = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|w| w == text.as_bytes());
    let leaves = graph.blocks.iter().enumerate().filter(|(_, block)| {
        let bytes = &image[block.at..block.at + block.len];
        format!("{:?}", block.kind) == "KvLeaf"
            && stands(bytes, "-table")
            && !stands(bytes, "b-table")
    });
    let (number, first) = leaves
        .map(|(number, block)| {
            let bytes = &image[block.at..block.at + block.len];
            let mut letters = 'b'..='z';
            let first = letters.find(|letter| stands(bytes, &format!("{letter}-table")));
            (number, first.unwrap())
        })
        .min_by_key(|(_, first)| *first)
        .unwrap();
    let block = &graph.blocks[number];
    for (from, to) in [
        (format!("{first}-ta"), "a-ta"),
        (format!("at-{first}"), "at-a"),
    ] {
        let bytes = &image[block.at..block.at + block.len];
        let at = bytes.windows(4).position(|w| w == from.as_bytes()).unwrap();
        image[block.at + at..][..4].copy_from_slice(to.as_bytes());
    }
    graph.seal(&mut image, &[number]);

    let (done, ends) = channel();
    std::thread::spawn(move || {
        let file: Arc<dyn Storage> = Arc::new(MemoryStorage::from_image(image));
        let db = options().open_storage(file).unwrap();
        done.send(db.compact(u64::MAX)).unwrap();
    });
    let ended = ends.recv_timeout(Duration::from_secs(60));
    let found = ended.expect("it goes round for ever").unwrap_err();
    assert!(found.kind() == ErrorKind::Damaged, "{found:?}");
}
