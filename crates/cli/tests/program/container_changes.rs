//! Storing and changing messages of containers on the command line.

use crate::container_messages::{lines, truck, words};
use crate::support::Folder;

#[test]
fn rules_for_equal_times_and_full_containers() {
    let folder = Folder::new("container-equal");
    let put = |name: &str, options: &str, json: &str| {
        let line = format!("container|put|a.tdl|{name}|--at|2030-01-01{options}|{json}");
        folder.run(&words(&line))
    };
    for (rule, said, left) in [
        ("keep-all", "1 message stored in containers", "2\n"),
        (
            "keep-first",
            "0 messages stored in containers, 1 ignored: there is one of its time",
            "1\n",
        ),
        (
            "replace",
            "0 messages stored in containers, 1 replaced",
            "1\n",
        ),
        ("merge", "0 messages stored in containers, 1 merged", "1\n"),
    ] {
        folder
            .say(&format!(
                "container create a.tdl {rule} --on-duplicate {rule}"
            ))
            .ok();
        put(rule, "", r#"{"a":1,"b":1}"#).ok();
        assert_eq!(put(rule, "", r#"{"a":2}"#).ok(), format!("{said}\n"));
        let count = folder
            .say(&format!("container get a.tdl {rule} --count"))
            .ok();
        assert_eq!(count, left, "{rule}");
    }
    assert!(
        folder
            .say("container get a.tdl merge")
            .ok()
            .contains(r#""a":2,"b":1"#)
    );
    assert!(
        folder
            .say("container get a.tdl replace")
            .ok()
            .ends_with("\"a\":2}\n")
    );
    folder
        .say("container create a.tdl full --messages-max 1 --overflow reject")
        .ok();
    let ran = put("full", "|-f|json", r#"{"a":1}|{"a":2}"#);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert_eq!(
        (
            &lines(&ran.out)[0]["stored"],
            &lines(&ran.out)[0]["rejected"]["full"]
        ),
        (&1.into(), &1.into())
    );
    assert!(ran.err.contains("the container is full"), "{}", ran.err);
    folder
        .say("container create a.tdl ring --messages-max 1")
        .ok();
    let said = put("ring", "", r#"{"a":1}|{"a":2}"#).ok();
    assert_eq!(
        said,
        "2 messages stored in containers; 1 older message removed to make room\n"
    );
    folder.say("container create a.tdl last --ttl 0").ok();
    let said = put("last", "", r#"{"a":5}"#).ok();
    assert!(said.contains("1 not stored"), "{said}");
    assert_eq!(
        folder.say("container latest a.tdl last").ok(),
        "a\t5\t2030-01-01T00:00:00Z\n"
    );
    let ran = put("keys", "|--key|id", r#"{"id":"x"}"#);
    assert!(ran.err.contains("ignores idempotency keys"), "{ran:?}");
    folder
        .say("container options a.tdl --defaults --idempotency-window 1h")
        .ok();
    put("keys", "|--key|id", r#"{"id":7}"#).ok();
    let said = put("keys", "|--key|id", r#"{"id":7}|{"id":8}"#).ok();
    assert_eq!(said, "1 message stored in containers, 1 repeated\n");
    put("keys", "|--key|id", r#"{"x":8}"#).failed(5, &["no field `id`"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn wrong_lines_are_told_with_their_number() {
    let folder = Folder::new("container-hostile");
    let deep = format!(
        "{{\"time\":\"2030-01-01\",\"a\":{}{}}}",
        "[".repeat(40),
        "]".repeat(40)
    );
    let many: String = (0..1001).map(|n| format!(",\"f{n}\":1")).collect();
    let many = format!("{{\"time\":\"2030-01-01\"{many}}}");
    for (bad, told) in [
        (&b"{"[..], "line 3"),
        (b"[]", "line 3"),
        (b"null", "line 3"),
        (b"{\"time\":\"2030-01-01\"} x", "line 3"),
        (
            b"{\"a\":1}",
            "line 3: there is no field `time` or `timestamp`",
        ),
        (b"{\"time\":\"2030-01-01\",\"a\":1,\"a\":2}", "line 3"),
        (
            b"{\"time\":\"2030-01-01\",\"a\":18446744073709551616}",
            "line 3",
        ),
        (b"{\"time\":\"2030-01-01\",\"a\":1e999}", "line 3"),
        (b"{\"time\":\"2030-01-01\",\"\":1}", "line 3"),
        (b"{\"time\":\"2030-02-30\"}", "line 3: `time`"),
        (b"{\"time\":\"9999-01-01\"}", "line 3: `time`"),
        (b"{\"time\":[]}", "line 3: `time` is not a time"),
        (
            b"{\"time\":\"2030-01-01\",\"a\":\"\xff\"}",
            "line 3: it is not UTF-8",
        ),
        (b"\x00", "line 3"),
        (deep.as_bytes(), "line 3"),
        (many.as_bytes(), "line 3"),
    ] {
        let good = b"{\"time\":\"2030-01-01\"}\n\n";
        let input = [&good[..], bad, b"\n", good].concat();
        let ran = folder.run_with(&words("container|put|a.tdl|c"), &input);
        assert!(ran.err.contains("nothing was stored"), "{ran:?}");
        ran.failed(5, &[told]);
    }
    assert_eq!(folder.say("container stat a.tdl").ok(), "");
    let lines: String = "{\"time\":\"2030-01-01\"}\n".repeat(16_384) + "{";
    folder.write("log.jsonl", lines);
    folder
        .say("container put a.tdl c log.jsonl")
        .failed(5, &["log.jsonl: line 16385", "16384 in number, are stored"]);
    assert_eq!(folder.say("container get a.tdl c --count").ok(), "16384\n");
    folder
        .say("container put a.tdl c none.jsonl")
        .failed(3, &["none.jsonl", "begins with {"]);
    folder.say("container put a.tdl").failed(2, &["NAME"]);
    folder
        .say("container put a.tdl --container-field device {\"x\":1}")
        .failed(5, &["no field `device`"]);
    folder
        .say("container put a.tdl c {\"time\":5}")
        .failed(5, &["within days of 1970", "--time-format"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn messages_are_deleted_restored_and_thinned() {
    let folder = truck("container-del");
    folder
        .say("container del a.tdl truck")
        .failed(2, &["--from"]);
    let filter = words("container|del|a.tdl|truck|--filter|state == 'on'|--dry-run");
    assert_eq!(
        folder.run(&filter).ok(),
        "3 messages of truck would be deleted\n"
    );
    folder
        .run(&words("container|del|a.tdl|truck|--filter|state < 1"))
        .failed(5, &["--filter", "filter-test"]);
    folder
        .say("container undelete a.tdl truck")
        .failed(3, &["--keep-deleted"]);
    folder
        .say("container options a.tdl truck --keep-deleted 1d")
        .ok();
    let said = folder.run(&filter[..filter.len() - 1]).ok();
    assert!(
        said.starts_with("3 messages of truck deleted; `tidalite container undelete`"),
        "{said}"
    );
    let listed = lines(
        &folder
            .say("container undelete a.tdl truck --list -f json")
            .ok(),
    );
    assert_eq!((listed.len(), &listed[0]["messages"]), (1, &3.into()));
    assert_eq!(folder.say("container get a.tdl truck --count").ok(), "1\n");
    let said = folder
        .say("container undelete a.tdl truck --to 2030-01-01T00:30:00Z")
        .ok();
    assert_eq!(said, "1 message of truck restored\n");
    let said = folder
        .say("container undelete a.tdl truck --deleted-since -1h -f json")
        .ok();
    assert_eq!(said, "{\"restored\":2,\"skipped\":0}\n");
    folder
        .say("container del a.tdl other --all")
        .failed(3, &["no container other"]);
    let old = "{\"time\":\"2020-01-01T00:00:01Z\",\"x\":1}\n{\"time\":\"2020-01-01T00:00:02Z\",\"x\":4}\n";
    folder
        .run_with(&words("container|put|a.tdl|old"), old.as_bytes())
        .ok();
    assert_eq!(
        folder.say("container thin a.tdl old").ok(),
        "old has no rules\n"
    );
    let said = folder
        .say("container thin a.tdl old --rule 3d:10m --rule 10d:1h30m --fn x=mean,*=first")
        .ok();
    assert!(said.starts_with("old has 2 rules now"), "{said}");
    assert_eq!(
        folder.say("container thin a.tdl old").ok(),
        "rule\t3d:10m\nrule\t10d:1h30m\nfield\tx=mean\nfield\t*=first\n"
    );
    let json = &lines(&folder.say("container thin a.tdl old -f json").ok())[0];
    assert_eq!(
        (&json["fields"]["x"], &json["others"]),
        (&"mean".into(), &"first".into())
    );
    let said = folder.say("container maintain a.tdl").ok();
    assert_eq!(
        said,
        "containers maintained: 1 message removed (1 thinned)\n"
    );
    assert!(
        folder
            .say("container get a.tdl old")
            .ok()
            .contains("\"x\":2.5")
    );
    let said = folder.say("container rebuild a.tdl").ok();
    assert!(said.starts_with("the series of "), "{said}");
    folder.say("check a.tdl").ok();
    let said = folder.say("container thin a.tdl old --remove").ok();
    assert_eq!(said, "old has no rules now\n");
    for options in [
        "--rule 3d",
        "--rule 3d:1h --rule 2d:2h",
        "--rule 3d:1h --fn x=median",
        "--fn x=mean",
    ] {
        folder
            .say(&format!("container thin a.tdl old {options}"))
            .failed(2, &[]);
    }
    folder.say("container options a.tdl old --ttl 1d").ok();
    let json = &lines(&folder.say("container maintain a.tdl -f json").ok())[0];
    assert_eq!(json["expired"], 1);
    folder
        .say("container maintain a.tdl --table x")
        .failed(3, &["no table of containers x"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn a_queue_is_handed_over() {
    let folder = Folder::new("container-hand-over");
    let jobs = "{\"device\":\"a\",\"time\":1900000000,\"x\":1}\nnoise\n{\"device\":\"b\",\"x\":2}\n{\"x\":3}\n";
    folder
        .run_with(
            &words("queue|push|a.tdl|--table|inbox|--lines"),
            jobs.as_bytes(),
        )
        .ok();
    folder
        .say("container hand-over a.tdl nothing c")
        .failed(3, &["no queue nothing"]);
    folder
        .say("container hand-over a.tdl inbox c --group other")
        .failed(3, &["no group other"]);
    folder
        .say("container hand-over a.tdl inbox")
        .failed(2, &["NAME"]);
    let said = folder
        .say("container hand-over a.tdl inbox --container-field device -n 1")
        .ok();
    assert_eq!(said, "1 message of inbox handed over to containers\n");
    let said = folder
        .say("container hand-over a.tdl inbox --container-field device")
        .ok();
    assert_eq!(
        said,
        "1 message of inbox handed over to containers, 2 made dead letters: see `tidalite queue dead`\n"
    );
    assert_eq!(
        folder.say("container get a.tdl a").ok(),
        "{\"time\":\"2030-03-17T17:46:40Z\",\"x\":1}\n"
    );
    assert_eq!(folder.say("container get a.tdl b --count").ok(), "1\n");
    let said = folder.say("container hand-over a.tdl inbox c -f json").ok();
    assert_eq!(said, "{\"dead\":0,\"done\":0,\"rejected\":0}\n");
    folder.say("check a.tdl").ok();
}
