//! Copies made while writers continue.

use crate::common::{Content, Folder, assert_clean, content_of};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tidalite::maintenance::Watch;
use tidalite::tuning::ReadAhead;
use tidalite::{
    ColumnType, Database, ErrorKind, Options, ReadTxn, Schema, SeriesInfo, Steps, Tuning, Unit,
    WriteTxn,
};
use tidalite_testkit::rng::Rng;

fn schemas() -> [Schema; 3] {
    use ColumnType::{F64, I64, U64};
    [
        Schema::new(Unit::Ticks, [("x", U64)]),
        Schema::new(Unit::Seconds, [("a", F64), ("b", I64), ("c", F64)]),
        Schema::point(),
    ]
}

/// Writes series of every schema, by name and by GUID, with rows in leaves and in the delta, and small and large
/// values.
fn write(tx: &mut WriteTxn, rng: &mut Rng, from: i64) {
    for (i, schema) in schemas().into_iter().enumerate() {
        for by_guid in [false, true] {
            let rows = rng.between(1, 3_000);
            let mut guid = [i as u8; 16];
            guid[15] = rng.below(4) as u8;
            let name = format!("m{i}{{n=\"{}\"}}", rng.below(4));
            let mut series = if by_guid {
                tx.series_of_guid(guid, &schema).unwrap()
            } else {
                tx.series_with(&name, &schema).unwrap()
            };
            let columns = schema.columns.len();
            for t in from..from + rows {
                let words: Vec<u64> = (0..columns).map(|_| rng.u64() >> rng.below(60)).collect();
                series.insert_row(Steps(t), &words).unwrap();
            }
            series.delete(Steps(from + 10)..Steps(from + 20)).unwrap();
        }
    }
    for _ in 0..30 {
        let mut value = vec![0; rng.index(300) * rng.index(300)];
        rng.fill(&mut value);
        let key = rng.below(500).to_be_bytes();
        tx.table("values").unwrap().put(&key, &value).unwrap();
    }
    tx.table("empty").unwrap();
    tx.table(&format!("t{}", rng.below(30)))
        .unwrap()
        .put(b"k", b"")
        .unwrap();
}

fn infos(snap: &ReadTxn) -> Vec<SeriesInfo> {
    let all = snap.list("").unwrap();
    all.iter().map(|info| SeriesInfo::clone(info)).collect()
}

#[test]
fn a_copy_made_while_writing_goes_on_is_the_snapshot() {
    for page_size in [512, 4096, 65_536] {
        let folder = Folder::new("copy");
        let options = Options::new().page_size(page_size);
        let db = options.open(folder.file("plant.tdl")).unwrap();
        let mut rng = Rng::new(page_size as u64);
        for commit in 0..6 {
            let mut tx = db.begin_write().unwrap();
            write(&mut tx, &mut rng, commit * 2_000);
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let expected = content_of(&snap).unwrap();
        let stop = AtomicBool::new(false);
        let to = folder.file("copy.tdl");
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Rng::new(5);
                let mut commit = 0;
                while !stop.load(Ordering::Acquire) {
                    let mut tx = db.begin_write().unwrap();
                    write(&mut tx, &mut rng, commit * 500);
                    tx.commit().unwrap();
                    commit += 1;
                }
            });
            // This snapshot is older than the writer's commits; the next copy begins at some point between these
            // commits.
            let bytes = snap.copy().to(&to).unwrap();
            assert!(bytes > 0);
            db.copy().to(folder.file("later.tdl")).unwrap();
            stop.store(true, Ordering::Release);
        });
        assert_eq!(content_of(&snap).unwrap(), expected);
        assert_clean(&db);
        let copy = Database::open(&to).unwrap();
        assert_clean(&copy);
        let copied = copy.begin_read().unwrap();
        assert_eq!(content_of(&copied).unwrap(), expected);
        assert_eq!(
            infos(&copied),
            infos(&snap),
            "numbers, names, GUIDs, schemas"
        );
        assert_eq!(copy.stat().unwrap().page_size, page_size);
        assert_clean(&Database::open(folder.file("later.tdl")).unwrap());
        // New series get the same ids in the copy as in the original.
        let next = |db: &Database, snap: &ReadTxn| {
            let mut tx = db.begin_write().unwrap();
            let id = tx.series("brand.new").unwrap().id();
            assert!(infos(snap).iter().all(|info| info.id < id));
            id
        };
        next(&copy, &copied);
        let small = copy.stat().unwrap();
        let used = (small.pages_total - small.pages_free - small.pages_pending) * page_size as u64;
        println!("{page_size}: {used} bytes used for {} rows", small.rows());
    }
}

