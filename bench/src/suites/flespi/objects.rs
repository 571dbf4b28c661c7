//! The part `objects`: writes and reads a large object, compared with a plain file that is written and read in the same
//! slices.
//!
//! | case | |
//! |---|---|
//! | `object-in` | MiB/s of an object of `--mib` MiB, in slices of 1 MiB, up to the end of the durable commit; the file: up to the end of its `fdatasync` |
//! | `object-out` | MiB/s, cold: opened, and read from the begin to the end |
//! | `object-ranges` | ranges/s, cold at the begin: 64 KiB at random offsets, as many as an eighth of the object has |
//! | `object-bytes` | bytes on the disk per byte of the object |
//! | `object-eighth-in`, `object-eighth-out` | the same with an eighth of the size: 128 MiB of 1 GiB |
//! | `object-hash` | MiB/s of the hash alone, which is part of `object-in` (ours only) |
//!
//! Both sides compare the bytes that they read with the bytes that were written. The stored hash is compared with the
//! hash of the bytes. Reading also verifies the checksums of our pages; a plain file has none.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use ::tidalite::Database;
use ::tidalite::objects::{
    Bucket, CHUNK_BYTES_DEFAULT, ContentHash, ContentHasher, ObjectAttributes, ObjectCondition,
};

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Kind, Result, TIDALITE};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// A plain file, written and synced, without a database.
pub(super) const PLAIN_FILE: Kind = Kind {
    name: "plain-file",
    ours: false,
    open: |_, _| Err("a plain file is no database".into()),
};

const MIB: usize = 1 << 20;
const RANGE_BYTES: usize = 64 << 10;
const BUCKET: &str = "files";
const OBJECT: &str = "object";

/// The bytes of objects, which are taken from a pool. No two slices of an object are equal.
struct Contents {
    pool: Vec<u8>,
}

/// Maximum number of slices of a pool: each begins one page after the previous one.
const SLICES: u64 = 16 << 10;
const STEP: usize = 4096;

impl Contents {
    fn new() -> Self {
        let mut random = Random::new(31);
        let words = (MIB + SLICES as usize * STEP) / 8;
        let pool = (0..words)
            .flat_map(|_| random.next().to_le_bytes())
            .collect();
        Self { pool }
    }

    fn slice(&self, n: u64) -> &[u8] {
        // Consecutive slices lie far from each other in the pool, so that no slice continues the previous one.
        let place = (n * 7919 % SLICES) as usize;
        &self.pool[place * STEP..place * STEP + MIB]
    }

    fn check(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let within = (offset % MIB as u64) as usize;
        let (now, later) = bytes.split_at(bytes.len().min(MIB - within));
        let n = offset / MIB as u64;
        if *now != self.slice(n)[within..within + now.len()] {
            return Err(format!("other bytes at {offset} than were written").into());
        }
        match later {
            [] => Ok(()),
            later => self.check(offset + now.len() as u64, later),
        }
    }
}

