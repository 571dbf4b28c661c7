//! Selecting events by text, reading points page by page, and finding the most frequent values.

use crate::support::Folder;

#[test]
fn events_by_their_text_and_page_by_page() {
    let folder = Folder::new("events_by_their_text_and_page_by_page");
    let mut csv = String::from("time,alarm\n");
    for minute in 0..60 {
        let text = match minute % 4 {
            0 => format!("pump {}: timeout", minute / 20),
            1 => "Valve open".to_owned(),
            2 => "valve shut".to_owned(),
            _ => format!("pump {minute}: leak, \u{fc}ber Nacht"),
        };
        csv += &format!("2014-06-01T00:{minute:02}:00Z,\"{text}\"\n");
    }
    folder.write("events.csv", csv);
    folder
        .say("import e.tdl events.csv --into events --columns alarm:string --quiet")
        .ok();
    let rows = |words: &[&str]| -> Vec<String> {
        let words = [&["scan", "e.tdl", "events", "-f", "csv"], words].concat();
        let out = folder.run(&words).ok();
        let without_name = |line: &str| line.trim_start_matches("events,").to_owned();
        out.lines().skip(1).map(without_name).collect()
    };
    assert_eq!(rows(&["--regex", "timeout$"]).len(), 15);
    assert_eq!(rows(&["--regex", "(?i)^valve"]).len(), 30);
    assert_eq!(rows(&["--regex", "^pump [01]: t"]).len(), 10);
    assert_eq!(rows(&["--regex", "\u{fc}ber", "--last", "4m"]).len(), 1);
    let page = rows(&["--regex", "^Valve", "--offset", "3", "--limit", "2"]);
    assert_eq!(
        page,
        [
            "2014-06-01T00:13:00Z,Valve open",
            "2014-06-01T00:17:00Z,Valve open"
        ]
    );
    let all = rows(&[]);
    let mut pages = Vec::new();
    for offset in ["0", "25", "50"] {
        pages.extend(rows(&["--limit", "25", "--offset", offset]));
    }
    assert_eq!(pages, all);
    let late = rows(&["--from", "2014-06-01T00:30", "--offset", "29"]);
    assert_eq!(late, all[59..]);
    let most = rows(&["--frequent", "2"]);
    assert_eq!(most, ["Valve open,15,15,15", "valve shut,15,15,15"]);

    let say = |line: &str| folder.say(&format!("scan e.tdl events {line}"));
    say("--regex nothing").failed(3, &["no text in this range matches"]);
    say("--offset 60").failed(3, &["no point after the offset"]);
    say("--regex (").failed(2, &["--regex"]);
    say("--regex x --column wind").failed(3, &["no column `wind`"]);
    let folder = Folder::with_plant("events_by_their_text_and_page_by_page_2");
    folder
        .say("scan plant.tdl hb.wind --regex x")
        .failed(2, &["no column of strings"]);
    let wind = "scan plant.tdl hb.wind{turbine=\"B\"} -f csv";
    let out = folder
        .say(&format!("{wind} --fn mean_error(3) --offset 1 --limit 2"))
        .ok();
    assert_eq!(
        out,
        "series,time,mean_error\n\
         \"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T00:02:00Z,1.5\n\
         \"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T00:03:00Z,2\n"
    );
    let out = folder.say(&format!("{wind} --fn ewma(3) --limit 2")).ok();
    let name = "\"hb.wind{turbine=\"\"B\"\"}\"";
    assert_eq!(
        out,
        format!(
            "series,time,ewma\n{name},2014-06-01T00:00:00Z,0\n{name},2014-06-01T00:01:00Z,{}\n",
            1.0 / 1.5
        )
    );
}
