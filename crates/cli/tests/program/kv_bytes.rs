//! Keys and values of any bytes by hand, tables of multi-values, and how far a check is.

use crate::support::Folder;
use tidalite::Database;
use tidalite_testkit::rng::Rng;

#[test]
fn what_is_printed_can_be_typed_whatever_the_bytes() {
    let folder = Folder::new("kv-bytes");
    let mut rng = Rng::new(12);
    let mut bytes = |least: usize| {
        let len = least + rng.index(9);
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        if rng.one_in(3) {
            bytes
                .iter_mut()
                .for_each(|byte| *byte = b"-\\5c. a\t\n\""[usize::from(*byte) % 10]);
        }
        bytes
    };
    {
        let db = Database::open(folder.path("a.tdl")).unwrap();
        let mut tx = db.begin_write().unwrap();
        let (mut single, mut several) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            single.push((bytes(0), bytes(0)));
            several.push((bytes(0), bytes(0)));
        }
        tx.table("t").unwrap().extend(single).unwrap();
        for (key, value) in several {
            tx.multi_table("m").unwrap().put(&key, &value).unwrap();
        }
        tx.commit().unwrap();
    }
    for table in ["t", "m"] {
        let more = if table == "m" { &["--multi"][..] } else { &[] };
        let printed = folder.run(&["kv", "scan", "a.tdl", table]).ok();
        for line in printed.lines() {
            let (key, value) = line.split_once('\t').unwrap();
            let typed = [&["kv", "put", "b.tdl", table, key, value][..], more].concat();
            folder.run(&typed).ok();
            let got = folder.run(&["kv", "get", "a.tdl", table, key]).ok();
            assert!(got.lines().any(|got| got == value), "{line:?}: {got:?}");
        }
        let first = printed.lines().next().unwrap().split_once('\t').unwrap().0;
        let from = folder.run(&["kv", "scan", "a.tdl", table, "--from", first]);
        assert_eq!(from.ok(), printed);
        assert_eq!(folder.run(&["kv", "scan", "b.tdl", table]).ok(), printed);
    }
    let hex = |file| folder.run(&["kv", "scan", file, "t", "--hex"]).ok();
    assert_eq!(hex("a.tdl"), hex("b.tdl"));
    folder
        .run(&["kv", "put", "b.tdl", "t", "back\\slash", "1"])
        .failed(2, &["followed by two hex digits"]);
    folder.run(&["kv", "put", "b.tdl", "t", "-3.5", "-7"]).ok();
    assert_eq!(
        folder.run(&["kv", "get", "b.tdl", "t", "-3.5"]).ok(),
        "-7\n"
    );
    folder.run(&["kv", "put", "b.tdl", "t", "grün", "1"]).ok();
    assert_eq!(
        folder.run(&["kv", "get", "b.tdl", "t", "gr\\c3\\bcn"]).ok(),
        "1\n"
    );
}

#[test]
fn tables_of_multi_values_are_made_by_hand() {
    let folder = Folder::new("kv-multi");
    folder.say("kv create a.tdl tags --multi").ok();
    folder.say("kv create a.tdl tags --multi").ok();
    assert_eq!(folder.say("kv stat a.tdl").ok(), "tags\t0 pairs\t0 keys\n");
    folder.say("kv put a.tdl tags pump red").ok();
    folder.say("kv put a.tdl tags pump blue --multi").ok();
    assert_eq!(folder.say("kv get a.tdl tags pump").ok(), "blue\nred\n");
    folder
        .say("kv put a.tdl tags pump red --new")
        .failed(5, &["there already"]);
    folder.say("kv create a.tdl tags").failed(5, &["tags"]);
    folder.say("kv create a.tdl plain").ok();
    folder
        .say("kv put a.tdl plain k v --multi")
        .failed(5, &["plain"]);
    // Numbers of one length, which sort as numbers.
    let form = "--keys u32 --values i64";
    for (key, value) in [(9, -5), (10, 80), (9, 700), (9, 0)] {
        let line = format!("kv put a.tdl readings {key} {value} --multi {form}");
        folder.say(&line).ok();
    }
    let printed = folder.say(&format!("kv scan a.tdl readings {form}")).ok();
    assert_eq!(printed, "9\t-5\n9\t0\n9\t700\n10\t80\n");
    let printed = folder.say(&format!("kv get a.tdl readings 9 {form}")).ok();
    assert_eq!(printed, "-5\n0\n700\n");
    folder
        .say(&format!("kv get a.tdl readings x {form}"))
        .failed(2, &["whole number"]);
    folder
        .say("kv scan a.tdl readings --keys u64")
        .failed(5, &["no such number", "--keys"]);
    folder
        .say(&format!("kv del a.tdl readings 9 -5 {form}"))
        .ok();
    assert_eq!(
        folder.say("kv stat a.tdl").ok(),
        "plain\t0 pairs\nreadings\t3 pairs\t2 keys\ntags\t2 pairs\t1 keys\n"
    );
}

#[test]
fn a_check_tells_how_far_it_is_when_it_is_asked() {
    let folder = Folder::new("check-progress");
    {
        let db = Database::open(folder.path("a.tdl")).unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let rows = (0..100_000u32).map(|i| (i.to_be_bytes(), [7; 60]));
        table.extend(rows).unwrap();
        tx.commit().unwrap();
    }
    let ran = folder.say("check a.tdl");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = folder.say("check a.tdl --progress");
    assert_eq!(ran.code, 0);
    let told: Vec<u64> = ran
        .err
        .lines()
        .map(|line| line.split_once(" %: ").unwrap().0.parse().unwrap())
        .collect();
    assert!(told.len() > 3 && told.is_sorted(), "{}", ran.err);
    assert!(ran.err.contains("MiB of "), "{}", ran.err);
    folder
        .say("check a.tdl --progress --quiet")
        .failed(2, &["--quiet"]);
}

#[test]
fn a_file_that_is_cut_off_leads_to_what_can_be_done() {
    let folder = Folder::with_plant("check-cut");
    let path = folder.path("plant.tdl");
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let ran = folder.say("check plant.tdl");
        assert_eq!(ran.code, 4, "{ran:?}");
        for part in ["restore a backup", "tidalite salvage plant.tdl new.tdl"] {
            assert!(ran.err.contains(part), "{ran:?}");
        }
        assert!(!ran.err.contains("tidalite check"), "{ran:?}");
    };
    // Behind the first pages the file is free space.
    for end in [100, 5_000, 30_000] {
        refused(&whole[..end]);
    }
    let mut spoilt = whole.clone();
    spoilt[25_000..45_000].fill(0xa5);
    refused(&spoilt);
}
