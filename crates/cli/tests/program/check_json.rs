//! The damage reported by `check --format json`, compared with the keys and times that cannot be read any more.

use crate::support::Folder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tidalite::maintenance::PageRange;
use tidalite::{ColumnType, Database, Options, ReadTxn, Schema, Steps, Tuning, Unit};
use tidalite_testkit::rng::Rng;

const PAGE: usize = 4096;

/// Runs `check --format json` on a damaged file, and returns its report.
fn damage_of(folder: &Folder, file: &str) -> Value {
    let ran = folder.say(&format!("check {file} --format json"));
    let report = serde_json::from_str(&ran.out).unwrap();
    ran.failed(4, &["found"]);
    report
}

pub(crate) fn findings<'v>(report: &'v Value, place: &str) -> Vec<&'v Value> {
    let all = report["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["place"] == place).collect()
}

/// Opens the database after flipping one bit in the middle of a page.
fn with_damage(folder: &Folder, sound: &[u8], page: usize) -> Database {
    let mut damaged = sound.to_vec();
    damaged[page * PAGE + 1700] ^= 4;
    folder.write("damaged.tdl", damaged);
    open(folder, "damaged.tdl")
}

fn open(folder: &Folder, file: &str) -> Database {
    let options = Options::new().read_only(true);
    options.open(folder.path(file)).unwrap()
}

/// Numbers of the pages of this kind, according to the page walk over the intact database.
fn pages_of(folder: &Folder, file: &str, what: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let take = &mut |range: &PageRange<'_>| {
        if range.what == what {
            found.extend(range.first..range.first + range.pages);
        }
    };
    open(folder, file).pages(take).unwrap();
    found.into_iter().map(|page| page as usize).collect()
}