/// An open object or file.
trait Object {
    /// Reads everything from beginning to end, and checks it.
    fn read_all(&self, contents: &Contents) -> Result<u64>;
    /// Reads a range into `buffer`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Writes an object of this many slices, and waits until it is durable. Returns its hash, if the store has one.
fn write(kind: Kind, dir: &Path, slices: u64, contents: &Contents) -> Result<Option<ContentHash>> {
    if !kind.ours {
        let mut file = File::create(dir.join("plain"))?;
        for n in 0..slices {
            file.write_all(contents.slice(n))?;
        }
        file.sync_data()?;
        return Ok(None);
    }
    let db = Database::open(dir.join("bench.tdl"))?;
    let mut txn = db.begin_write()?;
    let mut bucket = txn.bucket(BUCKET)?;
    let attributes = ObjectAttributes::default();
    let mut put = bucket.begin_put(OBJECT, attributes, ObjectCondition::Missing)?;
    for n in 0..slices {
        bucket.write_put(&mut put, contents.slice(n))?;
    }
    let stored = bucket.finish_put(put)?.done().ok_or("a put is refused")?;
    txn.commit()?;
    Ok(Some(stored.info.hash))
}

/// Opens the object, and runs work with it.
fn with_object(
    kind: Kind,
    dir: &Path,
    work: &mut dyn FnMut(&dyn Object) -> Result<()>,
) -> Result<()> {
    if !kind.ours {
        return work(&File::open(dir.join("plain"))?);
    }
    let db = Database::open(dir.join("bench.tdl"))?;
    let snapshot = db.begin_read()?;
    work(&snapshot.bucket(BUCKET)?.ok_or("there is no bucket")?)
}

impl Object for File {
    fn read_all(&self, contents: &Contents) -> Result<u64> {
        let (mut file, mut buffer, mut at) = (self, vec![0; MIB], 0);
        loop {
            let len = file.read(&mut buffer)?;
            if len == 0 {
                return Ok(at);
            }
            contents.check(at, &buffer[..len])?;
            at += len as u64;
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        Ok(self.read_exact_at(buffer, offset)?)
    }
}

impl Object for Bucket<'_> {
    fn read_all(&self, contents: &Contents) -> Result<u64> {
        let info = self.info(OBJECT)?.ok_or("there is no object")?;
        let mut cursor = self.cursor(&info)?;
        loop {
            let at = cursor.position();
            match cursor.next_slice(MIB as u64)? {
                Some(slice) => contents.check(at, slice)?,
                None => return Ok(at),
            }
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let info = self.info(OBJECT)?.ok_or("there is no object")?;
        let mut cursor = self.cursor(&info)?;
        cursor.seek(offset);
        Ok(cursor.read_exact(buffer)?)
    }
}

/// Runs the part.
pub(super) fn run(options: &Options, round: usize, contest: &mut Contest) -> Result<()> {
    let contents = Contents::new();
    let slices = options.mib;
    let mut kinds = [TIDALITE, PLAIN_FILE];
    kinds.rotate_left(round % 2);
    for kind in kinds {
        let hash = one(kind, "object", slices, &contents, options, contest)?;
        if let Some(hash) = hash {
            check_hash(hash, slices, &contents, contest)?;
        }
    }
    for kind in kinds {
        let eighth = slices.div_ceil(8);
        one(kind, "object-eighth", eighth, &contents, options, contest)?;
    }
    Ok(())
}

/// Measures the hash alone, and compares it with the stored hash.
fn check_hash(
    stored: ContentHash,
    slices: u64,
    contents: &Contents,
    contest: &mut Contest,
) -> Result<()> {
    let begin = Instant::now();
    let mut hasher = ContentHasher::new(CHUNK_BYTES_DEFAULT);
    for n in 0..slices {
        hasher.update(contents.slice(n));
    }
    let hash = hasher.finish();
    let rate = slices as f64 / begin.elapsed().as_secs_f64();
    if hash != stored {
        return Err(format!("the object has the hash {stored}, its bytes have {hash}").into());
    }
    contest.add("object-hash", "MiB/s", false, TIDALITE, Sample::of(rate));
    Ok(())
}

/// Writes and reads an object of this many slices. Returns its hash, if the store has one.
fn one(
    kind: Kind,
    prefix: &str,
    slices: u64,
    contents: &Contents,
    options: &Options,
    contest: &mut Contest,
) -> Result<Option<ContentHash>> {
    let bytes = slices * MIB as u64;
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::expect_disk(dir.path(), bytes * 2 + (64 << 20))
        .map_err(|short| format!("{short}: use --mib"))?;
    os::settle(dir.path())?;
    os::touch_memory(bytes * 2, 256 << 20);
    let case = |name: &str| format!("{prefix}-{name}");

    let meter = Meter::start(dir.path());
    let hash = write(kind, dir.path(), slices, contents)?;
    let sample = meter.finish(slices, 0, Latencies::default());
    contest.add(&case("in"), "MiB/s", false, kind, sample);
    let per_byte = os::disk_used(dir.path())? as f64 / bytes as f64;

    os::make_cold(dir.path())?;
    let (meter, mut read) = (Meter::start(dir.path()), 0);
    with_object(kind, dir.path(), &mut |object| {
        read = object.read_all(contents)?;
        Ok(())
    })?;
    let sample = meter.finish(slices, 0, Latencies::default());
    if read != bytes {
        return Err(format!("{read} bytes of {bytes} were read").into());
    }
    contest.add(&case("out"), "MiB/s", false, kind, sample);
    if prefix != "object" {
        return Ok(hash);
    }
    contest.add(
        &case("bytes"),
        "bytes/byte",
        true,
        kind,
        Sample::of(per_byte),
    );

    os::make_cold(dir.path())?;
    let ranges = (bytes / 8).div_ceil(RANGE_BYTES as u64);
    let (mut latencies, mut random) = (Latencies::default(), Random::new(32));
    let mut buffer = vec![0; RANGE_BYTES];
    let meter = Meter::start(dir.path());
    with_object(kind, dir.path(), &mut |object| {
        for _ in 0..ranges {
            let offset = random.below(bytes - RANGE_BYTES as u64 + 1);
            latencies.time(|| object.read_at(offset, &mut buffer))?;
            contents.check(offset, &buffer)?;
        }
        Ok(())
    })?;
    let sample = meter.finish(ranges, 0, latencies);
    contest.add(&case("ranges"), "ranges/s", false, kind, sample);
    Ok(hash)
}
