//! Measures the cost of table operations on pages in memory: `cargo run --release -p tidalite-kv --example kv_speed`.
//!
//! The pages are found through a hash map and are scattered in memory. So the first line shows the cost of
//! one wait for such memory on this machine; compare the other lines with it.

#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::time::Instant;
use tidalite_kv::{Result, Tree};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

const ROWS: u64 = 5_000_000;
const LOOKUPS: u64 = 1_000_000;

fn timed<T>(what: &str, count: u64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    let result = work()?;
    println!("{what}: {} ns", begin.elapsed().as_nanos() as u64 / count);
    Ok(result)
}

fn main() -> Result<()> {
    let mut rng = Rng::new(1);
    let memory: Vec<u8> = (0..100u32 << 20).map(|i| i as u8).collect();
    let touched = timed("one wait for memory", LOOKUPS, || {
        Ok((0..LOOKUPS).fold(0, |at, _| {
            let next = rng.u64() ^ u64::from(memory[at]);
            next as usize % memory.len()
        }))
    })?;
    std::hint::black_box(touched);
    drop(memory);

    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    timed("append of 8-byte keys and values", ROWS, || {
        let rows = (0..ROWS).map(|i| (i.to_be_bytes(), i.to_le_bytes()));
        tree.append(&mut pages, rows)
    })?;
    timed("seal, a row", ROWS, || tree.seal(&mut pages))?;
    for among in [500, 50_000, ROWS] {
        timed(&format!("get among {among}"), LOOKUPS, || {
            let mut found = 0;
            for _ in 0..LOOKUPS {
                found += u64::from(tree.contains(&pages, &rng.below(among).to_be_bytes())?);
            }
            assert_eq!(found, LOOKUPS);
            Ok(())
        })?;
    }
    timed("step of a cursor", ROWS, || {
        let mut cursor = tree.cursor(&pages);
        let mut rows = 0;
        while cursor.next()? {
            rows += 1;
        }
        assert_eq!(rows, ROWS);
        Ok(())
    })?;
    let mut tree = Tree::new(2);
    timed("insert of random keys", LOOKUPS, || {
        for _ in 0..LOOKUPS {
            let key = rng.u64().to_be_bytes();
            tree.insert(&mut pages, &key, &key)?;
        }
        Ok(())
    })
}
