//! Tests of a database on a block device (here a loop device), with the lock file in a folder.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidalite_pager::{
    DiskError, Durability, Error, Extent, OpenMode, Options, PageRead, PageWrite, Pager, RawFile,
    Verifier,
};

const MIB: u64 = 1 << 20;

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidalite-device-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A loop device: a file that is attached as a block device.
struct Loop(PathBuf);

impl Loop {
    /// Attaches a file as a loop device. If this process lacks the permission, prints a message and returns `None`.
    fn attach(file: &Path) -> Option<Self> {
        for program in ["losetup", "/usr/sbin/losetup", "/sbin/losetup"] {
            let made = Command::new(program)
                .args(["--find", "--show"])
                .arg(file)
                .output();
            if let Ok(made) = made
                && made.status.success()
            {
                let name = String::from_utf8(made.stdout).expect("a path");
                return Some(Self(PathBuf::from(name.trim())));
            }
        }
        eprintln!("skipped: no loop device to be had");
        None
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        for program in ["losetup", "/usr/sbin/losetup", "/sbin/losetup"] {
            let detached = Command::new(program).arg("--detach").arg(&self.0).status();
            if detached.is_ok_and(|status| status.success()) {
                return;
            }
        }
    }
}

fn backing(folder: &Folder, bytes: u64) -> PathBuf {
    let path = folder.0.join("disk");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(bytes).expect("its length");
    path
}

fn options(folder: &Folder) -> Options {
    Options {
        lock_path: Some(folder.0.join("lock")),
        verifier: Some(Verifier::new(|_| Ok(()))),
        ..Options::default()
    }
}

fn fill(pager: &Pager, bytes: u64, with: u8) -> Result<Extent, Error> {
    let mut txn = pager.begin_write()?;
    let extent = txn.alloc_extent(bytes / 4096)?;
    txn.write_extent(extent.addr, &vec![with; bytes as usize])?;
    txn.commit(&extent.addr.to_le_bytes(), Durability::Durable)?;
    Ok(extent)
}

fn free(pager: &Pager, extent: &Extent) {
    let mut txn = pager.begin_write().expect("a writer");
    txn.free_extent(extent);
    txn.commit(b"freed", Durability::Durable)
        .expect("committed");
}

