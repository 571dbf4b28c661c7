//! Options and output that all commands have in common: the database from elsewhere, formats, series in JSON, sizes.

use crate::support::{Folder, Ran};
use serde_json::{Value, json};

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs the program with a variable that names the database.
fn with_variable(folder: &Folder, variable: &str, line: &str) -> Ran {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = folder.command(&words);
    command.env("TIDALITE_DB", variable);
    Ran::of(command)
}

#[test]
fn the_database_may_come_from_a_variable_or_an_option() {
    let folder = Folder::with_plant("consistency-database");
    let expected = folder.say("series plant.tdl -f csv").ok();
    let from_variable = |line: &str| with_variable(&folder, "plant.tdl", line);
    assert_eq!(from_variable("series -f csv").ok(), expected);
    assert_eq!(folder.say("series -f csv --db plant.tdl").ok(), expected);
    assert_eq!(folder.say("--db=plant.tdl series -f csv").ok(), expected);
    // The option goes before the variable, and an empty variable is none.
    let other = with_variable(&folder, "nosuch.tdl", "series -f csv --db plant.tdl");
    assert_eq!(other.ok(), expected);
    assert_eq!(
        with_variable(&folder, "", "series plant.tdl -f csv").ok(),
        expected
    );
    with_variable(&folder, "nosuch.tdl", "series").failed(3, &["nosuch.tdl"]);
    // Commands that have more files, or a table, take those alone.
    from_variable("copy copied.tdl").ok();
    assert_eq!(folder.say("series copied.tdl -f csv").ok(), expected);
    from_variable("kv put config height 80").ok();
    assert_eq!(folder.say("kv get plant.tdl config height").ok(), "80\n");
    from_variable("import plant.csv --prefix again. --tag turbine").ok();
    assert!(
        folder
            .say("series plant.tdl again.wind")
            .ok()
            .contains("again.wind")
    );
    from_variable("scan plant.tdl hb.wind").failed(2, &["TIDALITE_DB", "no argument FILE.tdl"]);
}

