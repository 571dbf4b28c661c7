//! Reading the newest points, points that are selected by value, and older versions.

use crate::support::Folder;
use tidalite::{Column, ColumnType, Database, Schema, Steps, Unit};

const A: &str = r#"hb.power{turbine="A"}"#;

fn lines(text: &str) -> Vec<&str> {
    text.lines().skip(1).collect()
}

#[test]
fn the_newest_points_come_first_or_alone() {
    let folder = Folder::with_plant("the_newest_points_come_first_or_alone");
    let scan = |words: &[&str]| {
        let all = [&["scan", "plant.tdl"], words, &["-f", "csv"]].concat();
        folder.run(&all).ok()
    };
    let forward = scan(&[A]);
    let mut expected = lines(&forward);
    assert_eq!(lines(&scan(&[A, "--tail", "10"])), expected[109..]);
    assert_eq!(lines(&scan(&[A, "--tail", "1000"])), expected);
    expected.reverse();
    assert_eq!(lines(&scan(&[A, "--reverse"])), expected);
    assert_eq!(
        lines(&scan(&[A, "--tail", "10", "--reverse"])),
        expected[..10]
    );
    assert_eq!(
        lines(&scan(&[A, "--reverse", "-n", "5", "--offset", "7"])),
        expected[7..12]
    );
    assert_eq!(
        lines(&scan(&[A, "--reverse", "--offset", "118"])),
        expected[118..]
    );
    let range = ["--from", "2014-06-01 00:29", "--to", "2014-06-01 00:33"];
    let told = scan(&[&[A, "--reverse"], &range[..]].concat());
    let ends = lines(&told)
        .into_iter()
        .map(|line| &line[line.len() - 24..]);
    assert_eq!(
        ends.collect::<Vec<_>>().join("\n"),
        "2014-06-01T00:32:00Z,320\n2014-06-01T00:31:00Z,310\n2014-06-01T00:29:00Z,290"
    );
    let told = scan(&[&[A, "--tail", "2"], &range[..]].concat());
    assert!(
        told.contains("00:31:00Z,310\n") && told.ends_with(",2014-06-01T00:32:00Z,320\n"),
        "{told}"
    );
    folder
        .run(&["scan", "plant.tdl", A, "--reverse", "--offset", "119"])
        .failed(3, &["after the offset"]);
    // The test reads each series backwards, and then the newest points of all series together.
    let told = scan(&["hb.power", "--reverse", "-n", "2"]);
    let times = |told: &str| -> Vec<String> {
        let own = |line: &str| {
            let tag = if line.contains("\"A\"") { "A" } else { "B" };
            let at = line.find("T0").unwrap();
            format!("{tag}{}", &line[at + 1..at + 6])
        };
        lines(told).into_iter().map(own).collect()
    };
    assert_eq!(times(&told), ["A01:59", "A01:58", "B01:59", "B01:58"]);
    let told = scan(&["hb.power", "--tail", "3"]);
    assert_eq!(times(&told), ["B01:58", "A01:59", "B01:59"]);
    let told = scan(&["hb.power", "--tail", "3", "--reverse"]);
    assert_eq!(times(&told), ["B01:59", "A01:59", "B01:58"]);
    // The value of minute 30 is missing in one of the series.
    let told = scan(&["hb.power", "--tail", "3", "--to", "2014-06-01 00:31"]);
    assert_eq!(times(&told), ["A00:29", "B00:29", "B00:30"]);
    assert_eq!(scan(&[A, "--tail", "0"]), "series,time,value\n");
    for other in ["--limit 1", "--offset 1", "--fn sum", "--frequent 1"] {
        let ran = folder.say(&format!("scan plant.tdl hb.power --tail 1 {other}"));
        assert_eq!(ran.code, 2, "{other}");
    }
}

