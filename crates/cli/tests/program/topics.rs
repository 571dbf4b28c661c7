//! Topics with retained messages on the command line.

use crate::support::{Folder, Ran};
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Three messages in `a.tdl`.
fn halls(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (topic, payload) in [
        ("hall/1/temp", "21.5"),
        ("hall/1/door", "open"),
        ("hall/2/temp", "19"),
    ] {
        folder
            .say(&format!("topic set a.tdl {topic} {payload}"))
            .ok();
    }
    folder
}

#[test]
fn messages_are_set_got_matched_and_removed() {
    let folder = Folder::new("topic");
    let said = folder.say("topic set a.tdl hall/1/temp 21.5").ok();
    assert_eq!(said, "hall/1/temp set in topics\n");
    let said = folder.say("topic set a.tdl hall/1/temp -3").ok();
    assert_eq!(said, "hall/1/temp replaced in topics\n");
    folder.say("topic set a.tdl hall/2/temp 19").ok();
    folder.say("topic set a.tdl $SYS/up 1").ok();
    assert_eq!(folder.say("topic get a.tdl hall/1/temp").ok(), "-3\n");
    assert_eq!(folder.say("topic get a.tdl hall/1/temp --raw").ok(), "-3");
    for (filters, found) in [
        ("hall/+/temp", "hall/1/temp\t-3\nhall/2/temp\t19\n"),
        ("#", "hall/1/temp\t-3\nhall/2/temp\t19\n"),
        ("$SYS/#", "$SYS/up\t1\n"),
        ("hall/2/# hall/+/temp", "hall/2/temp\t19\nhall/1/temp\t-3\n"),
        ("none/#", ""),
        ("# --since 2", "hall/2/temp\t19\n"),
        ("# --topics-only", "hall/1/temp\nhall/2/temp\n"),
        ("# --count", "2\n"),
        ("# hall/1/temp --count", "2\n"),
        ("# --count --since 2", "1\n"),
        ("# --count --format json", "{\"messages\":2}\n"),
        (
            "# --include-dollar --topics-only",
            "$SYS/up\nhall/1/temp\nhall/2/temp\n",
        ),
        ("# --include-dollar --count", "3\n"),
        ("+/up --include-dollar", "$SYS/up\t1\n"),
    ] {
        let said = folder.say(&format!("topic match a.tdl {filters}")).ok();
        assert_eq!(said, found, "{filters}");
    }
    let said = folder.say("topic rm a.tdl hall/2/temp").ok();
    assert_eq!(said, "hall/2/temp removed from topics\n");
    folder
        .say("topic rm a.tdl hall/2/temp")
        .failed(3, &["hall/2/temp has no message", "topic match"]);
    folder
        .say("topic get a.tdl hall/2/temp")
        .failed(3, &["hall/2/temp has no message"]);
    // An empty payload removes, as in MQTT.
    let empty = |topic: &str| folder.run(&["topic", "set", "a.tdl", topic, ""]).ok();
    assert_eq!(
        empty("hall/1/temp"),
        "hall/1/temp removed from topics: the payload is empty\n"
    );
    assert!(empty("hall/1/temp").starts_with("nothing stored: the payload is empty"));
    assert_eq!(folder.say("topic match a.tdl #").ok(), "");
    folder.say("check a.tdl").ok();
}

#[test]
fn a_search_goes_on_with_its_token() {
    let folder = halls("topic-token");
    let (mut found, mut token) = (String::new(), None::<String>);
    for page in 0..3 {
        let more = token
            .map(|token| format!("--token {token}"))
            .unwrap_or_default();
        let ran = folder.say(&format!("topic match a.tdl hall/# -n 1 {more}"));
        assert_eq!(ran.code, 0, "{ran:?}");
        token = ran
            .err
            .split("--token ")
            .nth(1)
            .map(|rest| rest.trim().to_owned());
        assert_eq!(token.is_some(), page < 2, "{ran:?}");
        found += &ran.out;
    }
    assert_eq!(found, folder.say("topic match a.tdl hall/#").ok());
    folder
        .say("topic match a.tdl hall/# --token 00")
        .failed(2, &["--token"]);
    folder
        .say("topic match a.tdl hall/# --token xyz")
        .failed(2, &["--token"]);
}

