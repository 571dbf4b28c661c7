//! Hash tables on the command line.

use crate::support::Folder;

#[test]
fn keys_are_set_got_scanned_and_removed() {
    let folder = Folder::new("hash");
    let said = folder.say("hash set a.tdl devices pump-7 hall3").ok();
    assert_eq!(said, "pump-7 stored in devices as record 0\n");
    folder.say("hash set a.tdl devices pump-8 -5").ok();
    folder
        .say("hash set a.tdl devices pump-7 hall5 --new")
        .failed(5, &["exists already"]);
    folder.say("hash set a.tdl devices pump-7 hall5").ok();
    assert_eq!(folder.say("hash get a.tdl devices pump-7").ok(), "hall5\n");
    assert_eq!(
        folder.say("hash get a.tdl devices pump-7 -f json").ok(),
        "{\"key\":\"pump-7\",\"record\":2,\"value\":\"hall5\"}\n"
    );
    assert_eq!(
        folder.say("hash scan a.tdl devices").ok(),
        "pump-7\thall5\npump-8\t-5\n"
    );
    for (range, keys) in [
        ("--from pump-8", "pump-8\t-5\n"),
        ("--to pump-8", "pump-7\thall5\n"),
        ("--from x --to a", ""),
        ("-n 1", "pump-7\thall5\n"),
    ] {
        let scanned = folder.say(&format!("hash scan a.tdl devices {range}"));
        assert_eq!(scanned.ok(), keys, "{range}");
    }
    assert_eq!(
        folder.say("hash scan a.tdl devices --records").ok(),
        "0\tpump-7\thall3\n1\tpump-8\t-5\n2\tpump-7\thall5\n"
    );
    let said = folder.say("hash del a.tdl devices pump-8").ok();
    assert_eq!(said, "pump-8 removed from devices\n");
    folder
        .say("hash del a.tdl devices pump-8")
        .failed(3, &["no key pump-8"]);
    folder
        .say("hash get a.tdl devices pump-8")
        .failed(3, &["no key pump-8"]);
    folder
        .say("hash get a.tdl none k")
        .failed(3, &["no table none", "hash stat"]);
    folder.say("hash set a.tdl devices k").failed(2, &["VALUE"]);
    folder.say("hash get a.tdl devices").failed(2, &["KEY"]);
    let said = folder.say("hash rebuild a.tdl devices").ok();
    assert_eq!(said, "index of table devices rebuilt: 1 record\n");
    let said = folder.say("hash rebuild a.tdl devices --compact").ok();
    assert_eq!(said, "table devices compacted: 1 record\n");
    assert_eq!(
        folder.say("hash scan a.tdl devices").ok(),
        "pump-7\thall5\n"
    );
}

#[test]
fn a_range_of_keys_ignores_the_case_of_its_ends() {
    let folder = Folder::new("hash-fold");
    folder.say("hash set a.tdl t Alpha 1 --fold-case").ok();
    folder.say("hash set a.tdl t beta 2").ok();
    let scanned = folder.say("hash scan a.tdl t --from a --to B").ok();
    assert_eq!(scanned, "Alpha\t1\n");
    assert_eq!(folder.say("hash scan a.tdl t --from C --to a").ok(), "");
}

