//! Hash tables keyed by page number.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type PageMap<T> = HashMap<u64, T, BuildHasherDefault<PageHasher>>;
pub(crate) type PageSet = HashSet<u64, BuildHasherDefault<PageHasher>>;

/// Hasher for page numbers. This library assigns the numbers, so the hash need not resist keys chosen by an attacker.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are page numbers");
    }
    fn write_u64(&mut self, page: u64) {
        let mixed = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