#[test]
fn a_copy_overwrites_nothing() {
    let folder = Folder::new("copy-over");
    let db = Database::open(folder.file("plant.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    write(&mut tx, &mut Rng::new(1), 0);
    tx.commit().unwrap();
    let precious = folder.file("precious.txt");
    std::fs::write(&precious, "a letter").unwrap();
    for to in [precious.clone(), folder.file("plant.tdl")] {
        let error = db.copy().to(&to).unwrap_err();
        assert_eq!(error.path(), Some(&*to));
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    assert_eq!(std::fs::read(&precious).unwrap(), b"a letter");
    let nowhere = db.copy().to(folder.file("missing/copy.tdl")).unwrap_err();
    assert!(
        nowhere.to_string().contains("missing/copy.tdl"),
        "{nowhere}"
    );
    let refused = db.copy().to(&folder.0).unwrap_err();
    assert!(refused.path().is_some() && refused.io_error().is_some());
    // An empty database can be copied, too.
    let empty = Database::open(folder.file("empty.tdl")).unwrap();
    empty.copy().to(folder.file("empty-copy.tdl")).unwrap();
    let copy = Database::open(folder.file("empty-copy.tdl")).unwrap();
    assert_eq!(
        content_of(&copy.begin_read().unwrap()).unwrap(),
        Content::default()
    );
    assert_clean(&copy);
}

/// A table large enough for a thread that reads ahead of the copier: thousands of leaves, with large values and nested
/// tables between them.
fn large_table(db: &Database) {
    let mut rng = Rng::new(0x0504);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("large").unwrap();
    for n in 0..30_000u32 {
        let key = (n ^ 0x2a5a).to_be_bytes();
        match n % 5_000 {
            7 => table.put(&key, &vec![n as u8; 20_000]).map(drop).unwrap(),
            8 => table
                .nested(&key)
                .put(b"inner", b"value")
                .map(drop)
                .unwrap(),
            _ => table
                .put(&key, &vec![n as u8; rng.index(60)])
                .map(drop)
                .unwrap(),
        }
    }
    tx.commit().unwrap();
}

#[test]
fn a_table_that_is_read_ahead_is_copied_whole() {
    let folder = Folder::new("ahead");
    large_table(&Database::open(folder.file("plant.tdl")).unwrap());
    for (name, read_ahead) in [("copy", ReadAhead::Auto), ("alone", ReadAhead::Off)] {
        let options = || Options::new().tuning(Tuning::new().read_ahead(read_ahead));
        let db = options().open(folder.file("plant.tdl")).unwrap();
        db.copy().to(folder.file(name)).unwrap();
        let copy = options().open(folder.file(name)).unwrap();
        assert_clean(&copy);
        assert_same(&db, &copy);
    }
}

/// Walks forward over the table in both files, and backward over the one in the first file, and compares the entries.
fn assert_same(db: &Database, copy: &Database) {
    let (snap, there) = (db.begin_read().unwrap(), copy.begin_read().unwrap());
    let (table, copied) = (snap.table("large").unwrap(), there.table("large").unwrap());
    let (table, copied) = (table.unwrap(), copied.unwrap());
    assert_eq!(table.count(), copied.count());
    let (mut ours, mut theirs) = (table.cursor(), copied.cursor());
    while ours.next().unwrap() {
        assert!(theirs.next().unwrap());
        assert_eq!(ours.key(), theirs.key());
        match (ours.nested().unwrap(), theirs.nested().unwrap()) {
            (None, None) => assert_eq!(ours.value().unwrap(), theirs.value().unwrap()),
            (Some(ours), Some(theirs)) => {
                assert_eq!(ours.get(b"inner").unwrap(), theirs.get(b"inner").unwrap());
            }
            _ => panic!("a nested table on one side"),
        }
    }
    assert!(!theirs.next().unwrap());
    let (mut rows, mut keys) = (0, Vec::new());
    let mut more = ours.last().unwrap();
    while more {
        rows += 1;
        if rows % 7 == 0 && ours.nested().unwrap().is_none() {
            keys.push(ours.key().to_vec());
        }
        more = ours.previous().unwrap();
    }
    assert_eq!(rows, table.count());
    let found = table.get_many(&keys).unwrap();
    assert!(found.iter().all(Option::is_some));
}

#[test]
fn a_copy_reports_progress_and_can_be_throttled_and_stopped() {
    let folder = Folder::new("watched");
    let db = Database::open(folder.file("plant.tdl")).unwrap();
    large_table(&db);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("wind").unwrap();
    (0..20_000).for_each(|n| {
        series
            .insert(Steps(n * 1_000_000_000i64), n as f64)
            .unwrap()
    });
    tx.commit().unwrap();
    let (mut heard, mut done) = (BTreeSet::new(), 0);
    let began = Instant::now();
    let watch = Watch::new()
        .bytes_per_second(8 << 20)
        .on_progress(|progress| {
            heard.insert(progress.what.to_owned());
            assert!(progress.done_bytes >= done && progress.total_bytes >= progress.done_bytes);
            done = progress.done_bytes;
            ControlFlow::Continue(())
        });
    db.copy().watch(watch).to(folder.file("slow.tdl")).unwrap();
    let (least, took) = (done as f64 / f64::from(8 << 20), began.elapsed());
    assert!(
        done > 256 << 10 && took.as_secs_f64() > 0.9 * least,
        "{done} in {took:?}"
    );
    assert!(
        heard.contains("large") && heard.contains("wind"),
        "{heard:?}"
    );
    assert_same(&db, &Database::open(folder.file("slow.tdl")).unwrap());

    let stops = || Watch::new().on_progress(|_| ControlFlow::Break(()));
    let stopped = db.copy().watch(stops()).to(folder.file("none.tdl"));
    assert!(matches!(stopped, Err(ref error) if error.kind() == ErrorKind::Cancelled));
    assert!(!folder.file("none.tdl").exists());
    let mut out = Vec::new();
    let stopped = db.copy().watch(stops()).to_writer(&mut out);
    assert!(matches!(stopped, Err(ref error) if error.kind() == ErrorKind::Cancelled));
    assert!(out.is_empty(), "it ends before the file is whole");
    let bytes = db.copy().to_writer(&mut out).unwrap();
    assert_eq!(out.len() as u64, bytes);
}

#[test]
fn damage_found_by_readahead_fails_the_copy() {
    let folder = Folder::new("ahead-damaged");
    let path = folder.file("plant.tdl");
    let mut leaves = Vec::new();
    {
        let db = Database::open(&path).unwrap();
        large_table(&db);
        let note = &mut |range: &tidalite::maintenance::PageRange<'_>| {
            if range.what.contains("large") && range.what.contains("leaf") {
                leaves.push(range.first + range.pages / 2);
            }
        };
        db.pages(note).unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let page_size = Options::new()
        .open(&path)
        .unwrap()
        .stat()
        .unwrap()
        .page_size;
    let last = *leaves.last().unwrap() as usize * page_size;
    bytes[last + page_size / 2] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let db = Database::open(&path).unwrap();
    let failed = db.copy().to(folder.file("copy.tdl")).unwrap_err();
    assert!(failed.kind() == ErrorKind::Damaged, "{failed}");
    assert!(!folder.file("copy.tdl").exists());
}

#[test]
fn a_copy_has_the_user_data_and_a_failed_one_leaves_nothing() {
    let folder = Folder::new("user-data");
    let db = Database::open(folder.file("plant.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.set_user_data(b"canary").unwrap();
    tx.table("config")
        .unwrap()
        .put(b"key", &[7; 100_000])
        .unwrap();
    tx.commit().unwrap();
    db.copy().to(folder.file("copy.tdl")).unwrap();
    let copy = Database::open(folder.file("copy.tdl")).unwrap();
    assert_eq!(copy.begin_read().unwrap().user_data(), b"canary");
    drop((copy, db));

    let path = folder.file("plant.tdl");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(64)
        .position(|bytes| bytes == [7; 64])
        .unwrap();
    bytes[at + 1000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let db = Database::open(&path).unwrap();
    assert!(db.copy().to(folder.file("half.tdl")).is_err());
    for left in ["half.tdl", "half.tdl-lock"] {
        assert!(!folder.file(left).exists(), "{left}");
    }
}
