//! Prints the time that frequent calls of the pager take. This example is for a quick look; it is not a benchmark.
//!
//! `cargo run --release -p tidalite-pager --example pager_speed`

#![expect(clippy::print_stdout, reason = "an example talks")]

use std::time::Instant;
use tidalite_pager::{Durability, Kind, Options, PageRead, PageWrite, Pager};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("tidalite-speed-{}.tdl", std::process::id()));
    let pager = Pager::open(&path, &Options::default())?;
    let mut txn = pager.begin_write()?;
    let mut ptrs = Vec::new();
    let begin = Instant::now();
    for _ in 0..20_000 {
        let ptr = txn.new_page(Kind::KvLeaf, 1)?;
        ptrs.push(txn.seal_page(&ptr)?);
    }
    println!(
        "new_page + seal: {} ns",
        begin.elapsed().as_nanos() / 20_000
    );
    txn.commit(&[1], Durability::Durable)?;
    let reader = pager.begin_read()?;
    let hot = &ptrs[..16];
    let mut sum = 0u64;
    for rounds in [1, 1_000_000] {
        let begin = Instant::now();
        for _ in 0..rounds {
            for (i, ptr) in hot.iter().enumerate() {
                // The offset differs from page to page, because lines that are 4 KiB apart compete for the same few
                // places of the cache.
                sum += u64::from(reader.page(ptr)?[100 + i * 64]);
            }
        }
        let ns = begin.elapsed().as_nanos() as f64 / f64::from(rounds * 16);
        println!("page, {rounds} rounds: {ns:.1} ns");
    }
    let begin = Instant::now();
    for _ in 0..1_000_000 {
        sum += pager.begin_read()?.txn().0;
    }
    println!("begin_read: {} ns", begin.elapsed().as_nanos() / 1_000_000);
    let mut ptr = ptrs[0];
    for durability in [Durability::None, Durability::Durable] {
        let begin = Instant::now();
        for i in 0..500u64 {
            let mut txn = pager.begin_write()?;
            ptr = txn.shadow(&ptr)?;
            txn.page_mut(&ptr)?[200] = i as u8;
            ptr = txn.seal_page(&ptr)?;
            txn.commit(&i.to_le_bytes(), durability)?;
        }
        println!(
            "one-page commit, {durability:?}: {} us",
            begin.elapsed().as_micros() / 500
        );
    }
    drop((reader, pager));
    std::fs::remove_file(&path)?;
    std::fs::remove_file(path.with_extension("tdl-lock"))?;
    assert!(sum > 0);
    Ok(())
}
