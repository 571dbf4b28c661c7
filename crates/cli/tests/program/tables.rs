//! Tables on the command line, and as the text of a dump.

use crate::support::Folder;
use tidalite::Database;

#[test]
fn pairs_are_put_got_scanned_and_removed() {
    let folder = Folder::new("kv");
    let run = |words: &[&str]| folder.run(words);
    for (key, value) in [("a", "1"), ("b", "back\\\\slash"), ("c", "3")] {
        run(&["kv", "put", "t.tdl", "config", key, value]).ok();
    }
    run(&["kv", "put", "t.tdl", "config", "--hex", "00ff", "01"]).ok();
    assert_eq!(run(&["kv", "get", "t.tdl", "config", "a"]).ok(), "1\n");
    run(&["kv", "put", "t.tdl", "config", "a", "2", "--new"]).failed(5, &["exists already"]);
    let scanned = run(&["kv", "scan", "t.tdl", "config"]).ok();
    assert_eq!(scanned, "\\00\\ff\t\\01\na\t1\nb\tback\\5cslash\nc\t3\n");
    let scanned = run(&[
        "kv",
        "scan",
        "t.tdl",
        "config",
        "--from",
        "a",
        "--to",
        "c",
        "--reverse",
    ]);
    assert_eq!(scanned.ok(), "b\tback\\5cslash\na\t1\n");
    run(&["kv", "del", "t.tdl", "config", "c", "4"]).failed(3, &["c does not have this value"]);
    run(&["kv", "del", "t.tdl", "config", "c", "3"]).ok();
    run(&["kv", "get", "t.tdl", "config", "c"]).failed(3, &["no key c"]);
    run(&["kv", "get", "t.tdl", "none", "c"]).failed(3, &["no table none"]);
    assert_eq!(run(&["kv", "stat", "t.tdl"]).ok(), "config\t3 pairs\n");
}

#[test]
fn nested_tables_are_put_got_scanned_and_removed() {
    let folder = Folder::new("kv-nested");
    let run = |words: &[&str]| folder.run(words);
    let topic = |words: &[&str], more: &[&str]| {
        let words = [&["kv", words[0], "t.tdl", "topics"][..], &words[1..], more].concat();
        folder.run(&words)
    };
    let tank = ["--in", "plant", "--in", "tank"];
    topic(&["put", "level", "3.5"], &tank).ok();
    topic(&["put", "flow", "7"], &tank).ok();
    topic(&["put", "name", "Hamburg"], &tank[..2]).ok();
    topic(&["put", "top", "1"], &[]).ok();
    assert_eq!(topic(&["get", "level"], &tank).ok(), "3.5\n");
    assert_eq!(topic(&["scan"], &[]).ok(), "plant\t(2 pairs)\ntop\t1\n");
    assert_eq!(topic(&["scan"], &tank).ok(), "flow\t7\nlevel\t3.5\n");
    topic(&["get", "plant"], &[]).failed(5, &["holds a table"]);
    topic(&["get", "level"], &["--in", "none"]).failed(3, &["no nested table under none"]);
    topic(&["del", "flow"], &tank).ok();
    assert_eq!(topic(&["scan"], &tank).ok(), "level\t3.5\n");
    topic(&["del", "plant"], &[]).ok();
    assert_eq!(topic(&["scan"], &[]).ok(), "top\t1\n");
    folder.write("m.dump", DUMPED);
    run(&["load", "t.tdl", "m.dump"]).ok();
    run(&["kv", "get", "t.tdl", "m", "k", "--in", "k"]).failed(2, &["table of sets"]);
}

const NESTED: &str = "VERSION=3
format=print
database=topics
type=btree
mapsize=33554432
sequence=12
HEADER=END
 a
{
 b
{sequence=3
 k
 1
}
 c
 plain
 empty
{
}
}
 z
 last
DATA=END
";

#[test]
fn a_dump_with_nested_tables_round_trips() {
    let folder = Folder::new("dump-nested");
    folder.write("n.dump", NESTED);
    let told = folder.run(&["load", "n.tdl", "n.dump"]).ok();
    assert_eq!(told, "topics: 3 pairs\n");
    assert_eq!(folder.run(&["dump", "n.tdl", "--print"]).ok(), NESTED);
    folder.run(&["load", "n.tdl", "n.dump", "-N"]).ok();
    assert_eq!(folder.run(&["dump", "n.tdl", "--print"]).ok(), NESTED);
    for (data, told) in [
        (" 61\n{\nDATA=END\n", "inside a table"),
        (" 61\n{sequence=x\n", "not a number"),
        ("}\nDATA=END\n", "line 3: more tables end"),
        ("{\nDATA=END\n", "without a key"),
        (" 61\n{\n 62\n}\nDATA=END\n", "without a value"),
    ] {
        folder.write("bad.dump", format!("VERSION=3\nHEADER=END\n{data}"));
        folder
            .run(&["load", "m.tdl", "bad.dump"])
            .failed(5, &[told]);
    }
    for (data, told) in [
        (" 61\n{\n}\nDATA=END\n", "line 5: a table among sets"),
        (" 61\n 62\n 61\nDATA=END\n", "line 7: a key without a value"),
        (" 61\n 62\n{\n", "a table without a key"),
        ("}\nDATA=END\n", "line 4: more tables end"),
        (" 61\n 62\n", "ends before DATA=END"),
    ] {
        folder.write(
            "bad.dump",
            format!("VERSION=3\nduplicates=1\nHEADER=END\n{data}"),
        );
        let refused = folder.run(&["load", "m.tdl", "bad.dump", "-t", "new"]);
        refused.failed(5, &[told]);
    }
    // A batch that ends with an error stores nothing.
    folder
        .run(&["kv", "scan", "m.tdl", "new"])
        .failed(3, &["no table new"]);
}

