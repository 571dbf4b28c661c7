//! Not a test: `cargo test --release -p tidalite-kv -- --ignored --nocapture speed` prints what operations cost.

use super::raw::RawPages;
use crate::Tree;
use std::time::Instant;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

fn timed<T>(what: &str, count: u64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let each = begin.elapsed().as_nanos() as u64 / count;
    println!("{what}: {each} ns each");
    result
}

#[test]
#[ignore = "prints timings, proves nothing"]
fn speed_of_five_million_rows() {
    let rows = 5_000_000u64;
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    timed("append, 8-byte keys and values", rows, || {
        let entries = (0..rows).map(|i| (i.to_be_bytes(), i.to_le_bytes()));
        tree.append(&mut pages, entries).unwrap();
    });
    timed("seal, a row", rows, || tree.seal(&mut pages).unwrap());
    println!("height {}, {} pages", tree.height(), pages.live_pages());
    // As from a map whose pages are verified: nothing but the table's own work is timed.
    let raw = RawPages::of(&tree, &pages);
    let mut rng = Rng::new(1);
    timed(
        "one touch of random memory, for comparison",
        1_000_000,
        || {
            let mut sum = 0;
            for _ in 0..1_000_000 {
                sum += u64::from(
                    raw.bytes[(rng.u64().wrapping_add(sum) % raw.bytes.len() as u64) as usize],
                );
            }
            assert!(sum > 0);
        },
    );
    for (what, among) in [
        ("get, random among 500", 500),
        ("get, random among 50 thousand", 50_000),
        ("get, random among 500 thousand", 500_000),
        ("get, random", rows),
        ("get, random again", rows),
    ] {
        timed(what, 1_000_000, || {
            for _ in 0..1_000_000 {
                let i = rng.below(among);
                let value = tree.get(&raw, &i.to_be_bytes()).unwrap().unwrap();
                assert_eq!(value.as_slice(), Some(&i.to_le_bytes()[..]));
            }
        });
    }
    timed("cursor step", rows, || {
        let mut cursor = tree.cursor(&raw);
        let mut seen = 0;
        while cursor.next().unwrap() {
            seen += cursor.inline_value().unwrap().unwrap().len() / 8;
        }
        assert_eq!(seen as u64, rows);
    });
    let mut tree = Tree::new(2);
    timed("insert, random", 1_000_000, || {
        for _ in 0..1_000_000 {
            let key = rng.u64().to_be_bytes();
            tree.insert(&mut pages, &key, &key).unwrap();
        }
    });
}
