//! A disk that is full, fails, or writes only a part, at each single call that a transaction over tables and series
//! makes; and a small real file system that fills up. The result is always a typed error, correct reads, and no partial
//! change.

use crate::common::{Content, Folder, Rows, assert_clean, content_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidalite::storage::Storage;
use tidalite::{
    Database, Durability, Error, ErrorKind, OpenMode, Options, Result, Steps, Tuning, WriteTxn,
};
use tidalite_testkit::{Fault, FaultKind, Monitor, SimDisk};

/// Options with small sizes, so that a transaction makes many calls to the disk.
fn options() -> Options {
    Options::new().tuning(
        Tuning::new()
            .growth_bytes(64 << 10, 64 << 10)
            .dirty_bytes(32 << 10)
            .write_buffer_bytes(200_000),
    )
}

fn open(disk: &Arc<SimDisk>) -> Result<Database> {
    options().open_storage(Monitor::new(Arc::clone(disk) as Arc<dyn Storage>))
}

fn word(i: i64) -> u64 {
    (i as f64 * 1.37).sin().to_bits()
}

fn append(tx: &mut WriteTxn, name: &str, from: i64, rows: i64) -> Result<()> {
    let times: Vec<i64> = (from..from + rows).map(|i| i * 10).collect();
    let flags = vec![0; times.len()];
    let values: Vec<u64> = (from..from + rows).map(word).collect();
    tx.series(name)?.append_rows(&times, &[&flags, &values])
}

/// Writes the content that exists before the faults: rows in leaves and in the delta, and small and large values.
fn before(tx: &mut WriteTxn) -> Result<()> {
    append(tx, "bulk", 0, 6_000)?;
    append(tx, "second", 0, 40)?;
    for i in 0..200 {
        let mut table = tx.table("small")?;
        table.put(format!("key {i:05}").as_bytes(), &[i as u8; 60])?;
    }
    tx.table("large")?.put(b"first", &[3; 40_000])?;
    Ok(())
}

/// Makes changes of every kind in a transaction: bulk rows, late rows, deletes, tables with small and large values, a
/// new series and a new table.
fn mix(tx: &mut WriteTxn, step: i64) -> Result<()> {
    append(tx, "bulk", 6_000 * (step + 1), 5_000)?;
    for i in 0..60 {
        tx.series("second")?
            .insert_point(Steps(i * 7 + step), 1, f64::from_bits(word(i)))?;
    }
    tx.series("bulk")?.delete(Steps(11_111)..Steps(23_456))?;
    for i in (0..200).step_by(3) {
        let mut table = tx.table("small")?;
        table.put(
            format!("key {:05}", i * 7 + step).as_bytes(),
            &[step as u8; 90],
        )?;
        table.remove(format!("key {:05}", i + 1).as_bytes())?;
    }
    tx.table("large")?.put(b"first", &[step as u8; 30_000])?;
    tx.table("large")?
        .put(format!("more {step}").as_bytes(), &[9; 20_000])?;
    append(tx, &format!("new {step}").replace(' ', "."), 0, 1_500)?;
    tx.table(&format!("new {step}"))?.put(b"k", b"v")?;
    Ok(())
}

/// Makes a few changes, which are committed through the redo log.
fn few(tx: &mut WriteTxn, step: i64) -> Result<()> {
    append(tx, "few", 20 * step, 20)?;
    let mut table = tx.table("small")?;
    table.put(format!("key {step:05}").as_bytes(), &[step as u8; 70])?;
    Ok(())
}

fn commit(db: &Database, step: i64, durability: Durability) -> Result<()> {
    let mut tx = db.begin_write()?;
    let fill = if step < LARGE_STEPS { mix } else { few };
    match fill(&mut tx, step) {
        Ok(()) => tx.commit_with(durability).map(drop),
        Err(error) => {
            let again = tx.commit_with(durability);
            assert!(
                again.is_err(),
                "half of a transaction was committed after {error}"
            );
            Err(error)
        }
    }
}

fn now(db: &Database) -> Content {
    content_of(&db.begin_read().unwrap()).unwrap()
}

struct Plan {
    /// Image of a disk with a single commit.
    image: Vec<u8>,
    /// The content of the image, and the expected content after each step.
    contents: Vec<Content>,
}

/// Number of steps, at the beginning, that are large transactions.
const LARGE_STEPS: i64 = 3;
const STEPS: [Durability; 9] = [
    Durability::Durable,
    Durability::None,
    Durability::Durable,
    Durability::OneFlush,
    Durability::OneFlush,
    Durability::Durable,
    Durability::Lazy,
    Durability::Lazy,
    Durability::OneFlush,
];

fn is_durable(durability: &Durability) -> bool {
    matches!(durability, Durability::Durable | Durability::OneFlush)
}

fn plan() -> Plan {
    let disk = Arc::new(SimDisk::new());
    let db = open(&disk).unwrap();
    let mut tx = db.begin_write().unwrap();
    before(&mut tx).unwrap();
    tx.commit().unwrap();
    let mut contents = vec![now(&db)];
    let image = disk.image();
    for (step, durability) in STEPS.into_iter().enumerate() {
        commit(&db, step as i64, durability).unwrap();
        contents.push(now(&db));
    }
    assert_clean(&db);
    Plan { image, contents }
}

/// Makes one call to the disk fail and checks the result; returns false if the fault was never hit.
fn strike(plan: &Plan, fault: Fault) -> bool {
    let disk = Arc::new(SimDisk::from_image(plan.image.clone()));
    let db = open(&disk).unwrap();
    let held = db.begin_read().unwrap();
    let evictable = db.begin_read_evictable().unwrap();
    disk.set_fault(Some(fault));
    let mut done = 0;
    let mut failed = None;
    for (step, durability) in STEPS.into_iter().enumerate() {
        if let Err(error) = commit(&db, step as i64, durability) {
            failed = Some(error);
            break;
        }
        done = step + 1;
    }
    if !disk.fault_hit() {
        assert!(failed.is_none(), "{failed:?}");
        return false;
    }
    assert_eq!(
        now(&db),
        plan.contents[done],
        "{fault:?} after step {done}: {failed:?}"
    );
    assert_eq!(content_of(&held).unwrap(), plan.contents[0], "{fault:?}");
    match content_of(&evictable) {
        Ok(content) => assert_eq!(content, plan.contents[0], "{fault:?}"),
        Err(error) if error.kind() == ErrorKind::Evicted => {
            let txn = error.txn().unwrap();
            let full = fault.kind == FaultKind::DiskFull;
            assert!(full && txn == evictable.txn(), "{fault:?} took {txn}");
        }
        Err(error) => panic!("{fault:?}: {error}"),
    }
    drop((held, evictable));
    if fault.forever {
        // A permanent fault ends here: the disk has room again, or was repaired.
        disk.set_fault(None);
    }
    let poisoned = match failed {
        // No step failed although the fault occurred: the file grew by less than intended.
        None => false,
        Some(error) => {
            match (fault.kind, error.kind()) {
                (FaultKind::DiskFull, ErrorKind::Full) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("disk full") && text.contains("free some space"),
                        "{text}"
                    );
                }
                (_, ErrorKind::Io) => {
                    assert!(error.to_string().contains("at byte"), "{error}")
                }
                _ => panic!("{fault:?}: {error:?}"),
            }
            matches!(db.begin_write().err(), Some(ref error) if error.kind() == ErrorKind::Broken)
        }
    };
    let allowed = if poisoned {
        let error = db.begin_write().err().unwrap().to_string();
        assert!(error.contains("reopened"), "{error}");
        drop(db);
        let db = open(&disk).unwrap();
        let found = now(&db);
        // As after a crash, the file has the last durable state, or the one that was being committed.
        let durable = STEPS[..done].iter().rposition(is_durable);
        let durable = durable.map_or(0, |step| step + 1);
        let begun = STEPS.get(done).is_some_and(is_durable);
        let fits = found == plan.contents[durable] || begun && found == plan.contents[done + 1];
        assert!(fits, "{fault:?} after step {done}");
        goes_on(&db, &found);
        return true;
    } else {
        plan.contents[done].clone()
    };
    goes_on(&db, &allowed);
    drop(db);
    // The file is also sound when it is opened again.
    assert_clean(&open(&disk).unwrap());
    true
}

