//! Compaction, maintenance, backup, restore and salvage run over disks that fail at every single call, once or
//! permanently. Nothing is lost, the error is typed, the database continues or is poisoned, and a target is complete or
//! absent.

use crate::common::{Content, Folder, assert_clean, content_of};
use crate::disk_full::Mounted;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidalite::maintenance::{Restore, Salvage};
use tidalite::retention::{Budget, Retention};
use tidalite::storage::{LockMemory, Storage};
use tidalite::{Database, Durability, ErrorKind, Options, Result, Steps, Timestamp, Tuning};
use tidalite_testkit::{Fault, FaultKind, SimDisk};

const KINDS: [FaultKind; 4] = [
    FaultKind::Medium,
    FaultKind::DiskFull,
    FaultKind::ShortWrite,
    FaultKind::SyncFails,
];
const NEVER: u64 = u64::MAX;

/// A simulated disk whose reads can fail, too.
struct Disk {
    disk: Arc<SimDisk>,
    reads: AtomicU64,
    /// Number of the first read that fails; with `forever` all later reads fail, too.
    at: AtomicU64,
    forever: bool,
}

impl Disk {
    fn new(image: Vec<u8>, forever: bool) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::new(SimDisk::from_image(image)),
            reads: AtomicU64::new(0),
            at: AtomicU64::new(NEVER),
            forever,
        })
    }

    fn fail_read(&self, at: u64) {
        self.reads.store(0, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
    }

    fn hit(&self) -> bool {
        let at = self.at.load(Ordering::SeqCst);
        self.disk.fault_hit() || self.reads.load(Ordering::SeqCst) > at
    }

    fn mend(&self) {
        self.fail_read(NEVER);
        self.disk.set_fault(None);
    }
}

impl Storage for Disk {
    tidalite_testkit::forward_storage!(disk: write_at, sync, sync_all, len, grow);

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (number, bad) = (
            self.reads.fetch_add(1, Ordering::SeqCst),
            self.at.load(Ordering::SeqCst),
        );
        if number == bad || self.forever && number > bad {
            return Err(io::Error::other("a bad sector"));
        }
        self.disk.read_at(at, bytes)
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        self.disk.cut(len)
    }
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        self.disk.punch(at, len)
    }
}

fn options() -> Options {
    tidalite_testkit::watch();
    Options::new()
        .page_size(1024)
        .tuning(
            Tuning::new()
                .growth_bytes(16 << 10, 32 << 10)
                .shrink_bytes(16 << 10)
                .reserve_bytes(16 << 10),
        )
        .large_values("", 4_000)
}

fn open(disks: &[Arc<Disk>; 2]) -> Result<Database> {
    let [first, second] = disks.clone().map(|disk| disk as Arc<dyn Storage>);
    options().open_storages(first, second, &LockMemory::new())
}

fn content(db: &Database) -> Content {
    content_of(&db.begin_read().unwrap()).unwrap()
}

/// Images of the disks of both files. They have holes, so that there is something to compact, to delete and to copy.
fn images() -> [Vec<u8>; 2] {
    let disks = [0, 1].map(|_| Disk::new(Vec::new(), false));
    let db = open(&disks).unwrap();
    for round in 0..3u8 {
        let mut tx = db.begin_write().unwrap();
        for series in ["a", "b"] {
            let from = i64::from(round) * 900;
            for i in from..from + 900 {
                let value = (i * i % 977) as f64 / 7.0;
                let mut series = tx.series(series).unwrap();
                series.insert_point(Steps(i * 10), 0, value).unwrap();
            }
            tx.series(series)
                .unwrap()
                .insert_point(Steps(15), 0, 1.5)
                .unwrap();
        }
        for i in 0..40 {
            let (key, len) = ([round, i], if i % 8 == 0 { 9_000 } else { 90 });
            tx.table("t").unwrap().put(&key, &vec![i; len]).unwrap();
        }
        tx.commit().unwrap();
    }
    let mut tx = db.begin_write().unwrap();
    for i in 0..40 {
        tx.table("t").unwrap().remove(&[0, i]).unwrap();
        tx.table("t").unwrap().remove(&[1, i]).unwrap();
    }
    tx.series("b")
        .unwrap()
        .delete(Steps(2_000)..Steps(9_000))
        .unwrap();
    let policy = Retention {
        pattern: "a".to_owned(),
        keep: Some(Duration::from_nanos(9_000)),
        ..Retention::default()
    };
    tx.set_retention("short", &policy).unwrap();
    tx.commit().unwrap();
    db.pin("monday").unwrap();
    drop(db);
    disks.map(|disk| disk.disk.image())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Compact,
    Maintain,
    Backup,
}

