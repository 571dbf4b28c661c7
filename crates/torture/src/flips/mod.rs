//! Every single bit of a file, flipped.
//!
//! A flip in the head of the file or in anything reachable must be reported by `check`, padding included, and a
//! query that touches it (rows, aggregates, windows, counts, lookups) must be right or a typed error; a flip in free space changes nothing. Which pages are free
//! is not asked of the file: the pages in which no flip is reported must be exactly as many as the check of the
//! sound file counts as free or waiting.
//!
//! Where not the content is read for every bit, bits of many pages are flipped in one file for the check (`batch.rs`).
//!
//! Those of the head, where everything is there twice, are made once more and the file is opened for writing: it must open, show its
//! whole content, take a commit, and be without any damage after that.

mod batch;

use crate::model::digest_of;
use batch::{Company, companies, flip_all};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tidalite::{Database, MemoryStorage, Options, Storage, Verify};
use tidalite_runs::FAN_IN;
use tidalite_testkit::rng::Rng;

/// Bytes of a page of the file whose bits are flipped.
const PAGE_BYTES: usize = 512;
/// Free pages that the file has at most, out of a hundred.
const FREE_PERCENT_MAX: u64 = 5;
/// Bytes of the file at least.
const FILE_BYTES_MIN: usize = 64 << 10;

/// Series of a file with an open merge, and rows of each in a run: more, as rows, than the step with which a merge begins.
const MERGED_SERIES: usize = 24;
const MERGED_ROWS: i64 = 16;

/// Bytes of the head: superblocks and meta blocks.
const HEAD_BYTES: usize = 6 * 4096;

/// Commits that fill what is free.
const FILL_COMMITS_MAX: u32 = 2_000;

/// A file with one bit flipped, mapped, which cannot be written.
struct Flipped(Box<[u8]>);

impl Storage for Flipped {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let source = self.mapped(at, bytes.len());
        bytes.copy_from_slice(source.ok_or(ErrorKind::UnexpectedEof)?);
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
        Ok(self.0.len() as u64)
    }

    fn grow(&self, _: u64, _: tidalite::Growth) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at).ok()?;
        self.0.get(from..from.checked_add(len)?)
    }
}

/// Which bits, and for which of them the whole content is read besides the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// One bit of each byte, from byte to byte another one, with the content.
    OneBit,
    /// Every bit; the content for one in eight, from byte to byte another one.
    EveryBit,
    /// Every bit, each with the content.
    EveryBitAndContent,
}

impl Depth {
    /// The bits of the byte at `at`, as masks, and whether the content is read.
    fn masks(self, at: usize) -> impl Iterator<Item = (u8, bool)> {
        // So that no bit of a field of two, four or eight bytes is always the one.
        let chosen = (at ^ at >> 3 ^ at >> 6) % 8;
        let of_bit = move |bit: usize| match self {
            Self::OneBit => (bit == chosen).then_some(true),
            Self::EveryBit => Some(bit == chosen),
            Self::EveryBitAndContent => Some(true),
        };
        (0..8).filter_map(move |bit| Some((1 << bit, of_bit(bit)?)))
    }

    /// Bits of a byte.
    fn bits(self) -> usize {
        self.masks(0).count()
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
    /// Bits that were checked in company.
    pub together: u64,
}

/// What the file holds whose bits are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A bit of everything: a table with short and long values, leaves, runs that lost rows, a tail.
    Mixed,
    /// A table with values of 3,000 bytes.
    Values,
    /// Runs of many series, of which a merge is open, before or after rows were deleted from them.
    Merge {
        /// Whether rows were deleted.
        deletes: bool,
    },
}

impl Contents {
    /// All, for the long search.
    pub const ALL: [Self; 4] = [
        Self::Mixed,
        Self::Values,
        Self::Merge { deletes: false },
        Self::Merge { deletes: true },
    ];