/// Decodes a key from `--format json`, independently of the program's own code.
pub(crate) fn bytes_of(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap().as_bytes();
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < text.len() {
        if text[at] == b'\\' {
            let digits = std::str::from_utf8(&text[at + 1..at + 3]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            at += 3;
        } else {
            bytes.push(text[at]);
            at += 1;
        }
    }
    bytes
}

/// A key for this number. The keys contain every byte value, and have a common prefix much longer than 64 bytes.
fn key(number: u32) -> Vec<u8> {
    let mut key: Vec<u8> = (0..120u32).map(|i| (i * 37 + 200) as u8).collect();
    key.extend(number.to_be_bytes());
    key
}

#[test]
fn a_damaged_table_leaf_is_reported_with_exactly_its_keys() {
    let folder = Folder::new("check_json_table");
    let db = Database::open(folder.path("keys.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("a table").unwrap();
    for number in 0..1500 {
        // Every hundredth value is so long that it has pages of its own.
        let len = if number % 100 == 0 { 9000 } else { 70 };
        table.put(&key(number), &vec![number as u8; len]).unwrap();
    }
    tx.commit().unwrap();
    db.close().unwrap();
    let sound = std::fs::read(folder.path("keys.tdl")).unwrap();
    let (mut leaves, mut single) = (0, 0);
    for kind in ["table leaf", "large value"] {
        let pages = pages_of(&folder, "keys.tdl", &format!("table a table: {kind}"));
        for page in pages.into_iter().step_by(5) {
            let db = with_damage(&folder, &sound, page);
            let txn = db.begin_read().unwrap();
            let table = txn.table("a table").unwrap().unwrap();
            let lost = |number: &u32| !matches!(table.get(&key(*number)), Ok(Some(_)));
            let lost: Vec<u32> = (0..1500).filter(lost).collect();
            let report = damage_of(&folder, "damaged.tdl");
            if lost.is_empty() {
                // The damaged byte is padding after a value, in the value's last page, so nothing is lost.
                continue;
            }
            let told = findings(&report, "table");
            assert_eq!(told.len(), 1, "{report}");
            assert_eq!(told[0]["name"], "a table");
            let from = bytes_of(&told[0]["from_key"]);
            let to = (!told[0]["to_key"].is_null()).then(|| bytes_of(&told[0]["to_key"]));
            let inside = |number: &u32| {
                from <= key(*number) && to.as_ref().is_none_or(|to| key(*number) < *to)
            };
            let inside: Vec<u32> = (0..1500).filter(inside).collect();
            assert_eq!(inside, lost, "{report}");
            leaves += usize::from(lost.len() > 1);
            single += usize::from(lost.len() == 1);
        }
    }
    assert!(leaves > 5 && single > 2, "{leaves} {single}");
}

/// The times of a series whose rows cannot be read any more, out of all times that were written.
fn lost_times(txn: &ReadTxn, name: &str, times: impl Iterator<Item = i64>) -> BTreeSet<i64> {
    let series = txn.series(name).unwrap().unwrap();
    let lost = |time: &i64| {
        let mut rows = 0;
        let read = series
            .query(Steps(*time)..=Steps(*time))
            .for_each(|_, _| rows += 1);
        read.is_err() || rows == 0
    };
    times.filter(lost).collect()
}

#[test]
fn a_damaged_series_leaf_is_reported_with_exactly_its_times() {
    let folder = Folder::new("check_json_series");
    let db = Database::open(folder.path("rows.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    for name in ["wind", "power"] {
        let mut series = tx.series(name).unwrap();
        for i in 0..40_000i64 {
            let value = (i * i % 7919) as f64 / 7.0;
            series
                .insert_point(Steps(i * 1_000_000_000), 0, value)
                .unwrap();
        }
    }
    tx.commit().unwrap();
    db.close().unwrap();
    let sound = std::fs::read(folder.path("rows.tdl")).unwrap();
    let texts: HashMap<String, i64> = (0..40_000)
        .map(|i| i * 1_000_000_000)
        .map(|time| (Schema::point().unit.text(time), time))
        .collect();
    let (mut leaves, mut rows) = (0, 0);
    for page in pages_of(&folder, "rows.tdl", "packed leaves")
        .into_iter()
        .step_by(9)
    {
        let db = with_damage(&folder, &sound, page);
        let txn = db.begin_read().unwrap();
        let report = damage_of(&folder, "damaged.tdl");
        for name in ["wind", "power"] {
            let mut told = BTreeSet::new();
            for finding in findings(&report, "series") {
                if finding["name"] == name {
                    let end = |at: &str| texts[finding[at].as_str().unwrap()];
                    let span = end("from_time")..=end("to_time");
                    told.extend(texts.values().filter(|time| span.contains(time)));
                }
            }
            // Only every tenth time and the ends are looked up, because single reads are slow.
            let looked: BTreeSet<i64> = (0..40_000)
                .filter(|i| i % 10 == 0)
                .map(|i| i * 1_000_000_000)
                .chain(told.first().copied())
                .chain(told.last().copied())
                .collect();
            let lost = lost_times(&txn, name, looked.iter().copied());
            let told: BTreeSet<i64> = told.intersection(&looked).copied().collect();
            assert_eq!(lost, told, "{name}: {report}");
            leaves += usize::from(!lost.is_empty());
            rows += lost.len();
        }
    }
    assert!(leaves > 3 && rows < leaves * 1000, "{leaves} {rows}");
}

/// Creates series of two layouts with few rows each, which stay in the delta. Their ids and layouts are in different
/// orders, so a run does not have them in the order of ids.
fn waiting_rows(folder: &Folder) -> BTreeMap<String, Vec<i64>> {
    // There is no redo log, because it would hold copies of the newest pages.
    let options = Options::new().tuning(Tuning::new().log_bytes(0));
    let db = options.open(folder.path("front.tdl")).unwrap();
    let mut rng = Rng::new(11);
    let counts = Schema::new(Unit::Seconds, [("count", ColumnType::U64)]);
    let mut rows = BTreeMap::<String, Vec<i64>>::new();
    for part in 0..12i64 {
        let mut tx = db.begin_write().unwrap();
        for number in 0..300 {
            let name = format!("s{number:03}");
            let time = part * 1000 + number;
            if number % 3 == 0 {
                let mut series = tx.series_with(&name, &counts).unwrap();
                series.insert_row(Steps(time), &[rng.u64()]).unwrap();
            } else {
                let mut series = tx.series(&name).unwrap();
                series
                    .insert_point(Steps(time), 0, rng.u64() as f64)
                    .unwrap();
            }
            rows.entry(name).or_default().push(time);
        }
        tx.commit().unwrap();
    }
    rows
}

#[test]
fn damaged_rows_are_reported_with_series_names_and_times() {
    let folder = Folder::new("check_json_delta");
    let rows = waiting_rows(&folder);
    let sound = std::fs::read(folder.path("front.tdl")).unwrap();
    let all: usize = rows.values().map(Vec::len).sum();
    // The bounds of a run may be times of a series with another unit, so both texts of each time are known.
    let times: BTreeSet<i64> = rows.values().flatten().copied().collect();
    let units = [Unit::Seconds, Schema::point().unit];
    let texts = units.map(|unit| {
        let texts = times.iter().map(|time| (unit.text(*time), *time));
        texts.collect::<HashMap<String, i64>>()
    });
    let mut blocks = 0;
    for page in pages_of(&folder, "front.tdl", "blocks of a run") {
        drop(with_damage(&folder, &sound, page));
        let report = damage_of(&folder, "damaged.tdl");
        let mut told = BTreeSet::new();
        let mut add = |hit: &Value| {
            let name = hit["name"].as_str().unwrap().to_owned();
            let unit = usize::from(name[1..].parse::<usize>().unwrap() % 3 > 0);
            let end = |at: &str| texts[unit][hit[at].as_str().unwrap()];
            let span = end("from_time")..=end("to_time");
            let hit = rows[&name].iter().filter(|time| span.contains(time));
            told.extend(hit.map(|time| (name.clone(), *time)));
        };
        for finding in findings(&report, "delta") {
            assert_eq!(finding["more_series"], 0);
            let series = finding["series"].as_array().unwrap();
            assert!(series.len() > 1, "{report}");
            series.iter().for_each(&mut add);
            blocks += 1;
        }
        for finding in findings(&report, "series") {
            add(finding);
        }
        // A series with a damaged newest block cannot be opened, so its readable rows are found by salvage, block by
        // block.
        let saved = folder.path("saved.tdl");
        let _ = std::fs::remove_file(&saved);
        tidalite::maintenance::Salvage::of(folder.path("damaged.tdl"))
            .to(&saved)
            .unwrap();
        let txn = open(&folder, "saved.tdl").begin_read().unwrap();
        let mut lost = BTreeSet::new();
        for (name, times) in &rows {
            let there = txn.series(name).unwrap().is_some();
            let found = match there {
                true => lost_times(&txn, name, times.iter().copied()),
                false => times.iter().copied().collect(),
            };
            lost.extend(found.into_iter().map(|time| (name.clone(), time)));
        }
        assert_eq!(lost, told, "{report}");
        assert!(lost.len() < all, "all {all} rows: {report}");
    }
    assert!(blocks > 1, "{blocks} blocks of many series");
}

/// If a page of the catalog is damaged too, the report names the series that the catalog still names, and says that
/// there may be others.
#[test]
fn waiting_rows_are_reported_by_the_remaining_names() {
    let folder = Folder::new("check_json_names_left");
    waiting_rows(&folder);
    let sound = std::fs::read(folder.path("front.tdl")).unwrap();
    let catalog = pages_of(&folder, "front.tdl", "catalog of series: table leaf");
    let block = pages_of(&folder, "front.tdl", "blocks of a run")[0];
    assert!(catalog.len() > 2, "{} pages", catalog.len());
    let told = |damaged: &[usize]| {
        let mut bytes = sound.clone();
        for page in damaged {
            bytes[page * PAGE + 1700] ^= 4;
        }
        folder.write("damaged.tdl", bytes);
        let report = damage_of(&folder, "damaged.tdl");
        let delta = findings(&report, "delta")[0].clone();
        let names = delta["series"].as_array().unwrap().iter();
        let names: BTreeSet<String> = names
            .map(|hit| hit["name"].as_str().unwrap().to_owned())
            .collect();
        (names, delta["more_series"].clone(), report)
    };
    let (all, more, _) = told(&[block]);
    assert_eq!(more, 0);
    let mut fewer = 0;
    for page in catalog {
        let (names, more, report) = told(&[block, page]);
        assert_eq!(findings(&report, "catalog").len(), 1, "{report}");
        assert!(more.is_null() && names.is_subset(&all), "{report}");
        fewer += usize::from(!names.is_empty() && names.len() < all.len());
    }
    assert!(fewer > 0, "a page of the catalog takes the names of some");
}

/// If a page that leads to all rows of the delta cannot be read, any row of the delta may be affected, and the report
/// says so.
#[test]
fn a_damaged_delta_record_is_reported_as_all_waiting_rows() {
    let folder = Folder::new("check_json_record");
    waiting_rows(&folder);
    let sound = std::fs::read(folder.path("front.tdl")).unwrap();
    let page = pages_of(&folder, "front.tdl", "record of the delta")[0];
    let mut damaged = sound;
    damaged[page * PAGE + 40] ^= 4;
    folder.write("damaged.tdl", damaged);
    let report = damage_of(&folder, "damaged.tdl");
    let told = findings(&report, "delta");
    assert_eq!(told.len(), 1, "{report}");
    assert!(told[0]["series"].is_null(), "{report}");
}

#[test]
fn an_unreadable_head_is_reported_as_json() {
    let folder = Folder::with_plant("check_json_head");
    let sound = std::fs::read(folder.path("plant.tdl")).unwrap();
    let error = |damaged: Vec<u8>, code: i32| {
        folder.write("damaged.tdl", damaged);
        let ran = folder.say("check damaged.tdl --format json");
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        ran.failed(code, &["damaged.tdl"]);
        assert!(document["clean"] == false && document["checked"] == false);
        assert_eq!(document["exit_code"], code, "{document}");
        for told in ["what", "found", "expected", "message"] {
            assert!(!document["error"][told].as_str().unwrap().is_empty());
        }
        assert!(document["error"]["address"].is_u64(), "{document}");
        document["error"].clone()
    };
    // Case: both superblocks are intact, but no meta record is.
    let mut damaged = sound.clone();
    for block in [1, 2, 4, 5] {
        damaged[block * PAGE..][..PAGE].fill(0x5a);
    }
    let told = error(damaged, 4);
    assert_eq!(told["kind"], "Corrupt", "{told}");
    assert!(told["address"].as_u64().unwrap() < 6 * PAGE as u64);
    // Case: the whole head of the file is destroyed.
    let mut damaged = sound;
    damaged[..6 * PAGE].fill(0);
    assert_eq!(error(damaged, 5)["kind"], "NotADatabase");
    assert_eq!(error(b"no database".to_vec(), 5)["kind"], "NotADatabase");
    let ran = folder.say("check nothing.tdl --format json");
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(document["clean"] == false && document["exit_code"] == 3);
    ran.failed(3, &["there is no database"]);
}
