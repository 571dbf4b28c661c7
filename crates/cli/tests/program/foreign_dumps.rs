//! Dumps of other databases as input of `load`: text of `mdb_dump`, text of `mdbx_dump`, and damaged text.
//!
//! The fixtures hold the same seven tables: one of bytes, one of sorted duplicates, and one for each order that
//! Tidalite's tables do not have.

use crate::support::Folder;
use std::process::Stdio;

const FIXTURES: [(&str, &str); 3] = [
    ("mdb", include_str!("fixtures/mdb_dump.txt")),
    ("mdb -p", include_str!("fixtures/mdb_dump_print.txt")),
    ("mdbx -p", include_str!("fixtures/mdbx_dump_print.txt")),
];

/// The lines of a dump between the header of a table and the table's end.
fn data<'d>(dump: &'d str, table: &str) -> &'d str {
    let (_, section) = dump.split_once(&format!("database={table}\n")).unwrap();
    let (_, section) = section.split_once("HEADER=END\n").unwrap();
    section.split_once("DATA=END\n").unwrap().0
}

#[test]
fn tables_of_every_kind_keep_their_order() {
    for (number, (tool, dump)) in FIXTURES.iter().enumerate() {
        let folder = Folder::new(&format!("foreign-{number}"));
        folder.write("all.dump", dump);
        let ran = folder.say("load a.tdl all.dump");
        let mut told = ran.err.clone();
        let loaded = ran.ok();
        assert!(
            loaded.contains("intdup: 3 pairs\nintkey: 3 pairs\n"),
            "{loaded}"
        );
        let scan = |words: &str| folder.say(&format!("kv scan a.tdl {words}")).ok();
        assert_eq!(scan("dup"), "k\t10\nk\t2\nl\tx\n", "{tool}");
        assert_eq!(scan("fixed"), "k\taa\nk\tbb\n");
        assert_eq!(scan("intdup --values u64"), "k\t1\nk\t256\nk\t65536\n");
        assert_eq!(
            scan("intkey --keys u32"),
            "1\tv1\n256\tv256\n65536\tv65536\n"
        );
        assert_eq!(scan("revkey"), "ab\t1\nacb\t1\nba\t1\n");
        assert_eq!(scan("revdup"), "k\tab\nk\tacb\nk\tba\n");
        let plain = "\\0a\t\na b\t\\00\\ff\ngr\u{fc}n\t~\\7f\n";
        assert!(scan("plain").starts_with(plain), "{tool}");
        // The program reports the original flags of each table, and with these flags it restores the original order.
        for (table, flags) in [
            ("fixed", "dupfixed"),
            ("intdup", "dupfixed,integerdup"),
            ("intkey", "integerkey"),
            ("revdup", "reversedup"),
            ("revkey", "reversekey"),
        ] {
            let back = format!("dump a.tdl '{table}' --as {flags} restores it\n");
            let (before, after) = told.split_once(&back).unwrap();
            told = format!("{before}{after}");
            let print = if tool.ends_with("-p") { "-p" } else { "" };
            let again = folder.say(&format!("dump a.tdl {table} --as {flags} {print}"));
            let again = again.ok();
            assert_eq!(data(&again, table), data(dump, table), "{tool}: {table}");
            for flag in flags.split(',') {
                assert!(again.contains(&format!("\n{flag}=1\n")), "{again}");
            }
            folder.write("again.dump", again);
            folder.say("load b.tdl again.dump").ok();
            assert_eq!(
                folder.say(&format!("dump b.tdl {table}")).ok(),
                folder.say(&format!("dump a.tdl {table}")).ok(),
            );
        }
        let notes = told.matches("note: table ").count();
        assert_eq!(notes, 5, "each table is told of once: {told}");
    }
    let folder = Folder::new("foreign-sequence");
    folder.write("x.dump", FIXTURES[2].1);
    folder.say("load a.tdl x.dump").ok();
    let plain = folder.say("dump a.tdl plain").ok();
    assert!(plain.contains("\nsequence=41\n"), "{plain}");
    assert!(plain.ends_with(" 736c617368\n 5c\nDATA=END\n"), "{plain}");
}