#[test]
fn all_properties_of_a_message_are_printed() {
    let folder = Folder::new("topic-properties");
    folder
        .say(
            "topic set a.tdl a/b {\"t\":\"C:\\\\x\"} --expires 1d --qos 2 --content-type text/plain \
             --response-topic a/r --correlation 7 --property unit=C --property unit=F \
             --property empty= --publisher plc-4 --text",
        )
        .ok();
    let json = folder.say("topic get a.tdl a/b -f json").ok();
    let message = &lines(&json)[0];
    assert_eq!(message["payload"], "{\"t\":\"C:\\\\x\"}", "as typed");
    for (name, value) in [
        ("topic", "a/b"),
        ("content_type", "text/plain"),
        ("response_topic", "a/r"),
        ("correlation", "7"),
        ("publisher", "plc-4"),
    ] {
        assert_eq!(message[name], value, "{json}");
    }
    assert_eq!(
        (&message["qos"], &message["text"]),
        (&2.into(), &true.into())
    );
    assert_eq!(message["properties"][1]["value"], "F");
    assert_eq!(message["properties"][2]["value"], "");
    assert!(message["expires"].as_str() > message["time"].as_str());
    assert_eq!(
        (&message["sequence"], &message["id"]),
        (&1.into(), &message["id"])
    );
    let said = folder
        .say("topic set a.tdl a/b x --expires 2001-01-01T00:00:00Z")
        .ok();
    assert!(
        said.contains("removed from topics: the message has expired"),
        "{said}"
    );
}

#[test]
fn payloads_are_bytes_from_files_and_pipes_too() {
    let folder = Folder::new("topic-bytes");
    let every: Vec<u8> = (0..=255).collect();
    folder.write("value", &every);
    let raw = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        folder.command(&words).output().unwrap().stdout
    };
    folder.say("topic set a.tdl t --file value").ok();
    assert_eq!(raw("topic get a.tdl t --raw"), every);
    let printed = folder.say("topic get a.tdl t").ok();
    assert!(printed.starts_with("\\00\\01"), "{printed}");
    let json = folder.say("topic get a.tdl t --format json").ok();
    assert!(json.contains("\"payload_hex\":\"000102"), "{json}");
    let words = ["topic", "set", "a.tdl", "t", "-"];
    folder.run_with(&words, b"a\nb").ok();
    assert_eq!(raw("topic get a.tdl t --raw"), b"a\nb");
    folder.say("topic set a.tdl t ff00 --hex").ok();
    assert_eq!(raw("topic get a.tdl t --raw"), [0xff, 0]);
    folder
        .say("topic set a.tdl t f --hex")
        .failed(2, &["hex digits"]);
    folder
        .say("topic set a.tdl t --file value --text")
        .failed(5, &["not UTF-8"]);
    folder
        .say("topic set a.tdl t --file none")
        .failed(3, &["cannot read none"]);
    folder
        .say("topic set a.tdl t x --file value")
        .failed(2, &["cannot be used with"]);
    folder.say("topic set a.tdl t").failed(2, &["a payload"]);
}

