use crate::support::Folder;

#[test]
fn series_lists_names_counts_and_spans() {
    let folder = Folder::with_plant("series_lists_names_counts_and_spans");
    let out = folder.say("series plant.tdl hb.* --format csv").ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "series,points,first,last,bytes_per_point");
    assert!(lines[1].starts_with(
        "\"hb.power{turbine=\"\"A\"\"}\",119,2014-06-01T00:00:00Z,2014-06-01T01:59:00Z,"
    ));
    assert_eq!(lines.len(), 5);
    let out = folder
        .run(&["series", "plant.tdl", "*{turbine=\"B\"}"])
        .ok();
    assert_eq!(out.lines().count(), 3, "{out}");
    let json = folder.say("series plant.tdl hb.wind -f json").ok();
    assert!(
        json.starts_with(r#"{"series":"hb.wind{turbine=\"A\"}","points":120,"#),
        "{json}"
    );
}

#[test]
fn scan_takes_ranges_limits_and_flags() {
    let folder = Folder::with_plant("scan_takes_ranges_limits_and_flags");
    let a = r#"hb.power{turbine="A"}"#;
    let out = folder
        .run(&[
            "scan",
            "plant.tdl",
            a,
            "--from",
            "2014-06-01 00:29",
            "--to",
            "2014-06-01 00:33",
        ])
        .ok();
    // 00:30 is missing, 00:33 is beyond.
    assert_eq!(
        out,
        "time                  value\n\
         2014-06-01T00:29:00Z    290\n\
         2014-06-01T00:31:00Z    310\n\
         2014-06-01T00:32:00Z    320\n"
    );
    let out = folder
        .run(&[
            "scan",
            "plant.tdl",
            a,
            "--last",
            "2m",
            "-f",
            "csv",
            "--flags",
        ])
        .ok();
    assert_eq!(
        out,
        "time,flags,value\n2014-06-01T01:58:00Z,0,1180\n2014-06-01T01:59:00Z,0,1190\n"
    );
    let out = folder
        .run(&["scan", "plant.tdl", "hb.wind", "-n", "2", "-f", "json"])
        .ok();
    assert_eq!(out.lines().count(), 4, "{out}");
    // Times between the points, and before the first one.
    let out = folder
        .run(&[
            "scan",
            "plant.tdl",
            a,
            "--from",
            "2014-06-01T00:30:30Z",
            "-n",
            "1",
            "-f",
            "csv",
        ])
        .ok();
    assert!(out.contains("00:31:00Z,310"), "{out}");
    let out = folder
        .run(&[
            "scan",
            "plant.tdl",
            a,
            "--from",
            "2013",
            "-n",
            "1",
            "-f",
            "csv",
        ])
        .ok();
    assert!(out.contains("00:00:00Z,0"), "{out}");
}

#[test]
fn latest_shows_every_series() {
    let folder = Folder::with_plant("latest_shows_every_series");
    let out = folder.say("latest plant.tdl -f csv --tz Europe/Paris").ok();
    assert_eq!(out.lines().count(), 5);
    assert!(
        out.contains("\"hb.power{turbine=\"\"B\"\"}\",2014-06-01T03:59:00+02:00,-119\n"),
        "{out}"
    );
}

#[test]
fn aggregate_agrees_with_the_file() {
    let folder = Folder::with_plant("aggregate_agrees_with_the_file");
    let b = r#"hb.power{turbine="B"}"#;
    let functions = "count,nan-count,sum,mean,min,min-time,max,max-time,first,last,stddev";
    let out = folder
        .run(&["aggregate", "plant.tdl", b, "--fn", functions, "-f", "csv"])
        .ok();
    let values: Vec<&str> = out.lines().nth(1).unwrap().rsplitn(12, ',').collect();
    let mut values = values.into_iter().rev().skip(1);
    let mut next = || values.next().unwrap();
    assert_eq!(next(), "120");
    assert_eq!(next(), "0");
    assert_eq!(next(), "-7140");
    assert_eq!(next(), "-59.5");
    assert_eq!((next(), next()), ("-119", "2014-06-01T01:59:00Z"));
    assert_eq!((next(), next()), ("-0", "2014-06-01T00:00:00Z"));
    assert_eq!((next(), next()), ("-0", "-119"));
    // (n^2 - 1) / 12 is the variance of n successive integers.
    let stddev: f64 = next().parse().unwrap();
    assert!(
        (stddev - (14_399.0_f64 / 12.0).sqrt()).abs() < 1e-9,
        "{stddev}"
    );
}

#[test]
fn windows_begin_where_they_should() {
    let folder = Folder::with_plant("windows_begin_where_they_should");
    let b = r#"hb.wind{turbine="B"}"#;
    let out = folder
        .run(&[
            "window",
            "plant.tdl",
            b,
            "--by",
            "1h",
            "--fn",
            "count,mean",
            "-f",
            "csv",
        ])
        .ok();
    assert_eq!(
        out,
        "time,count,mean\n2014-06-01T00:00:00Z,60,29.5\n2014-06-01T01:00:00Z,60,89.5\n"
    );
    // A day in Paris began two hours earlier.
    let out = folder
        .run(&[
            "window",
            "plant.tdl",
            b,
            "--by",
            "1d",
            "--fn",
            "count",
            "-f",
            "csv",
            "--tz",
            "Europe/Paris",
        ])
        .ok();
    assert_eq!(out, "time,count\n2014-06-01T00:00:00+02:00,120\n");
    let out = folder
        .run(&[
            "window",
            "plant.tdl",
            b,
            "--by",
            "1h",
            "--fn",
            "first",
            "-f",
            "csv",
            "--origin",
            "2020-01-01T00:30",
        ])
        .ok();
    assert!(
        out.contains("2014-06-01T00:30:00Z,30\n2014-06-01T01:30:00Z,90\n"),
        "{out}"
    );
}

#[test]
fn colours_only_when_asked_for() {
    let folder = Folder::with_plant("colours_only_when_asked_for");
    assert!(!folder.say("latest plant.tdl").ok().contains('\u{1b}'));
    assert!(
        folder
            .say("latest plant.tdl --color always")
            .ok()
            .contains('\u{1b}')
    );
}