#[test]
fn a_dump_in_an_order_that_the_table_cannot_have_is_refused() {
    let folder = Folder::new("foreign-refused");
    for (table, key, value) in [
        ("odd", "abc", "1"),
        ("mixed", "abcd", "1"),
        ("mixed", "abcdefgh", "1"),
    ] {
        folder.run(&["kv", "put", "a.tdl", table, key, value]).ok();
    }
    for value in ["aaaa", "bb"] {
        folder
            .run(&["kv", "put", "a.tdl", "values", "k", value, "--multi"])
            .ok();
    }
    for (words, told) in [
        ("odd --as integerkey", "a key of 3 bytes is not an integer"),
        (
            "mixed --as integerkey",
            "a key of 8 bytes among others of 4 bytes",
        ),
        (
            "values --as dupfixed",
            "a value of 2 bytes among others of 4 bytes",
        ),
        (
            "values --as integerdup",
            "a value of 2 bytes is not an integer",
        ),
    ] {
        folder
            .say(&format!("dump a.tdl {words}"))
            .failed(5, &[told]);
    }
    folder
        .say("dump a.tdl odd --as dupfixed")
        .failed(2, &["table of sets"]);
    folder
        .say("dump a.tdl --as integerkey")
        .failed(2, &["TABLE"]);
    folder
        .say("dump a.tdl values --as reversekey,reversedup")
        .ok();
}

/// Names that are not UTF-8 are refused. If their invalid bytes were replaced, both names would become equal and their
/// tables would be merged.
#[test]
fn names_that_are_no_text_do_not_fall_into_one_table() {
    let folder = Folder::new("foreign-names");
    let section = |name: &[u8], value: &[u8]| {
        [
            b"VERSION=3\nformat=print\ndatabase=",
            name,
            b"\ntype=btree\nHEADER=END\n k\n ",
            value,
            b"\nDATA=END\n",
        ]
        .concat()
    };
    let both = [section(b"n\xfe", b"1"), section(b"n\xff", b"2")].concat();
    folder.write("both.dump", both);
    folder
        .say("load a.tdl both.dump")
        .failed(5, &["line 5", "n\\fe", "not UTF-8", "--table NAME"]);
    folder
        .say("kv scan a.tdl n\u{fffd}")
        .failed(3, &["no table"]);
    folder.write("one.dump", section(b"n\xff", b"2"));
    assert_eq!(
        folder.say("load a.tdl one.dump --table n").ok(),
        "n: 1 pair\n"
    );
    assert_eq!(folder.say("kv get a.tdl n k").ok(), "2\n");
    // Case: an escaped name that is not UTF-8.
    let escaped = [b"VERSION=3\nescaped=1\n", &section(b"n\\ff", b"3")[10..]].concat();
    folder.write("escaped.dump", escaped);
    folder
        .say("load a.tdl escaped.dump")
        .failed(5, &["not UTF-8"]);
}

