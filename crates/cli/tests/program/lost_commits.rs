//! Messages about a file that lacks durable commits, and about a file after a crash.

use crate::support::Folder;
use serde_json::Value;
use tidalite::monitor::inspect;
use tidalite::{Database, Durability};

const BLOCK: usize = 4096;

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(db: &Database, key: u64) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    table.put(&key.to_be_bytes(), b"value").unwrap();
    tx.commit_with(Durability::Durable).unwrap();
}

/// Creates a file whose newest commits are in the redo log, and removes the lock file, as after a restart of the
/// computer.
fn with_log(folder: &Folder, commits: u64) -> Vec<u8> {
    let path = folder.path("a.tdl");
    let db = Database::open(&path).unwrap();
    (0..commits).for_each(|key| put(&db, key));
    db.close_without_sync();
    std::fs::remove_file(folder.path("a.tdl-lock")).unwrap();
    std::fs::read(path).unwrap()
}

/// The blocks of the redo log, grouped by the flush that wrote them (docs/format.md, section 3).
fn flushes(folder: &Folder, bytes: &[u8]) -> Vec<Vec<usize>> {
    let records = inspect(folder.path("a.tdl")).unwrap().records;
    let records = records.into_iter().filter_map(|place| place.record.ok());
    let newest = records.max_by_key(|record| record.txn).unwrap();
    let (at, len) = newest.log.unwrap();
    let sequence = [1, 2].map(|block| number(bytes, block * BLOCK + 48));
    let sequence = sequence.into_iter().max().unwrap();
    let mut flushes: Vec<Vec<usize>> = Vec::new();
    for block in (at as usize..(at + len) as usize).step_by(BLOCK) {
        let first = |block: usize| number(bytes, block + 48) as u32;
        if number(bytes, block + 32) != sequence {
            continue;
        }
        match flushes.last_mut() {
            Some(flush) if first(flush[0]) == first(block) => flush.push(block),
            _ => flushes.push(vec![block]),
        }
    }
    flushes
}

/// If one flush in the middle of the redo log is damaged in all its copies, later commits are lost, and every command
/// must report this.
#[test]
fn every_command_reports_a_damaged_log() {
    let folder = Folder::new("a_damaged_log_is_told");
    let mut bytes = with_log(&folder, 60);
    let flushes = flushes(&folder, &bytes);
    assert!(flushes.len() > 20, "{}", flushes.len());
    for block in &flushes[flushes.len() / 2] {
        bytes[block + 1000] ^= 4;
    }
    folder.write("a.tdl", &bytes);

    let missing = "durable commits are missing";
    let ran = folder.say("check a.tdl");
    assert!(ran.out.contains(missing), "{ran:?}");
    ran.failed(4, &["1 problem found", "tidalite salvage a.tdl"]);
    let ran = folder.say("check a.tdl --format json");
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["clean"], false);
    let [found, newest, missing_json] = ["found", "newest_known", "missing"]
        .map(|name| report["lost_commits"][name].as_u64().unwrap());
    assert_eq!((newest - found, missing_json > 10), (missing_json, true));
    let finding = report["findings"][0]["problem"].as_str().unwrap();
    assert!(finding.contains(&format!("commit {newest}")), "{finding}");
    assert_eq!(folder.say("check a.tdl --quiet").code, 4);

    // Commands that read first print a warning; commands that write are refused.
    for line in [
        "kv stat a.tdl",
        "kv get a.tdl t \\00\\00\\00\\00\\00\\00\\00\\00",
        "pins a.tdl",
        "stat a.tdl",
    ] {
        let ran = folder.say(line);
        assert_eq!(ran.err.matches(missing).count(), 1, "{line}: {ran:?}");
        assert!(
            ran.err.starts_with("warning: a.tdl: ") && ran.err.contains("next: "),
            "{ran:?}"
        );
        ran.ok();
    }
    for line in [
        "kv put a.tdl t new value",
        "pins a.tdl --add p",
        "compact a.tdl",
    ] {
        folder
            .say(line)
            .failed(4, &[missing, "--accept-lost-commits"]);
    }
    let ran = folder.say("backup a.tdl b.tdb");
    assert!(ran.err.contains(missing), "{ran:?}");
    ran.ok();
    let ran = folder.say("salvage a.tdl saved.tdl");
    assert!(ran.out.contains(missing), "{ran:?}");
    ran.failed(4, &["some data could not be saved"]);
    assert!(
        std::fs::read(folder.path("a.tdl")).unwrap() == bytes,
        "the evidence was written over"
    );

    // If the user accepts the loss, the command runs and warns once more.
    let ran = folder.say("kv put a.tdl t new value --accept-lost-commits");
    assert!(ran.err.contains(missing), "{ran:?}");
    ran.ok();
    let ran = folder.say("check a.tdl");
    assert_eq!(ran.err, "");
    ran.ok();
    assert_eq!(folder.say("kv get a.tdl t new").err, "");
}

/// A power cut between the two copies of the newest meta record leaves two different copies. A check reports this as a
/// note, not as damage.
#[test]
fn remains_of_a_crash_are_a_note() {
    let folder = Folder::with_plant("remains_of_a_crash_are_a_note");
    let sound = std::fs::read(folder.path("plant.tdl")).unwrap();
    let newest = [1, 2]
        .into_iter()
        .max_by_key(|block| number(&sound, block * BLOCK + 48));
    let newest = newest.unwrap();
    for block in [newest, newest + 3] {
        let mut torn = sound.clone();
        torn[block * BLOCK + 512..block * BLOCK + 1024].fill(7);
        folder.write("torn.tdl", &torn);
        let out = folder.say("check torn.tdl").ok();
        assert!(
            out.contains("no damage, left by an unfinished commit") && out.contains("clean"),
            "{out}"
        );
        let report: Value =
            serde_json::from_str(&folder.say("check torn.tdl --format json").ok()).unwrap();
        assert_eq!(report["notes"].as_array().unwrap().len(), 1, "{report}");
        assert_eq!(
            (&report["clean"], &report["lost_commits"]),
            (&Value::Bool(true), &Value::Null)
        );
        assert!(
            std::fs::read(folder.path("torn.tdl")).unwrap() == torn,
            "a check wrote"
        );
    }
    // Damage of a superblock cannot come from a crash, so it is a problem; the other copy of the superblock is intact.
    let mut damaged = sound.clone();
    damaged[100] ^= 1;
    folder.write("damaged.tdl", &damaged);
    let ran = folder.say("check damaged.tdl");
    assert!(!ran.err.contains("salvage"), "{ran:?}");
    ran.failed(4, &["1 problem", "tidalite compact damaged.tdl"]);
    folder.say("compact damaged.tdl").ok();
    folder.say("check damaged.tdl").ok();
}
