//! Containers on the command line: the containers themselves, their options, their tables, and what other commands do with
//! these tables.

use crate::support::Folder;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Two containers with five messages, one of which has no number.
fn pumps(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut text = String::new();
    for (minute, device, fields) in [
        (0, "a", r#""level":1.5,"state":"on""#),
        (1, "a", r#""level":2,"gps":{"lat":48.5}"#),
        (2, "b", r#""level":7"#),
        (3, "a", r#""state":"off""#),
        (4, "b", r#""id":18446744073709551615"#),
    ] {
        text +=
            &format!(r#"{{"time":"2030-01-01T00:0{minute}:00Z","device":"{device}",{fields}}}"#);
        text.push('\n');
    }
    folder.write("pumps.jsonl", text);
    let said = folder
        .say("container put a.tdl --container-field device pumps.jsonl")
        .ok();
    assert_eq!(
        said,
        "5 messages stored in containers; 2 containers created\n"
    );
    folder
}

#[test]
fn containers_are_created_listed_renamed_and_dropped() {
    let folder = Folder::new("containers");
    folder
        .say("container ls a.tdl")
        .failed(3, &["there is no database a.tdl"]);
    let said = folder.say("container create a.tdl pump-1").ok();
    assert_eq!(said, "container pump-1 created in containers\n");
    folder
        .say("container create a.tdl pump-1")
        .failed(5, &["has a container pump-1 already", "container options"]);
    folder
        .say(&format!("container create a.tdl {}", "x".repeat(513)))
        .failed(5, &["513 bytes"]);
    folder
        .run(&["container", "create", "a.tdl", ""])
        .failed(5, &["cannot be the name"]);
    folder
        .say("container create a.tdl x --ttl soon")
        .failed(2, &["soon"]);
    folder
        .say("container create a.tdl pump-2 --keep-deleted 1h")
        .ok();
    folder.say("container create a.tdl car").ok();
    let listed = lines(&folder.say("container ls a.tdl pump- -f json").ok());
    let names: Vec<&Value> = listed.iter().map(|line| &line["name"]).collect();
    assert_eq!(names, ["pump-1", "pump-2"]);
    assert!(listed[0]["newest"].is_null() && listed[0]["messages"] == 0);
    let text = folder.say("container ls a.tdl --limit 1").ok();
    assert!(text.lines().count() == 2 && text.contains("car"), "{text}");
    folder
        .say("container ls a.tdl --table other")
        .failed(3, &["no table of containers other"]);
    let said = folder.say("container mv a.tdl car truck").ok();
    assert_eq!(said, "car is called truck now\n");
    folder
        .say("container mv a.tdl car x")
        .failed(3, &["containers has no container car", "container ls"]);
    folder
        .say("container mv a.tdl truck pump-1")
        .failed(5, &["has a container pump-1 already"]);
    folder
        .say("container stat a.tdl nothing")
        .failed(3, &["containers has no container nothing"]);
    folder.say("kv put a.tdl rows k v").ok();
    folder
        .say("container ls a.tdl --table rows")
        .failed(5, &["rows is a table of keys and values", "kv"]);
    folder
        .say("kv get a.tdl containers k")
        .failed(5, &["is a table of containers", "tidalite container"]);
    folder
        .say("kv clear a.tdl containers")
        .failed(5, &["is a table of containers"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn a_dropped_container_comes_back_with_its_series() {
    let folder = pumps("containers-dropped");
    let said = folder.say("container rm a.tdl b").ok();
    assert_eq!(said, "container b dropped with 2 messages\n");
    folder
        .say("container restore a.tdl b")
        .failed(3, &["no dropped container b", "container dropped"]);
    folder
        .say("container rm a.tdl b")
        .failed(3, &["no container b"]);
    folder
        .say("container options a.tdl a --keep-deleted 1h")
        .ok();
    let said = folder.say("container rm a.tdl a").ok();
    assert!(said.contains("restored until 2"), "{said}");
    assert_eq!(folder.say("series a.tdl").code, 3);
    let dropped = lines(&folder.say("container dropped a.tdl -f json").ok());
    assert_eq!((dropped.len(), &dropped[0]["messages"]), (1, &3.into()));
    folder.say("container create a.tdl a").ok();
    folder
        .say("container restore a.tdl a")
        .failed(5, &["has a container a already"]);
    let said = folder.say("container restore a.tdl a --as again").ok();
    assert_eq!(said, "container again restored with 3 messages\n");
    assert_eq!(folder.say("container get a.tdl again --count").ok(), "3\n");
    let scan = [
        "scan",
        "a.tdl",
        r#"containers{container="again"}"#,
        "-f",
        "csv",
    ];
    assert_eq!(folder.run(&scan).ok().lines().count(), 3);
    folder.say("check a.tdl").ok();
}

#[test]
fn options_are_shown_changed_and_inherited() {
    let folder = Folder::new("containers-options");
    folder.say("container options a.tdl").failed(2, &["NAME"]);
    let said = folder
        .say("container options a.tdl --defaults --ttl 90d --on-message-create no --idempotency-window 1h --containers-max 2")
        .ok();
    assert_eq!(said, "table containers created\n");
    folder.say("container put a.tdl x {\"v\":1}").failed(
        5,
        &["rejected: 1 of 1 message", "do not let messages create it"],
    );
    folder
        .say("container create a.tdl x --messages-max 2 --overflow reject --on-duplicate replace --protect keep")
        .ok();
    let json = &lines(&folder.say("container options a.tdl x -f json").ok())[0];
    for (name, value) in [
        ("own_options", Value::from(true)),
        ("ttl_s", 7_776_000.0.into()),
        ("messages_max", 2.into()),
        ("bytes_max", Value::Null),
        ("overflow", "reject".into()),
        ("on_duplicate", "replace".into()),
        ("protect", "keep".into()),
    ] {
        assert_eq!(json[name], value, "{name}");
    }
    folder
        .say("container options a.tdl x --ttl never --messages-max 0 --protect=")
        .ok();
    let text = folder.say("container options a.tdl x").ok();
    assert!(text.starts_with("Options of x: its own\n"), "{text}");
    assert!(
        text.contains("Time to live: never\n  Maximum messages: none"),
        "{text}"
    );
    folder.say("container options a.tdl x --inherit").ok();
    let text = folder.say("container options a.tdl x").ok();
    assert!(text.contains("Time to live: 90d"), "{text}");
    let table = &lines(
        &folder
            .say("container options a.tdl --defaults -f json")
            .ok(),
    )[0];
    assert_eq!(
        (&table["creates_containers"], &table["defaults"]["ttl_s"]),
        (&false.into(), &7_776_000.0.into())
    );
    folder.say("container create a.tdl y").ok();
    folder
        .say("container create a.tdl z")
        .failed(5, &["containers"]);
    folder
        .say("container options a.tdl x --idempotency-window 1h")
        .failed(2, &["--idempotency-window"]);
    folder
        .say("container options a.tdl --fields-max 5")
        .failed(2, &["<NAME>"]);
    folder
        .say("container options a.tdl --defaults --inherit")
        .failed(2, &["--inherit"]);
    folder
        .say("container options a.tdl nothing --ttl 1d")
        .failed(3, &["no container nothing"]);
}

#[test]
fn tables_and_containers_are_described() {
    let folder = pumps("containers-stat");
    folder
        .say("container put a.tdl c {\"x\":1} --table more")
        .ok();
    let text = folder.say("container stat a.tdl").ok();
    assert!(
        text.starts_with("containers\t2 containers\t5 messages\t")
            && text.contains("\nmore\t1 container\t1 message\t"),
        "{text}"
    );
    let stat = &lines(
        &folder
            .say("container stat a.tdl --table containers -f json")
            .ok(),
    )[0];
    assert_eq!((&stat["fields"], &stat["messages"]), (&4.into(), &5.into()));
    let text = folder.say("container stat a.tdl --table more").ok();
    assert!(text.contains("Messages create containers: yes"), "{text}");
    let info = &lines(&folder.say("container stat a.tdl a -f json").ok())[0];
    assert_eq!(
        (&info["oldest"], &info["series"], &info["changes"]),
        (
            &"2030-01-01T00:00:00Z".into(),
            &r#"containers{container="a"}"#.into(),
            &3.into()
        )
    );
    let text = folder.say("container stat a.tdl a").ok();
    assert!(
        text.contains("Newest message: 2030-01-01T00:03:00Z"),
        "{text}"
    );
    folder
        .say("container stat a.tdl --table none")
        .failed(3, &["no table of containers none"]);
    let fields = folder.say("container fields a.tdl").ok();
    assert_eq!(fields, "gps\nid\nlevel\nstate\n");
    let listed = folder.say("kv stat a.tdl").ok();
    assert!(
        listed.contains("containers\tcontainers\t5 messages"),
        "{listed}"
    );
    let json = lines(&folder.say("kv stat a.tdl containers --format json").ok());
    assert_eq!(
        (&json[0]["layout"], &json[0]["entries"]),
        (&"containers".into(), &5.into())
    );
}

/// The rows of all series, with their names.
fn rows(folder: &Folder, file: &str) -> String {
    folder.say(&format!("export {file}")).ok()
}

#[test]
fn kv_renames_and_drops_the_series_as_well() {
    let folder = pumps("containers-kv");
    folder.say("kv rename a.tdl containers machines").ok();
    let exported = rows(&folder, "a.tdl");
    assert!(
        exported.contains("machines{") && !exported.contains("containers{"),
        "{exported}"
    );
    folder.say("container get a.tdl a --table machines").ok();
    folder.say("check a.tdl").ok();
    folder.say("kv drop a.tdl machines").ok();
    assert_eq!(folder.say("series a.tdl").code, 3);
    folder
        .say("kv drop a.tdl machines")
        .failed(3, &["no table machines"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn a_dump_carries_containers_and_load_makes_their_series() {
    let folder = pumps("containers-dump");
    folder
        .say("container options a.tdl --defaults --keep-deleted 1d --idempotency-window 1h")
        .ok();
    folder
        .say("container thin a.tdl a --rule 3d:10m --fn level=mean")
        .ok();
    folder.say("container put a.tdl gone {\"x\":1}").ok();
    folder.say("container rm a.tdl gone").ok();
    folder
        .run(&["container", "del", "a.tdl", "b", "--filter", "level == 7"])
        .ok();
    for (option, loaded) in [("", "b.tdl"), ("--print", "c.tdl")] {
        let dump = folder.say(&format!("dump a.tdl {option}")).ok();
        assert!(dump.contains("\ntype=containers\nmapsize="));
        folder.write("a.dump", &dump);
        let said = folder.say(&format!("load {loaded} a.dump")).ok();
        assert_eq!(said, "containers: 4 messages\n");
        folder.say(&format!("check {loaded}")).ok();
        assert_eq!(rows(&folder, loaded), rows(&folder, "a.tdl"));
        for words in [
            "container get FILE a b",
            "container latest FILE a -f json",
            "container dropped FILE -f json",
            "container undelete FILE b --list",
            "container thin FILE a",
            "container stat FILE --table containers",
        ] {
            let said = |file: &str| folder.say(&words.replace("FILE", file)).ok();
            assert_eq!(said(loaded), said("a.tdl"), "{words}");
        }
        // The loaded table can be written to.
        folder
            .say(&format!("container put {loaded} a {{\"level\":1}}"))
            .ok();
        folder.say(&format!("container undelete {loaded} b")).ok();
        folder.say(&format!("check {loaded}")).ok();
        folder
            .say(&format!("load {loaded} a.dump"))
            .failed(5, &["a table of containers is loaded as a new table"]);
        let said = folder
            .say(&format!("load {loaded} a.dump --table other"))
            .ok();
        assert_eq!(said, "other: 4 messages\n");
        assert!(rows(&folder, loaded).contains("other{"));
    }
}

#[test]
fn a_dump_with_wrong_rows_is_not_loaded() {
    let folder = pumps("containers-wrong-dump");
    let dump = folder.say("dump a.tdl").ok();
    let all: Vec<&str> = dump.lines().collect();
    for cut in [all.len() / 3, all.len() / 2, all.len() - 4] {
        let mut some = all[..cut].join("\n");
        some += "\nDATA=END\n";
        folder.write("cut.dump", some);
        let ran = folder.say("load b.tdl cut.dump");
        assert_eq!(ran.code, 5, "{cut}: {ran:?}");
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert_eq!(folder.say("container stat b.tdl").ok(), "");
        assert_eq!(folder.say("series b.tdl").code, 3);
    }
    folder.write(
        "rows.dump",
        "VERSION=3\nformat=print\ndatabase=c\ntype=containers\nHEADER=END\n a\n b\nDATA=END\n",
    );
    folder
        .say("load b.tdl rows.dump")
        .failed(5, &["not the rows of a table of containers"]);
}
