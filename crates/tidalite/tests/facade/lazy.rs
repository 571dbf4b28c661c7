//! Lazy commits that write through a memory map, and a power cut among them.

use crate::common::{Folder, content_of};
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, Options, Steps, Tuning};
use tidalite_testkit::rng::Rng;

/// Number of bytes that a disk writes atomically.
const SECTOR: usize = 512;
const DURABLE: u64 = 20;
const LAZY: u64 = 180;
const CUTS: u64 = 12;

fn write(db: &Database, number: u64, durability: Durability) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("config").unwrap();
    for i in 0..40u64 {
        let key = (number * 7 + i * 13) % 600;
        let value = vec![number as u8; 50 + key as usize % 100];
        table.put(&key.to_be_bytes(), &value).unwrap();
    }
    let mut series = tx.series("wind").unwrap();
    for i in 0..20i64 {
        series
            .insert_point(Steps(number as i64 * 10 + i), 0, i as f64)
            .unwrap();
    }
    tx.commit_with(durability).unwrap();
}

/// At a power cut, any subset of the sectors that lazy commits have written may have reached the disk. The newest
/// durable commit must be complete all the same.
#[test]
fn lazy_commits_through_a_map_do_not_damage_durable_commits() {
    for log_bytes in [0, 1 << 20] {
        let folder = Folder::new(&format!("lazy-through-a-map-{log_bytes}"));
        let path = folder.file("a.tdl");
        let options = Options::new().tuning(Tuning::new().map_writes(true).log_bytes(log_bytes));
        let db = options.open(&path).unwrap();
        for number in 0..DURABLE {
            write(&db, number, Durability::Durable);
        }
        let durable = std::fs::read(&path).unwrap();
        let expected = content_of(&db.begin_read().unwrap()).unwrap();
        for number in DURABLE..DURABLE + LAZY {
            write(&db, number, Durability::Lazy);
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let writes = |line: &str| line.contains(" rw-s ") && line.ends_with(path.to_str().unwrap());
        assert!(maps.lines().any(writes), "nothing is written through a map");
        let mut written = std::fs::read(&path).unwrap();
        assert_ne!(content_of(&db.begin_read().unwrap()).unwrap(), expected);
        drop(db);
        written.resize(written.len().max(durable.len()), 0);
        let mut before = durable;
        before.resize(written.len(), 0);
        let sectors = || before.chunks(SECTOR).zip(written.chunks(SECTOR));
        let changed = sectors().filter(|(before, after)| before != after).count();
        println!("{changed} sectors of {} differ", sectors().count());
        assert!(changed > 200);
        let mut rng = Rng::new(20);
        for cut in 0..CUTS {
            let percent = rng.below(101);
            let image: Vec<u8> = sectors()
                .flat_map(|(before, after)| {
                    if rng.below(100) < percent {
                        after
                    } else {
                        before
                    }
                })
                .copied()
                .collect();
            let storage = Arc::new(MemoryStorage::from_image(image));
            let db = Options::new().open_storage(storage).unwrap();
            let found = content_of(&db.begin_read().unwrap()).unwrap();
            assert!(
                found == expected,
                "cut {cut}, log of {log_bytes}: another state"
            );
            assert_eq!(db.check().unwrap().problems, [""; 0], "cut {cut}");
        }
    }
}