#[test]
fn json_has_the_tags_of_a_series_as_fields() {
    let folder = Folder::with_plant("consistency-json");
    let name = |line: &Value| {
        assert_eq!(line["series"], r#"hb.wind{turbine="A"}"#, "{line}");
        assert_eq!(line["metric"], "hb.wind", "{line}");
        assert_eq!(line["tags"], json!({"turbine": "A"}), "{line}");
    };
    let series = r#"hb.wind{turbine="A"}"#;
    folder.say("pins plant.tdl --add before").ok();
    folder
        .run(&["annotate", "plant.tdl", series, "--set", "unit=m/s"])
        .ok();
    for words in [
        &["series", "plant.tdl", series][..],
        &["scan", "plant.tdl", series, "-n", "2"],
        &["scan", "plant.tdl", series, "--fn", "sum"],
        &["scan", "plant.tdl", series, "--frequent", "2"],
        &["latest", "plant.tdl", series],
        &["aggregate", "plant.tdl", series],
        &["window", "plant.tdl", series, "--by", "1h"],
        &["candles", "plant.tdl", series, "--level", "0"],
        &["annotate", "plant.tdl", series],
        &["export", "plant.tdl", series],
        &["remove", "plant.tdl", series, "--last", "10m"],
        &["changed", "plant.tdl", series, "--since", "before"],
    ] {
        let ran = folder.run(&[words, &["-f", "json"]].concat());
        let lines = json_lines(&ran.ok());
        assert!(!lines.is_empty(), "{words:?}");
        lines.iter().for_each(name);
    }
    // Special characters of names stay text.
    folder.write("odd.csv", "time,t,v\n2024-01-01,\"a\"\"b\\,\",1\n");
    folder.say("import odd.tdl odd.csv --tag t --quiet").ok();
    let lines = json_lines(&folder.say("latest odd.tdl -f json").ok());
    assert_eq!(lines[0]["tags"], json!({"t": "a\"b\\,"}));
    // Rows with tags as fields can be imported again, also if a tag looks like a number.
    folder.write("n.csv", "time,sensor,v\n2024-01-01,7,1\n2024-01-02,8,2\n");
    folder.say("import n.tdl n.csv --tag sensor --quiet").ok();
    for line in ["export n.tdl -f json", "scan n.tdl v -f json"] {
        folder.write("n.jsonl", folder.say(line).ok());
        folder
            .say("import m.tdl n.jsonl --series series --quiet")
            .ok();
        assert_eq!(
            folder.say("export m.tdl").ok(),
            folder.say("export n.tdl").ok(),
            "{line}"
        );
    }
    // The columns of CSV do not depend on tags.
    let csv = folder.say("latest plant.tdl -f csv").ok();
    assert!(csv.starts_with("series,time,value\n"), "{csv}");
}

#[test]
fn tables_and_reports_have_json() {
    let folder = Folder::new("consistency-kv");
    folder.say("kv put a.tdl config height 80").ok();
    folder.say("kv put a.tdl config \u{fc}ber \\ff").ok();
    folder.say("kv put a.tdl topics --in plant level 3.5").ok();
    folder
        .say("kv put a.tdl rows 7 -3 --multi --keys u32 --values i64")
        .ok();
    let told = |line: &str| json_lines(&folder.say(line).ok());
    assert_eq!(
        told("kv scan a.tdl config -f json"),
        [
            json!({"key": "height", "value": "80"}),
            json!({"key": "\u{fc}ber", "value": "\\ff"})
        ]
    );
    assert_eq!(
        told("kv get a.tdl config height --format json"),
        [json!({"key": "height", "value": "80"})]
    );
    assert_eq!(
        told("kv scan a.tdl rows --keys u32 --values i64 -f json"),
        [json!({"key": 7, "value": -3})]
    );
    assert_eq!(
        told("kv scan a.tdl topics -f json"),
        [json!({"key": "plant", "pairs": 1})]
    );
    let stat = told("kv stat a.tdl --format json");
    assert_eq!(stat.len(), 3);
    assert_eq!(
        (&stat[0]["table"], &stat[0]["entries"]),
        (&json!("config"), &json!(2))
    );
    assert_eq!(
        (&stat[1]["table"], &stat[1]["sets"]),
        (&json!("rows"), &json!(true))
    );
    assert_eq!(told("kv stat a.tdl config --format json"), stat[..1]);
    folder
        .say("kv stat a.tdl --env --format json")
        .failed(2, &["tidalite stat"]);
    assert_eq!(told("check a.tdl -f json")[0]["clean"], true);
    folder
        .say("check a.tdl -f json --quiet")
        .failed(2, &["cannot be used with"]);
    // Text that is valid UTF-8 is printed as it is, and can be typed again.
    assert_eq!(
        folder.say("kv scan a.tdl config").ok(),
        "height\t80\n\u{fc}ber\t\\ff\n"
    );
    assert_eq!(folder.say("kv get a.tdl config \u{fc}ber").ok(), "\\ff\n");
    assert_eq!(told("kv scan a.tdl config -n 1 -f json").len(), 1);
    let missing = folder.say("kv get a.tdl config nosuch");
    assert!(!missing.err.contains("value"), "{}", missing.err);
    missing.failed(3, &["there is no key nosuch"]);
    folder
        .say("kv del a.tdl config height 81")
        .failed(3, &["height does not have this value"]);
}

#[test]
fn sizes_have_units_in_tables_and_are_exact_elsewhere() {
    let folder = Folder::with_plant("consistency-sizes");
    let bytes = std::fs::metadata(folder.path("plant.tdl")).unwrap().len();
    let table = folder.say("stat plant.tdl").ok();
    let size = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.to_owned()
    };
    assert!(size("file bytes").contains(" KiB "), "{table}");
    assert!(size("page size").contains("4.00 KiB"), "{table}");
    let json = json_lines(&folder.say("stat plant.tdl -f json").ok());
    assert_eq!(json[0]["file_bytes"], bytes);
    assert_eq!(json[0]["page_size"], 4096);
    folder
        .say("retention plant.tdl --set cap --max-bytes 1536000")
        .ok();
    let table = folder.say("retention plant.tdl").ok();
    assert!(table.contains("1.46 MiB"), "{table}");
    let json = json_lines(&folder.say("retention plant.tdl -f json").ok());
    assert_eq!(json[0]["max_bytes"], 1_536_000);
}

/// The figures of one line of a table are rounded alike, and counted nouns have the right number.
#[test]
fn tables_round_alike_and_say_commit() {
    let folder = Folder::new("consistency-rounding");
    folder.write(
        "v.csv",
        "time,v\n2024-01-01,8.86400032043457\n2024-01-02,8.1\n",
    );
    folder.say("import a.tdl v.csv --quiet").ok();
    let table = folder.say("aggregate a.tdl v --fn mean,max,first").ok();
    assert!(
        table.contains("8.48200") && table.contains("8.86400"),
        "{table}"
    );
    assert!(!table.contains("8.864000320"), "{table}");
    let csv = folder.say("aggregate a.tdl v --fn max -f csv").ok();
    assert!(csv.contains("8.86400032043457"), "{csv}");
    let pinned = folder.say("pins a.tdl --add p").ok();
    assert!(pinned.starts_with("p is pinned: commit "), "{pinned}");
    let backup = folder.say("backup a.tdl b.tdb --pin p").ok();
    assert!(backup.contains("everything as of commit "), "{backup}");
}
