//! Reading messages of containers on the command line.

use crate::support::Folder;
use serde_json::Value;

pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const GPS: &str = r#"{"time":"2030-01-01T00:00:00Z","speed":0,"state":"idle","km":10}
{"time":"2030-01-01T00:20:00Z","speed":50.5,"state":"on","km":12,"gps":{"lat":48.5,"lon":9}}
{"time":"2030-01-01T00:40:00Z","speed":70,"state":"on","km":30,"serial":18446744073709551615}

{"time":"2030-01-01T01:00:00Z","speed":10,"state":"on","km":5}
"#;

/// Four messages of the truck in `a.tdl`.
pub(crate) fn truck(name: &str) -> Folder {
    let folder = Folder::new(name);
    let put = ["container", "put", "a.tdl", "truck"];
    let said = folder.run_with(&put, GPS.as_bytes()).ok();
    assert_eq!(
        said,
        "4 messages stored in containers; 1 container created\n"
    );
    folder
}

/// The arguments of a command line whose words are separated by `|`.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split('|').collect()
}

#[test]
fn messages_are_read_with_ranges_fields_and_filters() {
    let folder = truck("container-get");
    let said = folder.say("container get a.tdl truck").ok();
    assert_eq!(
        said.lines().nth(2).unwrap(),
        r#"{"time":"2030-01-01T00:40:00Z","speed":70,"state":"on","km":30,"serial":18446744073709551615}"#
    );
    for (options, times) in [
        ("", &["00:00", "00:20", "00:40", "01:00"][..]),
        ("--reverse|-n|2", &["01:00", "00:40"]),
        (
            "--from|2030-01-01 00:20|--to|2030-01-01 01:00",
            &["00:20", "00:40"],
        ),
        (
            "--from|2030-01-01T01:20+01:00|--to|9999-01-01",
            &["00:20", "00:40", "01:00"],
        ),
        ("--filter|speed > 10 && state == 'on'", &["00:20", "00:40"]),
        ("--filter|exists(gps.lat)", &["00:20"]),
        (
            "--filter|time >= 1893457200000000000",
            &["00:20", "00:40", "01:00"],
        ),
        ("--from|2031-01-01", &[]),
    ] {
        let mut line = words("container|get|a.tdl|truck");
        line.extend(options.split('|').filter(|word| !word.is_empty()));
        let found = lines(&folder.run(&line).ok());
        let found: Vec<&str> = found
            .iter()
            .map(|line| &line["time"].as_str().unwrap()[11..16])
            .collect();
        if options.contains("time >=") {
            assert_eq!(found.last(), Some(&"01:00"));
            continue;
        }
        assert_eq!(found, times, "{options}");
    }
    let said = folder
        .say("container get a.tdl truck --fields km,gps.lat,none --tz Europe/Berlin")
        .ok();
    assert_eq!(
        said.lines().nth(1).unwrap(),
        r#"{"time":"2030-01-01T01:20:00+01:00","km":12,"gps.lat":48.5}"#
    );
    let count = words("container|get|a.tdl|truck|--count|--filter|km > 9");
    assert_eq!(folder.run(&count).ok(), "3\n");
    for (options, code, told) in [
        ("--filter|speed >", 2, "character"),
        ("--filter|state + 1 > 2", 5, "filter-test"),
        ("--fields|a,a", 2, "--fields"),
        ("--from|soon", 2, "--from"),
        ("--from|2030-01-02|--to|2030-01-01", 2, "not before"),
        ("--from|9999-01-01", 2, "beyond"),
        ("--after|zz", 2, "--after"),
        ("other", 3, "no container other"),
    ] {
        let mut line = words("container|get|a.tdl|truck");
        line.extend(options.split('|'));
        folder.run(&line).failed(code, &[told]);
    }
}