#[test]
fn wrong_topics_filters_and_tables_are_explained() {
    let folder = halls("topic-wrong");
    for (words, code, told) in [
        ("topic set a.tdl a/+/b x", 5, "+"),
        ("topic get a.tdl #", 5, "#"),
        ("topic rm a.tdl a/#", 5, "#"),
        ("topic match a.tdl a#", 2, "wildcard"),
        ("topic match a.tdl #/a", 2, "#"),
        ("topic match a.tdl $share/g/a", 2, "shared subscription"),
        ("topic watch a.tdl a+", 2, "wildcard"),
        ("topic match a.tdl", 2, "FILTER"),
        ("topic match none.tdl #", 3, "no database none.tdl"),
        (
            "topic match a.tdl # --table none",
            3,
            "no table of topics none",
        ),
        ("topic rm a.tdl x --table none", 3, "topic stat"),
        ("topic rm a.tdl", 2, "TOPIC"),
        ("topic rm a.tdl x --matching y", 2, "cannot be used with"),
        ("topic rm a.tdl x --dry-run", 2, "--dry-run"),
        ("topic purge a.tdl --table none", 3, "none"),
        ("topic stat a.tdl --table none", 3, "none"),
        ("topic set a.tdl t x --qos 3", 2, "0..=2"),
        (
            "topic set a.tdl t x --expires soon",
            2,
            "neither a duration",
        ),
        ("topic set a.tdl t x --property a", 2, "NAME=VALUE"),
        ("topic set a.tdl t x --response-topic a/#", 5, "a/#"),
    ] {
        folder.say(words).failed(code, &[told]);
    }
    folder
        .run(&["topic", "set", "a.tdl", "", "x"])
        .failed(5, &["a topic has levels"]);
    let long = "x".repeat(70_000);
    folder
        .run(&["topic", "set", "a.tdl", &long, "x"])
        .failed(5, &["65535"]);
    // Control characters of a topic never reach the terminal.
    folder
        .run(&["topic", "set", "a.tdl", "\u{1b}[31m", "\u{1b}[0m"])
        .ok();
    let printed = folder.say("topic match a.tdl +").ok();
    assert_eq!(printed, "\\u{1b}[31m\t\\u{1b}[0m\n");
}

#[test]
fn options_are_given_at_creation_and_altered_later() {
    let folder = Folder::new("topic-options");
    let create = |options: &str| folder.say(&format!("topic create a.tdl {options}"));
    assert_eq!(
        create("--levels-max 3 --messages-max 2 --payload-bytes-max 4").ok(),
        "table topics created\n"
    );
    assert_eq!(
        create("--levels-max 3").ok(),
        "table topics exists already with these options\n"
    );
    create("--levels-max 4").failed(5, &["other options", "--alter"]);
    for (words, told) in [
        ("topic set a.tdl a/b/c/d x", "levels"),
        ("topic set a.tdl a 12345", "payload"),
    ] {
        folder.say(words).failed(5, &[told, "topic stat a.tdl"]);
    }
    folder.say("topic set a.tdl a 1").ok();
    folder.say("topic set a.tdl b 1").ok();
    folder.say("topic set a.tdl c 1").failed(5, &["messages"]);
    assert_eq!(
        create("--alter --messages-max 3 --feed 10").ok(),
        "table topics changed\n"
    );
    folder.say("topic set a.tdl c 1").ok();
    create("--alter --table none --feed 1").failed(3, &["none"]);
    create("--levels-max 0").failed(2, &["--levels-max"]);
    create("--table big --payload-bytes-max 4000000000").failed(5, &["268435455"]);
    let stat = folder.say("topic stat a.tdl --table topics").ok();
    for line in [
        "Messages: 3",
        "Feed: 1 of at most 10 changes",
        "Maximum levels: 3",
    ] {
        assert!(stat.contains(line), "{stat}");
    }
    assert_eq!(
        folder.say("topic stat a.tdl").ok(),
        "topics\t3 messages\t6 B\n"
    );
    let json = folder.say("topic stat a.tdl --format json").ok();
    let stat = &lines(&json)[0];
    assert_eq!(stat["messages"], 3);
    assert_eq!(stat["feed_changes_max"], 10);
    assert!(stat["bytes_max"].is_null());
}

#[test]
fn messages_are_removed_by_filter_and_when_they_have_expired() {
    let folder = halls("topic-rm");
    let said = folder
        .say("topic rm a.tdl --matching hall/1/# --dry-run")
        .ok();
    assert_eq!(said, "2 messages of topics would be removed\n");
    assert_eq!(folder.say("topic match a.tdl # --count").ok(), "3\n");
    let said = folder.say("topic rm a.tdl --matching hall/1/#").ok();
    assert_eq!(said, "2 messages removed from topics\n");
    assert_eq!(folder.say("topic match a.tdl #").ok(), "hall/2/temp\t19\n");
    let said = folder.say("topic rm a.tdl --matching none").ok();
    assert_eq!(said, "0 messages removed from topics\n");
    folder.say("topic set a.tdl gone x --expires 1ms").ok();
    std::thread::sleep(std::time::Duration::from_millis(20));
    folder
        .say("topic get a.tdl gone")
        .failed(3, &["no message"]);
    let said = folder.say("topic purge a.tdl").ok();
    assert_eq!(said, "1 expired message deleted from topics\n");
    folder.say("check a.tdl").ok();
}