/// Checks that the next transaction commits and that the file is sound.
fn goes_on(db: &Database, found: &Content) {
    let mut tx = db.begin_write().unwrap();
    append(&mut tx, "after", 0, 10).unwrap();
    tx.table("after").unwrap().put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    let mut expected = found.clone();
    let rows: Rows = (0..10).map(|i| (i * 10, vec![0, word(i)])).collect();
    expected.series.insert("after".into(), rows);
    expected
        .tables
        .insert("after".into(), [(b"k".to_vec(), b"v".to_vec())].into());
    assert_eq!(&now(db), &expected);
    assert_clean(db);
}

fn at_every_call(kind: FaultKind) {
    let plan = plan();
    for forever in [false, true] {
        let mut at_call = 0;
        while strike(
            &plan,
            Fault {
                at_call,
                forever,
                kind,
            },
        ) {
            at_call += 1;
        }
        println!("{kind:?}, forever {forever}: {at_call} calls");
        assert!(at_call > 30, "{at_call} calls");
    }
}

/// Injects a fault of this kind at each call in turn. If the kind does not apply to a call, the fault hits the next
/// call to which it applies.
fn at_every_call_it_concerns(kind: FaultKind) {
    let plan = plan();
    let disk = Arc::new(SimDisk::from_image(plan.image.clone()));
    let db = open(&disk).unwrap();
    let start = disk.calls();
    for (step, durability) in STEPS.into_iter().enumerate() {
        commit(&db, step as i64, durability).unwrap();
    }
    assert!(db.metrics().appends >= 2, "the log takes what is small");
    let calls = disk.calls() - start;
    let mut hit = 0;
    for at_call in 0..calls {
        for forever in [false, true] {
            let fault = Fault {
                at_call,
                forever,
                kind,
            };
            hit += u64::from(strike(&plan, fault));
        }
    }
    println!("{kind:?}: {hit} of {calls} calls, once and forever");
    assert!(hit > calls, "{hit}");
}

