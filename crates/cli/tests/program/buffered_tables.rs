//! Buffered tables on the command line.

use crate::support::Folder;

#[test]
fn pairs_are_put_got_scanned_and_removed() {
    let folder = Folder::new("buffered");
    let kv = |words: &str| folder.say(&format!("kv {words}"));
    let said = kv("put a.tdl t c 3 --buffered").ok();
    assert_eq!(said, "c stored in t\n");
    for pair in ["a 1", "d 4", "b 2"] {
        kv(&format!("put a.tdl t {pair}")).ok();
    }
    kv("put a.tdl t c 3x --buffered").ok();
    kv("put a.tdl t c 9 --new").failed(5, &["c exists already", "--new"]);
    kv("put a.tdl t e -5 --new").ok();
    for is_compacted in [false, true] {
        assert_eq!(kv("get a.tdl t c").ok(), "3x\n");
        assert_eq!(
            kv("get a.tdl t c -f json").ok(),
            "{\"key\":\"c\",\"value\":\"3x\"}\n"
        );
        kv("get a.tdl t x").failed(3, &["there is no key x"]);
        for (options, pairs) in [
            ("", "a\t1\nb\t2\nc\t3x\nd\t4\ne\t-5\n"),
            ("--from b --to d", "b\t2\nc\t3x\n"),
            ("--from b --to d --reverse", "c\t3x\nb\t2\n"),
            ("--from bb --limit 2", "c\t3x\nd\t4\n"),
            ("--reverse -n 1", "e\t-5\n"),
            ("--from d --to b", ""),
            ("--from d --to b --reverse", ""),
            ("-n 0", ""),
            ("--value 2", "b\t2\n"),
            ("--value-from 3 --value-to 4 -n 1", "c\t3x\n"),
        ] {
            let scanned = kv(&format!("scan a.tdl t {options}")).ok();
            assert_eq!(scanned, pairs, "{options}");
        }
        if !is_compacted {
            let said = kv("compact a.tdl t").ok();
            assert_eq!(said, "table t compacted: 5 pairs\n");
        }
    }
    kv("del a.tdl t e 5").failed(3, &["e does not have this value"]);
    kv("del a.tdl t e -5").ok();
    assert_eq!(kv("del a.tdl t d").ok(), "d removed from t\n");
    kv("del a.tdl t d").failed(3, &["there is no key d"]);
    assert_eq!(kv("scan a.tdl t").ok(), "a\t1\nb\t2\nc\t3x\n");
    kv("clear a.tdl t").ok();
    assert_eq!(kv("scan a.tdl t").ok(), "");
    folder.say("check a.tdl").ok();
}

#[test]
fn values_come_from_files_and_pipes_too() {
    let folder = Folder::new("buffered-bytes");
    let every: Vec<u8> = (0..=255).collect();
    folder.write("value", &every);
    folder.say("kv put a.tdl t k --file value --buffered").ok();
    let words = ["kv", "get", "a.tdl", "t", "k", "--raw"];
    let output = folder.command(&words).output().unwrap();
    assert_eq!(output.stdout, every);
    let words = ["kv", "put", "a.tdl", "u", "6b", "-", "--hex", "--buffered"];
    folder.run_with(&words, b"\xff\n").ok();
    assert_eq!(folder.say("kv scan a.tdl u --hex").ok(), "6b\tff0a\n");
    assert!(folder.say("kv stat a.tdl").ok().contains("u\tbuffered"));
}

