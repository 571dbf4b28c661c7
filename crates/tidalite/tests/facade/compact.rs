//! Compaction keeps the content and shortens the file, while readers and other writers continue.

use crate::common::{Folder, assert_clean, content_of};
use std::sync::Arc;
use tidalite::storage::Storage;
use tidalite::{Database, Options, Steps, Tuning, WriteTxn};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Monitor, SimDisk};

fn options() -> Options {
    Options::new().tuning(tuning())
}

fn tuning() -> Tuning {
    Tuning::new()
        .growth_bytes(64 << 10, 256 << 10)
        .reserve_bytes(64 << 10)
        .write_buffer_bytes(300_000)
}

fn rows(tx: &mut WriteTxn, name: &str, from: i64, count: i64, rng: &mut Rng) {
    let times: Vec<i64> = (from..from + count).map(|i| i * 10).collect();
    let flags = vec![0; times.len()];
    let values: Vec<u64> = (0..count).map(|_| rng.u64() >> 12).collect();
    let mut series = tx.series(name).unwrap();
    series.append_rows(&times, &[&flags, &values]).unwrap();
}

/// Fills every kind of structure in many commits, so that the parts of each are scattered over the file.
fn fill(db: &Database, rng: &mut Rng) {
    for commit in 0..30i64 {
        let mut tx = db.begin_write().unwrap();
        for series in 0..6 {
            rows(
                &mut tx,
                &format!("bulk.{series}"),
                commit * 3_000,
                1_500 + series * 100,
                rng,
            );
        }
        for series in 0..40i64 {
            let mut few = tx.series(&format!("few.{series}")).unwrap();
            few.insert_point(Steps(commit * 7 + series), 0, commit as f64)
                .unwrap();
        }
        for i in 0..120u64 {
            let key = rng.below(100_000).to_be_bytes();
            let len = rng.below(300) as usize;
            tx.table("small")
                .unwrap()
                .put(&key, &vec![i as u8; len])
                .unwrap();
        }
        for i in 0..3u64 {
            let len = 5_000 + rng.below(60_000) as usize;
            let key = (commit as u64 * 3 + i).to_be_bytes();
            tx.table("large")
                .unwrap()
                .put(&key, &vec![rng.below(256) as u8; len])
                .unwrap();
        }
        let name = format!("table {}", commit % 11);
        tx.table(&name)
            .unwrap()
            .put(&commit.to_be_bytes(), &[1; 700])
            .unwrap();
        tx.commit().unwrap();
    }
}

/// Deletes about four fifths of the rows and entries, at scattered places.
fn thin(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    for series in 0..6i64 {
        let mut bulk = tx.series(&format!("bulk.{series}")).unwrap();
        bulk.delete(Steps(0)..Steps(500_000)).unwrap();
        bulk.delete(Steps(550_000)..Steps(840_000)).unwrap();
    }
    for (name, keep) in [("small", 5), ("large", 6)] {
        let mut keys = Vec::new();
        let mut table = tx.table(name).unwrap();
        let view = table.view().unwrap();
        let mut cursor = view.cursor();
        let mut found = cursor.first().unwrap();
        while found {
            keys.push(cursor.key().to_vec());
            found = cursor.next().unwrap();
        }
        drop(cursor);
        for (i, key) in keys.iter().enumerate() {
            if i % keep > 0 {
                table.remove(key).unwrap();
            }
        }
    }
    tx.commit().unwrap();
}

/// Runs compaction steps until nothing is left to do; returns the number of steps and the number of bytes moved.
fn compact(db: &Database, budget: u64) -> (u64, u64) {
    let (mut steps, mut moved) = (0, 0);
    loop {
        let done = db.compact(budget).unwrap();
        steps += 1;
        moved += done.moved_bytes;
        assert!(steps < 2_000, "{done:?}");
        // A step may exceed its budget by one large value, which moves as a whole.
        assert!(
            done.moved_bytes <= budget + (64 << 10) + (1 << 16),
            "{done:?}"
        );
        if done.done {
            println!("{steps} steps of {budget}: {done:?}");
            return (steps, moved);
        }
    }
}

