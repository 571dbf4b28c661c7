use crate::check_json::{bytes_of, findings};
use crate::support::Folder;
use serde_json::Value;
use tidalite::{Database, Options, Steps, Timestamp};

#[test]
fn check_prints_json() {
    let folder = Folder::with_plant("check_prints_json");
    let clean = folder.say("check plant.tdl --format json").ok();
    let clean: serde_json::Value = serde_json::from_str(&clean).unwrap();
    assert!(clean["clean"] == true && clean["series"] == 4, "{clean}");
    let sound = std::fs::read(folder.path("plant.tdl")).unwrap();
    let mut places = Vec::new();
    for page in 6..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 200] ^= 1;
        folder.write("damaged.tdl", damaged);
        let ran = folder.say("check damaged.tdl --format json");
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["clean"] == true, ran.code == 0, "{report}");
        for finding in report["findings"].as_array().unwrap() {
            places.push(finding["place"].as_str().unwrap().to_owned());
        }
    }
    assert!(
        places
            .iter()
            .any(|place| place == "catalog" || place == "series"),
        "{places:?}"
    );
}

/// The time of second `n` of a day of 2014, in nanoseconds since 1970.
fn second(n: i64) -> i64 {
    (1_401_580_800 + n) * 1_000_000_000
}

fn long_key(n: u64) -> String {
    format!("{}{n:05}", "k".repeat(120))
}

/// Fills a table of short keys and one of long keys, a series with leaves, and series whose rows are in blocks of the
/// delta.
fn fill(db: &Database) {
    for part in 0..4u64 {
        let mut txn = db.begin_write().unwrap();
        for n in (part..600).step_by(4) {
            let mut table = txn.table("config").unwrap();
            table.put(format!("{n:05}").as_bytes(), &[7; 60]).unwrap();
            let mut table = txn.table("long").unwrap();
            table.put(long_key(n).as_bytes(), &[8; 20]).unwrap();
        }
        let mut wind = txn.series("wind").unwrap();
        for n in 0..2000 {
            let n = part as i64 * 2000 + n;
            wind.insert_point(Steps(second(n)), 0, (n * n) as f64 / 7.0)
                .unwrap();
        }
        txn.commit().unwrap();
    }
    for part in 0..12 {
        let mut txn = db.begin_write().unwrap();
        for number in 0..40 {
            let mut series = txn.series(&format!("s{number:02}")).unwrap();
            for n in part * 15..part * 15 + 15 {
                series
                    .insert_point(Steps(second(n)), 0, (n * n) as f64 / 3.0)
                    .unwrap();
            }
        }
        txn.commit().unwrap();
    }
}

