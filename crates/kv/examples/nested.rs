//! A million tables of three entries each inside one table: bytes a table, opens a second.
//! `cargo run --release -p tidalite-kv --example nested [tables]`.

#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::time::Instant;
use tidalite_kv::{Result, Sub, Tree, Work};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

const PAGE_BYTES: u64 = 4096;
const OPENS: u64 = 200_000;

fn main() -> Result<()> {
    let tables: u64 = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(1_000_000);
    let mut pages = ScratchPages::new(PAGE_BYTES as usize);
    let mut work = Work::of(Tree::new(1));
    let begin = Instant::now();
    for table in 0..tables {
        let path = [table.to_be_bytes().to_vec()];
        work.at(&mut pages, &path, true, &mut |w, below| {
            for (key, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
                below.insert(w, key, &[value; 8])?;
            }
            Ok(())
        })?;
    }
    let made = begin.elapsed();
    let tree = work.tree().copied().unwrap_or(Tree::new(1));
    let bytes = pages.live_pages() * PAGE_BYTES;
    println!("{tables} tables of three entries, 11 bytes of keys and values each:");
    println!("{} bytes a table", bytes / tables);
    println!("{} ns to make one", made.as_nanos() as u64 / tables);

    let mut rng = Rng::new(1);
    let top = Sub::of(tree);
    let begin = Instant::now();
    for _ in 0..OPENS {
        let key = rng.below(tables).to_be_bytes();
        let found = match top.nested(&pages, &key)? {
            Some(table) => table.get(&pages, b"b")?.map_or(0, |value| value.len()),
            None => 0,
        };
        assert_eq!(found, 8);
    }
    let opened = begin.elapsed();
    println!(
        "{:.2} million opens and gets a second",
        OPENS as f64 / opened.as_secs_f64() / 1e6
    );
    Ok(())
}
