//! Objects in buckets on the command line.

use crate::support::Folder;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn bytes_of(folder: &Folder, words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = folder.command(&words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

/// Names in a list.
fn names(text: &str) -> Vec<String> {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn objects_are_put_got_listed_and_removed() {
    let folder = Folder::new("object");
    folder.write("one", "tide at noon");
    let said = folder
        .say("object put a.tdl notes/today one --type text/plain --meta a=1 --meta a=2")
        .ok();
    assert!(
        said.starts_with("notes/today stored in objects: 12 B, hash "),
        "{said}"
    );
    assert_eq!(
        folder.say("object get a.tdl notes/today").ok(),
        "tide at noon"
    );
    let words = ["object", "put", "a.tdl", "empty"];
    folder.run_with(&words, b"").ok();
    assert_eq!(folder.say("object get a.tdl empty").ok(), "");
    let json = folder
        .run_with(&["object", "put", "a.tdl", "x", "-", "-f", "json"], b"xyz")
        .ok();
    let stored = &lines(&json)[0];
    assert_eq!(
        (&stored["size"], &stored["replaced"]),
        (&3.into(), &false.into())
    );
    let said = folder.say("object put a.tdl x one").ok();
    assert!(said.starts_with("x replaced in objects"), "{said}");
    assert_eq!(
        names(&folder.say("object ls a.tdl").ok()),
        ["empty", "notes/today", "x"]
    );
    let json = folder.say("object info a.tdl notes/today -f json").ok();
    let info = &lines(&json)[0];
    assert_eq!(
        (&info["type"], &info["size"]),
        (&"text/plain".into(), &12.into())
    );
    assert_eq!(info["metadata"][1]["value"], "2");
    let info = folder.say("object info a.tdl notes/today").ok();
    for line in [
        "Size: 12 (12 B)",
        "Type: text/plain",
        "Metadata: a=1",
        "Metadata: a=2",
    ] {
        assert!(info.contains(line), "{info}");
    }
    assert_eq!(
        folder.say("object rm a.tdl x").ok(),
        "x removed from objects\n"
    );
    folder
        .say("object rm a.tdl x")
        .failed(3, &["no object x in objects", "object ls a.tdl"]);
    folder.say("object get a.tdl x").failed(3, &["no object x"]);
    folder
        .say("object info a.tdl x")
        .failed(3, &["no object x"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn a_large_object_is_streamed_through() {
    let folder = Folder::new("object-large");
    let bytes: Vec<u8> = (0..(20u32 << 20) + 5)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    folder.write("big", &bytes);
    folder.say("object put a.tdl big big -q").ok();
    assert!(bytes_of(&folder, "object get a.tdl big") == bytes);
    // The name of the file does not matter: nothing is compressed.
    folder.say("object get a.tdl big -o out.gz").ok();
    assert!(std::fs::read(folder.path("out.gz")).unwrap() == bytes);
    folder
        .say("object get a.tdl big -o out.gz")
        .failed(1, &["exists already", "--replace"]);
    folder
        .say("object get a.tdl big -o out.gz --replace --range 0-0")
        .ok();
    assert_eq!(std::fs::read(folder.path("out.gz")).unwrap(), bytes[..1]);
    let (len, middle) = (bytes.len(), 9 << 20);
    for (range, expected) in [
        (
            format!("{middle}-{}", middle + 99),
            &bytes[middle..middle + 100],
        ),
        (format!("{}-", len - 7), &bytes[len - 7..]),
        ("-5".to_owned(), &bytes[len - 5..]),
        (format!("{}-{}", len - 1, u64::MAX), &bytes[len - 1..]),
    ] {
        let read = bytes_of(&folder, &format!("object get a.tdl big --range {range}"));
        assert!(read == expected, "{range}");
    }
    folder
        .say(&format!("object get a.tdl big -o none --range {len}-"))
        .failed(3, &["no byte in this range", &len.to_string()]);
    for leftover in ["none", "none.part", "out.gz.part"] {
        assert!(!folder.path(leftover).exists(), "{leftover}");
    }
    for range in ["5", "9-1", "a-b", "-"] {
        let words = ["object", "get", "a.tdl", "big", "--range", range];
        folder.run(&words).failed(2, &["--range"]);
    }
    assert_eq!(
        folder.say("object verify a.tdl big").ok(),
        "big\tsound\t6 chunks\n"
    );
    folder.say("object rm a.tdl big").ok();
    folder.say("object maintain a.tdl").ok();
    let stat = folder.say("object stat a.tdl --table objects").ok();
    assert!(stat.contains("Stored chunks: 0\n"), "{stat}");
}

#[test]
fn conditions_protect_an_object_that_another_has_changed() {
    let folder = Folder::new("object-conditions");
    let put = |options: &str, bytes: &str| {
        let line = format!("object put a.tdl x - {options}");
        let words: Vec<&str> = line.split_whitespace().collect();
        folder.run_with(&words, bytes.as_bytes())
    };
    put("--if-exists", "1").failed(5, &["x does not exist"]);
    put("--if-missing", "1").ok();
    put("--if-missing", "2").failed(5, &["x exists, with the hash"]);
    let json = folder.say("object info a.tdl x -f json").ok();
    let hash = lines(&json)[0]["hash"].as_str().unwrap().to_owned();
    put(&format!("--if-not-hash {hash}"), "2").failed(5, &[&hash]);
    put(&format!("--if-hash {hash}"), "2").ok();
    put(&format!("--if-hash {hash}"), "3").failed(5, &["nothing was changed"]);
    assert_eq!(folder.say("object get a.tdl x").ok(), "2");
    folder
        .say(&format!("object rm a.tdl x --if-hash {hash}"))
        .failed(5, &["nothing was changed"]);
    put("--if-hash 12", "x").failed(2, &["64 hex digits"]);
    put(&format!("--if-missing --if-hash {hash}"), "x").failed(2, &["cannot be used with"]);
    folder.say("object cp a.tdl x y").ok();
    folder
        .say("object mv a.tdl x y --if-missing")
        .failed(5, &["y exists"]);
    let said = folder.say("object mv a.tdl x z").ok();
    assert_eq!(said, "x is called z now\n");
    folder
        .say("object mv a.tdl x z")
        .failed(3, &["no object x"]);
    folder
        .say("object cp a.tdl none z")
        .failed(3, &["no object none"]);
    assert_eq!(folder.say("object get a.tdl y").ok(), "2");
    assert_eq!(names(&folder.say("object ls a.tdl").ok()), ["y", "z"]);
}

#[test]
fn a_list_has_prefixes_filters_and_limits() {
    let folder = Folder::new("object-ls");
    for (name, len, options) in [
        ("a/1", 10, "--type image/png"),
        ("a/2", 20, "--type image/jpeg --protect"),
        ("a/b/3", 30, ""),
        ("c", 40, "--expires 2100-01-01"),
    ] {
        folder.write("in", vec![b'x'; len]);
        folder
            .say(&format!("object put a.tdl {name} in {options}"))
            .ok();
    }
    for (options, expected) in [
        ("", &["a/1", "a/2", "a/b/3", "c"][..]),
        ("a/", &["a/1", "a/2", "a/b/3"]),
        ("--delimiter /", &["a/", "c"]),
        ("a/ --delimiter /", &["a/1", "a/2", "a/b/"]),
        ("--type image/*", &["a/1", "a/2"]),
        ("--type image/png", &["a/1"]),
        ("--bytes-min 20 --bytes-max 30", &["a/2", "a/b/3"]),
        ("--protected", &["a/2"]),
        ("--unprotected", &["a/1", "a/b/3", "c"]),
        ("-n 2", &["a/1", "a/2"]),
        ("--to 2001-01-01", &[]),
        ("--from 2001-01-01 -n 1", &["a/1"]),
        ("none", &[]),
    ] {
        let listed = folder.say(&format!("object ls a.tdl {options}")).ok();
        assert_eq!(names(&listed), expected, "{options}");
    }
    let json = folder.say("object ls a.tdl --delimiter / -f json").ok();
    let listed = lines(&json);
    assert_eq!(listed[0]["prefix"], "a/");
    assert_eq!(listed[1]["expires"], "2100-01-01T00:00:00Z");
    let csv = folder.say("object ls a.tdl c -f csv").ok();
    assert!(
        csv.starts_with("name,size,modified,type,expires\nc,40,"),
        "{csv}"
    );
    folder
        .say("object ls a.tdl --from yesteryear")
        .failed(2, &["yesteryear"]);
    let said = folder.say("object rm a.tdl --prefix a/ --dry-run").ok();
    assert_eq!(said, "2 objects of objects would be removed: 40 B\n");
    let said = folder.say("object rm a.tdl --prefix a/").ok();
    assert_eq!(said, "2 objects removed from objects: 40 B\n");
    assert_eq!(names(&folder.say("object ls a.tdl").ok()), ["a/2", "c"]);
    folder.say("object rm a.tdl").failed(2, &["NAME"]);
}

#[test]
fn attributes_are_changed_and_expired_objects_removed() {
    let folder = Folder::new("object-set");
    folder.run_with(&["object", "put", "a.tdl", "x"], b"1").ok();
    let info = || lines(&folder.say("object info a.tdl x -f json").ok())[0].clone();
    let set = |options: &str| folder.say(&format!("object set a.tdl x {options}"));
    assert_eq!(
        set("--type t --meta a=1 --expires 1h --protect").ok(),
        "attributes of x changed\n"
    );
    let found = info();
    assert_eq!(
        (&found["type"], &found["protected"]),
        (&"t".into(), &true.into())
    );
    assert!(found["expires"].is_string() && found["metadata"].is_array());
    set("--expires never --no-meta --unprotect").ok();
    let found = info();
    assert_eq!(
        (&found["type"], &found["protected"]),
        (&"t".into(), &false.into())
    );
    assert!(found["expires"].is_null() && found["metadata"].is_null());
    set("").failed(2, &["nothing to change"]);
    set("--expires soon").failed(2, &["neither a duration"]);
    set("--protect --unprotect").failed(2, &["cannot be used with"]);
    set(&format!("--type {}", "x".repeat(300))).failed(5, &["255"]);
    folder
        .say("object set a.tdl y --protect")
        .failed(3, &["no object y"]);
    set("--expires 1ms").ok();
    std::thread::sleep(std::time::Duration::from_millis(20));
    folder.say("object get a.tdl x").failed(3, &["no object x"]);
    let said = folder.say("object maintain a.tdl").ok();
    assert!(
        said.starts_with("objects maintained: 1 expired object, 0 uploads and 0 links removed"),
        "{said}"
    );
}

#[test]
fn a_bucket_has_limits() {
    let folder = Folder::new("object-limits");
    let put = |table: &str, name: &str| {
        folder.run_with(
            &["object", "put", "a.tdl", name, "--table", table],
            b"12345",
        )
    };
    folder
        .say("object create a.tdl --table r --objects-max 1")
        .ok();
    put("r", "a").ok();
    put("r", "b").failed(5, &["object stat a.tdl --table r"]);
    folder
        .say("object create a.tdl --table o --overflow drop-oldest --bytes-max 7 --chunk-bytes 1048576")
        .ok();
    put("o", "a").ok();
    let said = put("o", "b").ok();
    assert!(
        said.ends_with("1 old object removed to make room\n"),
        "{said}"
    );
    folder
        .say("object create a.tdl --table o --bytes-max 9")
        .failed(5, &["--alter"]);
    let said = folder
        .say("object create a.tdl --table o --bytes-max 10 --alter")
        .ok();
    assert_eq!(said, "table o changed\n");
    put("o", "c").ok();
    assert_eq!(
        names(&folder.say("object ls a.tdl --table o").ok()),
        ["b", "c"]
    );
    folder
        .say("object create a.tdl --table s --chunk-bytes 5")
        .failed(5, &["chunks of 5 bytes"]);
    assert_eq!(
        folder.say("object stat a.tdl").ok(),
        "o\t2 objects\t10 B\nr\t1 object\t5 B\n"
    );
    let json = folder.say("object stat a.tdl --table o -f json").ok();
    let stat = &lines(&json)[0];
    assert_eq!(
        (&stat["bytes_max"], &stat["overflow"]),
        (&10.into(), &"drop-oldest".into())
    );
    folder
        .say("object stat a.tdl --table x")
        .failed(3, &["no bucket of objects x"]);
    let verified = folder
        .say("object verify a.tdl --all --table o -f json")
        .ok();
    assert!(lines(&verified).iter().all(|line| line["sound"] == true));
}

#[test]
fn wrong_words_are_explained() {
    let folder = Folder::new("object-wrong");
    folder.run_with(&["object", "put", "a.tdl", "x"], b"1").ok();
    std::fs::create_dir(folder.path("folder")).unwrap();
    for (words, code, told) in [
        ("object put a.tdl y none", 3, "cannot read none"),
        ("object put a.tdl y folder", 5, "folder is a folder"),
        ("object put a.tdl y - --meta a", 2, "NAME=VALUE"),
        ("object get none.tdl x", 3, "no database none.tdl"),
        ("object get a.tdl x --table y", 3, "no bucket of objects y"),
        ("object get a.tdl x -o no/folder", 3, "no/folder"),
        ("object verify a.tdl", 2, "NAME"),
        ("object verify a.tdl none", 3, "no object none"),
        ("object rm a.tdl x --dry-run", 2, "--dry-run"),
    ] {
        folder.say(words).failed(code, &[told]);
    }
    folder
        .run(&["object", "put", "a.tdl", "", "folder/../a.tdl"])
        .failed(5, &["at least one byte"]);
    folder
        .run(&["object", "get", "a.tdl", ""])
        .failed(3, &["no object"]);
    let long = "n".repeat(5000);
    folder
        .run_with(&["object", "put", "a.tdl", &long], b"1")
        .failed(5, &["5000"]);
    folder
        .run_with(&["object", "put", "a.tdl", "\u{1b}[31m\n"], b"1")
        .ok();
    let listed = folder.say("object ls a.tdl").ok();
    assert!(listed.contains("\\u{1b}[31m\\n"), "{listed}");
}