/// Points that are selected by their values equal the rows that a filter of all rows leaves, over many vectors of a
/// long series.
#[test]
fn points_are_chosen_by_their_values() {
    let folder = Folder::new("points_are_chosen_by_their_values");
    let database = Database::open(folder.path("a.tdl")).unwrap();
    let schema = Schema::new(Unit::Seconds, [("temp", ColumnType::F64)])
        .with(Column::nullable("state", ColumnType::I64))
        .with(Column::new("text", ColumnType::String));
    let mut txn = database.begin_write().unwrap();
    let mut series = txn.series_with("s", &schema).unwrap();
    let rows = 100_000_i64;
    for time in 0..rows {
        let state = match time % 3 {
            0 => tidalite::Value::Null,
            _ => (time % 7).into(),
        };
        let temp = if time % 5000 == 4 {
            f64::NAN
        } else {
            (time % 1000) as f64
        };
        let text = if time % 10_000 == 9 { "late" } else { "other" };
        series
            .insert_values(Steps(time), &[temp.into(), state, text.into()])
            .unwrap();
    }
    txn.commit().unwrap();
    drop(database);
    let scan = |line: &str| folder.say(&format!("scan a.tdl s -f csv {line}")).ok();
    let all = scan("");
    let fields = |line: &str| -> (f64, Option<i64>) {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[2].parse().unwrap(), fields[3].parse().ok())
    };
    let expected = |wanted: &dyn Fn(f64, Option<i64>) -> bool| -> Vec<&str> {
        let wanted = |line: &&str| {
            let (temp, state) = fields(line);
            wanted(temp, state)
        };
        lines(&all).into_iter().filter(wanted).collect()
    };
    let high = expected(&|temp, _| temp > 990.0);
    assert_eq!(high.len(), 900);
    assert_eq!(lines(&scan("--where temp=990<..")), high);
    let alone = scan("-c temp --where 990<..");
    assert_eq!(lines(&alone).len(), high.len());
    let edge = expected(&|temp, _| (990.0..995.0).contains(&temp));
    assert_eq!(lines(&scan("--where temp=990..<995")), edge);
    let both = expected(&|temp, state| temp <= 10.0 && state == Some(4));
    assert!(!both.is_empty());
    assert_eq!(lines(&scan("--where temp=..10 --where state=4")), both);
    let one = scan("--where -5..10 -c temp --where state=4");
    assert_eq!(lines(&one).len(), both.len());
    let mut back = high.clone();
    back.reverse();
    assert_eq!(lines(&scan("--where temp=990<.. --reverse")), back);
    assert_eq!(
        lines(&scan("--where temp=990<.. --reverse -n 20 --offset 400")),
        back[400..420]
    );
    assert_eq!(
        lines(&scan("--where temp=990<.. -n 20 --offset 400")),
        high[400..420]
    );
    assert_eq!(lines(&scan("--where temp=990<.. --tail 30")), high[870..]);
    let mut late: Vec<&str> = lines(&all)
        .into_iter()
        .filter(|line| line.ends_with("late"))
        .collect();
    assert_eq!(lines(&scan("--regex ^late")), late);
    assert_eq!(lines(&scan("--regex ^late --tail 3")), late[7..]);
    late.reverse();
    assert_eq!(lines(&scan("--regex ^late --reverse")), late);
    assert_eq!(
        lines(&scan("--regex ^late --reverse -n 2 --offset 3")),
        late[3..5]
    );
    // Aggregates and windows with the same condition select the same rows.
    let out = folder
        .say("aggregate a.tdl s -c temp --where 990<.. --fn count,min,max -f csv")
        .ok();
    assert_eq!(out, "series,count,min,max\ns,900,991,999\n");
    let out = folder
        .say("aggregate a.tdl s -c state --where temp=990<.. --fn count,max -f csv")
        .ok();
    let states: Vec<i64> = high.iter().filter_map(|line| fields(line).1).collect();
    assert_eq!(
        out,
        format!(
            "series,count,max\ns,{},{}\n",
            states.len(),
            states.iter().max().unwrap()
        )
    );
    let out = folder
        .say("window a.tdl s -c temp --by 1000s --where 990<.. --fn count,mean -f csv")
        .ok();
    assert_eq!(lines(&out).len(), 100);
    assert!(
        lines(&out).iter().all(|line| line.ends_with("Z,9,995")),
        "{out}"
    );
    // These are invalid queries, and queries without a result.
    for line in [
        "scan a.tdl s",
        "aggregate a.tdl s",
        "window a.tdl s --by 1h",
    ] {
        folder
            .say(&format!("{line} --where temp=1e9.."))
            .failed(3, &["--where"]);
        folder
            .say(&format!("{line} --where nothing=1.."))
            .failed(3, &["no column `nothing`"]);
        folder
            .say(&format!("{line} --where text=1.."))
            .failed(5, &["texts have no range"]);
        folder
            .say(&format!("{line} --where temp=1..x"))
            .failed(2, &["`x` is not a number"]);
    }
    for other in ["--regex x", "--fn sum", "--frequent 3"] {
        assert_eq!(
            folder
                .say(&format!("scan a.tdl s --where 1.. {other}"))
                .code,
            2,
            "{other}"
        );
    }
    let out = folder
        .say("join a.tdl s -c temp --where s=998<..<1000 -f csv")
        .ok();
    assert_eq!(lines(&out).len(), 100);
}