/// For any damaged page, every affected key of a table and every affected row of a series lies within the reported
/// ranges, which usually are a part of the data.
#[test]
fn json_names_keys_and_times() {
    let folder = Folder::new("json_names_keys_and_times");
    let path = folder.path("sound.tdl");
    let db = Database::open(&path).unwrap();
    fill(&db);
    db.close().unwrap();
    let sound = std::fs::read(&path).unwrap();
    let (mut keys, mut long, mut times) = (0, 0, 0);
    for page in 6..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 200] ^= 1;
        folder.write("damaged.tdl", damaged);
        let ran = folder.say("check damaged.tdl --format json");
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        let Ok(db) = Options::new()
            .read_only(true)
            .open(folder.path("damaged.tdl"))
        else {
            assert_eq!(report["clean"], false, "page {page}");
            continue;
        };
        let Ok(snap) = db.begin_read() else {
            assert_eq!(report["clean"], false, "page {page}");
            continue;
        };
        let of_names = ["table of tables", "catalog of series", "names of series"];
        let mut in_catalog = findings(&report, "catalog").into_iter();
        let in_catalog =
            in_catalog.any(|finding| of_names.iter().any(|name| finding["name"] == *name));
        for (name, narrow) in [("config", &mut keys), ("long", &mut long)] {
            let ranges = findings(&report, "table").into_iter();
            let ranges: Vec<(Vec<u8>, Option<Vec<u8>>)> = ranges
                .filter(|finding| finding["name"] == name)
                .map(|finding| {
                    let to = &finding["to_key"];
                    (
                        bytes_of(&finding["from_key"]),
                        (!to.is_null()).then(|| bytes_of(to)),
                    )
                })
                .collect();
            let mut named = 0;
            for n in 0..600 {
                let key = match name {
                    "config" => format!("{n:05}"),
                    _ => long_key(n),
                };
                let key = key.as_bytes();
                let found = snap.table(name).and_then(|table| match table {
                    Some(table) => table.get(key),
                    None => Ok(None),
                });
                let has = |(from, to): &(Vec<u8>, Option<Vec<u8>>)| {
                    from.as_slice() <= key && to.as_deref().is_none_or(|to| key < to)
                };
                let is_named = ranges.iter().any(has);
                named += u64::from(is_named);
                let there = matches!(found, Ok(Some(_)));
                assert!(there || is_named || in_catalog, "page {page}: {report}");
            }
            *narrow += u64::from((1..200).contains(&named));
        }
        let spans = findings(&report, "series").into_iter();
        let spans: Vec<&Value> = spans.filter(|finding| finding["name"] == "wind").collect();
        let mut named = 0;
        for n in (0..8000).step_by(10) {
            let time = Timestamp(second(n)).to_string();
            let is_named = spans.iter().any(|span| {
                let end = |end: &str| span[end].as_str().unwrap_or_default().to_owned();
                end("from_time") <= time && time <= end("to_time")
            });
            named += u64::from(is_named);
            let at = Steps(second(n));
            let wind = snap.series("wind").ok().flatten();
            let mut rows = 0;
            let read = wind.map(|wind| wind.query(at..=at).for_each(|_, _| rows += 1));
            let there = rows == 1 && matches!(read, Some(Ok(_)));
            assert!(there || is_named || in_catalog, "page {page}: {report}");
        }
        times += u64::from((1..400).contains(&named));
    }
    println!("{keys}, {long} narrow ranges of keys, {times} of times");
    assert!(keys > 5 && long > 5 && times > 3);
}

/// A limited rate slows the copying down, and the copy is complete all the same.
#[test]
fn a_rate_holds_a_copy_back() {
    let folder = Folder::new("a_rate_holds_a_copy_back");
    let db = Database::open(folder.path("plant.tdl")).unwrap();
    fill(&db);
    db.close().unwrap();
    let began = std::time::Instant::now();
    folder.say("copy plant.tdl copy.tdl --image --rate 1").ok();
    let bytes = std::fs::metadata(folder.path("copy.tdl")).unwrap().len();
    let least = bytes as f64 / f64::from(1 << 20) * 0.8;
    let took = began.elapsed().as_secs_f64();
    assert!(bytes > 256 << 10 && took >= least, "{bytes} in {took} s");
    folder.say("check copy.tdl").ok();
    let rows = |file: &str| folder.say(&format!("scan {file} s* -f csv")).ok();
    assert_eq!(rows("copy.tdl"), rows("plant.tdl"));
}

#[test]
fn backups_and_pins_lead_back() {
    let folder = Folder::with_plant("backups_and_pins_lead_back");
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    let monday = rows("plant.tdl");
    folder.say("backup plant.tdl full.tdb --pin monday").ok();
    folder.write(
        "more.csv",
        "time,turbine,wind,power\n2014-06-02T00:00:00Z,A,7.5,100\n",
    );
    folder
        .say("import plant.tdl more.csv --tag turbine --prefix hb. --quiet")
        .ok();
    let out = folder
        .say("backup plant.tdl more.tdb --pin tuesday --since monday")
        .ok();
    assert!(out.contains("pages written since"), "{out}");
    let listed = folder.say("pins plant.tdl -f csv").ok();
    assert!(
        listed.contains("monday,") && listed.contains("tuesday,"),
        "{listed}"
    );
    folder.say("pins plant.tdl --remove monday").ok();
    folder
        .say("pins plant.tdl --remove monday")
        .failed(3, &["no pin monday"]);
    folder.say("restore one.tdl full.tdb").ok();
    folder.say("restore two.tdl full.tdb more.tdb").ok();
    assert_eq!(rows("one.tdl"), monday);
    assert_eq!(rows("two.tdl"), rows("plant.tdl"));
    folder.say("check two.tdl").ok();
    folder
        .say("restore three.tdl more.tdb")
        .failed(5, &["not consecutive"]);
    assert!(!folder.path("three.tdl").exists());
    folder
        .say("restore two.tdl full.tdb")
        .failed(2, &["exists already"]);
    folder
        .say("backup plant.tdl full.tdb")
        .failed(2, &["exists already"]);
    folder
        .say("backup plant.tdl x.tdb --since nothing")
        .failed(3, &["no pin `nothing`"]);
    assert!(!folder.path("x.tdb").exists());
}