const DUMPED: &str = "VERSION=3\nformat=print\ndatabase=m\ntype=btree\nmapsize=33554432\nduplicates=1\ndupsort=1\nHEADER=END\n k\n 1\n k\n 2\n l\\0a\n \nDATA=END\n";

#[test]
fn a_dump_round_trips_byte_for_byte() {
    let folder = Folder::new("dump");
    folder.write("m.dump", DUMPED);
    let told = folder.run(&["load", "m.tdl", "m.dump"]).ok();
    assert_eq!(told, "m: 3 pairs\n");
    assert_eq!(folder.run(&["dump", "m.tdl", "--print"]).ok(), DUMPED);
    assert_eq!(folder.run(&["kv", "get", "m.tdl", "m", "k"]).ok(), "1\n2\n");
    folder
        .run(&["kv", "del", "m.tdl", "m", "k"])
        .failed(2, &["2 values", "--all"]);
    folder.run(&["kv", "del", "m.tdl", "m", "k", "--all"]).ok();
    assert_eq!(
        folder.run(&["kv", "stat", "m.tdl"]).ok(),
        "m\t1 pair\t1 key\n"
    );
    for (text, told) in [
        ("", "empty"),
        ("VERSION=3\nHEADER=END\n 61\n", "line 4"),
        ("VERSION=3\nHEADER=END\n 6\n 61\nDATA=END\n", "line 3"),
        ("VERSION=4\nHEADER=END\nDATA=END\n", "version"),
        ("VERSION=3\nHEADER=END\n 61\nDATA=END\n", "without a value"),
    ] {
        folder.write("bad.dump", text);
        folder
            .run(&["load", "m.tdl", "bad.dump"])
            .failed(5, &[told]);
    }
}

/// Names with control characters are escaped. Otherwise a line end would add a line to the dump's header, and an escape
/// sequence could control a terminal.
#[test]
fn names_with_control_characters_are_dumped_and_shown_escaped() {
    let folder = Folder::new("kv-names");
    for name in ["a\nDATA=END", "\u{1b}[31mred\\0a", "plain\\0a"] {
        folder.run(&["kv", "put", "t.tdl", name, "k", "v"]).ok();
    }
    let shown = folder.say("kv stat t.tdl").ok();
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let dump = folder.say("dump t.tdl").ok();
    assert!(
        dump.contains("\nescaped=1\ndatabase=a\\0aDATA=END\n"),
        "{dump}"
    );
    assert!(
        dump.contains("\nformat=bytevalue\ndatabase=plain\\0a\n"),
        "{dump}"
    );
    folder.write("t.dump", dump.as_bytes());
    let told = folder.say("load again.tdl t.dump").ok();
    assert!(!told.contains('\u{1b}'), "{told}");
    assert_eq!(folder.say("dump again.tdl").ok(), dump);
    folder.write("bad.dump", dump.replace("a\\0aDATA", "a\\zzDATA"));
    folder
        .say("load bad.tdl bad.dump")
        .failed(5, &["invalid escape"]);
}

/// Regression: `kv put` stored bytes in a typed table that the library could not read any more.
#[test]
fn a_typed_table_refuses_bytes_of_other_types() {
    let folder = Folder::new("kv_types");
    let db = Database::open(folder.path("t.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.typed_table::<u64, str>("users")
        .unwrap()
        .put(&5, "ada")
        .unwrap();
    tx.typed_table::<str, (u32, bool)>("pairs")
        .unwrap()
        .put("a", &(1, true))
        .unwrap();
    tx.typed_set_table::<str, i32>("sets")
        .unwrap()
        .put("a", &-1)
        .unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    for (line, told) in [
        ("kv put t.tdl users abc def", "type u64"),
        ("kv put t.tdl users 7 def --keys i32", "give --keys u64"),
        ("kv put t.tdl users 7 \\ff --keys u64", "type String"),
        ("kv put t.tdl pairs a 5", "type String"),
        ("kv put t.tdl pairs a\\00\\00 5", "cannot be typed"),
        ("kv put t.tdl sets a\\00\\00 5", "type i32"),
    ] {
        let ran = folder.say(line);
        assert!(ran.err.contains(told), "{line}: {}", ran.err);
        ran.failed(5, &[]);
    }
    folder.say("kv put t.tdl users 7 def --keys u64").ok();
    folder
        .say("kv put t.tdl sets a\\00\\00 -2 --values i32")
        .ok();
    folder
        .say("kv put t.tdl pairs --hex 610000 0000000200")
        .ok();
    let ran = folder.say("kv get t.tdl users 5");
    assert!(ran.err.contains("type u64"), "{}", ran.err);
    let shown = folder.say("kv stat t.tdl users").ok();
    assert!(shown.contains("Types: u64 -> String"), "{shown}");
    let db = Database::open(folder.path("t.tdl")).unwrap();
    let snap = db.begin_read().unwrap();
    let users = snap.typed_table::<u64, str>("users").unwrap().unwrap();
    assert_eq!(users.last().unwrap(), Some((7, "def".to_owned())));
    let pairs = snap
        .typed_table::<str, (u32, bool)>("pairs")
        .unwrap()
        .unwrap();
    assert_eq!(pairs.get("a").unwrap(), Some((2, false)));
    let sets = snap.typed_set_table::<str, i32>("sets").unwrap().unwrap();
    let values: tidalite::Result<Vec<i32>> = sets.values("a").unwrap().collect();
    assert_eq!(values.unwrap(), [-2, -1]);
}