/// Pages end within messages of one time, and each message comes exactly once, also if others are stored in between.
#[test]
fn pages_go_on_with_a_token() {
    let folder = Folder::new("container-pages");
    let mut text = String::new();
    for n in 0..23 {
        text += &format!("{{\"time\":{},\"n\":{n}}}\n", 1_900_000_000 + n / 10);
    }
    let put = words("container|put|a.tdl|c|--time-format|s");
    folder.run_with(&put, text.as_bytes()).ok();
    for reverse in [false, true] {
        let (mut seen, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut line = words("container|get|a.tdl|c|--limit|4|--filter|n < 100");
            if reverse {
                line.push("--reverse");
            }
            if let Some(token) = &token {
                line.extend(["--after", token]);
            }
            let ran = folder.run(&line);
            seen.extend(
                lines(&ran.out)
                    .iter()
                    .map(|line| line["n"].as_i64().unwrap()),
            );
            token = ran
                .err
                .split_once("--after ")
                .map(|(_, token)| token.trim().to_owned());
            if token.is_none() {
                break;
            }
            folder
                .say("container put a.tdl c {\"n\":100} --at 2030-03-17T17:46:40Z")
                .ok();
        }
        let mut expected: Vec<i64> = (0..23).collect();
        if reverse {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    let ran = folder.say("container get a.tdl c --limit 1");
    let token = ran.err.split_once("--after ").unwrap().1.trim();
    folder.say("container create a.tdl d").ok();
    folder
        .say(&format!("container get a.tdl d --after {token}"))
        .failed(2, &["not a token for this container"]);
    folder
        .say(&format!("container get a.tdl c d --after {token}"))
        .failed(2, &["one container"]);
}

#[test]
fn several_containers_are_merged_by_time() {
    let folder = truck("container-merged");
    let text = r#"{"t":1893457201,"v":1}
{"t":1893458401,"v":2,"container":"x","time":3}"#;
    let put = words("container|put|a.tdl|car|--time|t");
    folder.run_with(&put, text.as_bytes()).ok();
    let said = folder
        .say("container get a.tdl truck car truck --from 2030-01-01T00:20:00Z -n 3")
        .ok();
    let found: Vec<String> = said
        .lines()
        .map(|line| line[..line.len().min(64)].to_owned())
        .collect();
    assert!(
        found[0].contains(r#""container":"car""#) || found[0].contains(r#""container":"truck""#),
        "{said}"
    );
    let times: Vec<String> = lines(&said)
        .iter()
        .map(|line| line.get("_time").unwrap_or(&line["time"]).to_string())
        .collect();
    let mut sorted = times.clone();
    sorted.sort();
    assert_eq!((times.len(), &times), (3, &sorted));
    let all = folder.say("container get a.tdl car").ok();
    assert_eq!(
        all.lines().nth(1).unwrap(),
        r#"{"_time":"2030-01-01T00:40:01Z","v":2,"container":"x","time":3}"#
    );
}

#[test]
fn latest_values_and_figures() {
    let folder = truck("container-figures");
    let said = folder.say("container latest a.tdl truck km gps").ok();
    assert_eq!(
        said,
        "km\t5\t2030-01-01T01:00:00Z\ngps\t{\"lat\":48.5,\"lon\":9}\t2030-01-01T00:20:00Z\n"
    );
    let json = folder
        .say("container latest a.tdl truck serial -f json")
        .ok();
    assert_eq!(
        json,
        "{\"field\":\"serial\",\"time\":\"2030-01-01T00:40:00Z\",\"value\":18446744073709551615}\n"
    );
    assert_eq!(
        folder
            .say("container latest a.tdl truck")
            .ok()
            .lines()
            .count(),
        5
    );
    folder
        .say("container latest a.tdl truck none")
        .failed(3, &["no field none"]);
    folder
        .say("container latest a.tdl none")
        .failed(3, &["no container none"]);
    let said = folder
        .say("container aggregate a.tdl truck --step 1h --fn max(speed),increase(km),count,last(state) --by state -f csv")
        .ok();
    assert_eq!(
        said,
        "time,state,max(speed),increase(km),count,last(state)\n\
         2030-01-01T00:00:00Z,idle,0,,1,idle\n\
         2030-01-01T00:00:00Z,on,70,18,2,on\n\
         2030-01-01T01:00:00Z,on,10,5,1,on\n"
    );
    let json = folder
        .run(&words(
            "container|aggregate|a.tdl|truck|--fn|sum(km),mean(speed)|--filter|speed > 5|-f|json",
        ))
        .ok();
    assert_eq!(lines(&json)[0]["sum(km)"], 47);
    for (options, code, told) in [
        ("--fn median(km)", 2, "tidalite window"),
        ("--fn max", 2, "max(speed)"),
        ("--fn none(km)", 2, "none"),
        ("--step 0s", 2, "0s"),
        ("--from 2031-01-01", 3, "no message"),
    ] {
        folder
            .say(&format!("container aggregate a.tdl truck {options}"))
            .failed(code, &[told]);
    }
    let window =
        words(r#"window|a.tdl|containers{container="truck"}|--by|1h|--fn|max(speed)|-f|csv"#);
    let said = folder.run(&window).ok();
    assert!(said.contains("2030-01-01T00:00:00Z,70"), "{said}");
}

#[test]
fn expressions_are_tried_out() {
    let folder = Folder::new("container-filter-test");
    let message = r#"{"speed": 7, "state": "on", "id": 18446744073709551615}"#;
    for (expression, value) in [
        ("speed > 5 && state == 'on'", "true"),
        ("id - 1", "18446744073709551614"),
        ("state ~ 'o?'", "true"),
        ("missing > 1", "null"),
        ("speed / 2", "3.5"),
    ] {
        let said = folder
            .run(&["container", "filter-test", expression, message])
            .ok();
        assert_eq!(said, format!("{value}\n"), "{expression}");
    }
    let json = folder
        .run(&[
            "container",
            "filter-test",
            "time == 0",
            "{}",
            "--at",
            "1970-01-01",
            "-f",
            "json",
        ])
        .ok();
    assert_eq!(json, "{\"value\":true,\"matches\":true}\n");
    let said = folder
        .run_with(
            &["container", "filter-test", "x + 1", "-"],
            b"{\"x\":1}\n\n{\"x\":2.5}\n",
        )
        .ok();
    assert_eq!(said, "2\n3.5\n");
    for (expression, message, code, told) in [
        ("speed >", "{}", 2, "character"),
        ("state + 1", message, 5, "character 7"),
        ("speed", "[1]", 5, "found"),
        ("speed", "", 5, "found"),
    ] {
        folder
            .run(&["container", "filter-test", expression, message])
            .failed(code, &[told]);
    }
    folder
        .run_with(&["container", "filter-test", "x", "-"], b"{\"x\":1}\nno\n")
        .failed(5, &["line 2"]);
}