#[test]
fn a_full_disk_at_every_call() {
    at_every_call_it_concerns(FaultKind::DiskFull);
}

#[test]
fn a_failed_sync_at_every_call() {
    at_every_call_it_concerns(FaultKind::SyncFails);
}

#[test]
fn an_error_of_the_medium_at_every_call() {
    at_every_call(FaultKind::Medium);
}

#[test]
fn a_short_write_at_every_call() {
    at_every_call(FaultKind::ShortWrite);
}

/// A small mounted file system, in a file or in memory.
pub(crate) struct Mounted {
    folder: Folder,
    pub(crate) mount: PathBuf,
}

impl Mounted {
    fn new(bytes: u64) -> Option<Self> {
        let folder = Folder::new("small-disk");
        let image = folder.file("image");
        let mount = folder.file("mounted");
        std::fs::create_dir(&mount).unwrap();
        std::fs::File::create(&image)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        let run = |program: &str, arguments: &[&Path]| {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let made = run("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &image]);
        let mounted = made
            && run(
                "mount",
                &[Path::new("-o"), Path::new("loop"), &image, &mount],
            );
        mounted.then_some(Self { folder, mount })
    }

    /// Mounts a file system in memory, without a file below it; returns `None` if that is not allowed here.
    pub(crate) fn in_memory(folder: Folder, bytes: &str) -> Option<Self> {
        let mount = folder.file("mounted");
        std::fs::create_dir(&mount).unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&mount)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        mounted.then_some(Self { folder, mount })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.mount).status());
        let _ = &self.folder;
    }
}