#[test]
fn an_export_is_imported_with_all_properties() {
    let folder = halls("topic-port");
    folder.write("bytes", (0..=255u8).collect::<Vec<u8>>());
    folder
        .say("topic set a.tdl raw --file bytes --correlation x --property a=1 --property a=2 --qos 1 --expires 2d --publisher p")
        .ok();
    let exported = folder.say("topic export a.tdl").ok();
    assert_eq!(exported.lines().count(), 4);
    let import = |table: &str, input: &str| {
        let words = ["topic", "import", "b.tdl", "--table", table];
        folder.run_with(&words, input.as_bytes())
    };
    assert_eq!(import("x", &exported).ok(), "4 messages imported into x\n");
    let bare = |text: &str| -> Vec<Value> {
        let mut all = lines(text);
        for message in &mut all {
            // The other table gives these numbers.
            message.as_object_mut().unwrap().remove("sequence");
            message.as_object_mut().unwrap().remove("id");
        }
        all
    };
    let again = folder.say("topic export b.tdl --table x").ok();
    assert_eq!(bare(&again), bare(&exported));
    for name in ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"] {
        let said = folder
            .say(&format!("topic export a.tdl hall/# -o {name}"))
            .ok();
        assert_eq!(said, format!("3 messages written to {name}\n"));
        folder
            .say(&format!("topic export a.tdl -o {name}"))
            .failed(1, &["exists already", "--replace"]);
        let table = name.len();
        folder
            .say(&format!("topic import b.tdl {name} --table t{table}"))
            .ok();
        let count = folder.say(&format!("topic match b.tdl # --count --table t{table}"));
        assert_eq!(count.ok(), "3\n");
    }
    import(
        "y",
        "{\"topic\":\"a\",\"payload\":\"1\"}\n\n{\"topic\":\"b\"}\n",
    )
    .failed(5, &["line 3: there is no `payload`", "nothing was stored"]);
    import("y", "{\"topic\":\"a/#\",\"payload\":\"1\"}\n").failed(5, &["line 1", "a/#"]);
    import("y", "no json\n").failed(5, &["line 1: no JSON"]);
    import("y", "\u{1b}\n").failed(5, &["line 1"]);
    let none = folder.say("topic match b.tdl # --count --table y");
    none.failed(3, &["no table of topics y"]);
    assert_eq!(
        import("y", "{\"topic\":\"now\",\"payload\":\"1\"}").ok(),
        "1 message imported into y\n"
    );
    folder.say("topic import b.tdl none").failed(3, &["none"]);
    folder.say("check b.tdl").ok();
    // Topics that no filter finds are not left out silently.
    folder.say("topic set a.tdl $SYS/up 1").ok();
    let Ran { code, out, err } = folder.say("topic export a.tdl");
    assert_eq!((code, out.lines().count()), (0, 4));
    assert!(err.contains("without 1 message"), "{err}");
    for (filters, count) in [("$SYS/#", 1), ("--include-dollar", 5)] {
        let exported = folder.say(&format!("topic export a.tdl {filters}")).ok();
        assert_eq!(exported.lines().count(), count, "{filters}");
    }
}

#[test]
fn the_file_comes_from_the_environment_too() {
    let folder = halls("topic-env");
    let mut command = folder.command(&["topic", "match", "hall/2/#"]);
    command.env("TIDALITE_DB", "a.tdl");
    assert_eq!(Ran::of(command).ok(), "hall/2/temp\t19\n");
    let said = folder.say("--db a.tdl topic get hall/2/temp").ok();
    assert_eq!(said, "19\n");
}
