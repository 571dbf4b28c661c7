//! Flips every single bit of a file, and checks that the damage is reported and never gives wrong answers.
//!
//! `check` must report a flip in the head of the file or in any reachable page, padding included. A query that touches
//! the flipped bit (rows, aggregates, windows, counts, lookups) must be right or give a typed error. A flip in free
//! space must change nothing. The test does not trust the damaged file about its free pages: the number of pages
//! without a reported flip must equal the number of pages that are free or pending in the valid file.
//!
//! If the content is not read for every bit, the check tests bits of many pages in one file (`batch.rs`).
//!
//! Flips in the head, where everything is stored twice, are repeated with the file opened for writing: it must open,
//! show its whole content, accept a commit, and be undamaged after that.
//!
//! ```text
//! image     a file with flipped bits
//! depth     selects the bits to flip
//! contents  valid files
//! answers   query answers of a valid file
//! threads   work on several threads
//! batch     bits of many pages flipped in one file
//! objects   a flip in a chunk damages one object
//! salvage   damaged pages, and the rows that salvage gives back
//! heal      flips in the head, opened for writing
//! ```

mod answers;
mod batch;
mod contents;
mod depth;
mod heal;
mod image;
mod objects;
mod salvage;
mod threads;

use crate::model::digest_of;
use answers::{Right, answers};
use batch::{Company, companies, flip_all};
pub use contents::Contents;
pub(crate) use contents::sound_file;
use contents::{FILE_BYTES_MIN, FREE_PERCENT_MAX};
pub use depth::Depth;
pub use heal::heal;
use image::{PAGE_BYTES, open};
pub use objects::isolated;
pub use salvage::{Saved, salvaged};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use threads::on_threads;

/// Counters for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Number of bits that were flipped.
    pub flips: u64,
    /// Number of pages in the file.
    pub pages: u64,
    /// Number of pages in which no flip was reported.
    pub silent_pages: u64,
    /// Number of bits that were checked together with bits of other pages.
    pub together: u64,
}

/// Flips one bit; returns true if `open` or `check` reported the damage.
fn flip(bytes: &[u8], right: &Right, at: usize, mask: u8, query: bool) -> Result<bool, String> {
    // An error of the database is acceptable; wrong content is not.
    let Ok(db) = open(bytes, at, mask) else {
        return Ok(true);
    };
    if query {
        right.expect_of(&db, at, mask)?;
    }
    // The check reports damage in an obsolete meta record as a note, not as damage.
    let told =
        |report: tidalite::maintenance::CheckReport| !report.is_clean() || !report.notes.is_empty();
    let reported = db.check().map_or(true, told);
    if !query && !reported && digest_of(&db).ok() != Some(right.digest) {
        return Err(format!(
            "bit {mask:#04x} of byte {at} is not reported and changes the answer"
        ));
    }
    Ok(reported)
}

/// A unit of work for a thread.
enum Part<'a> {
    /// Flip all bits of a page, each in a file of its own.
    Page(usize),
    /// Flip the bits at this offset in each page of a group.
    Together(&'a Company, usize),
}

/// Counters of the flips in a page.
#[derive(Default)]
struct Counts {
    reported: AtomicU64,
    quiet: AtomicU64,
}

impl Counts {
    fn add(&self, told: bool) {
        let of = if told { &self.reported } else { &self.quiet };
        of.fetch_add(1, Ordering::Relaxed);
    }
}

