//! The other commands with tables of topics, queues and buckets: `kv`, `hash`, `dump`, `load`, `check` and `copy`.

use crate::support::Folder;

/// The id of the upload in `a.tdl`.
fn upload(folder: &Folder) -> String {
    let listed = folder.say("object upload list a.tdl").ok();
    listed.split('\t').next().unwrap().to_owned()
}

/// A file with topics and a feed, a queue with groups, leases and dead letters, and a bucket with an upload and a link.
fn filled(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.say("topic create a.tdl --feed 10").ok();
    for (topic, options) in [
        ("a/b", "--property k=v --expires 1d"),
        ("a/c", ""),
        ("$SYS/x", ""),
    ] {
        folder
            .say(&format!("topic set a.tdl {topic} 1 {options}"))
            .ok();
    }
    folder.say("topic rm a.tdl a/c").ok();
    folder
        .say("queue create a.tdl --idempotency-window 1h --deliveries-max 2")
        .ok();
    let words = ["queue", "push", "a.tdl", "--lines", "--key", "k"];
    folder.run_with(&words, b"1\n2\n3\n").ok();
    folder
        .say("queue push a.tdl x --idempotency-key i --delay 1h")
        .ok();
    folder.say("queue group create a.tdl other").ok();
    folder.say("queue lease a.tdl --group other --for 1d").ok();
    folder.say("queue reject a.tdl 1 --group other").ok();
    folder.say("queue lease a.tdl --group other --for 1d").ok();
    folder.say("object create a.tdl --chunk-bytes 1048576").ok();
    folder.write("big", vec![7; 1_500_000]);
    folder.say("object put a.tdl big big --meta a=1").ok();
    folder.say("object upload begin a.tdl later").ok();
    let id = upload(&folder);
    folder
        .say(&format!("object upload append a.tdl {id} big"))
        .ok();
    folder.say("object link create a.tdl big").ok();
    folder.say("kv put a.tdl rows k v").ok();
    folder
}

#[test]
fn a_dump_carries_them_through() {
    let folder = filled("messages-dump");
    for (option, loaded) in [("", "b.tdl"), ("--print", "c.tdl")] {
        let dump = folder.say(&format!("dump a.tdl {option}")).ok();
        for layout in ["topics", "queue", "bucket"] {
            assert!(
                dump.contains(&format!("\ntype={layout}\nmapsize=")),
                "{layout}"
            );
        }
        folder.write("a.dump", &dump);
        let said = folder.say(&format!("load {loaded} a.dump")).ok();
        assert_eq!(
            said,
            "jobs: 4 messages\nobjects: 1 object\nrows: 1 pair\ntopics: 2 messages\n"
        );
        folder.say(&format!("check {loaded}")).ok();
        let again = folder.say(&format!("dump {loaded} {option}")).ok();
        let strip = |dump: &str| -> Vec<String> {
            let lines = dump.lines().filter(|line| !line.starts_with("mapsize="));
            lines.map(str::to_owned).collect()
        };
        assert!(strip(&again) == strip(&dump));
        for words in [
            "topic match FILE # $SYS/# -f json",
            "queue peek FILE --group other -f json",
            "queue dead FILE --group other -f json",
            "queue stat FILE -f json",
            "object ls FILE -f json",
            "object upload list FILE -f json",
            "object link list FILE -f json",
            "object verify FILE --all",
        ] {
            let said = |file: &str| folder.say(&words.replace("FILE", file)).ok();
            assert_eq!(said(loaded), said("a.tdl"), "{words}");
        }
        // The loaded tables can be written to.
        folder.say(&format!("topic set {loaded} a/c 2")).ok();
        folder.say(&format!("queue push {loaded} y")).ok();
        folder
            .say(&format!(
                "object upload complete {loaded} {}",
                upload(&folder)
            ))
            .ok();
        folder.say(&format!("check {loaded}")).ok();
        folder.say(&format!("load {loaded} a.dump")).failed(
            5,
            &["table jobs", "a queue is loaded as a new table", "kv drop"],
        );
    }
    for (table, noun) in [("jobs", "a queue"), ("topics", "a table of topics")] {
        folder
            .say(&format!("dump a.tdl {table} --as reversekey"))
            .failed(2, &[noun]);
    }
}