#[test]
fn figures_tell_rows_and_runs() {
    let folder = Folder::new("buffered-stat");
    folder.say("kv create a.tdl t --buffered").ok();
    let said = folder.say("kv create a.tdl t --buffered").ok();
    assert_eq!(said, "table t exists already\n");
    let list = folder.say("kv stat a.tdl").ok();
    assert_eq!(
        list,
        "t\tbuffered table\t0 pairs\t0 rows\t0 runs\t0 entries in runs\n"
    );
    folder.write("pairs", "b\n2\na\n1\nc\n3\n");
    folder.say("load a.tdl pairs --text --table t").ok();
    let list = folder.say("kv stat a.tdl").ok();
    assert_eq!(
        list,
        "t\tbuffered table\t3 pairs\t0 rows\t1 run\t3 entries in runs\n"
    );
    let stat = folder.say("kv stat a.tdl t").ok();
    for line in [
        "  Types: buffered table of bytes -> bytes\n",
        "  Entries: 3\n",
        "  Rows: 0\n",
        "  Runs: 1\n",
        "  Run entries: 3\n",
    ] {
        assert!(stat.contains(line), "{stat}");
    }
    folder.say("kv compact a.tdl t").ok();
    let list = folder.say("kv stat a.tdl").ok();
    assert_eq!(
        list,
        "t\tbuffered table\t3 pairs\t3 rows\t0 runs\t0 entries in runs\n"
    );
    let json = folder.say("kv stat a.tdl t --format json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["buffered"], true);
    assert_eq!(json["entries"], 3);
    assert_eq!(json["rows"], 3);
    assert_eq!(json["runs"], 0);
}

#[test]
fn commands_that_need_another_kind_of_table_refuse_it() {
    let folder = Folder::new("buffered-refused");
    folder.say("kv put a.tdl t k v --buffered").ok();
    folder.say("kv put a.tdl rows k v").ok();
    folder.say("kv put a.tdl sets k v --multi").ok();
    folder.say("hash set a.tdl hashes k v").ok();
    for words in [
        "kv get a.tdl t k --in x",
        "kv put a.tdl t k v --in x",
        "kv del a.tdl t k --in x",
        "kv scan a.tdl t --in x",
        "kv clear a.tdl t --in x",
        "kv stat a.tdl t --in x",
        "kv put a.tdl t k v --multi",
    ] {
        folder
            .say(words)
            .failed(5, &["t is a buffered table", "without --buffered"]);
    }
    for words in ["kv create a.tdl t", "kv create a.tdl t --multi"] {
        folder
            .say(words)
            .failed(5, &["t exists and is a buffered table", "another name"]);
    }
    for table in ["rows", "sets"] {
        for command in ["kv create", "kv put"] {
            let pair = if command == "kv put" { "k v" } else { "" };
            folder
                .say(&format!("{command} a.tdl {table} {pair} --buffered"))
                .failed(5, &["is not a buffered table", "omit --buffered"]);
        }
        folder
            .say(&format!("kv compact a.tdl {table}"))
            .failed(5, &["is not a buffered table", "`tidalite compact`"]);
    }
    folder
        .say("kv put a.tdl hashes k v --buffered")
        .failed(5, &["hashes is a hash table"]);
    folder
        .say("kv compact a.tdl hashes")
        .failed(5, &["hash rebuild --compact"]);
    folder
        .say("kv compact a.tdl none")
        .failed(3, &["no table none"]);
    folder
        .say("hash get a.tdl t k")
        .failed(5, &["t is not a hash table", "kv scan a.tdl t"]);
    folder
        .say("kv put a.tdl x k v --buffered --multi")
        .failed(2, &["--multi"]);
    folder.say("kv rename a.tdl t u").ok();
    assert_eq!(folder.say("kv get a.tdl u k").ok(), "v\n");
    folder.say("kv drop a.tdl u").ok();
    folder
        .say("kv get a.tdl u k")
        .failed(3, &["there is no table u"]);
}

/// Creates a buffered table of numbers and texts.
fn typed(folder: &Folder) {
    let db = tidalite::Database::open(folder.path("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.buffered_table::<u64, str>("t").unwrap();
    for n in 0..500u64 {
        table
            .put(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &format!("{n}"))
            .unwrap();
    }
    tx.commit().unwrap();
    db.close().unwrap();
}

#[test]
fn pairs_of_typed_tables_are_checked() {
    let folder = Folder::new("buffered-typed");
    typed(&folder);
    assert_eq!(folder.say("kv get a.tdl t 0 --keys u64").ok(), "0\n");
    folder
        .say("kv put a.tdl t 7 seven")
        .failed(5, &["of type u64", "--keys u64"]);
    folder.say("kv put a.tdl t 7 seven --keys u64").ok();
    folder
        .say("kv get a.tdl t 7")
        .failed(3, &["of type u64", "--keys"]);
    folder.say("kv del a.tdl t 0 --keys u64").ok();
    let db = tidalite::Database::open(folder.path("a.tdl")).unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.buffered_table::<u64, str>("t").unwrap().unwrap();
    assert_eq!(table.get(&7).unwrap().as_deref(), Some("seven"));
    assert_eq!(table.get(&0).unwrap(), None);
    assert_eq!(table.count().unwrap(), 500);
}

#[test]
fn a_dump_carries_buffered_tables_through() {
    let folder = Folder::new("buffered-dump");
    typed(&folder);
    folder.say("kv put a.tdl rows k v").ok();
    for (option, loaded) in [("", "b.tdl"), ("--print", "c.tdl")] {
        let dump = folder.say(&format!("dump a.tdl {option}")).ok();
        assert!(dump.contains("type=buffered\nkeytype=u64\nvaluetype=String\n"));
        folder.write("a.dump", &dump);
        for stored in [500, 500] {
            let said = folder.say(&format!("load {loaded} a.dump")).ok();
            assert_eq!(said, format!("rows: 1 pair\nt: {stored} pairs\n"));
            let again = folder.say(&format!("dump {loaded} {option}")).ok();
            assert_eq!(again, dump);
        }
        let said = folder.say(&format!("load {loaded} a.dump -N")).ok();
        assert_eq!(said, "rows: 0 pairs\nt: 0 pairs\n");
        folder.say(&format!("check {loaded}")).ok();
        let db = tidalite::Database::open(folder.path(loaded)).unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.buffered_table::<u64, str>("t").unwrap().unwrap();
        assert_eq!(table.get(&0).unwrap().as_deref(), Some("0"));
    }
}

#[test]
fn a_table_that_exists_keeps_its_kind() {
    let folder = Folder::new("buffered-load");
    folder.say("kv create a.tdl t --buffered").ok();
    folder.say("kv put a.tdl rows k v").ok();
    folder.say("kv put a.tdl rows l w").ok();
    folder.say("kv put a.tdl nested k v --in x").ok();
    folder.say("kv put a.tdl sets k v --multi").ok();
    let dump = |table: &str| folder.say(&format!("dump a.tdl {table}")).ok();
    folder.write("rows.dump", dump("rows"));
    folder.say("load a.tdl rows.dump --table t").ok();
    assert_eq!(folder.say("kv scan a.tdl t").ok(), "k\tv\nl\tw\n");
    assert!(folder.say("kv stat a.tdl").ok().contains("t\tbuffered"));
    folder.write("t.dump", dump("t"));
    folder.say("kv create a.tdl plain").ok();
    folder.say("load a.tdl t.dump --table plain").ok();
    assert!(folder.say("kv stat a.tdl").ok().contains("plain\t2 pairs"));

    folder.write("nested.dump", dump("nested"));
    folder
        .say("load a.tdl nested.dump --table t")
        .failed(5, &["a nested table, which a buffered table cannot hold"]);
    folder.write("sets.dump", dump("sets"));
    folder
        .say("load a.tdl sets.dump --table t")
        .failed(5, &["no sets of values"]);
    folder.write("sequence.dump", "VERSION=3\nsequence=4\nHEADER=END\n");
    folder
        .say("load a.tdl sequence.dump --table t")
        .failed(5, &["no sequence"]);
    folder.write(
        "typed.dump",
        "VERSION=3\ntype=buffered\nkeytype=u32\nHEADER=END\nDATA=END\n",
    );
    for table in ["t", "rows"] {
        folder
            .say(&format!("load a.tdl typed.dump --table {table}"))
            .failed(5, &["u32 -> bytes", "bytes -> bytes", "--table"]);
    }

    let foreign = folder.say("dump a.tdl t --as reversekey").ok();
    assert!(foreign.contains("type=btree\n") && foreign.contains("reversekey=1\n"));
}
