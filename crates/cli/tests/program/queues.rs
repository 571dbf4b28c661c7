//! Queues on the command line.

use crate::support::Folder;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The ids at the beginnings of lines of text.
fn ids(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split('\t').next())
        .collect()
}

/// A queue `jobs` with the messages 1 to 3.
fn three(name: &str) -> Folder {
    let folder = Folder::new(name);
    let words = ["queue", "push", "a.tdl", "--lines"];
    let said = folder.run_with(&words, b"one\ntwo\nthree").ok();
    assert_eq!(said, "3 messages stored in jobs\n");
    folder
}

#[test]
fn messages_are_pushed_leased_and_answered() {
    let folder = Folder::new("queue");
    let said = folder.say("queue push a.tdl resize").ok();
    assert_eq!(said, "message 1 stored in jobs\n");
    let said = folder.say("queue push a.tdl -5 -f json").ok();
    assert_eq!(said, "{\"id\":2,\"outcome\":\"stored\"}\n");
    assert_eq!(folder.say("queue peek a.tdl").ok(), "1\tresize\n2\t-5\n");
    assert_eq!(folder.say("queue lease a.tdl --for 1h").ok(), "1\tresize\n");
    let json = folder.say("queue lease a.tdl --for 1h -f json").ok();
    let delivery = &lines(&json)[0];
    assert_eq!(
        (&delivery["id"], &delivery["deliveries"]),
        (&2.into(), &1.into())
    );
    assert!(delivery["deadline"].as_str() > delivery["pushed"].as_str());
    folder
        .say("queue lease a.tdl")
        .failed(3, &["no message of jobs is ready", "queue stat"]);
    let said = folder.say("queue extend a.tdl 1 --for 2h").ok();
    assert_eq!(said, "1\textended\n");
    assert_eq!(folder.say("queue ack a.tdl 1").ok(), "1\tacknowledged\n");
    folder
        .say("queue ack a.tdl 1")
        .failed(3, &["not acknowledged: 1 of 1 message"]);
    assert_eq!(folder.say("queue nack a.tdl 2").ok(), "2\tgiven back\n");
    assert_eq!(folder.say("queue take a.tdl --raw").ok(), "-5");
    assert_eq!(folder.say("queue peek a.tdl").ok(), "");
    folder
        .say("queue take a.tdl")
        .failed(3, &["no message of jobs is ready"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn an_answer_tells_the_result_of_each_id() {
    let folder = three("queue-answers");
    folder.say("queue lease a.tdl --consumer one").ok();
    folder
        .say("queue lease a.tdl --consumer two --for 1ms")
        .ok();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let ran = folder.say("queue ack a.tdl 1 2 3 9 --consumer two -f json");
    assert_eq!(ran.code, 3, "{ran:?}");
    let outcomes: Vec<Value> = lines(&ran.out)
        .into_iter()
        .map(|line| line["outcome"].clone())
        .collect();
    assert_eq!(
        outcomes,
        ["held_by_other", "lapsed", "not_leased", "unknown"]
    );
    let ran = folder.say("queue ack a.tdl 1 3 --consumer one");
    assert_eq!(
        ran.out,
        "1\tacknowledged\n3\tunchanged: it is not leased, or not a dead letter\n"
    );
    folder.say("queue ack a.tdl").failed(2, &["ID"]);
    folder.say("queue ack a.tdl x").failed(2, &["x"]);
    folder.say("queue ack a.tdl -1").failed(2, &["-1"]);
}

#[test]
fn priority_delay_keys_headers_and_expiry_are_kept() {
    let folder = Folder::new("queue-properties");
    folder.say("queue push a.tdl low --priority 1").ok();
    folder
        .say("queue push a.tdl high --priority 200 --key k --header a=1 --header a=2 --expires 1d --idempotency-key i")
        .ok();
    folder
        .say("queue push a.tdl late --delay 1h --priority 255")
        .ok();
    folder
        .say("queue push a.tdl gone --expires 1ms --priority 255")
        .ok();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let json = folder.say("queue peek a.tdl -f json").ok();
    let found = lines(&json);
    assert_eq!(found.len(), 2, "{json}");
    assert_eq!(
        (&found[0]["payload"], &found[1]["payload"]),
        (&"high".into(), &"low".into())
    );
    assert_eq!(
        (&found[0]["key"], &found[0]["idempotency_key"]),
        (&"k".into(), &"i".into())
    );
    assert_eq!(found[0]["headers"][1]["value"], "2");
    assert_eq!(
        (&found[0]["priority"], &found[0]["deliveries"]),
        (&200.into(), &0.into())
    );
    assert_eq!(
        ids(&folder.say("queue peek a.tdl --all").ok()),
        ["1", "2", "3", "4"]
    );
    assert_eq!(
        ids(&folder.say("queue peek a.tdl --all --from 2 -n 2").ok()),
        ["2", "3"]
    );
    let said = folder.say("queue maintain a.tdl").ok();
    assert_eq!(said, "jobs maintained: 1 message deleted\n");
    let every: Vec<u8> = (0..=255).collect();
    folder.write("bytes", &every);
    folder
        .say("queue push a.tdl --file bytes --priority 254")
        .ok();
    let taken = folder
        .command(&["queue", "take", "a.tdl", "--raw"])
        .output();
    assert_eq!(taken.unwrap().stdout, every);
    let words = ["queue", "push", "a.tdl", "-"];
    folder.run_with(&words, b"a\nb\xff").ok();
    let json = folder.say("queue peek a.tdl --all --from 6 -f json").ok();
    assert!(json.contains("\"payload_hex\":\"610a62ff\""), "{json}");
}

#[test]
fn dead_letters_are_printed_requeued_and_dropped() {
    let folder = three("queue-dead");
    folder
        .say("queue create a.tdl --alter --deliveries-max 1")
        .ok();
    folder.say("queue lease a.tdl -n 3").ok();
    folder.say("queue nack a.tdl 1").ok();
    folder.say("queue reject a.tdl 2 3").ok();
    assert_eq!(
        folder.say("queue dead a.tdl").ok(),
        "1\tone\ttoo many deliveries\n2\ttwo\trejected\n3\tthree\trejected\n"
    );
    let json = folder.say("queue dead a.tdl -f json -n 1 --from 2").ok();
    let letter = &lines(&json)[0];
    assert_eq!(
        (&letter["id"], &letter["reason"]),
        (&2.into(), &"rejected".into())
    );
    assert_eq!(
        folder.say("queue dead a.tdl 1 --requeue").ok(),
        "1\trequeued\n"
    );
    assert_eq!(folder.say("queue dead a.tdl 2 --drop").ok(), "2\tdropped\n");
    folder
        .say("queue dead a.tdl 2 --drop")
        .failed(3, &["not dropped"]);
    let said = folder.say("queue dead a.tdl --all --requeue").ok();
    assert_eq!(said, "1 dead letter of jobs requeued\n");
    assert_eq!(folder.say("queue dead a.tdl").ok(), "");
    assert_eq!(folder.say("queue peek a.tdl").ok(), "1\tone\n3\tthree\n");
    let said = folder.say("queue dead a.tdl --all --drop -f json").ok();
    assert_eq!(said, "{\"dropped\":0}\n");
    folder.say("queue dead a.tdl 1").failed(2, &["--requeue"]);
    folder.say("queue dead a.tdl --drop").failed(2, &["--all"]);
    folder
        .say("queue dead a.tdl 1 --drop --requeue")
        .failed(2, &["cannot be used with"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn groups_get_every_message() {
    let folder = three("queue-groups");
    let said = folder.say("queue group create a.tdl mail").ok();
    assert_eq!(said, "group mail of jobs created\n");
    let said = folder.say("queue group create a.tdl mail").ok();
    assert_eq!(said, "group mail of jobs exists already\n");
    folder
        .say("queue group create a.tdl audit --start newest")
        .ok();
    folder.say("queue push a.tdl four").ok();
    let take = |group: &str| {
        folder
            .say(&format!("queue take a.tdl --group {group} -n 10"))
            .ok()
    };
    assert_eq!(ids(&take("audit")), ["4"]);
    assert_eq!(ids(&take("mail")), ["1", "2", "3", "4"]);
    let list = folder.say("queue group list a.tdl").ok();
    assert_eq!(ids(&list), ["audit", "mail"]);
    let json = folder.say("queue group list a.tdl -f json").ok();
    assert_eq!(lines(&json)[1]["acked"], 4);
    for command in [
        "lease a.tdl --group none",
        "take a.tdl --group none",
        "ack a.tdl 1 --group none",
        "peek a.tdl --group none",
        "dead a.tdl --group none",
        "purge a.tdl --group none",
        "group drop a.tdl none",
    ] {
        folder
            .say(&format!("queue {command}"))
            .failed(3, &["has no group none"]);
    }
    let said = folder.say("queue group drop a.tdl audit").ok();
    assert!(said.starts_with("group audit of jobs dropped"), "{said}");
    folder
        .run(&["queue", "group", "create", "a.tdl", ""])
        .failed(5, &["queue stat a.tdl"]);
    folder.say("queue maintain a.tdl").ok();
    folder.say("check a.tdl").ok();
}

#[test]
fn a_full_queue_follows_its_rule() {
    let folder = Folder::new("queue-full");
    let create = |table: &str, rule: &str| {
        folder.say(&format!(
            "queue create a.tdl --table {table} --messages-max 2 --overflow {rule}"
        ))
    };
    let push = |table: &str| {
        let words = ["queue", "push", "a.tdl", "--lines", "--table", table];
        folder.run_with(&words, b"1\n2\n3\n")
    };
    assert_eq!(create("r", "reject").ok(), "table r created\n");
    push("r").failed(5, &["lines 1 to 3, none of which is stored"]);
    assert_eq!(folder.say("queue peek a.tdl --table r").ok(), "");
    create("n", "drop-newest").ok();
    assert_eq!(
        push("n").ok(),
        "2 messages stored in n, 1 dropped: the queue is full\n"
    );
    let said = folder.say("queue push a.tdl 4 --table n").ok();
    assert_eq!(said, "nothing stored: queue n is full\n");
    create("o", "drop-oldest").ok();
    push("o").ok();
    assert_eq!(
        folder.say("queue peek a.tdl --table o").ok(),
        "2\t2\n3\t3\n"
    );
    create("o", "reject").failed(5, &["other options", "--alter"]);
    create("x", "sometimes").failed(2, &["drop-oldest"]);
}

#[test]
fn a_repeated_push_stores_nothing() {
    let folder = Folder::new("queue-repeated");
    folder
        .say("queue create a.tdl --idempotency-window 1h --retention 7d --deliveries-max 5 --bytes-max 1000000")
        .ok();
    let push = "queue push a.tdl x --idempotency-key k";
    folder.say(push).ok();
    assert_eq!(
        folder.say(push).ok(),
        "nothing stored: message 1 has this idempotency key\n"
    );
    assert_eq!(
        folder.say(&format!("{push} -f json")).ok(),
        "{\"id\":1,\"outcome\":\"repeated\"}\n"
    );
    let stat = folder.say("queue stat a.tdl --table jobs").ok();
    for line in [
        "Messages: 1",
        "Repeated: 2",
        "Full queue: reject",
        "Maximum deliveries: 5",
        "Retention: 604800 s",
        "Idempotency window: 3600 s",
        "Group default: 1 ready, 0 delayed",
    ] {
        assert!(stat.contains(line), "{line}: {stat}");
    }
    let json = folder.say("queue stat a.tdl -f json").ok();
    let stat = &lines(&json)[0];
    assert_eq!(
        (&stat["table"], &stat["messages"]),
        (&"jobs".into(), &1.into())
    );
    assert_eq!(stat["groups"][0]["ready"], 1);
    let listed = folder.say("queue stat a.tdl").ok();
    assert!(listed.starts_with("jobs\t1 message\t1 group\t"), "{listed}");
    let said = folder.say("queue purge a.tdl").ok();
    assert_eq!(said, "1 message deleted from jobs\n");
    folder.say("queue push a.tdl y").ok();
    let said = folder.say("queue purge a.tdl --group default").ok();
    assert_eq!(
        said,
        "all messages of the group default deleted from jobs\n"
    );
    assert_eq!(folder.say("queue peek a.tdl").ok(), "");
}

#[test]
fn wrong_words_are_explained() {
    let folder = three("queue-wrong");
    for (words, code, told) in [
        ("queue push a.tdl", 2, "a payload"),
        ("queue push a.tdl x --lines", 2, "cannot be used with"),
        ("queue push a.tdl x --priority 256", 2, "256"),
        ("queue push a.tdl x --header a", 2, "NAME=VALUE"),
        ("queue push a.tdl x --delay soon", 2, "neither a duration"),
        ("queue push a.tdl zz --hex", 2, "hex digits"),
        ("queue lease a.tdl -n 0", 2, "1..=65536"),
        ("queue lease a.tdl --for 0s", 2, "--for"),
        ("queue lease none.tdl", 3, "no database none.tdl"),
        ("queue lease a.tdl --table x", 3, "no queue x"),
        ("queue peek a.tdl --table x", 3, "queue stat a.tdl"),
        ("queue stat a.tdl --table x", 3, "no queue x"),
        ("queue nack a.tdl 1 --delay 1mo", 2, "months"),
        ("queue create a.tdl --alter --table x", 3, "no queue x"),
    ] {
        folder.say(words).failed(code, &[told]);
    }
    let long = "x".repeat(300);
    folder
        .run(&["queue", "lease", "a.tdl", "--consumer", &long])
        .failed(5, &["255"]);
    folder
        .run(&["queue", "push", "a.tdl", "x", "--key", &"k".repeat(2000)])
        .failed(5, &["1024"]);
    folder.run(&["queue", "push", "a.tdl", "\u{1b}[31m\n"]).ok();
    let printed = folder.say("queue peek a.tdl --all --from 4").ok();
    assert_eq!(printed, "4\t\\u{1b}[31m\\n\n");
}