#[test]
fn a_destroyed_head_is_salvaged() {
    let folder = Folder::with_plant("a_destroyed_head_is_salvaged");
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    let mut bytes = std::fs::read(folder.path("plant.tdl")).unwrap();
    bytes[..24_576].fill(0);
    folder.write("broken.tdl", bytes);
    let ran = folder.say("salvage broken.tdl saved.tdl");
    assert!(ran.out.contains("4 series saved"), "{ran:?}");
    ran.failed(4, &["some data could not be saved"]);
    assert_eq!(rows("saved.tdl"), rows("plant.tdl"));
    folder.say("check saved.tdl").ok();
    let out = folder.say("salvage plant.tdl whole.tdl --format json").ok();
    assert!(out.contains("\"lost\":[]"), "{out}");
    folder
        .say("salvage plant.tdl whole.tdl")
        .failed(2, &["exists already"]);
    folder
        .say("salvage nothing.tdl x.tdl")
        .failed(3, &["no file"]);
}

#[test]
fn pages_and_weights_are_shown() {
    let folder = Folder::with_plant("pages_and_weights_are_shown");
    let out = folder.say("stat plant.tdl --weights -f csv").ok();
    assert!(
        out.contains("blocks of a run,") || out.contains("tail page,"),
        "{out}"
    );
    let kinds: Vec<String> = (6..12)
        .map(|page| folder.say(&format!("page plant.tdl {page}")).ok())
        .collect();
    assert!(
        kinds.iter().any(|out| out.contains("kind KvLeaf")),
        "{kinds:#?}"
    );
    folder
        .say("page plant.tdl 99999999")
        .failed(3, &["no page"]);
}

#[test]
fn the_second_file_option_places_the_file() {
    let folder = Folder::new("the_second_file_option_places_the_file");
    let picture = "x".repeat(100_000);
    let put = "kv put plant.tdl pictures";
    let large = "--large plant.values --large-from 50000";
    folder.say(&format!("{put} one {picture} {large}")).ok();
    folder.say(&format!("{put} two small")).ok();
    let stat = folder.say("stat plant.tdl -f csv").ok();
    assert!(stat.contains("large_bytes"), "{stat}");
    assert!(
        std::fs::metadata(folder.path("plant.values"))
            .unwrap()
            .len()
            > 100_000
    );
    folder.say("backup plant.tdl full.tdb").ok();
    folder.say("restore beside.tdl full.tdb").ok();
    assert!(folder.path("beside.tdl-large").exists());
    folder
        .say("restore there.tdl full.tdb --large there.values")
        .ok();
    assert_eq!(
        folder.say("kv get there.tdl pictures one").ok().trim_end(),
        picture
    );
    folder.say("compact there.tdl").ok();
    folder.say("check there.tdl").ok();
    std::fs::rename(folder.path("there.values"), folder.path("moved.values")).unwrap();
    folder.say("check there.tdl").failed(1, &["there.values"]);
    folder.say("check there.tdl --large moved.values").ok();
    folder
        .say("salvage there.tdl saved.tdl --large moved.values")
        .ok();
    assert_eq!(
        folder.say("kv get saved.tdl pictures one").ok().trim_end(),
        picture
    );
}