#[test]
fn a_small_file_system_fills_up() {
    let Some(disk) = Mounted::new(16 << 20) else {
        println!("skipped");
        return;
    };
    let path = disk.mount.join("plant.tdl");
    let ballast = disk.mount.join("ballast");
    std::fs::write(&ballast, vec![1; 2 << 20]).unwrap();
    let db = Database::open(&path).unwrap();
    let rows = 20_000;
    let mut full = None;
    let mut stored = 0;
    // The values are random numbers, which do not compress.
    let fill = |db: &Database, commit: i64| -> Result<()> {
        let mut tx = db.begin_write()?;
        append(&mut tx, "bulk", commit * rows, rows)?;
        tx.table("log")?
            .put(&commit.to_be_bytes(), &[commit as u8; 5_000])?;
        tx.commit().map(drop)
    };
    for commit in 0..1_000 {
        match fill(&db, commit) {
            Ok(()) => stored = commit + 1,
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let full = full.unwrap();
    assert!(full.kind() == ErrorKind::Full, "{full:?}");
    let expected = |db: &Database| {
        let snap = db.begin_read().unwrap();
        let series = snap.series("bulk").unwrap().unwrap();
        assert_eq!(series.count().unwrap(), (stored * rows) as u64);
        let mut i = 0;
        let compare = |time, words: &[u64]| {
            assert_eq!((time, words), (i * 10, &[0, word(i)][..]));
            i += 1;
        };
        series.query(..).for_each(compare).unwrap();
        assert_eq!(snap.table("log").unwrap().unwrap().count(), stored as u64);
    };
    expected(&db);
    assert_clean(&db);
    // Smaller and smaller commits use up the remaining space, to the last page.
    let mut small = 0;
    loop {
        let mut tx = db.begin_write().unwrap();
        let put = tx
            .table("small")
            .unwrap()
            .put(&i64::to_be_bytes(small), &[1; 3_000]);
        match put.and_then(|_| tx.commit().map(drop)) {
            Ok(()) => small += 1,
            Err(error) => {
                assert!(error.kind() == ErrorKind::Full, "{error:?}");
                break;
            }
        }
    }
    expected(&db);
    drop(db);
    let db = Options::new().mode(OpenMode::Open).open(&path).unwrap();
    expected(&db);
    let full = |error: &Error| error.kind() == ErrorKind::Full;
    let copied = db.copy().to(disk.mount.join("copy.tdl")).unwrap_err();
    assert!(full(&copied), "{copied:?}");
    // No byte is free, but deletes still work, and so do writes with the space that they free.
    let delete = |from: i64, to: i64| -> Result<u64> {
        let mut tx = db.begin_write()?;
        let gone = tx
            .series("bulk")?
            .delete(Steps(from * 10)..Steps(to * 10))?;
        tx.commit().map(|_| gone)
    };
    let clear = |name: &str| -> Result<u64> {
        let mut tx = db.begin_write()?;
        let gone = tx.table(name)?.view()?.count();
        tx.table(name)?.clear()?;
        tx.commit().map(|_| gone)
    };
    assert_eq!(delete(5, 10).unwrap(), 5);
    let most = ((stored - 1) * rows) as u64;
    assert_eq!(delete(rows, stored * rows).unwrap(), most);
    assert_eq!(clear("small").unwrap(), small as u64);
    assert_clean(&db);
    // Pages that a commit frees can be reused from the second commit after it.
    delete(10, 12).unwrap();
    fill(&db, 0).unwrap();
    fill(&db, stored).unwrap();
    clear("log").unwrap();
    assert_clean(&db);
    std::fs::remove_file(&ballast).unwrap();
    drop(db);
    let db = Database::open(&path).unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("bulk").unwrap().unwrap();
    assert_eq!(series.count().unwrap(), 2 * rows as u64);
    assert_clean(&db);
}

/// The simulated disk has no free byte from the start. Rows, pairs and tables can be deleted in any order and size, and
/// afterwards there is room again.
#[test]
fn zero_bytes_free() {
    for (seed, part) in [(1u64, 1i64), (2, 3), (3, 10)] {
        let disk = Arc::new(SimDisk::new());
        let db = open(&disk).unwrap();
        let mut commits = 0;
        let fill = |commit: i64| -> Result<()> {
            let mut tx = db.begin_write()?;
            append(&mut tx, "bulk", commit * 5_000, 5_000)?;
            let mut table = tx.table("log")?;
            for i in 0..40u64 {
                table.put(
                    &(commit as u64 * 1000 + i * seed).to_be_bytes(),
                    &[commit as u8; 600],
                )?;
            }
            tx.commit().map(drop)
        };
        while disk.image().len() < 3 << 20 {
            fill(commits).unwrap();
            commits += 1;
        }
        disk.set_fault(Some(Fault {
            at_call: 0,
            forever: true,
            kind: FaultKind::NoSpace,
        }));
        while fill(commits).is_ok() {
            commits += 1;
        }
        let full = now(&db);
        assert!(fill(commits).is_err());
        assert_eq!(now(&db), full);
        let mut left = commits * 5_000;
        while left > 0 {
            let from = left - (left + part - 1) / part;
            let mut tx = db.begin_write().unwrap();
            let gone = tx
                .series("bulk")
                .unwrap()
                .delete(Steps(from * 10)..Steps(left * 10))
                .unwrap();
            assert_eq!(gone, (left - from) as u64);
            tx.commit().unwrap();
            left = if part == 1 {
                0
            } else {
                from.min(left - 1).max(0)
            };
            if left < 5_000 && part > 1 {
                break;
            }
        }
        let mut tx = db.begin_write().unwrap();
        for key in 0..20u64 {
            tx.table("log")
                .unwrap()
                .remove(&(key * seed).to_be_bytes())
                .unwrap();
        }
        tx.commit().unwrap();
        assert_clean(&db);
        for again in 0..commits / 4 {
            let filled = fill(1_000 + again);
            let stat = db.stat().unwrap();
            assert!(
                filled.is_ok(),
                "part {part}, {again} of {commits}: {filled:?}, {stat:?}"
            );
        }
        assert_clean(&db);
    }
}

/// Calls on a disk that has been removed, also reads, return a typed error.
#[test]
fn calls_on_a_removed_disk_return_errors() {
    let disk = Arc::new(SimDisk::from_image(plan().image));
    let db = open(&disk).unwrap();
    let snap = db.begin_read().unwrap();
    let (at_call, forever, kind) = (0, true, FaultKind::Killed);
    disk.set_fault(Some(Fault {
        at_call,
        forever,
        kind,
    }));
    for _ in 0..2 {
        let mut errors = vec![commit(&db, 0, Durability::Durable).unwrap_err()];
        errors.extend(db.check().err());
        errors.extend(db.stat().err());
        errors.extend(snap.series("bulk").err());
        errors.extend(snap.table("small").err());
        errors.extend(snap.list("").err());
        errors.extend(open(&disk).err());
        assert!(errors.len() >= 5, "{errors:?}");
        for error in errors {
            let typed = matches!(error.kind(), ErrorKind::Io | ErrorKind::Broken);
            assert!(typed, "{error:?}");
        }
    }
}

/// A retention policy can be set on a full disk, and then it frees space.
#[test]
fn a_policy_is_set_on_a_full_disk() {
    use std::io::Write;
    use tidalite::retention::{Budget, Retention};
    let Some(disk) = Mounted::in_memory(Folder::new("policy"), "8m") else {
        println!("skipped");
        return;
    };
    let db = Database::open(disk.mount.join("plant.tdl")).unwrap();
    let mut full = None;
    for step in 0..1_000 {
        let mut tx = db.begin_write().unwrap();
        let filled = append(&mut tx, "bulk", step * 5_000, 5_000).and_then(|()| tx.commit());
        if let Err(error) = filled {
            full = Some(error);
            break;
        }
    }
    let full = full.unwrap();
    assert!(full.kind() == ErrorKind::Full, "{full:?}");
    let mut ballast = std::fs::File::create(disk.mount.join("ballast")).unwrap();
    while ballast.write_all(&[1; 1024]).is_ok() {}
    let rows = |db: &Database| {
        let snap = db.begin_read().unwrap();
        snap.series("bulk").unwrap().unwrap().count().unwrap()
    };
    let before = rows(&db);
    let mut tx = db.begin_write().unwrap();
    let policy = Retention {
        pattern: "bulk".to_owned(),
        bytes: Some(1 << 20),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).unwrap();
    tx.commit().unwrap();
    db.maintain(&Budget::default()).unwrap();
    assert!(rows(&db) < before / 2, "{} of {before} rows", rows(&db));
    drop(db);
}

/// Reading works even if there is no room for the lock file, and on a read-only file system.
#[test]
fn no_room_for_the_lock_file() {
    use std::io::Write;
    let folder = Folder::new("no-room");
    let Some(disk) = Mounted::in_memory(folder, "2m") else {
        println!("skipped");
        return;
    };
    let path = disk.mount.join("plant.tdl");
    let lock = disk.mount.join("plant.tdl-lock");
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("log").unwrap().put(b"key", b"value").unwrap();
    tx.commit().unwrap();
    drop(db);
    std::fs::remove_file(&lock).unwrap();
    let mut ballast = std::fs::File::create(disk.mount.join("ballast")).unwrap();
    while ballast.write_all(&[1; 1024]).is_ok() {}
    let read = || {
        let db = Options::new().read_only(true).open(&path).unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.table("log").unwrap().unwrap();
        assert_eq!(&*table.get(b"key").unwrap().unwrap(), b"value");
        db
    };
    let refused = |kind: std::io::ErrorKind| {
        let error = Database::open(&path).err().unwrap();
        assert_eq!(error.path(), Some(&*lock), "{error:?}");
        assert_eq!(error.io_error().map(|source| source.kind()), Some(kind));
    };
    let (first, second) = (read(), read());
    refused(std::io::ErrorKind::StorageFull);
    drop((first, second));
    drop(ballast);
    let remount = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(&disk.mount)
        .status();
    if remount.is_ok_and(|status| status.success()) {
        drop((read(), read()));
        let error = Database::open(&path).err().unwrap();
        assert!(
            error.path().is_some() && error.io_error().is_some(),
            "{error:?}"
        );
    }
}

/// The maximum file size can be raised while the file is open, so a service that has reached it continues without a
/// restart. A lowered maximum holds at once.
#[test]
fn the_bound_of_the_file_is_raised_while_it_is_open() {
    const MIB: u64 = 1 << 20;
    let folder = Folder::new("bound");
    let path = folder.file("a.tdl");
    let db = Options::new().file_bytes(0, 2 * MIB).open(&path).unwrap();
    let put = |key: u8| {
        let mut tx = db.begin_write()?;
        tx.table("t")?.put(&[key], &vec![key; MIB as usize])?;
        tx.commit()
    };
    let bound_of = |done: Result<tidalite::Commit>| match done {
        Err(error) if error.kind() == ErrorKind::Full => error.limit().unwrap().1,
        other => panic!("{other:?}"),
    };
    put(1).unwrap();
    assert_eq!(bound_of(put(2)), 2 * MIB);
    db.set_file_bytes(0, 4 * MIB);
    put(2).unwrap();
    // A clone shares the limit, because it is the same handle.
    db.clone().set_file_bytes(0, 3 * MIB);
    assert_eq!(bound_of(put(3)), 3 * MIB);
    assert!(std::fs::metadata(&path).unwrap().len() <= 4 * MIB);
    db.set_file_bytes(8 * MIB, u64::MAX);
    put(3).unwrap();
    put(4).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() >= 8 * MIB);
    assert_clean(&db);
}