#[test]
fn a_thinned_database_gets_as_short_as_a_copy() {
    for seed in [1u64, 2] {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let folder = Folder::new("compact");
        let path = folder.file("plant.tdl");
        let db = options().open(&path).unwrap();
        fill(&db, &mut rng);
        thin(&db);
        let before = content_of(&db.begin_read().unwrap()).unwrap();
        let long = std::fs::metadata(&path).unwrap().len();
        // A reader holds a snapshot of the whole content, and a writer commits between the steps.
        let reader = db.begin_read().unwrap();
        let (steps, _) = compact(&db, 128 << 10);
        assert!(steps > 3);
        assert_eq!(content_of(&reader).unwrap(), before);
        assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), before);
        assert_clean(&db);
        drop(reader);
        compact(&db, 1 << 20);
        assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), before);
        assert_clean(&db);
        let short = std::fs::metadata(&path).unwrap().len();
        let copy = folder.file("copy.tdl");
        db.copy().to(&copy).unwrap();
        let fresh = std::fs::metadata(&copy).unwrap().len();
        println!("{long} bytes, then {short}; a copy has {fresh}");
        assert!(short * 10 <= fresh * 12, "{short}, a copy has {fresh}");
        // A further step finds nothing left to move.
        assert!(db.compact(1 << 20).unwrap().done);
        drop(db);
        let db = Database::open(&path).unwrap();
        assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), before);
    }
}

/// Compaction steps alternate with other writers while readers of every age are open. The monitor checks that no page
/// of a reader is overwritten.
#[test]
fn compaction_beside_writers_and_readers() {
    let mut rng = Rng::new(7);
    let disk = Arc::new(SimDisk::new());
    let storage: Arc<dyn Storage> = Monitor::new(Arc::clone(&disk) as Arc<dyn Storage>);
    let db = options().page_size(1024).open_storage(storage).unwrap();
    fill(&db, &mut rng);
    thin(&db);
    let mut readers = Vec::new();
    for step in 0..60i64 {
        let before = content_of(&db.begin_read().unwrap()).unwrap();
        db.compact(96 << 10).unwrap();
        let after = content_of(&db.begin_read().unwrap()).unwrap();
        assert_eq!(before, after, "step {step}");
        if step % 3 == 0 {
            let mut tx = db.begin_write().unwrap();
            rows(&mut tx, "bulk.1", 1_000_000 + step * 100, 90, &mut rng);
            tx.table("small")
                .unwrap()
                .put(&step.to_be_bytes(), &[3; 50])
                .unwrap();
            tx.commit().unwrap();
        }
        if step % 10 == 0 {
            let reader = db.begin_read().unwrap();
            let content = content_of(&reader).unwrap();
            readers.push((reader, content));
        }
        if readers.len() > 2 {
            let (reader, content) = readers.remove(rng.index(3));
            assert_eq!(content_of(&reader).unwrap(), content);
        }
    }
    for (reader, content) in readers {
        assert_eq!(content_of(&reader).unwrap(), content);
    }
    assert_clean(&db);
}

/// The measure of fragmentation is low for contiguous free space. Removing every second value of a table leaves holes,
/// which raise the measure, and compaction closes them.
#[test]
fn fragmentation_measures_how_scattered_free_space_is() {
    const VALUES: u64 = 200;
    let folder = Folder::new("fragmentation");
    let options = Options::new().tuning(tuning().log_bytes(0));
    let db = options.open(folder.file("a.tdl")).unwrap();
    let remove = |which: &dyn Fn(u64) -> bool| {
        let mut txn = db.begin_write().unwrap();
        let mut table = txn.table("large").unwrap();
        for key in (0..VALUES).filter(|key| which(*key)) {
            table.remove(&key.to_be_bytes()).unwrap();
        }
        txn.commit().unwrap();
        // Pages removed by a commit become free only with later commits.
        for n in 0..4u64 {
            let mut txn = db.begin_write().unwrap();
            txn.table("small")
                .unwrap()
                .put(b"n", &n.to_be_bytes())
                .unwrap();
            txn.commit().unwrap();
        }
    };
    let scattered = || db.stat().unwrap().fragmentation().unwrap_or(0.0);
    let mut txn = db.begin_write().unwrap();
    for key in 0..VALUES {
        let mut table = txn.table("large").unwrap();
        table.put(&key.to_be_bytes(), &[7; 20_000]).unwrap();
    }
    txn.commit().unwrap();
    let filled = scattered();
    remove(&|key| key % 2 == 0);
    let holed = scattered();
    while !db.compact(1 << 20).unwrap().done {}
    let compacted = scattered();
    println!("filled {filled:.3}, holed {holed:.3}, compacted {compacted:.3}");
    assert!(filled < 0.2 && holed > 0.6 && compacted < 0.2);
}
