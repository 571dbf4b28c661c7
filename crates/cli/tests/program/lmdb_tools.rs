//! `dump` and `load` exchange data with LMDB's `mdb_load` and `mdb_dump`. If these are not installed, the tests say so
//! and pass; with `TIDALITE_REQUIRE_LMDB_UTILS` set they fail instead.

use crate::support::Folder;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

/// Runs one of LMDB's tools; returns `None` if the tool is not installed.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn lmdb(tool: &str, words: &[&OsStr], input: &str) -> Option<String> {
    let mut command = Command::new(tool);
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let required = std::env::var_os("TIDALITE_REQUIRE_LMDB_UTILS").is_some();
            assert!(!required, "{tool} is not installed, and is required");
            println!("skipped: {tool} is not installed");
            return None;
        }
        Err(error) => panic!("{tool}: {error}"),
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{tool} {words:?}");
    Some(String::from_utf8(done.stdout).unwrap())
}

/// The lines of each section of a dump, between its header and its end.
fn data(dump: &str) -> Vec<&str> {
    let sections = dump.split("VERSION=3\n").skip(1);
    sections
        .map(|section| section.split_once("HEADER=END\n").unwrap().1)
        .collect()
}

fn scrambled(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761)
}

/// A section of a dump with these pairs, which may be in any order.
fn section(table: &str, flags: &str, pairs: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> String {
    let mut text =
        format!("VERSION=3\nformat=bytevalue\ndatabase={table}\ntype=btree\n{flags}HEADER=END\n");
    for bytes in pairs.flat_map(|(key, value)| [key, value]) {
        text.push(' ');
        bytes
            .iter()
            .for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text.push('\n');
    }
    text + "DATA=END\n"
}

/// Pseudo-random bytes that do not contain the byte `without`: LMDB's tool does not escape backslashes.
fn bytes(number: u32, without: u8) -> Vec<u8> {
    let byte = |at: u32| (scrambled(number + at) >> 13) as u8;
    (0..1 + number % 40)
        .map(byte)
        .map(|byte| if byte == without { 0 } else { byte })
        .collect()
}

#[test]
fn dumps_are_exchanged_with_mdb_load_and_mdb_dump() {
    let folder = Folder::new("lmdb");
    let plain = (0..1000u32).map(|n| {
        (
            n.to_be_bytes().to_vec(),
            scrambled(n).to_be_bytes().to_vec(),
        )
    });
    let multi = (0..1000u32).map(|n| {
        (
            (n / 7).to_be_bytes().to_vec(),
            scrambled(n).to_be_bytes().to_vec(),
        )
    });
    let binary = (0..1000).map(|n| (bytes(n, b'\\'), bytes(n + 50, b'\\')));
    let sets = (0..1000).map(|n| (bytes(n / 50, b'\\'), bytes(n, b'\\')));
    let texts = [
        ("plain", section("plain", "", plain)),
        ("multi", section("multi", "dupsort=1\n", multi)),
        ("binary", section("binary", "", binary)),
        ("sets", section("sets", "dupsort=1\n", sets)),
    ];
    for (name, text) in texts {
        folder.write("in.dump", &text);
        let file = format!("{name}.tdl");
        folder.run(&["load", &file, "in.dump"]).ok();
        // Keys and values of the first two tables contain backslashes, which mdb_dump -p does not escape.
        let forms: &[&str] = match name {
            "plain" | "multi" => &[""],
            _ => &["", "-p"],
        };
        for form in forms {
            let ours = folder.say(&format!("dump {file} {form}")).ok();
            let mdb = folder.path(&format!("{name}{form}.mdb"));
            let Some(_) = lmdb("mdb_load", &["-n".as_ref(), mdb.as_os_str()], &ours) else {
                return;
            };
            let mut words: Vec<&OsStr> = vec!["-n".as_ref(), "-s".as_ref(), name.as_ref()];
            if !form.is_empty() {
                words.push(form.as_ref());
            }
            words.push(mdb.as_os_str());
            let theirs = lmdb("mdb_dump", &words, "").unwrap();
            assert_eq!(data(&theirs), data(&ours), "{name} {form}");
            let multi = theirs.contains("\ndupsort=1\n");
            assert_eq!(multi, ours.contains("\ndupsort=1\n"));
            folder.write("theirs.dump", &theirs);
            let again = format!("again{form}.tdl");
            folder.run(&["load", &again, "theirs.dump"]).ok();
            let back = folder.say(&format!("dump {again} {name} {form}")).ok();
            assert_eq!(data(&back), data(&ours));
        }
    }
}

/// Tables whose keys and values are integers, or are compared in reverse, go from LMDB into a database and back to LMDB
/// unchanged.
#[test]
fn tables_in_other_orders_go_there_and_back() {
    let folder = Folder::new("lmdb-orders");
    let native = |n: u32| scrambled(n).to_ne_bytes().to_vec();
    let texts = [
        (
            "integerkey",
            (0..500)
                .map(|n| (native(n), b"v".to_vec()))
                .collect::<Vec<_>>(),
        ),
        (
            "reversekey",
            (0..500).map(|n| (bytes(n, 0), b"v".to_vec())).collect(),
        ),
        (
            "integerkey,dupfixed,integerdup",
            (0..500).map(|n| (native(n / 20), native(n))).collect(),
        ),
        (
            "reversedup",
            (0..500).map(|n| (bytes(n / 20, 0), bytes(n, 0))).collect(),
        ),
        (
            "reversekey,dupfixed",
            (0..500).map(|n| (bytes(n / 20, 0), native(n))).collect(),
        ),
    ];
    for (number, (flags, pairs)) in texts.into_iter().enumerate() {
        let multi = if flags.contains("dup") {
            "dupsort=1\n"
        } else {
            ""
        };
        let lines = flags
            .split(',')
            .map(|flag| format!("{flag}=1\n"))
            .collect::<String>();
        let given = section("t", &format!("{multi}{lines}"), pairs.into_iter());
        let mdb = folder.path(&format!("{number}.mdb"));
        let into = ["-n".as_ref(), mdb.as_os_str()];
        if lmdb("mdb_load", &into, &given).is_none() {
            return;
        }
        let from = ["-n".as_ref(), "-a".as_ref(), mdb.as_os_str()];
        let theirs = lmdb("mdb_dump", &from, "").unwrap();
        folder.write("theirs.dump", &theirs);
        let file = format!("{number}.tdl");
        folder.run(&["load", &file, "theirs.dump"]).ok();
        let ours = folder.run(&["dump", &file, "t", "--as", flags]).ok();
        // The dump that this program prints is in LMDB's order, too.
        assert_eq!(data(&ours), data(&theirs), "{flags}");
        let mdb = folder.path(&format!("{number}-back.mdb"));
        lmdb("mdb_load", &["-n".as_ref(), mdb.as_os_str()], &ours).unwrap();
        let from = ["-n".as_ref(), "-a".as_ref(), mdb.as_os_str()];
        let back = lmdb("mdb_dump", &from, "").unwrap();
        let same = |dump: &str| {
            let lines = dump.lines().filter(|line| !line.starts_with("mapsize="));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(same(&back), same(&theirs), "{flags}");
    }
}

#[test]
fn plain_lines_load_as_with_mdb_load() {
    let folder = Folder::new("lmdb-plain-lines");
    let text = "a\n1\n\\00\\ff\nb c\n{\n DATA=END\n";
    folder.write("in", text);
    folder.run(&["load", "a.tdl", "in", "-T", "-t", "t"]).ok();
    let ours = folder.run(&["dump", "a.tdl", "t"]).ok();
    let mdb = folder.path("t.mdb");
    let into: [&OsStr; 5] = [
        "-n".as_ref(),
        "-T".as_ref(),
        "-s".as_ref(),
        "t".as_ref(),
        mdb.as_os_str(),
    ];
    if lmdb("mdb_load", &into, text).is_none() {
        return;
    }
    let from = ["-n".as_ref(), "-a".as_ref(), mdb.as_os_str()];
    assert_eq!(data(&lmdb("mdb_dump", &from, "").unwrap()), data(&ours));
}