#[test]
fn pins_are_read_and_compared_with() {
    let folder = Folder::with_plant("pins_are_read_and_compared_with");
    let questions = [
        "scan plant.tdl hb.power -f csv",
        "scan plant.tdl hb.power --fn sum -f csv",
        "scan plant.tdl hb.power --frequent 3 -f csv",
        "latest plant.tdl -f csv",
        "aggregate plant.tdl hb.* -f csv",
        "window plant.tdl hb.power --by 30m -f csv",
        "window plant.tdl hb.power --by 30m --fn mean --group-by turbine -f csv",
        "join plant.tdl hb.power -f csv",
        "export plant.tdl",
        "series plant.tdl -f csv",
        "plot plant.tdl hb.power --svg -",
    ];
    let ask = |pin: &str| questions.map(|line| folder.say(&format!("{line} {pin}")).ok());
    let before = ask("");
    folder.say("pins plant.tdl --add monday").ok();
    folder
        .run(&["remove", "plant.tdl", A, "--to", "2014-06-01 00:10"])
        .ok();
    folder.say("remove plant.tdl hb.wind").ok();
    folder.write(
        "new.csv",
        "time,hb.power,new\n2014-06-01 01:00,-7,1\n2014-06-03,8,2\n",
    );
    folder.say("import plant.tdl new.csv").ok();
    let now = ask("");
    assert_eq!(ask("--pin monday"), before);
    for (line, (before, now)) in questions.iter().zip(before.iter().zip(&now)) {
        assert_ne!(before, now, "{line}");
    }
    let changed = folder.say("changed plant.tdl --since monday -f csv").ok();
    let told = |start: &str| -> Vec<&str> {
        lines(&changed)
            .into_iter()
            .filter(|line| line.starts_with(start))
            .collect()
    };
    assert_eq!(
        told("new,"),
        ["new,2014-06-01T01:00:00Z,2014-06-03T00:00:00Z,,2"]
    );
    assert_eq!(
        told("\"hb.wind{turbine=\"\"B\"\"}"),
        ["\"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T00:00:00Z,2014-06-01T01:59:00Z,120,"]
    );
    assert_eq!(
        told("\"hb.power{turbine=\"\"A\"\"}"),
        ["\"hb.power{turbine=\"\"A\"\"}\",2014-06-01T00:00:00Z,2014-06-01T00:09:00Z,10,0"]
    );
    assert!(
        told("\"hb.power{turbine=\"\"B\"\"}").is_empty(),
        "{changed}"
    );
    assert!(
        folder
            .say("changed plant.tdl --since monday --pin monday -f csv")
            .ok()
            .lines()
            .count()
            == 1
    );
    // At a coarse resolution a leaf is reported as its whole range of times, and two points a day apart are reported as
    // one range of two days.
    let coarse = folder.say("changed plant.tdl --since monday --resolution 2d -f csv");
    let coarse = coarse.ok();
    assert!(coarse.contains("new,2014-06-01T01:00:00Z,2014-06-03T00:00:00Z,,2"));
    assert!(
        coarse.contains("A\"\"}\",2014-06-01T00:00:00Z,2014-06-01T01:59:00Z,119,109"),
        "{coarse}"
    );
    let one = folder
        .run(&["changed", "plant.tdl", "new", "--since", "monday"])
        .ok();
    assert_eq!(one.lines().count(), 2, "{one}");
    folder
        .say("scan plant.tdl hb.power --pin sunday")
        .failed(3, &["no pin `sunday`", "tidalite pins"]);
    folder
        .say("changed plant.tdl --since sunday")
        .failed(3, &["no pin `sunday`"]);
    folder
        .say("changed plant.tdl nothing --since monday")
        .failed(3, &["matches `nothing`"]);
    folder
        .say("scan plant.tdl new --pin monday")
        .failed(3, &["matches `new`"]);
}

/// Every point is in exactly one chunk, and no chunk is longer than requested.
#[test]
fn a_series_is_seen_in_pieces() {
    let folder = Folder::new("a_series_is_seen_in_pieces");
    let mut csv = String::from("time,v\n");
    for second in 0..50_000 {
        csv += &format!("{},{}\n", 1_401_580_800 + second, (second * 7919) % 1000);
    }
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv --quiet").ok();
    for (size, most) in [
        ("--level 0", 1024),
        ("--level 1", 16 * 1024),
        ("--width 1h", 3600),
    ] {
        let out = folder.say(&format!("candles a.tdl v {size} -f csv")).ok();
        assert!(
            out.starts_with("series,first,last,count,open,low,high,close,mean\n"),
            "{out}"
        );
        let (mut at, mut pieces) = (0, 0);
        for line in lines(&out) {
            let fields: Vec<&str> = line.split(',').skip(1).collect();
            let count: i64 = fields[2].parse().unwrap();
            assert!((1..=most).contains(&count), "{size}: {line}");
            let values: Vec<i64> = (at..at + count)
                .map(|second| (second * 7919) % 1000)
                .collect();
            let told: Vec<i64> = fields[3..7]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect();
            let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
            assert_eq!(
                told,
                [values[0], *low, *high, values[values.len() - 1]],
                "{line}"
            );
            let time = |second: i64| tidalite::Timestamp((1_401_580_800 + second) * 1_000_000_000);
            assert_eq!(fields[0], time(at).to_string());
            assert_eq!(fields[1], time(at + count - 1).to_string());
            (at, pieces) = (at + count, pieces + 1);
        }
        assert_eq!(at, 50_000, "{size}");
        assert!(pieces >= 50_000 / most, "{size}: {pieces}");
    }
    folder
        .say("candles a.tdl v --width 1h --from 2015")
        .failed(3, &["no point in this range"]);
    for wrong in ["", "--level 1 --width 1h", "--width 0s"] {
        assert_eq!(
            folder.say(&format!("candles a.tdl v {wrong}")).code,
            2,
            "{wrong}"
        );
    }
}