/// Flips bits of every byte of a file with these contents, which is created from `seed`; uses `threads` threads.
///
/// # Errors
/// Returns the failure, as a sentence.
pub fn examine(
    contents: Contents,
    seed: u64,
    depth: Depth,
    threads: usize,
) -> Result<Flips, String> {
    let (bytes, digest) = sound_file(contents, seed)?;
    let db = open(&bytes, 0, 0).map_err(|error| error.to_string())?;
    let sound = db.check().map_err(|error| error.to_string())?;
    let answers = answers(&db).into_iter().collect::<Option<Vec<_>>>();
    let answers = answers.ok_or("the sound file does not answer")?;
    let right = Right { digest, answers };
    drop(db);
    if !sound.is_clean() {
        return Err(format!("the sound file: {:?}", sound.problems));
    }
    let merges = u64::from(matches!(contents, Contents::Merge { .. }));
    if sound.compactions != merges {
        return Err(format!(
            "{} merges are open, not {merges}",
            sound.compactions
        ));
    }
    let free = sound.pages_free + sound.pages_pending;
    if bytes.len() < FILE_BYTES_MIN || free * 100 > sound.pages_total * FREE_PERCENT_MAX {
        return Err(format!(
            "{free} of {} pages are free, {} bytes",
            sound.pages_total,
            bytes.len()
        ));
    }
    let pages = bytes.len() / PAGE_BYTES;
    let companies = match depth {
        Depth::EveryBitAndContent => Vec::new(),
        Depth::OneBit | Depth::EveryBit => companies(&bytes),
    };
    let mut parts: Vec<Part<'_>> = Vec::new();
    for company in &companies {
        parts.extend((0..PAGE_BYTES).map(|offset| Part::Together(company, offset)));
    }
    let together = |page| companies.iter().flatten().any(|(other, _)| *other == page);
    parts.extend((0..pages).filter(|page| !together(*page)).map(Part::Page));
    let counts: Vec<Counts> = (0..pages).map(|_| Counts::default()).collect();
    let (next, in_company) = (AtomicUsize::new(0), AtomicU64::new(0));
    // Flips one bit in a separate copy of the file.
    let alone = |at: usize, mask, query| -> Result<(), String> {
        let told = flip(&bytes, &right, at, mask, query)?;
        counts[at / PAGE_BYTES].add(told);
        Ok(())
    };
    let all_together = |company: &Company, offset: usize| -> Result<(), String> {
        for bit in 0..depth.bits() {
            let places = company.iter().map(|(page, _)| page * PAGE_BYTES + offset);
            let bits = places.filter_map(|at| {
                let (mask, query) = depth.masks(at).nth(bit)?;
                Some((at, mask, query))
            });
            let bits: Vec<(usize, u8, bool)> = bits.collect();
            let flipped: Vec<(usize, u8)> = bits.iter().map(|&(at, mask, _)| (at, mask)).collect();
            let told = flip_all(&bytes, company, &flipped);
            for (&(at, mask, query), told) in bits.iter().zip(told) {
                if !told {
                    alone(at, mask, query)?;
                    continue;
                }
                if query && let Ok(db) = open(&bytes, at, mask) {
                    right.expect_of(&db, at, mask)?;
                }
                counts[at / PAGE_BYTES].add(true);
                in_company.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    };
    let work = || -> Result<(), String> {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = match *part {
                Part::Together(company, offset) => all_together(company, offset),
                Part::Page(page) => {
                    (page * PAGE_BYTES..(page + 1) * PAGE_BYTES).try_for_each(|at| {
                        let mut masks = depth.masks(at);
                        masks.try_for_each(|(mask, query)| alone(at, mask, query))
                    })
                }
            };
            done.inspect_err(|_| next.store(parts.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    on_threads(threads, &work)?;
    let mut found = Flips {
        flips: 0,
        pages: pages as u64,
        silent_pages: 0,
        together: in_company.into_inner(),
    };
    for (page, counts) in counts.into_iter().enumerate() {
        let (reported, quiet) = (counts.reported.into_inner(), counts.quiet.into_inner());
        if reported > 0 && quiet > 0 {
            return Err(format!(
                "page {page}: {quiet} of {} flips are not reported",
                reported + quiet
            ));
        }
        found.flips += reported + quiet;
        found.silent_pages += u64::from(quiet > 0);
    }
    if found.silent_pages == free {
        Ok(found)
    } else {
        Err(format!(
            "{found:?}, but {free} pages are free or wait to be"
        ))
    }
}
