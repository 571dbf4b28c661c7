//! Tests that each reason for which a file cannot be opened has a clear error of its own.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tidalite_base::{put_u32, put_u64};
use tidalite_pager::{
    APP_BYTES_MAX, DiskError, Durability, Error, Kind, OpenMode, Options, PageRead, PageWrite,
    Pager, USER_BYTES_MAX, Verify,
};
use tidalite_testkit::image::{
    COMPATIBLE_AT, INCOMPATIBLE_AT, READ_ONLY_AT, VERSION_AT, with_superblocks,
};

/// A folder for one test, which is removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidalite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("plant.tdl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn open(path: &Path) -> Result<Pager, Error> {
    Pager::open(path, &Options::default())
}

fn open_as(path: &Path, mode: OpenMode, read_only: bool) -> Result<Pager, Error> {
    let options = Options {
        mode,
        read_only,
        ..Options::default()
    };
    Pager::open(path, &options)
}

fn kind_of<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    match result {
        Err(Error::Disk(DiskError::Open { source, .. })) => Some(source.kind()),
        Err(error) => panic!("{error:?}"),
        Ok(_) => None,
    }
}

/// A new file is first written under a temporary name. A file or symbolic link that already has the temporary name
/// must not be changed.
#[test]
fn a_new_file_is_not_written_through_a_link() {
    tidalite_testkit::watch();
    let folder = Folder::new("new-link");
    let other = folder.0.join("other");
    fs::write(&other, b"kept").unwrap();
    let mut temporary = folder.file().into_os_string();
    temporary.push(format!(".new-{}", std::process::id()));
    std::os::unix::fs::symlink(&other, &temporary).unwrap();
    drop(open(&folder.file()).unwrap());
    assert_eq!(fs::read(&other).unwrap(), b"kept");
    assert!(!folder.file().is_symlink());
    drop(open(&folder.file()).unwrap());
}

#[test]
fn open_modes_require_or_refuse_an_existing_file() {
    tidalite_testkit::watch();
    let folder = Folder::new("modes");
    let path = folder.file();
    assert_eq!(
        kind_of(open_as(&path, OpenMode::Open, false)),
        Some(ErrorKind::NotFound)
    );
    assert_eq!(
        kind_of(open_as(&path, OpenMode::Open, true)),
        Some(ErrorKind::NotFound)
    );
    drop(open_as(&path, OpenMode::Create, false).unwrap());
    assert_eq!(
        kind_of(open_as(&path, OpenMode::Create, false)),
        Some(ErrorKind::AlreadyExists)
    );
    drop(open_as(&path, OpenMode::CreateOrOpen, false).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 24 << 10);
    let names: Vec<_> = fs::read_dir(&folder.0)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "the file and its lock file: {names:?}");
    let nowhere = folder.0.join("missing").join("plant.tdl");
    assert_eq!(kind_of(open(&nowhere)), Some(ErrorKind::NotFound));
    assert_eq!(kind_of(open(&folder.0)), Some(ErrorKind::IsADirectory));
}

#[test]
fn an_exclusive_handle_has_the_file_alone() {
    tidalite_testkit::watch();
    let folder = Folder::new("second");
    let path = folder.file();
    let alone = Options {
        exclusive: true,
        ..Options::default()
    };
    let refused = |result| matches!(result, Err(Error::Disk(DiskError::OpenElsewhere { .. })));
    let first = open(&path).unwrap();
    let second = open(&path).unwrap();
    let reader = open_as(&path, OpenMode::Open, true).unwrap();
    assert!(refused(Pager::open(&path, &alone)));
    assert!(matches!(reader.begin_write(), Err(Error::ReadOnly)));
    drop((first, second, reader));
    let first = Pager::open(&path, &alone).unwrap();
    assert!(refused(open(&path)));
    assert!(refused(open_as(&path, OpenMode::Open, true)));
    drop(first);
    open(&path).unwrap();
    // An opening handle waits for an exclusive handle that is closed soon. On a busy computer the exclusive handle
    // may be closed too late.
    let waits = |_| {
        let first = Pager::open(&path, &alone).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                drop(first);
            });
            open(&path).is_ok()
        })
    };
    assert!((0..20).any(waits));
}

