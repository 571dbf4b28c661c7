//! Keys and values of arbitrary bytes on the command line, tables of sets, and progress of a check.

use crate::support::{Folder, Ran};
use tidalite::Database;
use tidalite_testkit::rng::Rng;

#[test]
fn printed_keys_can_be_typed_for_any_bytes() {
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
            tx.set_table("m").unwrap().put(&key, &value).unwrap();
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
        .failed(5, &["exists already"]);
    folder.say("kv create a.tdl tags").failed(5, &["tags"]);
    folder.say("kv create a.tdl plain").ok();
    folder
        .say("kv put a.tdl plain k v --multi")
        .failed(5, &["plain"]);
    // Keys and values that are given as numbers are stored with a fixed length, so they sort as numbers.
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
        .failed(5, &["not a number of this form", "--keys"]);
    folder
        .say(&format!("kv del a.tdl readings 9 -5 {form}"))
        .ok();
    assert_eq!(
        folder.say("kv stat a.tdl").ok(),
        "plain\t0 pairs\nreadings\t3 pairs\t2 keys\ntags\t2 pairs\t1 key\n"
    );
}

#[test]
fn values_come_from_files_and_pipes_and_go_to_them() {
    let folder = Folder::new("kv-raw");
    let every: Vec<u8> = (0..=255).chain(*b"\r\n\n").collect();
    folder.write("value", &every);
    let raw = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = folder.command(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    folder.say("kv put a.tdl t k --file value").ok();
    assert_eq!(raw("kv get a.tdl t k --raw"), every);
    let mut piped = folder.command(&["kv", "put", "a.tdl", "t", "01", "-", "--hex"]);
    piped.stdin(std::fs::File::open(folder.path("value")).unwrap());
    Ran::of(piped).ok();
    assert_eq!(raw("kv get a.tdl t 01 --hex --raw"), every);
    // A value of `-` is read from standard input, which is empty here; an escaped dash is a dash.
    folder.say("kv put a.tdl t k -").ok();
    assert_eq!(raw("kv get a.tdl t k --raw"), b"");
    folder.say("kv put a.tdl t k \\2d").ok();
    assert_eq!(raw("kv get a.tdl t k --raw"), b"-");
    assert_eq!(folder.say("kv get a.tdl t k").ok(), "\\2d\n");
    folder
        .say("kv put a.tdl t k --file none")
        .failed(3, &["cannot read none"]);
    folder
        .say("kv put a.tdl t k v --file value")
        .failed(2, &["--file"]);
    folder.say("kv put a.tdl t k").failed(2, &["VALUE"]);
    assert_eq!(raw("kv get a.tdl t k --raw"), b"-", "nothing was changed");
    folder.say("kv put a.tdl m k 1 --multi").ok();
    assert_eq!(raw("kv get a.tdl m k --raw"), b"1");
    folder.say("kv put a.tdl m k 2").ok();
    folder
        .say("kv get a.tdl m k --raw")
        .failed(2, &["2 values"]);
    folder.say("kv get a.tdl t none --raw").failed(3, &["none"]);
}

#[test]
fn tables_are_cleared_and_stay() {
    let folder = Folder::new("kv-clear");
    for words in ["t a 1", "t 9 1 --in 7 --keys u32", "m k 1 --multi", "m k 2"] {
        folder.say(&format!("kv put a.tdl {words}")).ok();
    }
    let stat = |words: &str| folder.say(&format!("kv stat a.tdl {words}"));
    let nested = "Status of t\n  Tree depth: 0\n";
    assert!(stat("t --in 7 --keys u32").ok().starts_with(nested));
    assert!(
        stat("t --in 00000007 --hex")
            .ok()
            .contains("  Entries: 1\n")
    );
    stat("t --in 8 --keys u32").failed(3, &["no table t, 8"]);
    stat("t --in x --keys u32").failed(2, &["whole number"]);
    stat("t --in 0 --hex").failed(2, &["hex digits"]);
    stat("t --hex").failed(2, &["--in"]);

    folder.say("kv clear a.tdl t --in 7 --keys u32").ok();
    assert!(stat("t --in 7 --keys u32").ok().contains("  Entries: 0\n"));
    assert_eq!(folder.say("kv get a.tdl t a").ok(), "1\n");
    folder.say("kv clear a.tdl t").ok();
    folder.say("kv clear a.tdl m").ok();
    assert_eq!(stat("").ok(), "m\t0 pairs\t0 keys\nt\t0 pairs\n");
    folder
        .say("kv clear a.tdl none")
        .failed(3, &["no table none"]);
    folder
        .say("kv clear a.tdl t --in none")
        .failed(3, &["no nested table under none"]);
    folder.say("kv clear b.tdl t").failed(3, &["b.tdl"]);
}

#[test]
fn check_prints_its_progress_on_request() {
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
fn a_truncated_file_points_to_possible_remedies() {
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
    // Most of the file after its first pages is free space, and still a truncated file is damage.
    for end in [100, 5_000, 30_000] {
        refused(&whole[..end]);
    }
    let mut spoilt = whole.clone();
    spoilt[25_000..45_000].fill(0xa5);
    refused(&spoilt);
}

#[test]
fn scans_filter_values_and_stat_shows_table_layout() {
    let folder = Folder::new("kv-stat");
    {
        let db = Database::open(folder.path("a.tdl")).unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("long").unwrap();
        let rows = (0..1000u32).map(|i| (i.to_be_bytes(), (i % 10).to_be_bytes()));
        table.extend(rows).unwrap();
        table.put(b"value", &[7; 10_000]).unwrap();
        let mut below = table.nested(b"topic");
        below.put(b"a", b"1").unwrap();
        let values: Vec<_> = (0..5000u32).map(u32::to_be_bytes).collect();
        let mut pairs = tx.set_table("pairs").unwrap();
        pairs.put_many(&7u32.to_be_bytes(), &values).unwrap();
        tx.commit().unwrap();
    }
    let form = "--keys u32 --values u32";
    let say = |words: &str| folder.say(&format!("kv scan a.tdl {words}")).ok();
    assert_eq!(
        say(&format!("long {form} --to 40 --value 3")),
        "3\t3\n13\t3\n23\t3\n33\t3\n"
    );
    // Pairs that are filtered out do not count; nested tables have no value.
    let limited = format!("long {form} --to 1000 --value-from 8 --value-to 9 --limit 2 --reverse");
    assert_eq!(say(&limited), "998\t8\n988\t8\n");
    assert_eq!(say("long --from t --value-from zz"), "");
    assert_eq!(say("long --from t --to u"), "topic\t(1 pair)\n");
    assert_eq!(
        say(&format!("pairs {form} --value-from 10 --value-to 12")),
        "7\t10\n7\t11\n"
    );
    folder
        .say("kv scan a.tdl long --value 3 --value-to 4")
        .failed(2, &["--value-to"]);

    let of_long = "Status of long\n  Tree depth: 2\n  Branch pages: 1\n  Leaf pages: 4\n  \
        Overflow pages: 3\n  Nested pages: 0\n  Entries: 1002\n";
    assert_eq!(folder.say("kv stat a.tdl long").ok(), of_long);
    assert_eq!(
        folder.say("kv stat a.tdl long --in topic").ok(),
        "Status of long\n  Tree depth: 0\n  Branch pages: 0\n  Leaf pages: 0\n  \
        Overflow pages: 0\n  Nested pages: 0\n  Entries: 1\n"
    );
    let all = folder.say("kv stat a.tdl --all").ok();
    assert!(all.starts_with(of_long), "{all}");
    let pairs = "Status of pairs\n  Tree depth: 1\n  Branch pages: 0\n  Leaf pages: 1\n";
    assert!(all.contains(pairs), "{all}");
    assert!(all.ends_with("  Entries: 5000\n  Keys: 1\n"), "{all}");
    for (words, told) in [
        ("none", "no table none"),
        ("long --in x", "no table long, x"),
        ("pairs --in x", "table of sets"),
        ("--in x", "--in"),
    ] {
        let ran = folder.say(&format!("kv stat a.tdl {words}"));
        assert!(ran.code != 0 && ran.err.contains(told), "{ran:?}");
    }

    let db = Database::open(folder.path("a.tdl")).unwrap();
    let held = db.begin_read().unwrap();
    let told = folder.say("kv stat a.tdl -e -f -r").ok();
    let process = std::process::id().to_string();
    for part in [
        "  Page size: 4096\n",
        "  Last transaction ID: 2\n",
        "  Max readers: 4096\n",
        "  Number of readers used: 1\n",
        "Freelist Status\n  Free pages: ",
        "  Waiting for readers: 0\n",
        &process,
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    assert!(!told.contains("Status of"), "{told}");
    drop(held);
    let told = folder.say("kv stat a.tdl --readers").ok();
    assert_eq!(told, "Reader Table Status\n(no active readers)\n");
}