    fn fill(self, db: &Database, rng: &mut Rng) -> tidalite::Result<()> {
        match self {
            Self::Mixed => {
                // Free pages for all that is beside the leaves, whose extent is cut behind them at the end of its
                // transaction: a page behind it would keep the file long.
                put_one(db, &vec![0; 40 * PAGE_BYTES])?;
                put_one(db, &[])?;
                put_one(db, &[])?;
                rows(db, rng, 2, 0..1_024 + 30)?;
                pairs(db, rng, 60, 90)?;
                pairs(db, rng, 2, 1_500)?;
                for part in 0..3 {
                    let from = 10_000 + 1_000 * part;
                    rows(db, rng, 2, from..from + 30)?;
                }
                delete(db, 2, 10_010..12_000)?;
                rows(db, rng, 2, 20_000..20_003)
            }
            Self::Values => {
                pairs(db, rng, 12, 3_000)?;
                pairs(db, rng, 40, 60)?;
                rows(db, rng, 1, 0..70)
            }
            Self::Merge { deletes } => {
                pairs(db, rng, 60, 90)?;
                for run in 0..FAN_IN as i64 {
                    rows(db, rng, MERGED_SERIES, 100 * run..100 * run + MERGED_ROWS)?;
                }
                if deletes {
                    // Not from all: blocks that were replaced stay beside others.
                    delete(db, MERGED_SERIES / 3, 203..1_102)?;
                }
                rows(db, rng, 1, 20_000..20_003)
            }
        }
    }
}

/// Puts `count` new pairs with values of up to `len` bytes; beyond a page all are that long.
fn pairs(db: &Database, rng: &mut Rng, count: usize, len: usize) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    let mut table = tx.table("pairs")?;
    for i in 0..count {
        let mut value = vec![
            0;
            if len > PAGE_BYTES {
                len
            } else {
                rng.index(len)
            }
        ];
        rng.fill(&mut value);
        table.put(format!("key {len} {i:04}").as_bytes(), &value)?;
    }
    tx.commit()?;
    Ok(())
}

/// Commits one pair, alone in its table.
fn put_one(db: &Database, value: &[u8]) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("one")?.put(b"one", value)?;
    tx.commit()?;
    Ok(())
}

/// Appends rows at these times to each of `series` series, every second one of which holds noise.
fn rows(db: &Database, rng: &mut Rng, series: usize, times: Range<i64>) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    for i in 0..series {
        let mut series = tx.series(&format!("s{i}"))?;
        for time in times.clone() {
            // Few, so that many rows take few bytes.
            let noise = i % 8 == 0;
            let value = if noise { rng.f64() } else { time as f64 };
            series.insert_point(time, 0, value)?;
        }
    }
    tx.commit()?;
    Ok(())
}

fn delete(db: &Database, series: usize, times: Range<i64>) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    for i in 0..series {
        tx.series(&format!("s{i}"))?.delete(times.clone())?;
    }
    tx.commit()?;
    Ok(())
}

/// A file with next to no free space, and the digest of its content.
pub(crate) fn sound_file(contents: Contents, seed: u64) -> Result<(Vec<u8>, u64), String> {
    let (file, digest) = sound_storage(contents, seed).map_err(|error| error.to_string())?;
    let len = file.len().map_err(|error| error.to_string())?;
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok((bytes, digest))
}

fn options() -> Options {
    Options::new()
        .page_size(PAGE_BYTES)
        .growth_bytes(PAGE_BYTES as u64, PAGE_BYTES as u64)
        .reserve_bytes(0)
        // What is in a log that was emptied is damaged without a loss. (Damage in one that was not: crates/pager/tests/redo.rs.)
        .log_bytes(0)
}

