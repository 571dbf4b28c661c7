//! Every single bit of a file, flipped.
//!
//! A flip in the head of the file or in anything reachable must be reported by `check`, padding included, and a
//! query that touches it must be right or a typed error; a flip in free space changes nothing. Which pages are free
//! is not asked of the file: the pages in which no flip is reported must be exactly as many as the check of the
//! sound file counts as free or waiting.

use crate::model::digest_of;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tidalite::{Database, Options, Storage, Verify};
use tidalite_testkit::SimDisk;
use tidalite_testkit::rng::Rng;

/// Bytes of a page of the file whose bits are flipped.
const PAGE_BYTES: usize = 512;
/// Free pages that the file has at most, out of a hundred.
const FREE_PERCENT_MAX: u64 = 5;
/// Bytes of the file at least.
const FILE_BYTES_MIN: usize = 64 << 10;

/// Commits that fill what is free.
const FILL_COMMITS_MAX: u32 = 2_000;

/// A file with one bit flipped, which cannot be written.
struct Flipped {
    bytes: Arc<[u8]>,
    at: usize,
    mask: u8,
}

impl Storage for Flipped {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let from = at as usize;
        let source = self.bytes.get(from..from + bytes.len());
        bytes.copy_from_slice(source.ok_or(ErrorKind::UnexpectedEof)?);
        if let Some(byte) = self.at.checked_sub(from).and_then(|i| bytes.get_mut(i)) {
            *byte ^= self.mask;
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn grow(&self, _: u64, _: tidalite::Growth) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Bits flipped.
    pub flips: u64,
    /// Pages of the file.
    pub pages: u64,
    /// Pages in which no flip is reported.
    pub silent_pages: u64,
}

/// A file of tables, leaves, runs and a tail with next to no free space, and the digest of its content.
fn sound_file(seed: u64) -> Result<(Arc<[u8]>, u64), String> {
    let words = |error: tidalite::Error| error.to_string();
    let disk = Arc::new(SimDisk::new());
    let options = Options::new()
        .page_size(PAGE_BYTES)
        .growth_bytes(PAGE_BYTES as u64, PAGE_BYTES as u64);
    let db = options
        .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
        .map_err(words)?;
    let mut rng = Rng::new(seed);
    for part in 0..3 {
        let mut tx = db.begin_write().map_err(words)?;
        for i in 0..if part == 0 { 260_u32 } else { 3 } {
            let mut value = vec![0; rng.index(90)];
            rng.fill(&mut value);
            let key = format!("key {part} {i:04}");
            tx.table("pairs")
                .map_err(words)?
                .put(key.as_bytes(), &value)
                .map_err(words)?;
        }
        for name in ["noise", "ramp"] {
            let rows = if part == 0 { 2 * 1024 + 77 } else { 40 };
            let mut series = tx.series(name).map_err(words)?;
            for i in 0..rows {
                let value = if name == "ramp" { i as f64 } else { rng.f64() };
                series
                    .insert_point(part * 10_000 + i, 0, value)
                    .map_err(words)?;
            }
        }
        tx.commit().map_err(words)?;
    }
    // Small commits until what was set free is used again.
    for i in 0..FILL_COMMITS_MAX {
        let stat = db.stat().map_err(words)?;
        if (stat.pages_free + stat.pages_pending) * 100 <= stat.pages_total * FREE_PERCENT_MAX {
            break;
        }
        let mut tx = db.begin_write().map_err(words)?;
        let mut table = tx.table("pairs").map_err(words)?;
        table
            .put(format!("more {i:04}").as_bytes(), &[7; 100])
            .map_err(words)?;
        tx.commit().map_err(words)?;
    }
    let digest = digest_of(&db).map_err(words)?;
    drop(db);
    Ok((disk.image().into(), digest))
}

fn open(bytes: &Arc<[u8]>, at: usize, mask: u8) -> tidalite::Result<Database> {
    let storage = Flipped {
        bytes: Arc::clone(bytes),
        at,
        mask,
    };
    Options::new()
        .read_only(true)
        .verify(Verify::Always)
        .open_storage(Arc::new(storage))
}

/// Flips one bit: true when it was reported, by `open` or by `check`.
fn flip(bytes: &Arc<[u8]>, digest: u64, at: usize, mask: u8, query: bool) -> Result<bool, String> {
    // A typed error is an answer; a wrong content is not.
    let Ok(db) = open(bytes, at, mask) else {
        return Ok(true);
    };
    if query && digest_of(&db).is_ok_and(|found| found != digest) {
        return Err(format!("bit {mask:#04x} of byte {at} gives a wrong answer"));
    }
    let reported = db.check().map_or(true, |report| !report.is_clean());
    if !query && !reported && digest_of(&db).ok() != Some(digest) {
        return Err(format!(
            "bit {mask:#04x} of byte {at} is not reported and changes the answer"
        ));
    }
    Ok(reported)
}

/// Flips the bits of `masks` in every byte of a file made from `seed`, on `threads` threads. `query_masks`: for
/// these bits the whole content is read too.
///
/// # Errors
/// What was found, as a sentence.
pub fn examine(seed: u64, masks: &[u8], query_masks: u8, threads: usize) -> Result<Flips, String> {
    let (bytes, digest) = sound_file(seed)?;
    let sound = open(&bytes, 0, 0)
        .and_then(|db| db.check())
        .map_err(|error| error.to_string())?;
    if !sound.is_clean() {
        return Err(format!("the sound file: {:?}", sound.problems));
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
    let (next, flips, silent) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || -> Result<(), String> {
        loop {
            let page = next.fetch_add(1, Ordering::Relaxed);
            if page >= pages {
                return Ok(());
            }
            let (mut reported, mut quiet) = (0_u64, 0_u64);
            for at in page * PAGE_BYTES..(page + 1) * PAGE_BYTES {
                for &mask in masks {
                    let query = mask & query_masks != 0;
                    let told = flip(&bytes, digest, at, mask, query).inspect_err(|_| {
                        next.store(pages, Ordering::Relaxed);
                    })?;
                    *(if told { &mut reported } else { &mut quiet }) += 1;
                }
            }
            if reported > 0 && quiet > 0 {
                return Err(format!(
                    "page {page}: {quiet} of {} flips are not reported",
                    reported + quiet
                ));
            }
            flips.fetch_add(reported + quiet, Ordering::Relaxed);
            silent.fetch_add(u64::from(quiet > 0), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended: Vec<Result<(), String>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect();
        ended.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    })?;
    let found = Flips {
        flips: flips.into_inner(),
        pages: pages as u64,
        silent_pages: silent.into_inner(),
    };
    if found.silent_pages == free {
        Ok(found)
    } else {
        Err(format!(
            "{found:?}, but {free} pages are free or wait to be"
        ))
    }
}