#[test]
fn a_damaged_dump_is_not_loaded() {
    let folder = filled("messages-damaged-dump");
    for table in ["topics", "jobs", "objects"] {
        let dump = folder.say(&format!("dump a.tdl {table}")).ok();
        let lines: Vec<&str> = dump.lines().collect();
        let rows: Vec<usize> = (0..lines.len())
            .filter(|at| lines[*at].starts_with(' ') && lines[*at].len() > 3)
            .collect();
        let mut refused = 0;
        for at in rows.iter().step_by(1 + rows.len() / 8) {
            let mut changed = lines.clone();
            let wrong = format!("{}00", &lines[*at][..lines[*at].len().min(2001)]);
            changed[*at] = &wrong;
            folder.write("bad.dump", changed.join("\n") + "\n");
            let ran = folder.say("load bad.tdl bad.dump");
            assert!([0, 5].contains(&ran.code), "{ran:?}");
            if ran.code == 5 {
                refused += 1;
                ran.failed(5, &[table]);
                folder
                    .say(&format!("kv stat bad.tdl {table}"))
                    .failed(3, &[table]);
            } else {
                folder.say("check bad.tdl").ok();
                folder.say(&format!("kv drop bad.tdl {table}")).ok();
            }
        }
        assert!(refused > 0, "{table}");
    }
    for layout in ["topics", "queue", "bucket"] {
        folder.write(
            "bad.dump",
            format!("VERSION=3\ntype={layout}\nHEADER=END\n 61\n 62\nDATA=END\n"),
        );
        folder
            .say("load bad.tdl bad.dump")
            .failed(5, &["these are not the rows of"]);
    }
}

#[test]
fn other_commands_name_the_command_for_a_table() {
    let folder = filled("messages-kv");
    for (table, noun, command) in [
        ("topics", "a table of topics", "`tidalite topic`"),
        ("jobs", "a queue", "`tidalite queue`"),
        ("objects", "a bucket of objects", "`tidalite object`"),
    ] {
        folder.write("pairs", "a\nb\n");
        for words in [
            "kv get a.tdl TABLE k",
            "kv put a.tdl TABLE k w",
            "kv put a.tdl TABLE k w --multi",
            "kv put a.tdl TABLE k w --buffered",
            "kv del a.tdl TABLE k",
            "kv scan a.tdl TABLE",
            "kv create a.tdl TABLE",
            "kv clear a.tdl TABLE",
            "kv stat a.tdl TABLE --in k",
            "load a.tdl pairs --text --table TABLE",
        ] {
            folder
                .say(&words.replace("TABLE", table))
                .failed(5, &[&format!("table {table} is {noun}"), command]);
        }
        folder
            .say(&format!("hash get a.tdl {table} k"))
            .failed(5, &["is not a hash table", command]);
        for other in ["topic match a.tdl #", "queue peek a.tdl", "object ls a.tdl"] {
            if command.trim_matches('`') != format!("tidalite {}", other.split(' ').next().unwrap())
            {
                folder
                    .say(&format!("{other} --table {table}"))
                    .failed(5, &[noun, command]);
            }
        }
    }
    folder
        .say("queue push a.tdl x --table rows")
        .failed(5, &["rows is a table of keys and values", "`tidalite kv`"]);
    folder
        .say("topic set a.tdl t x --table jobs")
        .failed(5, &["a queue"]);
    assert_eq!(
        folder.say("kv stat a.tdl").ok(),
        "jobs\tqueue\t4 messages\nobjects\tbucket\t1 object\nrows\t1 pair\ntopics\ttopics\t2 messages\n"
    );
    let stat = folder.say("kv stat a.tdl jobs").ok();
    assert!(
        stat.contains("Types: queue\n") && stat.contains("Entries: 4\n"),
        "{stat}"
    );
    let json = folder.say("kv stat a.tdl objects --format json").ok();
    assert!(json.contains("\"layout\":\"bucket\""), "{json}");
    for words in [
        "stat a.tdl",
        "kv stat a.tdl --all",
        "check a.tdl",
        "copy a.tdl copy.tdl",
    ] {
        folder.say(words).ok();
    }
    assert_eq!(
        folder.say("queue peek copy.tdl --all").ok(),
        folder.say("queue peek a.tdl --all").ok()
    );
    folder.say("kv rename a.tdl jobs work").ok();
    assert_eq!(
        folder.say("queue peek a.tdl --table work --all -n 1").ok(),
        "1\t1\n"
    );
    folder.say("kv drop a.tdl work").ok();
    folder
        .say("queue peek a.tdl --table work")
        .failed(3, &["no queue work"]);
}