#[test]
fn values_are_bytes_from_files_and_pipes_too() {
    let folder = Folder::new("hash-bytes");
    let every: Vec<u8> = (0..=255).collect();
    folder.write("value", &every);
    let raw = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = folder.command(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    folder.say("hash set a.tdl t k --file value").ok();
    assert_eq!(raw("hash get a.tdl t k --raw"), every);
    assert_eq!(raw("hash get a.tdl t --record 0 --raw"), every);
    let words = ["hash", "set", "a.tdl", "t", "6b", "-", "--hex"];
    folder.run_with(&words, b"\xff\n").ok();
    assert_eq!(folder.say("hash get a.tdl t k").ok(), "\\ff\\0a\n");
    assert_eq!(folder.say("hash scan a.tdl t --hex").ok(), "6b\tff0a\n");
    folder.say("hash del a.tdl t k").ok();
    folder
        .say("hash get a.tdl t --record 2 --raw")
        .failed(3, &["record 2 is a removal"]);
}

#[test]
fn a_scan_is_piped_into_another_table() {
    let folder = Folder::new("hash-pairs");
    let set = |table: &str, input: &str| {
        folder.run_with(
            &["hash", "set", "a.tdl", table, "--pairs"],
            input.as_bytes(),
        )
    };
    let pairs = "a\\5c\t1\nb\ttwo words\nc\t\n";
    assert_eq!(set("one", pairs).ok(), "3 pairs stored in one\n");
    let scanned = folder.say("hash scan a.tdl one").ok();
    assert_eq!(scanned, pairs);
    set("two", &scanned).ok();
    assert_eq!(folder.say("hash scan a.tdl two").ok(), pairs);
    set("one", "d\t4\ne 5\n").failed(5, &["line 2: the line has no tab"]);
    let words = ["hash", "set", "a.tdl", "one", "--pairs"];
    let refused = folder.run_with(&words, b"\xff\t1\n");
    refused.failed(5, &["line 1: the line is not UTF-8"]);
    assert_eq!(folder.say("hash scan a.tdl one").ok(), pairs, "no part");
}

#[test]
fn a_key_has_several_records_with_duplicates() {
    let folder = Folder::new("hash-duplicates");
    folder
        .say("hash set a.tdl parts pump seal --duplicates")
        .ok();
    folder.say("hash set a.tdl parts fan blade").ok();
    folder
        .say("hash set a.tdl parts pump shaft --duplicates")
        .ok();
    assert_eq!(folder.say("hash get a.tdl parts pump").ok(), "shaft\n");
    let all = folder.say("hash get a.tdl parts pump --all").ok();
    assert_eq!(all, "0\tseal\n2\tshaft\n");
    assert_eq!(
        folder.say("hash scan a.tdl parts").ok(),
        "fan\tblade\npump\tseal\npump\tshaft\n"
    );
    assert_eq!(
        folder.say("hash stat a.tdl").ok(),
        "parts\t2 keys\t3 records\n"
    );
    let said = folder.say("hash del a.tdl parts pump --record 0").ok();
    assert_eq!(said, "record 0 of pump removed from parts\n");
    folder
        .say("hash del a.tdl parts pump --record 0")
        .failed(3, &["pump has no record 0"]);
    folder.say("hash set a.tdl parts pump bolt").ok();
    let said = folder.say("hash del a.tdl parts pump").ok();
    assert_eq!(said, "2 records of pump removed from parts\n");
    folder
        .say("hash set a.tdl parts fan --add 1")
        .failed(2, &["several values"]);
    folder.say("hash set a.tdl plain k v").ok();
    folder
        .say("hash del a.tdl plain k --record 0")
        .failed(2, &["one record each"]);
}

#[test]
fn older_versions_are_kept_with_history() {
    let folder = Folder::new("hash-history");
    for value in ["10", "20", "30", "40"] {
        folder
            .say(&format!("hash set a.tdl limits speed {value} --history 2"))
            .ok();
    }
    let history = folder.say("hash get a.tdl limits speed --history").ok();
    assert_eq!(history, "3\t40\n2\t30\n1\t20\n");
    folder.say("hash del a.tdl limits speed").ok();
    let history = folder.say("hash get a.tdl limits speed --history").ok();
    assert_eq!(history, "4\t(removed)\n3\t40\n2\t30\n");
    let record = folder.say("hash get a.tdl limits --record 3").ok();
    assert_eq!(record, "3\tspeed\t40\n");
    let json = folder.say("hash get a.tdl limits --record 4 -f json").ok();
    assert_eq!(json, "{\"key\":\"speed\",\"record\":4,\"removed\":true}\n");
    folder
        .say("hash get a.tdl limits --record 9")
        .failed(3, &["no record 9"]);
    folder
        .say("hash get a.tdl limits other --history")
        .failed(3, &["no key other"]);
}

#[test]
fn counters_count_within_their_type() {
    let folder = Folder::new("hash-counters");
    let count = |words: &str| folder.say(&format!("hash set a.tdl {words}"));
    let said = count("visits 17 --add 1 --keys u32 --values u64").ok();
    assert_eq!(said, "17 is 1 now\n");
    assert_eq!(count("visits 17 --add 41").ok(), "17 is 42 now\n");
    assert_eq!(count("visits 17 --subtract 2").ok(), "17 is 40 now\n");
    count("visits 17 --subtract 41").failed(5, &["40 - 41 is out of the range", "nothing"]);
    count("visits x --add 1").failed(2, &["`x` is not a whole number"]);
    count("visits 17 --add x").failed(2, &["--add"]);
    assert_eq!(folder.say("hash get a.tdl visits 17").ok(), "40\n");
    assert_eq!(
        folder.say("hash scan a.tdl visits -f json").ok(),
        "{\"key\":17,\"record\":2,\"value\":40}\n"
    );
    assert_eq!(count("texts k --subtract 5").ok(), "k is -5 now\n");
    count("texts k five").ok();
    count("texts k --add 1").failed(5, &["five, which is not a whole number"]);
}

#[test]
fn options_and_types_are_those_of_the_new_table() {
    let folder = Folder::new("hash-options");
    let set = |words: &str| folder.say(&format!("hash set a.tdl {words}"));
    let guid = "00112233-4455-6677-8899-aabbccddeeff";
    set(&format!(
        "guids {guid} 7 --keys guid --values i64 --index hashed"
    ))
    .ok();
    assert_eq!(
        folder.say("hash scan a.tdl guids").ok(),
        format!("{guid}\t7\n")
    );
    folder
        .say(&format!("hash scan a.tdl guids --from {guid}"))
        .failed(2, &["hashes, which have no order"]);
    set("guids 0011 7").failed(2, &["not a GUID"]);
    set(&format!("guids {guid} 7 --keys text")).failed(5, &["of type [u8; 16]", "--keys guid"]);
    set("paths A 1 --fold-case --history all --key-bytes-max 5").ok();
    assert_eq!(folder.say("hash get a.tdl paths a").ok(), "1\n");
    set("paths abcdef 1").failed(5, &["6 exceeds the limit of 5", "hash stat a.tdl paths"]);
    set("paths \\ff 1").failed(5, &["UTF-8", "hash stat a.tdl paths"]);
    for other in [
        "--duplicates",
        "--history 3",
        "--index compact",
        "--key-bytes-max 6",
    ] {
        set(&format!("paths a 1 {other}")).failed(5, &["table paths exists"]);
    }
    set("t k v --history 0").failed(2, &["from 1 on"]);
    set("t k v --key-bytes-max 1025").failed(2, &["1025"]);
    set("t k v --index compact --key-bytes-max 5").failed(2, &["hashes have one length"]);
    set("t k v --duplicates --history all").failed(2, &["--history"]);
    let stat = folder.say("hash stat a.tdl paths").ok();
    for line in [
        "Status of paths\n",
        "  Types: bytes -> bytes\n",
        "  Index: whole keys of up to 5 bytes\n",
        "  Duplicates: no\n",
        "  Case of letters ignored: yes\n",
        "  History: all versions\n",
        "  Keys: 1\n",
        "  Records: 1\n",
    ] {
        assert!(stat.contains(line), "{stat}");
    }
    let json = folder.say("hash stat a.tdl guids -f json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["index"], "hashed");
    assert_eq!(json["key_type"], "[u8; 16]");
    assert_eq!(json["keys"], 1);
    assert_eq!(json["key_bytes_max"], serde_json::Value::Null);
}

#[test]
fn texts_of_typed_tables_are_typed_as_text() {
    let folder = Folder::new("hash-typed");
    let db = tidalite::Database::open(folder.path("a.tdl")).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.hash_table::<str, str>("t").unwrap();
    table.set("k", "v").unwrap();
    let mut table = tx.hash_table::<bool, f64>("odd").unwrap();
    table.set(&true, &1.5).unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    folder.say("hash set a.tdl t \u{fc}ber 2").ok();
    assert_eq!(folder.say("hash scan a.tdl t").ok(), "k\tv\n\u{fc}ber\t2\n");
    folder
        .say("hash set a.tdl odd 01 02 --hex")
        .failed(5, &["of type f64"]);
    folder
        .say("hash get a.tdl odd x")
        .failed(3, &["of type bool", "--hex"]);
    let db = tidalite::Database::open(folder.path("a.tdl")).unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.hash_table::<str, str>("t").unwrap().unwrap();
    assert_eq!(table.get("\u{fc}ber").unwrap().as_deref(), Some("2"));
}

#[test]
fn commands_for_other_tables_know_hash_tables() {
    let folder = Folder::new("hash-kv");
    folder.say("hash set a.tdl devices k v").ok();
    folder.say("kv put a.tdl rows k v").ok();
    for words in [
        "kv get a.tdl devices k",
        "kv put a.tdl devices k w",
        "kv put a.tdl devices k w --multi",
        "kv del a.tdl devices k",
        "kv scan a.tdl devices",
        "kv create a.tdl devices",
        "kv clear a.tdl devices --in k",
        "kv stat a.tdl devices --in k",
        "load a.tdl pairs --text --table devices",
    ] {
        folder.write("pairs", "a\nb\n");
        folder
            .say(words)
            .failed(5, &["devices is a hash table", "`tidalite hash`"]);
    }
    folder
        .say("hash get a.tdl rows k")
        .failed(5, &["rows is not a hash table", "kv scan a.tdl rows"]);
    assert_eq!(
        folder.say("kv stat a.tdl").ok(),
        "devices\thash table\t1 key\t1 record\nrows\t1 pair\n"
    );
    let stat = folder.say("kv stat a.tdl devices").ok();
    assert!(
        stat.contains("Types: hash table of bytes -> bytes\n"),
        "{stat}"
    );
    let json = folder.say("kv stat a.tdl devices --format json").ok();
    assert!(json.contains("\"hash\":true"), "{json}");
    folder.say("kv rename a.tdl devices things").ok();
    assert_eq!(folder.say("hash get a.tdl things k").ok(), "v\n");
    folder.say("kv clear a.tdl things").ok();
    assert_eq!(
        folder.say("hash stat a.tdl").ok(),
        "things\t0 keys\t0 records\n"
    );
    folder.say("kv drop a.tdl things").ok();
    assert_eq!(folder.say("hash stat a.tdl").ok(), "");
}

#[test]
fn a_dump_carries_hash_tables_through() {
    let folder = Folder::new("hash-dump");
    for value in 0..40 {
        folder
            .say(&format!("hash set a.tdl limits speed {value} --history 3"))
            .ok();
    }
    folder.say("hash rebuild a.tdl limits --compact").ok();
    folder.say("hash set a.tdl limits flow 7").ok();
    folder.say("hash set a.tdl limits flow 8").ok();
    folder
        .say("hash set a.tdl visits 17 --add 1 --keys u32 --values i64")
        .ok();
    folder.say("kv put a.tdl rows k v").ok();
    for (option, loaded) in [("", "b.tdl"), ("--print", "c.tdl")] {
        let dump = folder.say(&format!("dump a.tdl {option}")).ok();
        assert!(dump.contains("type=hashtable\nkeytype=u32\nvaluetype=i64\n"));
        folder.write("a.dump", &dump);
        let said = folder.say(&format!("load {loaded} a.dump")).ok();
        assert_eq!(said, "limits: 2 keys\nrows: 1 pair\nvisits: 1 key\n");
        let again = folder.say(&format!("dump {loaded} {option}")).ok();
        assert_eq!(again, dump);
        assert_eq!(
            folder
                .say(&format!("hash get {loaded} limits speed --history"))
                .ok(),
            folder.say("hash get a.tdl limits speed --history").ok()
        );
        folder
            .say(&format!("hash set {loaded} visits 17 --add 1"))
            .ok();
        folder.say(&format!("check {loaded}")).ok();
        folder
            .say(&format!("load {loaded} a.dump"))
            .failed(5, &["table limits", "the table exists", "kv drop"]);
    }
    folder
        .say("dump a.tdl limits --as reversekey")
        .failed(2, &["hash table"]);
    folder.write(
        "bad.dump",
        "VERSION=3\ntype=hashtable\nHEADER=END\n 61\n 62\nDATA=END\n",
    );
    folder
        .say("load d.tdl bad.dump")
        .failed(5, &["line 6", "not the rows of a hash table"]);
    folder
        .say("hash stat d.tdl main")
        .failed(3, &["no table main"]);
    // The number of a record, in the key of its row, is changed.
    folder.say("hash set one.tdl t k v").ok();
    let dump = folder.say("dump one.tdl").ok();
    for number in ["ffffffffffffffff", "0000400000000000", "0000000000000001"] {
        let changed = dump.replace(" 0000000000000000\n", &format!(" {number}\n"));
        assert_ne!(changed, dump);
        folder.write("bad.dump", &changed);
        folder
            .say("load e.tdl bad.dump")
            .failed(5, &["not the rows of a hash table", "record"]);
        folder.say("hash stat e.tdl t").failed(3, &["no table t"]);
    }
}