fn sound_storage(contents: Contents, seed: u64) -> tidalite::Result<(Arc<dyn Storage>, u64)> {
    let file: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let options = options();
    // Closing cuts off what is free at the end.
    let reopened = || options.open_storage(Arc::clone(&file));
    contents.fill(&reopened()?, &mut Rng::new(seed))?;
    let mut db = reopened()?;
    // Small commits until what was set free is used again. After each of them two that change a single page: then
    // what it replaced no longer waits.
    for i in 0..FILL_COMMITS_MAX {
        let stat = db.stat()?;
        let free = stat.pages_free + stat.pages_pending;
        let large = stat.pages_total >= (FILE_BYTES_MIN / PAGE_BYTES) as u64;
        if large && free * 100 <= stat.pages_total * FREE_PERCENT_MAX {
            break;
        }
        let mut tx = db.begin_write()?;
        tx.table("pairs")?
            .put(format!("more {i:04}").as_bytes(), &[7; 100])?;
        tx.commit()?;
        put_one(&db, &[])?;
        put_one(&db, &[])?;
        drop(db);
        db = reopened()?;
    }
    let digest = digest_of(&db)?;
    drop(db);
    Ok((file, digest))
}

/// The file with the bits of `mask` in byte `at` flipped.
fn open(bytes: &[u8], at: usize, mask: u8) -> tidalite::Result<Database> {
    let mut bytes = Box::<[u8]>::from(bytes);
    bytes[at] ^= mask;
    open_image(bytes)
}

fn open_image(image: Box<[u8]>) -> tidalite::Result<Database> {
    Options::new()
        .read_only(true)
        .verify(Verify::Always)
        .open_storage(Arc::new(Flipped(image)))
}

/// Questions about a series.
const QUESTIONS: usize = 4;
/// Keys that are looked up.
const LOOKUPS: [&str; 2] = ["key 90 0011", "key 1500 0001"];

/// What a sound file holds and answers.
struct Right {
    digest: u64,
    answers: Vec<String>,
}

impl Right {
    /// That a file with this bit flipped gives no other content and no other answers.
    fn expect_of(&self, db: &Database, at: usize, mask: u8) -> Result<(), String> {
        if digest_of(db).is_ok_and(|found| found != self.digest) {
            return Err(format!("bit {mask:#04x} of byte {at} gives a wrong answer"));
        }
        let wrong = |(own, right): (Option<String>, &String)| own.is_some_and(|own| own != *right);
        if answers(db).into_iter().zip(&self.answers).any(wrong) {
            return Err(format!(
                "bit {mask:#04x} of byte {at} gives a question a wrong answer"
            ));
        }
        Ok(())
    }
}

/// Questions that the statistics in links and directories answer, and lookups: the same ones on every file; `None` for an error.
fn answers(db: &Database) -> Vec<Option<String>> {
    let mut answers = vec![None; 2 * QUESTIONS + LOOKUPS.len()];
    let Ok(snap) = db.begin_read() else {
        return answers;
    };
    for (name, answers) in ["s0", "s1"].into_iter().zip(answers.chunks_mut(QUESTIONS)) {
        let series = match snap.series(name) {
            Ok(Some(series)) => series,
            Ok(None) => {
                answers.fill(Some("no series".to_owned()));
                continue;
            }
            Err(_) => continue,
        };
        let text = |answer: tidalite::Result<String>| answer.ok();
        let all = series.all();
        answers[0] = text(all.aggregate(1).map(|all| format!("{all:?}")));
        let part = series.between(7..10_020).aggregate(1);
        answers[1] = text(part.map(|part| format!("{part:?}")));
        answers[2] = text(all.windows(300, 0, 1).map(|windows| format!("{windows:?}")));
        answers[3] = text(series.count().map(|count| count.to_string()));
    }
    for (key, answer) in LOOKUPS.iter().zip(&mut answers[2 * QUESTIONS..]) {
        let value = || -> tidalite::Result<String> {
            let Some(table) = snap.table("pairs")? else {
                return Ok("no table".to_owned());
            };
            Ok(format!("{:?}", table.get(key.as_bytes())?))
        };
        *answer = value().ok();
    }
    answers
}