#[test]
fn odd_ends_are_read_and_damage_is_named_with_its_line() {
    let folder = Folder::new("foreign-ends");
    let head = "VERSION=3\nformat=print\ntype=btree\nHEADER=END\n";
    for (number, (text, pairs)) in [
        // Cases: no line end after the last line; empty lines between sections and at the end; empty keys and values.
        (format!("{head} a\n 1\nDATA=END"), 1),
        (
            format!("\n{head} a\n 1\nDATA=END\n\n\n{head} b\n 1\nDATA=END\n\n"),
            2,
        ),
        (format!("{head} \n \n a\n \nDATA=END\n"), 2),
        (format!("{head}DATA=END\n"), 0),
        // Case: flags set to 0, unknown header lines, and no version.
        (
            format!("integerkey=0\ndupsort=0\ncolour=red\n{head} ab\n 1\nDATA=END\n"),
            1,
        ),
        (format!("{head} DATA=END\n HEADER=END\nDATA=END\n"), 1),
        (format!("{head} \\\\\n \\5c\\5C\nDATA=END\n"), 1),
    ]
    .into_iter()
    .enumerate()
    {
        folder.write("in.dump", &text);
        let file = format!("{number}.tdl");
        let ran = folder.say(&format!("load {file} in.dump"));
        assert_eq!(ran.err, "", "{text}");
        ran.ok();
        let stat = folder.say(&format!("kv stat {file}")).ok();
        let noun = if pairs == 1 { "pair" } else { "pairs" };
        assert_eq!(stat, format!("main\t{pairs} {noun}\n"), "{text}");
    }
    for (text, told) in [
        (
            "VERSION=3\nformat=print\n".to_owned(),
            "line 3: the input ends inside a header",
        ),
        (
            format!("{head} a\n 1\n"),
            "line 7: the input ends before DATA=END",
        ),
        (
            format!("{head} a\n 1\nDATA=EN"),
            "line 7: a space and bytes",
        ),
        (
            format!("{head} a\nDATA=END\n"),
            "line 6: a key without a value",
        ),
        (
            format!("{head} a\\zz\n 1\nDATA=END\n"),
            "line 5: a backslash",
        ),
        (
            format!("{head} a\n x\\y\nDATA=END\n"),
            "dump again without -p",
        ),
        (
            format!("{head}a\n 1\nDATA=END\n"),
            "line 5: a space and bytes",
        ),
        (
            format!("{head} a\n 1\nDATA=END\ndatabase\n"),
            "line 8: a header line is NAME=VALUE",
        ),
        (
            "VERSION=3\nformat=bytevalue\nHEADER=END\n 0g\n 00\nDATA=END\n".to_owned(),
            "line 4: a space",
        ),
        (
            "VERSION=3\ntype=hash\nHEADER=END\n".to_owned(),
            "line 2: an unknown format",
        ),
        (
            "VERSION=3\nformat=xml\nHEADER=END\n".to_owned(),
            "line 2: an unknown format",
        ),
        (
            "VERSION=3\nsequence=x\nHEADER=END\n".to_owned(),
            "line 2: a sequence",
        ),
        // Case: a name with a line end, which neither tool escapes.
        (
            "VERSION=3\ndatabase=a\nb\nHEADER=END\n".to_owned(),
            "line 3: a header line",
        ),
    ] {
        folder.write("bad.dump", &text);
        folder.say("load bad.tdl bad.dump").failed(5, &[told]);
    }
    // Case: a table of another kind exists already.
    folder.write("dup.dump", format!("dupsort=1\n{head} a\n 1\nDATA=END\n"));
    folder
        .say("load 0.tdl dup.dump")
        .failed(5, &["main", "one value per key"]);
}

#[test]
fn plain_lines_are_pairs() {
    let folder = Folder::new("plain-lines");
    folder.write(
        "in",
        "a\n1\n\\00\\ff\nback\\\\slash\n\nempty key\n{\n DATA=END\nlast\n\n",
    );
    assert_eq!(
        folder.say("load a.tdl in --text -t config").ok(),
        "config: 5 pairs\n"
    );
    assert_eq!(
        folder.say("kv scan a.tdl config").ok(),
        "\tempty key\n\\00\\ff\tback\\5cslash\na\t1\nlast\t\n{\t DATA=END\n"
    );
    let mut child = folder.command(&["load", "a.tdl", "-T", "-N", "-t", "config"]);
    child.stdin(Stdio::from(std::fs::File::open(folder.path("in")).unwrap()));
    assert_eq!(crate::support::Ran::of(child).ok(), "config: 0 pairs\n");
    folder.say("kv create a.tdl tags --multi").ok();
    folder.write("tags", "k\n1\nk\n2\nk\n1");
    assert_eq!(
        folder.say("load a.tdl tags -T -t tags").ok(),
        "tags: 2 pairs\n"
    );
    folder.write("nothing", "");
    assert_eq!(folder.say("load a.tdl nothing -T").ok(), "main: 0 pairs\n");
    for (text, told) in [
        ("a\n1\nb\n", "line 4: a key without a value"),
        ("a\nx\\y\n", "line 2: a backslash"),
    ] {
        folder.write("bad", text);
        folder.say("load b.tdl bad -T").failed(5, &[told]);
    }
}
