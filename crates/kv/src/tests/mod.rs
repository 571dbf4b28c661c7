//! Tests of the table: against a model, at its limits, and with damage.
//!
//! A failing test prints its seed and page size; the test fails again with the same pair.

mod append;
mod ascending;
mod damage;
mod damage_below;
mod edges;
mod long_keys;
mod model;
mod moves;
mod pair_appends;
mod pair_moves;
mod pairs;
mod prefetcher;
mod ranks;
mod raw;

use crate::{Tree, UsedPages, Value, key_bytes_max};
use tidalite_pager::PageRead;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Number of rounds of a test: only a few under Miri, where each round takes hundreds of times as long.
const fn few(rounds: u64) -> u64 {
    if cfg!(miri) {
        rounds.div_ceil(100)
    } else {
        rounds
    }
}

/// Checks the tree, and that it refers to exactly the pages in use.
fn check_all(tree: &Tree, pages: &ScratchPages) {
    pages.assert_all_claimed(&claims(tree, pages));
}

/// All rows of a table in order.
fn all_rows<'r, R: PageRead>(
    tree: &Tree,
    pages: &'r R,
) -> impl Iterator<Item = (Vec<u8>, Value<'r>)> {
    let mut cursor = tree.cursor(pages);
    std::iter::from_fn(move || {
        (cursor.next().unwrap()).then(|| (cursor.key().to_vec(), cursor.value().unwrap()))
    })
}

fn claims<R: PageRead>(tree: &Tree, pages: &R) -> Vec<(u64, u64)> {
    let mut claims = Vec::new();
    tree.check(pages, &mut |UsedPages { addr, pages, .. }| {
        claims.push((addr, pages))
    })
    .unwrap();
    claims
}

/// A random key that often equals other keys: few distinct bytes, common prefixes, every length from zero to the
/// longest key that fits a page, and some longer keys.
fn random_key(rng: &mut Rng, page_size: usize) -> Vec<u8> {
    let most = key_bytes_max(page_size);
    match rng.below(40) {
        0 => vec![b'k'; rng.index(3)],
        1 => {
            let mut key = vec![0; most - rng.index(4)];
            rng.fill(&mut key);
            key
        }
        2 => {
            let mut key = vec![b'x'; most];
            let at = rng.index(most);
            key[at] = rng.below(256) as u8;
            key
        }
        3 => long_key(rng, page_size),
        4..8 => (rng.below(200) as u32).to_be_bytes().to_vec(),
        8..16 => format!("plant/turbine-{:03}/wind.speed", rng.below(300)).into_bytes(),
        16..24 => (rng.below(2000) << 20).to_be_bytes().to_vec(),
        _ => {
            let len = rng.index(24);
            (0..len).map(|_| b'a' + rng.below(4) as u8).collect()
        }
    }
}

/// A random key that is too long for a page, with a long common prefix and few differences, or whose length is near the
/// longest that fits a page.
fn long_key(rng: &mut Rng, page_size: usize) -> Vec<u8> {
    let most = key_bytes_max(page_size);
    let len = match rng.below(12) {
        0 => most - 41 + rng.index(43),
        1 => most + 1 + rng.index(3),
        2 if rng.one_in(40) => 70_000 + rng.index(10),
        _ => most + rng.index(2 * page_size),
    };
    let mut key = vec![b'x'; len];
    for _ in 0..rng.index(3) {
        let at = *rng.pick(&[0, 3, most - 41, most - 40, most, len - 1, len / 2]);
        key[at.min(len - 1)] = b'w' + rng.below(3) as u8;
    }
    key
}

/// A random value: mostly small, sometimes near the size limit of a value in a leaf, rarely of several chunks.
fn random_value(rng: &mut Rng, page_size: usize) -> Vec<u8> {
    let len = match rng.below(200) {
        0 => rng.index(300 * 1024),
        1..3 => rng.index(70_000),
        3..12 => rng.index(2 * page_size),
        12..24 => page_size / 2 - rng.index(page_size / 4),
        24..60 => 0,
        _ => rng.index(40),
    };
    let mut value = vec![0; len];
    rng.fill(&mut value);
    value
}

/// Prints the seed of a test when it fails.
struct Seed {
    seed: u64,
    page_size: usize,
}

impl Seed {
    fn of(seed: u64, page_size: usize) -> Self {
        Self { seed, page_size }
    }

    fn passed(self) {
        std::mem::forget(self);
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        eprintln!(
            "failed with seed {}, pages of {}",
            self.seed, self.page_size
        );
    }
}