/// Flips one bit: true when it was reported, by `open` or by `check`.
fn flip(bytes: &[u8], right: &Right, at: usize, mask: u8, query: bool) -> Result<bool, String> {
    // A typed error is an answer; a wrong content is not.
    let Ok(db) = open(bytes, at, mask) else {
        return Ok(true);
    };
    if query {
        right.expect_of(&db, at, mask)?;
    }
    // A record that does not count any more is no damage, but it is told.
    let told = |report: tidalite::CheckReport| !report.is_clean() || !report.notes.is_empty();
    let reported = db.check().map_or(true, told);
    if !query && !reported && digest_of(&db).ok() != Some(right.digest) {
        return Err(format!(
            "bit {mask:#04x} of byte {at} is not reported and changes the answer"
        ));
    }
    Ok(reported)
}

/// Runs `work` on so many threads; the first error.
fn on_threads(
    threads: usize,
    work: &(impl Fn() -> Result<(), String> + Sync),
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended: Vec<Result<(), String>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect();
        ended.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    })
}

/// A commit of one pair to a file that was opened for writing, and the digest of what the reopened file holds after it; it must be
/// without damage.
fn commit_and_reopen(storage: &Arc<dyn Storage>, db: Database) -> Result<u64, String> {
    let told = |what: &str, error: tidalite::Error| format!("{what}: {error}");
    put_one(&db, b"after").map_err(|error| told("a commit", error))?;
    drop(db);
    let opened = options().read_only(true).open_storage(Arc::clone(storage));
    let db = opened.map_err(|error| told("reopened", error))?;
    let report = db.check().map_err(|error| told("check", error))?;
    if !report.is_clean() || !report.notes.is_empty() {
        let (problems, notes) = (report.problems, report.notes);
        return Err(format!("not healed: {problems:?} {notes:?}"));
    }
    digest_of(&db).map_err(|error| told("reopened", error))
}

/// Flips bits of the head and opens the file for writing. The content is always read. With `OneBit` of the bytes that are zero one in four
/// is taken. Returns how many.
///
/// # Errors
/// What was found, as a sentence.
pub fn heal(contents: Contents, seed: u64, depth: Depth, threads: usize) -> Result<u64, String> {
    let (bytes, digest) = sound_file(contents, seed)?;
    // What comes of the file with this bit flipped, or as it is.
    let tried = |at: usize, mask: u8| -> Result<u64, String> {
        let mut image = bytes.clone();
        image[at] ^= mask;
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::from_image(image));
        let opened = options().open_storage(Arc::clone(&storage));
        let db = opened.map_err(|error| format!("it does not open: {error}"))?;
        let found = digest_of(&db).map_err(|error| error.to_string())?;
        if found != digest {
            return Err("a wrong content".to_owned());
        }
        commit_and_reopen(&storage, db)
    };
    let right = tried(0, 0)?;
    let (next, flips) = (AtomicUsize::new(0), AtomicU64::new(0));
    on_threads(threads, &|| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= HEAD_BYTES {
                return Ok(());
            }
            if depth == Depth::OneBit && bytes[at] == 0 && at % 4 != 0 {
                continue;
            }
            for (mask, _) in depth.masks(at) {
                let wrong = match tried(at, mask) {
                    Ok(found) if found == right => None,
                    Ok(_) => Some("a wrong content after a commit".to_owned()),
                    Err(problem) => Some(problem),
                };
                if let Some(problem) = wrong {
                    next.store(HEAD_BYTES, Ordering::Relaxed);
                    return Err(format!(
                        "bit {mask:#04x} of byte {at}, opened for writing: {problem}"
                    ));
                }
                flips.fetch_add(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(flips.into_inner())
}

/// What a thread takes.
enum Part<'a> {
    /// All bits of a page, each in a file of its own.
    Page(usize),
    /// The bits at this place of each of these pages.
    Together(&'a Company, usize),
}

/// Flips of a page.
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

/// Flips bits of every byte of a file of these contents, made from `seed`, on `threads` threads.
///
/// # Errors
/// What was found, as a sentence.
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
    if sound.merges != merges {
        return Err(format!("{} merges are open, not {merges}", sound.merges));
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
    // One bit alone.
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