impl Job {
    fn run(self, db: &Database) -> Result<()> {
        match self {
            Self::Compact => {
                // Twelve steps are enough to finish; the last ones find nothing to move.
                for _ in 0..12 {
                    if db.compact(24 << 10)?.done {
                        break;
                    }
                }
            }
            Self::Maintain => {
                let budget = Budget {
                    time: Duration::from_secs(60),
                    now: Some(Timestamp(27_000)),
                    ..Budget::default()
                };
                db.maintain(&budget)?;
            }
            Self::Backup => {
                // A backup first makes lazy commits durable.
                let mut tx = db.begin_write()?;
                tx.set_user_data(b"lazy")?;
                tx.commit_with(Durability::Lazy)?;
                db.backup().to_writer(&mut Vec::new())?;
                db.backup().since("monday").to_writer(&mut Vec::new())?;
            }
        }
        Ok(())
    }
}

/// Runs the job with one fault and checks the result; returns false if the fault was not hit.
fn strike(
    job: Job,
    images: &[Vec<u8>; 2],
    allowed: &[Content],
    fault: (usize, Option<FaultKind>, u64, bool),
) -> bool {
    let (side, kind, at_call, forever) = fault;
    let disks = images.clone().map(|image| Disk::new(image, forever));
    let db = open(&disks).unwrap();
    match kind {
        None => disks[side].fail_read(at_call),
        Some(kind) => disks[side].disk.set_fault(Some(Fault {
            at_call,
            forever,
            kind,
        })),
    }
    let done = job.run(&db);
    let hit = disks[side].hit();
    disks.iter().for_each(|disk| disk.mend());
    if let Err(error) = &done {
        assert!(hit, "{job:?}: {error}");
        let typed = match error.kind() {
            ErrorKind::Full => kind == Some(FaultKind::DiskFull),
            ErrorKind::Io | ErrorKind::Broken => true,
            _ => false,
        };
        assert!(typed, "{job:?}, {fault:?}: {error:?}");
    }
    // Readers work whatever operation has failed.
    let shown = content(&db);
    assert!(allowed.contains(&shown), "{job:?}, {fault:?}");
    let poisoned = match db.begin_write() {
        Err(error) if error.kind() == ErrorKind::Broken => true,
        Err(error) => panic!("{job:?}, {fault:?}: {error}"),
        Ok(_) => false,
    };
    assert!(!poisoned || kind.is_some(), "no read poisons: {fault:?}");
    let db = match poisoned {
        true => {
            drop(db);
            open(&disks).unwrap()
        }
        false => db,
    };
    let found = content(&db);
    assert!(allowed.contains(&found), "{job:?}, {fault:?}");
    assert_clean(&db);
    job.run(&db).unwrap();
    assert_eq!(
        &content(&db),
        &allowed[allowed.len() - 1],
        "{job:?}, {fault:?}"
    );
    assert_clean(&db);
    drop(db);
    assert_clean(&open(&disks).unwrap());
    hit
}

fn at_every_call(job: Job) {
    let images = images();
    let disks = images.clone().map(|image| Disk::new(image, false));
    let db = open(&disks).unwrap();
    let mut allowed = vec![content(&db)];
    let before = disks.clone().map(|disk| disk.disk.calls());
    let reads = disks.clone().map(|disk| disk.reads.load(Ordering::SeqCst));
    job.run(&db).unwrap();
    let after = content(&db);
    if after != allowed[0] {
        allowed.push(after);
    }
    let mut hits = 0;
    for side in 0..2 {
        let calls = disks[side].disk.calls() - before[side];
        let reads = disks[side].reads.load(Ordering::SeqCst) - reads[side];
        let kinds = KINDS.into_iter().map(|kind| (Some(kind), calls, 1));
        // Not every read is tested, because reads are many and similar.
        for (kind, calls, step) in kinds.chain([(None, reads, 1 + reads / 60)]) {
            for at in (0..calls).step_by(step as usize) {
                for forever in [false, true] {
                    hits += u64::from(strike(job, &images, &allowed, (side, kind, at, forever)));
                }
            }
        }
        println!("{job:?}, disk {side}: {calls} calls, {reads} reads");
    }
    println!("{job:?}: {hits} faults met");
    assert!(hits > 60, "{job:?}: {hits}");
}

#[test]
fn compaction_over_failing_disks() {
    at_every_call(Job::Compact);
}

#[test]
fn maintenance_over_failing_disks() {
    at_every_call(Job::Maintain);
}

#[test]
fn backups_from_failing_disks() {
    at_every_call(Job::Backup);
}

/// A stream that succeeds for `left` calls and then fails, after a short write.
struct Broken<S> {
    stream: S,
    left: u64,
}

impl<S> Broken<S> {
    fn next(&mut self) -> io::Result<bool> {
        if self.left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left -= 1;
        Ok(self.left == 0)
    }
}

impl Write for Broken<&mut Vec<u8>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let short = self.next()? && bytes.len() > 1;
        let len = if short { bytes.len() / 2 } else { bytes.len() };
        self.stream.write(&bytes[..len])
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Broken<&[u8]> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let _ = self.next()?;
        let len = bytes.len().min(3_000);
        self.stream.read(&mut bytes[..len])
    }
}

fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_backup_whose_stream_breaks_is_refused() {
    let disks = images().map(|image| Disk::new(image, false));
    let db = open(&disks).unwrap();
    let mut whole = Vec::new();
    db.backup().to_writer(&mut whole).unwrap();
    let folder = Folder::new("broken");
    let path = folder.file("new.tdl");
    let mut calls = 0;
    loop {
        let mut out = Vec::new();
        let mut broken = Broken {
            stream: &mut out,
            left: calls,
        };
        let written = db.backup().to_writer(&mut broken);
        if written.is_ok() {
            break;
        }
        let error = written.unwrap_err();
        let typed = error.kind() == ErrorKind::Io;
        assert!(typed, "{error:?}");
        let refused = Restore::from([&out[..]]).to(&path).unwrap_err();
        let typed = refused.kind() == ErrorKind::Damaged;
        assert!(typed, "{refused:?}");
        assert_eq!(files_in(path.parent().unwrap()), 0, "after {calls} calls");
        calls += 1;
    }
    assert!(calls > 10, "{calls}");
    // In this part, the stream that is read fails.
    let mut reads = 0;
    loop {
        let broken = Broken {
            stream: &whole[..],
            left: reads,
        };
        match Restore::from([broken]).to(&path) {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Io => {}
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(files_in(path.parent().unwrap()), 0, "after {reads} reads");
        reads += 1;
    }
    assert!(reads > 20, "{reads}");
    let restored = Database::open(&path).unwrap();
    assert_eq!(content(&restored), content(&db));
    assert_clean(&restored);
    assert_clean(&db);
}

#[test]
fn restoring_to_a_full_disk_leaves_nothing() {
    let disks = images().map(|image| Disk::new(image, false));
    let db = open(&disks).unwrap();
    let mut whole = Vec::new();
    db.backup().to_writer(&mut whole).unwrap();
    let Some(small) = Mounted::in_memory(Folder::new("full"), "2M") else {
        println!("skipped: no file system of its own");
        return;
    };
    let (path, second) = (small.mount.join("new.tdl"), small.mount.join("new.values"));
    let mut failed = 0;
    for ballast in (0..=2048).rev().step_by(16) {
        let in_the_way = small.mount.join("ballast");
        std::fs::write(&in_the_way, vec![1; (ballast << 10).min(2 << 20)]).unwrap();
        let restored = Restore::from([&whole[..]]).large_values(&second).to(&path);
        std::fs::remove_file(&in_the_way).unwrap();
        match restored {
            Ok(_) => break,
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Io) => failed += 1,
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(files_in(&small.mount), 0, "with {ballast} KiB in the way");
    }
    println!("{failed} times full");
    assert!(failed > 3, "{failed}");
    let restored = Database::open(&path).unwrap();
    assert_eq!(content(&restored), content(&db));
    assert_clean(&restored);
}

#[test]
fn salvage_into_a_failing_disk_is_all_or_nothing() {
    let disks = images().map(|image| Disk::new(image, false));
    let damaged = Arc::new(SimDisk::from_image(disks[0].disk.image()));
    let mut hits = 0;
    for kind in KINDS {
        for forever in [false, true] {
            for at_call in 0.. {
                let target = Disk::new(Vec::new(), forever);
                let to = || {
                    let target = Arc::clone(&target) as Arc<dyn Storage>;
                    Options::new().page_size(1024).open_storage(target)
                };
                let db = to().unwrap();
                target.disk.set_fault(Some(Fault {
                    at_call,
                    forever,
                    kind,
                }));
                let source = Arc::clone(&damaged) as Arc<dyn Storage>;
                let saved = Salvage::of_storage(source).to_database(&db);
                let hit = target.hit();
                target.mend();
                drop(db);
                let db = to().unwrap();
                assert_clean(&db);
                let snap = db.begin_read().unwrap();
                let some = snap.series("a").unwrap().is_some();
                // If the sync of the meta record failed, the record may have reached the medium all the same.
                assert!(some || saved.is_err(), "{kind:?} at {at_call}");
                if let Err(error) = saved {
                    let typed = matches!(error.kind(), ErrorKind::Io | ErrorKind::Full);
                    assert!(hit && typed, "{error:?}");
                }
                hits += u64::from(hit);
                if target.disk.calls() <= at_call {
                    break;
                }
            }
        }
    }
    println!("{hits} faults met");
    assert!(hits > 20, "{hits}");
}

#[test]
fn salvage_of_a_disk_that_cannot_be_read_ends() {
    let images = images();
    let disks = images.clone().map(|image| Disk::new(image, false));
    drop(open(&disks).unwrap());
    for forever in [false, true] {
        for at in 0..60 {
            let source = Disk::new(images[0].clone(), forever);
            source.fail_read(at);
            let to = Disk::new(Vec::new(), false);
            let db = Options::new().open_storage(to as Arc<dyn Storage>).unwrap();
            match Salvage::of_storage(source as Arc<dyn Storage>).to_database(&db) {
                Ok(_) => assert_clean(&db),
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::NotADatabase) => {}
                Err(error) => panic!("read {at}: {error:?}"),
            }
        }
    }
}