fn kind(error: &Error) -> std::io::ErrorKind {
    match error {
        Error::Disk(DiskError::Open { source, .. }) => source.kind(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_device_becomes_a_database_and_stays_one() {
    let folder = Folder::new("life");
    let Some(device) = Loop::attach(&backing(&folder, 16 * MIB)) else {
        return;
    };
    let path = &device.0;
    let found = Pager::open(path, &Options::default()).err().unwrap();
    assert!(
        matches!(found, Error::Disk(DiskError::LockFile { .. })),
        "{found}"
    );
    assert!(!Path::new(&format!("{}-lock", path.display())).exists());
    let open = Options {
        mode: OpenMode::Open,
        ..options(&folder)
    };
    let found = Pager::open(path, &open).err().unwrap();
    assert!(matches!(found, Error::NotADatabase { .. }), "{found}");

    let pager = Pager::open(path, &options(&folder)).unwrap();
    let extent = fill(&pager, MIB, 7).unwrap();
    let uuid = pager.uuid();
    let second = Pager::open(path, &open).unwrap();
    assert_eq!(second.begin_read().unwrap().txn(), extent.birth);
    // A device that is in use must not be overwritten, even on request.
    let wipe = Options {
        mode: OpenMode::Create,
        overwrite_device: true,
        ..options(&folder)
    };
    let found = Pager::open(path, &wipe).err().unwrap();
    assert!(
        matches!(found, Error::Disk(DiskError::OpenElsewhere { .. })),
        "{found}"
    );
    let other_lock = Options {
        lock_path: Some(folder.0.join("another")),
        ..options(&folder)
    };
    let found = Pager::open(path, &other_lock).err().unwrap();
    assert!(
        matches!(found, Error::Disk(DiskError::OpenElsewhere { .. })),
        "{found}"
    );
    drop((pager, second));

    // The device is attached again, and read with and without a memory map.
    for map in [true, false] {
        let pager = Pager::open(
            path,
            &Options {
                map,
                ..open.clone()
            },
        )
        .unwrap();
        assert_eq!(pager.uuid(), uuid);
        let reader = pager.begin_read().unwrap();
        let bytes = reader.bytes(extent.addr, MIB as usize).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 7));
        let mut check = pager.begin_check().unwrap();
        check.claim(extent.addr, extent.pages, "the extent");
        let report = check.finish();
        assert!(report.is_clean(), "{:#?}", report.problems);
    }
    let reader = Options {
        read_only: true,
        ..open.clone()
    };
    let raw = RawFile::open(path).unwrap();
    assert_eq!(raw.state().unwrap().txn, extent.birth);
    assert_eq!(Pager::open(path, &reader).unwrap().uuid(), uuid);

    let create = Options {
        mode: OpenMode::Create,
        ..options(&folder)
    };
    let found = Pager::open(path, &create).err().unwrap();
    assert_eq!(kind(&found), std::io::ErrorKind::AlreadyExists);
    let pager = Pager::open(path, &wipe).unwrap();
    assert_ne!(pager.uuid(), uuid);
    assert_eq!(pager.begin_read().unwrap().app(), b"");
}

#[test]
fn the_content_of_a_device_is_not_overwritten() {
    let folder = Folder::new("holds");
    let backing = backing(&folder, 4 * MIB);
    // The device has a signature at its end, where some formats store one.
    let file = OpenOptions::new().write(true).open(&backing).unwrap();
    file.write_all_at(b"somebody's", 4 * MIB - 512).unwrap();
    let before = std::fs::read(&backing).unwrap();
    let Some(device) = Loop::attach(&backing) else {
        return;
    };
    let found = Pager::open(&device.0, &options(&folder)).err().unwrap();
    assert!(matches!(found, Error::NotADatabase { .. }), "{found}");
    let create = Options {
        mode: OpenMode::Create,
        ..options(&folder)
    };
    let found = Pager::open(&device.0, &create).err().unwrap();
    assert_eq!(kind(&found), std::io::ErrorKind::AlreadyExists);
    let wipe = Options {
        overwrite_device: true,
        ..create
    };
    // The device is claimed exclusively, as a mounted file system does.
    let claim = OpenOptions::new()
        .read(true)
        .custom_flags(0o200)
        .open(&device.0)
        .unwrap();
    let found = Pager::open(&device.0, &wipe).err().unwrap();
    assert_eq!(kind(&found), std::io::ErrorKind::ResourceBusy);
    drop(claim);
    assert!(before == std::fs::read(&backing).unwrap(), "it was changed");
    drop(Pager::open(&device.0, &wipe).unwrap());
    assert_eq!(
        std::fs::metadata(&device.0).unwrap().len(),
        0,
        "still a device"
    );
}

#[test]
fn a_full_device_is_an_ordinary_error() {
    let folder = Folder::new("full");
    let Some(device) = Loop::attach(&backing(&folder, 8 * MIB)) else {
        return;
    };
    let pager = Pager::open(&device.0, &options(&folder)).unwrap();
    let mut extents = Vec::new();
    let full = loop {
        match fill(&pager, MIB, extents.len() as u8) {
            Ok(extent) => extents.push(extent),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(full, Error::Disk(DiskError::DiskFull { .. })),
        "{full}"
    );
    assert!(extents.len() >= 5, "{} MiB of 8", extents.len());
    assert!(pager.stat().unwrap().file_bytes <= 8 * MIB);
    for round in 0..20u8 {
        free(&pager, &extents.remove(0));
        extents.push(fill(&pager, MIB, round + 100).unwrap());
    }
    // Frees all extents except one. Unlike a file, the device must not be truncated or punched for the freed space:
    // closing and opening must succeed, and the remaining extent must have its content.
    for extent in extents.drain(1..) {
        free(&pager, &extent);
    }
    let last = extents[0];
    let (first, pages) = (last.addr, last.pages);
    let expected = pager
        .begin_read()
        .unwrap()
        .bytes(first, 4096)
        .unwrap()
        .to_vec();
    pager.close().unwrap();
    let pager = Pager::open(&device.0, &options(&folder)).unwrap();
    let reader = pager.begin_read().unwrap();
    let found = reader.bytes(first, (pages * 4096) as usize).unwrap();
    assert!(found.chunks(4096).all(|page| *page == expected[..]));
    drop(reader);
    drop(pager);

    // Creating a database on a device that is too small for it must fail.
    drop(device);
    let Some(device) = Loop::attach(&self::backing(&folder, 8192)) else {
        return;
    };
    let found = Pager::open(&device.0, &options(&folder)).err().unwrap();
    assert!(
        matches!(found, Error::Disk(DiskError::DiskFull { .. })),
        "{found}"
    );
}

#[test]
fn a_lock_file_elsewhere_is_the_same_for_all() {
    let folder = Folder::new("lock");
    let path = folder.0.join("plant.tdl");
    let here = options(&folder);
    let pager = Pager::open(&path, &here).unwrap();
    assert!(folder.0.join("lock").exists());
    assert!(!folder.0.join("plant.tdl-lock").exists());
    let beside = Pager::open(&path, &here).unwrap();
    let txn = pager.begin_write().unwrap();
    assert!(beside.try_begin_write().unwrap().is_none());
    txn.commit(b"one", Durability::Lazy).unwrap();
    assert_eq!(beside.begin_read().unwrap().app(), b"one");
    let found = Pager::open(&path, &Options::default()).err().unwrap();
    assert!(
        matches!(found, Error::Disk(DiskError::OpenElsewhere { .. })),
        "{found}"
    );
    // Another database must not use the lock file at the same time.
    let other = Pager::open(folder.0.join("other.tdl"), &here)
        .err()
        .unwrap();
    assert!(
        matches!(other, Error::Disk(DiskError::LockFile { .. })),
        "{other}"
    );
    assert!(!folder.0.join("other.tdl").exists(), "nor is it made");
    // A copy of the data file under its name is the same database, but another file, so opening it must fail.
    let away = folder.0.join("away.tdl");
    fs::rename(&path, &away).unwrap();
    fs::copy(&away, &path).unwrap();
    let found = Pager::open(&path, &here).err().unwrap();
    let process = std::process::id();
    assert!(
        matches!(found, Error::Disk(DiskError::FileReplaced { process: told, .. }) if told == process),
        "{found}"
    );
    fs::rename(&away, &path).unwrap();
    drop((pager, beside));
    // The meta record of the lazy commit is in the lock file at the path given in the options.
    let pager = Pager::open(&path, &here).unwrap();
    assert_eq!(pager.begin_read().unwrap().app(), b"one");
}

/// Whether a page of the file is in memory; `None` if the system does not report it.
fn in_memory(file: &std::fs::File, at: u64) -> Option<bool> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut bytes = [0; 512];
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    match preadv2(file, &mut parts, at, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

#[test]
fn warming_up_reads_the_file_ahead() {
    let folder = Folder::new("warm");
    let path = folder.0.join("plant.tdl");
    let pager = Pager::open(&path, &Options::default()).unwrap();
    fill(&pager, 4 * MIB, 1).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    drop(pager);
    let drop_cache = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(&file, 0, None, drop_cache).unwrap();
    let cold = (1..32).filter(|i| in_memory(&file, i * (128 << 10)) == Some(false));
    if cold.count() < 16 {
        eprintln!("skipped: this file system keeps everything in memory");
        return;
    }
    let pager = Pager::open(&path, &Options::default()).unwrap();
    assert_eq!(pager.warm_up(2 * MIB).unwrap(), 2 * MIB);
    assert!(pager.warm_up(u64::MAX).unwrap() > 4 * MIB);
    let begun = std::time::Instant::now();
    while (0..32).any(|i| in_memory(&file, i * (128 << 10)) != Some(true)) {
        assert!(begun.elapsed().as_secs() < 20, "it is not read");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Number of bytes that this process has locked in memory, as the system reports it.
fn kept_in_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let digits = line?.trim().trim_end_matches(" kB");
    Some(digits.parse::<u64>().ok()? * 1024)
}

#[test]
fn lock_in_memory_locks_the_requested_bytes() {
    let folder = Folder::new("kept");
    let path = folder.0.join("plant.tdl");
    let pager = Pager::open(&path, &Options::default()).unwrap();
    fill(&pager, 4 * MIB, 1).unwrap();
    match pager.lock_in_memory(2 * MIB) {
        Err(Error::Disk(DiskError::Io { .. })) => {
            eprintln!("skipped: this process may keep nothing in memory");
            assert_eq!(pager.lock_in_memory(0).unwrap(), 0);
            return assert_eq!(kept_in_memory(), Some(0));
        }
        kept => assert_eq!(kept.unwrap(), 2 * MIB),
    }
    assert_eq!(kept_in_memory(), Some(2 * MIB));
    assert_eq!(pager.lock_in_memory(MIB).unwrap(), MIB);
    assert_eq!(kept_in_memory(), Some(MIB));
    let whole = pager.lock_in_memory(u64::MAX).unwrap();
    assert!(whole > 4 * MIB);
    assert_eq!(kept_in_memory(), Some(whole));
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let gone = (0..32).filter(|i| in_memory(&file, i * (128 << 10)) == Some(false));
    assert_eq!(gone.count(), 0);
    // While the file is locked in memory, it can be written and can grow as usual.
    fill(&pager, MIB, 2).unwrap();
    assert_eq!(kept_in_memory(), Some(whole));
    // Space by which another handle has made the file longer is locked as well.
    let before = pager.lock_in_memory(u64::MAX).unwrap();
    let other = Pager::open(&path, &Options::default()).unwrap();
    fill(&other, 16 * MIB, 3).unwrap();
    assert!(pager.lock_in_memory(u64::MAX).unwrap() > before + 8 * MIB);
    drop(other);
    assert_eq!(pager.lock_in_memory(0).unwrap(), 0);
    assert_eq!(kept_in_memory(), Some(0));
    pager.lock_in_memory(MIB).unwrap();
    drop(pager);
    assert_eq!(kept_in_memory(), Some(0));
    // Without a memory map, no bytes can be locked.
    let options = Options {
        map: false,
        ..Options::default()
    };
    let pager = Pager::open(&path, &options).unwrap();
    assert_eq!(pager.lock_in_memory(MIB).unwrap(), 0);
}