#[test]
fn other_files_are_not_opened() {
    tidalite_testkit::watch();
    let folder = Folder::new("foreign");
    let path = folder.file();
    for content in [&b""[..], b"SQLite format 3\0 and more", &[0xa5; 100_000]] {
        fs::write(&path, content).unwrap();
        let error = open(&path).err().unwrap();
        assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    }
    fs::remove_file(&path).unwrap();
    drop(open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    for len in [100, 4096, 12 << 10, (24 << 10) - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let error = open(&path).err().unwrap();
        let fits = matches!(error, Error::Corrupt(_) | Error::NotADatabase { .. });
        assert!(fits, "{len} bytes: {error}");
    }
}

#[test]
fn newer_files_are_named_as_such() {
    tidalite_testkit::watch();
    let folder = Folder::new("newer");
    let path = folder.file();
    drop(open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    let changed = |at: usize| {
        let image = with_superblocks(&whole, |block| match at {
            VERSION_AT => put_u32(block, at, 1000),
            _ => put_u64(block, at, 1 << 40),
        });
        fs::write(&path, image).unwrap();
    };
    for at in [VERSION_AT, INCOMPATIBLE_AT] {
        changed(at);
        let told = open(&path).err().unwrap().to_string();
        assert!(
            told.ends_with("with a newer version of this library"),
            "{told}"
        );
        for read_only in [false, true] {
            let error = open_as(&path, OpenMode::Open, read_only).err().unwrap();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
    }
    changed(READ_ONLY_AT);
    assert!(matches!(open(&path), Err(Error::Unsupported { .. })));
    drop(open_as(&path, OpenMode::Open, true).unwrap());
    changed(COMPATIBLE_AT);
    drop(open(&path).unwrap());
}

#[test]
fn missing_permissions_are_reported() {
    tidalite_testkit::watch();
    let folder = Folder::new("permissions");
    let path = folder.file();
    drop(open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }
    assert_eq!(kind_of(open(&path)), Some(ErrorKind::PermissionDenied));
    drop(open_as(&path, OpenMode::Open, true).unwrap());
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o555)).unwrap();
    let new = folder.0.join("new.tdl");
    assert_eq!(kind_of(open(&new)), Some(ErrorKind::PermissionDenied));
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_truncated_file_is_reported_at_open() {
    tidalite_testkit::watch();
    let folder = Folder::new("truncated");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let ptr = txn.new_page(Kind::KvLeaf, 1).unwrap();
    txn.page_mut(&ptr).unwrap()[40] = 1;
    let ptr = txn.seal_page(&ptr).unwrap();
    txn.commit(&[1], Durability::Durable).unwrap();
    assert_eq!(pager.begin_read().unwrap().page(&ptr).unwrap()[40], 1);
    drop(pager);
    // The page is the first page after the head. The file may be truncated right after it, since the rest of the file
    // is space reserved for growth.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(28 << 10).unwrap();
    drop(open(&path).unwrap());
    file.set_len((28 << 10) - 1).unwrap();
    assert!(matches!(open(&path), Err(Error::Corrupt(_))));
}

#[test]
fn limits_hold_at_and_beyond() {
    tidalite_testkit::watch();
    let folder = Folder::new("limits");
    for (page_size, good) in [
        (512, true),
        (256, false),
        (1000, false),
        (1 << 18, true),
        (1 << 19, false),
    ] {
        let path = folder.0.join(format!("{page_size}.tdl"));
        let options = Options {
            page_size,
            ..Options::default()
        };
        let opened = Pager::open(&path, &options);
        assert_eq!(opened.is_ok(), good, "{page_size}");
        if let Err(error) = opened {
            assert!(matches!(error, Error::Limit { .. }));
        }
    }
    let pager = open(&folder.file()).unwrap();
    let commit = |bytes: usize| {
        let txn = pager.begin_write().unwrap();
        txn.commit(&vec![7; bytes], Durability::Durable)
    };
    commit(APP_BYTES_MAX).unwrap();
    assert!(matches!(
        commit(APP_BYTES_MAX + 1),
        Err(Error::Limit { .. })
    ));
    assert_eq!(pager.begin_read().unwrap().app().len(), APP_BYTES_MAX);
}

#[test]
fn user_data_stays_until_it_is_set_anew() {
    tidalite_testkit::watch();
    let folder = Folder::new("user-data");
    let pager = open(&folder.file()).unwrap();
    let full = [0xc5; USER_BYTES_MAX];
    let mut txn = pager.begin_write().unwrap();
    let beyond = txn.set_user_data(&[1; USER_BYTES_MAX + 1]);
    assert!(matches!(beyond, Err(Error::Limit { .. })));
    assert_eq!(txn.user_data(), b"");
    txn.set_user_data(&full).unwrap();
    txn.commit(&[1], Durability::Durable).unwrap();
    let before = pager.begin_read().unwrap();
    // The user data must stay if they are not set, or if they are set and rolled back.
    let txn = pager.begin_write().unwrap();
    assert_eq!(txn.user_data(), full);
    txn.commit(&[2], Durability::Durable).unwrap();
    let mut txn = pager.begin_write().unwrap();
    txn.set_user_data(b"gone").unwrap();
    drop(txn);
    drop(before);
    drop(pager);
    let pager = open(&folder.file()).unwrap();
    assert_eq!(pager.begin_read().unwrap().user_data(), full);
    // A change of the user data alone must make a commit.
    let old = pager.begin_read().unwrap();
    let mut txn = pager.begin_write().unwrap();
    txn.set_user_data(b"log 17").unwrap();
    txn.commit(&[2], Durability::Durable).unwrap();
    assert_eq!(old.user_data(), full);
    assert_eq!(pager.begin_read().unwrap().user_data(), b"log 17");
    assert!(pager.begin_read().unwrap().txn() > old.txn());
}

#[test]
fn all_ways_of_reading_agree() {
    tidalite_testkit::watch();
    let folder = Folder::new("reading");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let extent = txn.alloc_extent(300).unwrap();
    let bytes: Vec<u8> = (0..300 * 4096u32).map(|i| i as u8).collect();
    txn.write_extent(extent.addr, &bytes).unwrap();
    let ptr = txn.new_page(Kind::KvLeaf, 1).unwrap();
    let ptr = txn.seal_page(&ptr).unwrap();
    txn.commit(&[1], Durability::Durable).unwrap();
    drop(pager);
    for map in [true, false] {
        for verify in [Verify::OnFirstTouch, Verify::Always, Verify::Never] {
            let options = Options {
                map,
                verify,
                read_only: map,
                ..Options::default()
            };
            let pager = Pager::open(&path, &options).unwrap();
            let reader = pager.begin_read().unwrap();
            assert_eq!(*reader.bytes(extent.addr, bytes.len()).unwrap(), bytes);
            reader.page(&ptr).unwrap();
            reader.page(&ptr).unwrap();
            let beyond = reader.file_bytes() - 10;
            assert!(matches!(reader.bytes(beyond, 11), Err(Error::Corrupt(_))));
        }
    }
}

#[test]
fn closing_cuts_pages_that_were_added_ahead() {
    tidalite_testkit::watch();
    let folder = Folder::new("slack");
    let path = folder.file();
    for round in 0..3u64 {
        let pager = open(&path).unwrap();
        let mut txn = pager.begin_write().unwrap();
        let extent = txn.alloc_extent(2000).unwrap();
        txn.write_extent(extent.addr, &vec![round as u8; 8_192_000])
            .unwrap();
        let mut app = txn.app().to_vec();
        app.extend(extent.addr.to_le_bytes());
        txn.commit(&app, Durability::Durable).unwrap();
        let open_pages = pager.stat().unwrap().pages_total;
        drop(pager);
        let len = fs::metadata(&path).unwrap().len();
        let needed = (24 << 10) + (round + 1) * 8_192_000;
        // Beyond the needed space, the file must have only the reserve, and less than one growth step.
        assert!(
            (needed + (1 << 20)..needed + (2 << 20)).contains(&len),
            "{len} bytes, {open_pages} pages while open"
        );
        let pager = open_as(&path, OpenMode::Open, true).unwrap();
        let mut check = pager.begin_check().unwrap();
        let reader = check.snapshot().clone();
        for at in reader.app().chunks(8) {
            let addr = u64::from_le_bytes(at.try_into().unwrap());
            assert!(check.claim(addr, 2000, "extent"));
        }
        assert_eq!(check.finish().problems, [""; 0]);
    }
}
