//! `topic watch`: retained messages, then changes of other processes.

use crate::support::{Folder, Running};
use std::process::Stdio;

fn set(folder: &Folder, topic: &str, payload: &str) {
    folder.run(&["topic", "set", "a.tdl", topic, payload]).ok();
}

#[test]
fn a_watch_prints_the_messages_and_then_the_feed() {
    let folder = Folder::new("watch-feed");
    folder.say("topic create a.tdl --feed 100").ok();
    set(&folder, "hall/1", "a");
    set(&folder, "other", "x");
    let watch = ["topic", "watch", "a.tdl", "hall/#", "--every", "20ms"];
    let running = Running::start(&folder, &watch);
    let with_json = [&watch[..], &["-f", "json", "--count", "3"]].concat();
    running.expect(&["hall/1\ta"]);
    let json = Running::start(&folder, &with_json);
    assert!(json.next().contains("\"topic\":\"hall/1\""));
    set(&folder, "hall/2", "b");
    set(&folder, "other", "y");
    running.expect(&["hall/2\tb"]);
    folder.say("topic rm a.tdl hall/1").ok();
    running.expect(&["hall/1\t(removed)"]);
    let line = json.next();
    assert!(
        line.contains("\"event\":\"message\"") && line.contains("\"topic\":\"hall/2\""),
        "{line}"
    );
    assert_eq!(
        json.next(),
        "{\"event\":\"removed\",\"sequence\":5,\"topic\":\"hall/1\"}"
    );
    json.ends();
}

#[test]
fn a_watch_ends_by_count_and_by_time() {
    let folder = Folder::new("watch-end");
    set(&folder, "a", "1");
    set(&folder, "b", "2");
    let ran = folder.say("topic watch a.tdl # --count 1");
    assert!(ran.err.contains("no feed"), "{}", ran.err);
    assert_eq!(ran.ok(), "a\t1\n");
    assert_eq!(
        folder.say("topic watch a.tdl # --for 50ms").ok(),
        "a\t1\nb\t2\n"
    );
    folder
        .say("topic watch a.tdl # --for 0s")
        .failed(2, &["--for"]);
    folder
        .say("topic watch a.tdl # --count 0")
        .failed(2, &["--count"]);
    folder
        .say("topic watch a.tdl # --table x")
        .failed(3, &["x"]);
}

#[test]
fn without_a_feed_newer_messages_are_found_by_their_numbers() {
    let folder = Folder::new("watch-polled");
    set(&folder, "a", "1");
    let watch = ["topic", "watch", "a.tdl", "#", "--every", "20ms"];
    let running = Running::start(&folder, &watch);
    running.expect(&["a\t1"]);
    set(&folder, "b", "2");
    running.expect(&["b\t2"]);
    folder.say("topic rm a.tdl b").ok();
    set(&folder, "a", "3");
    running.expect(&["a\t3"]);
}

#[test]
fn a_feed_that_has_lost_changes_says_so() {
    let folder = Folder::new("watch-lost");
    folder.say("topic create a.tdl --feed 2").ok();
    set(&folder, "go", "1");
    let watch = [
        "topic", "watch", "a.tdl", "#", "--every", "20ms", "-f", "json", "--count", "7",
    ];
    let running = Running::start(&folder, &watch);
    assert!(running.next().contains("\"topic\":\"go\""));
    // All six in one commit, more than the feed keeps.
    let lines: String = (0..6)
        .map(|n| format!("{{\"topic\":\"t/{n}\",\"payload\":\"{n}\"}}\n"))
        .collect();
    folder
        .run_with(&["topic", "import", "a.tdl"], lines.as_bytes())
        .ok();
    running.expect(&["{\"after\":1,\"event\":\"lost\",\"from\":6}"]);
    for n in 0..6 {
        assert!(running.next().contains(&format!("\"topic\":\"t/{n}\"")));
    }
    running.ends();
}

#[test]
fn retained_messages_are_skipped_on_request() {
    let folder = Folder::new("watch-skip");
    folder.say("topic create a.tdl --feed 1000").ok();
    set(&folder, "a", "old");
    let watch = [
        "topic",
        "watch",
        "a.tdl",
        "#",
        "--every",
        "10ms",
        "--skip-retained",
        "--count",
        "1",
    ];
    let mut command = folder.command(&watch);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // The watch prints the first change after it has begun, whenever that is.
    while child.try_wait().unwrap().is_none() {
        set(&folder, "a", "new");
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\tnew\n");
}
