use crate::support::Folder;

#[test]
fn series_lists_names_counts_and_spans() {
    let folder = Folder::with_plant("series_lists_names_counts_and_spans");
    let out = folder.say("series plant.tdl hb.* --format csv").ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "series,points,first,last,bytes_per_point,columns,merge"
    );
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
        json.starts_with(r#"{"series":"hb.wind{turbine=\"A\"}","metric":"hb.wind","tags":{"turbine":"A"},"points":120,"#),
        "{json}"
    );
}

#[test]
fn series_are_chosen_by_lists_and_their_names_counted() {
    let folder = Folder::with_plant("series_are_chosen_by_lists_and_their_names_counted");
    let count = |pattern: &str| {
        let out = folder
            .run(&["series", "plant.tdl", pattern, "-f", "csv"])
            .ok();
        out.lines().count() - 1
    };
    let all = count("hb.*");
    assert_eq!(count(r#"hb.*{turbine=["A","B"]}"#), all);
    assert_eq!(count(r#"hb.*{turbine="A"}{turbine="B"}"#), all);
    assert!(count(r#"hb.*{turbine=["A","C"]}"#) < all);
    let wrong = folder.run(&["series", "plant.tdl", r#"hb.*{turbine=["A""#]);
    wrong.failed(2, &["expected , or ]", "name{tag=\"value\"}"]);

    let out = folder.say("series plant.tdl hb.* --names -f csv").ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "kind,name,value,series");
    assert!(lines.contains(&"metric,hb.power,,2"), "{out}");
    assert!(
        lines.contains(&format!("tag,turbine,,{all}").as_str()),
        "{out}"
    );
    assert!(lines.contains(&"value,turbine,A,2"), "{out}");
    assert!(
        lines.contains(&format!("unit,nanos,,{all}").as_str()),
        "{out}"
    );
}

#[test]
fn windows_of_metrics_stand_side_by_side() {
    let folder = Folder::with_plant("windows_of_metrics_stand_side_by_side");
    let say = |more: &str| {
        let line = format!("window plant.tdl hb.* --by 1h --fn count,max {more} -f csv");
        folder.say(&line).ok()
    };
    let out = say("--group-by turbine --by-metric");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0],
        "turbine,time,count(hb.power),max(hb.power),count(hb.wind),max(hb.wind)"
    );
    // Each cell is equal to the cell that a query for its metric alone prints.
    let alone = |metric: &str| {
        let line =
            format!("window plant.tdl {metric} --by 1h --fn count,max --group-by turbine -f csv");
        folder.say(&line).ok()
    };
    let (power, wind) = (alone("hb.power"), alone("hb.wind"));
    for ((row, power), wind) in lines.iter().zip(power.lines()).zip(wind.lines()).skip(1) {
        let wind: Vec<&str> = wind.split(',').collect();
        assert_eq!(*row, format!("{power},{},{}", wind[2], wind[3]));
    }
    assert_eq!(lines.len(), power.lines().count());
    // Gaps are filled over the range of all metrics, even in a group that lacks a metric. Each metric has its own
    // column.
    folder.write("late.csv", "time,turbine,late\n2014-06-01T03:00:00Z,A,5\n");
    folder
        .say("import plant.tdl late.csv --tag turbine --prefix hb. --quiet")
        .ok();
    let line =
        "window plant.tdl hb.* --by 1h --fn max --group-by turbine --by-metric --fill 0 -f csv";
    let filled = folder.say(line).ok();
    let lines: Vec<&str> = filled.lines().collect();
    assert_eq!(
        lines[0],
        "turbine,time,max(hb.late),max(hb.power),max(hb.wind)"
    );
    assert_eq!(lines[3], "A,2014-06-01T02:00:00Z,0,0,0");
    assert_eq!(lines[4], "A,2014-06-01T03:00:00Z,5,0,0");
    assert!(
        lines[5].starts_with("B,2014-06-01T00:00:00Z,0,"),
        "{filled}"
    );
    assert_eq!(lines.len(), 7, "{filled}");
    folder
        .say("series plant.tdl nothing --names")
        .failed(3, &["matches `nothing`"]);
    let without = folder.say("window plant.tdl hb.* --by 1h --by-metric");
    without.failed(2, &["--group-by"]);
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
    // The window of 00:30 has no value, and 00:33 is outside the data.
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
        "series,time,flags,value\n\
         \"hb.power{turbine=\"\"A\"\"}\",2014-06-01T01:58:00Z,0,1180\n\
         \"hb.power{turbine=\"\"A\"\"}\",2014-06-01T01:59:00Z,0,1190\n"
    );
    let out = folder
        .run(&["scan", "plant.tdl", "hb.wind", "-n", "2", "-f", "json"])
        .ok();
    assert_eq!(out.lines().count(), 4, "{out}");
    // The range begins between two points, or before the first point.
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
    // The variance of n successive integers is (n^2 - 1) / 12.
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
        "series,time,count,mean\n\
         \"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T00:00:00Z,60,29.5\n\
         \"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T01:00:00Z,60,89.5\n"
    );
    // In summer, a day in Paris begins two hours earlier than in UTC.
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
    assert!(out.ends_with(",2014-06-01T00:00:00+02:00,120\n"), "{out}");
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
        out.contains(",2014-06-01T00:30:00Z,30\n") && out.ends_with(",2014-06-01T01:30:00Z,90\n"),
        "{out}"
    );
}

#[test]
fn colours_are_used_only_on_request() {
    let folder = Folder::with_plant("colours_are_used_only_on_request");
    assert!(!folder.say("latest plant.tdl").ok().contains('\u{1b}'));
    assert!(
        folder
            .say("latest plant.tdl --color always")
            .ok()
            .contains('\u{1b}')
    );
}

#[test]
fn an_import_reads_an_export() {
    let folder = Folder::with_plant("an_import_reads_an_export");
    for name in ["wide.csv", "wide.csv.gz", "wide.jsonl.zst", "wide.json"] {
        let out = folder
            .say(&format!(
                "export plant.tdl --wide --output {name} --times ms"
            ))
            .ok();
        assert_eq!(out, format!("240 rows in {name}\n"));
        let again = format!("{name}.tdl");
        folder
            .say(&format!("import {again} {name} --tag turbine --quiet"))
            .ok();
        let scan = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
        assert_eq!(scan(&again), scan("plant.tdl"));
    }
    folder
        .say("export plant.tdl --wide --output wide.csv")
        .failed(1, &["exists already", "--replace"]);
    folder
        .say("export plant.tdl --output wide.csv --replace")
        .ok();
    let long = folder
        .say("export plant.tdl hb.wind --from 2014-06-01T01:59 --flags")
        .ok();
    assert_eq!(
        long,
        "series,time,flags,value\n\
         \"hb.wind{turbine=\"\"A\"\"}\",2014-06-01T01:59:00Z,0,9.5\n\
         \"hb.wind{turbine=\"\"B\"\"}\",2014-06-01T01:59:00Z,0,119\n"
    );
    // The column with the names of the series brings each row back to its series.
    for name in ["long.csv", "long.jsonl.gz"] {
        folder
            .say(&format!("export plant.tdl --output {name}"))
            .ok();
        let again = format!("{name}.tdl");
        folder
            .say(&format!("import {again} {name} --series series --quiet"))
            .ok();
        let scan = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
        assert_eq!(scan(&again), scan("plant.tdl"));
    }
    folder
        .say("import x.tdl long.csv --series series --tag value")
        .failed(2, &["--tag"]);
    folder
        .say("export plant.tdl --flags --output flags.csv")
        .ok();
    folder
        .say("import x.tdl flags.csv --series series")
        .failed(2, &["one value column", "flags, value"]);
    folder
        .say("import x.tdl flags.csv --series series --columns flags:i64,value:f64 --prefix x. --quiet")
        .ok();
    assert!(folder.say("series x.tdl x.hb.*").ok().contains("x.hb.wind"));
    folder
        .say("import plant.tdl long.csv --series series --merge error")
        .failed(5, &["has a row at", "merge policy"]);
    folder
        .say("export plant.tdl --from 2020-01-01")
        .failed(3, &["no point in this range"]);
    // Every point is stored twice, and both copies are in the export and in its import.
    for file in ["twice.tdl", "plant.tdl"] {
        folder
            .say(&format!(
                "import {file} long.csv --series series --merge keep-all --quiet"
            ))
            .ok();
    }
    folder
        .say("import twice.tdl long.csv --series series --quiet")
        .ok();
    let scan = |file: &str| folder.say(&format!("scan {file} hb.wind* -f csv")).ok();
    let twice = scan("twice.tdl");
    assert_eq!(scan("plant.tdl"), twice);
    let mut lines: Vec<&str> = twice.lines().skip(1).collect();
    lines.sort_unstable();
    assert!(lines.len() > 100 && lines.chunks(2).all(|pair| pair[0] == pair[1]));
    folder.say("export twice.tdl --output twice.csv").ok();
    folder
        .say("import again.tdl twice.csv --series series --merge keep-all --quiet")
        .ok();
    assert_eq!(scan("again.tdl"), twice);
    // With keep-distinct each point is stored once, although the file has each point twice and is imported twice. A
    // point with another value at the same time is stored, too.
    for _ in 0..2 {
        folder
            .say("import once.tdl twice.csv --series series --merge keep-distinct --quiet")
            .ok();
    }
    lines.dedup();
    let count = |wanted: usize| {
        let once = scan("once.tdl");
        let mut found: Vec<&str> = once.lines().skip(1).collect();
        found.sort_unstable();
        assert_eq!(found.len(), wanted);
        found.dedup();
        assert_eq!(found.len(), wanted);
        assert!(lines.iter().all(|line| found.binary_search(line).is_ok()));
    };
    count(lines.len());
    let text = std::fs::read_to_string(folder.path("twice.csv")).unwrap();
    let mut rows = text.lines();
    let head = rows.next().unwrap();
    let row = rows.find(|row| row.contains("hb.wind")).unwrap();
    let (place, _) = row.rsplit_once(',').unwrap();
    folder.write("other.csv", format!("{head}\n{place},-12345.5\n{row}\n"));
    folder
        .say("import once.tdl other.csv --series series --quiet")
        .ok();
    count(lines.len() + 1);
    let series = folder.say("series once.tdl").ok();
    assert!(series.contains("keep-distinct"), "{series}");
}

#[test]
fn groups_of_series_and_filled_gaps() {
    let folder = Folder::with_plant("groups_of_series_and_filled_gaps");
    let out = folder
        .run(&[
            "window",
            "plant.tdl",
            "hb.wind",
            "--by",
            "1h",
            "--fn",
            "count,max",
            "--group-by",
            "",
            "-f",
            "csv",
        ])
        .ok();
    assert_eq!(
        out,
        "time,count,max\n2014-06-01T00:00:00Z,120,59\n2014-06-01T01:00:00Z,120,119\n"
    );
    let out = folder
        .say("window plant.tdl hb.wind --by 2h --fn mean --group-by turbine -f csv")
        .ok();
    assert!(
        out.starts_with("turbine,time,mean\nA,2014-06-01T00:00:00Z,5\n"),
        "{out}"
    );
    // Turbine A has no power value at minute 30.
    let fill = |what: &str| {
        let range = "--from 2014-06-01T00:29 --to 2014-06-01T00:32";
        let line = format!(
            "window plant.tdl hb.power{{turbine=\"A\"}} --by 1m --fn mean {range} --fill {what} -f csv"
        );
        let out = folder.say(&line).ok();
        out.lines()
            .nth(2)
            .unwrap()
            .rsplit(',')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(fill("linear"), "300");
    assert_eq!(fill("previous"), "290");
    assert_eq!(fill("-1"), "-1");
    assert_eq!(fill("null"), "");
    folder
        .say("window plant.tdl hb.wind --by 1h --fn max-time --fill null")
        .failed(2, &["not there for groups"]);
}

#[test]
fn series_side_by_side() {
    let folder = Folder::with_plant("series_side_by_side");
    let power = r#"hb.power{turbine="A"}"#;
    let wind = r#"hb.wind{turbine="A"}"#;
    let join = |kind: &[&str]| {
        let words = [
            "join",
            "plant.tdl",
            wind,
            power,
            "--last",
            "91m",
            "-f",
            "csv",
            "--kind",
        ];
        folder.run(&[&words, kind].concat()).ok()
    };
    let outer = join(&["outer"]);
    assert_eq!(outer.lines().count(), 92, "{outer}");
    assert!(outer.contains("2014-06-01T00:30:00Z,0.5,\n"), "{outer}");
    assert_eq!(join(&["inner"]).lines().count(), 91);
    assert!(join(&["as-of"]).contains("2014-06-01T00:30:00Z,0.5,290\n"));
    assert!(join(&["as-of", "--tolerance", "30s"]).contains("2014-06-01T00:30:00Z,0.5,\n"));

    // A join with --where returns the matching rows of the join without it.
    let all = join(&["inner"]);
    let wanted = |wind: &dyn Fn(f64) -> bool, power: &dyn Fn(f64) -> bool| {
        let rows = all.lines().skip(1).filter(|row| {
            let cells: Vec<f64> = row.split(',').skip(1).map(|n| n.parse().unwrap()).collect();
            wind(cells[0]) && power(cells[1])
        });
        Vec::from_iter(rows.map(str::to_owned))
    };
    let told = |conditions: &[&str]| {
        let pairs = conditions.iter().flat_map(|text| ["--where", *text]);
        let lines = join(&[&["inner"], &pairs.collect::<Vec<_>>()[..]].concat());
        Vec::from_iter(lines.lines().skip(1).map(str::to_owned))
    };
    let (powers, winds) = (
        wanted(&|_| true, &|p| p >= 600.0),
        wanted(&|w| w <= 1.0, &|_| true),
    );
    assert!(!powers.is_empty() && powers.len() < 90 && !winds.is_empty() && winds.len() < 90);
    assert_eq!(told(&[r#"hb.power{turbine="A"}=600.."#]), powers);
    assert_eq!(told(&[&format!("{wind}= ..1")]), winds);
    assert_eq!(
        told(&["hb.wind{turbine=\"A\"}=0.5"]),
        wanted(&|w| w == 0.5, &|_| true)
    );
    let both = [&format!("{power}=..785")[..], &format!("{wind}=0.2..0.9")];
    assert_eq!(
        told(&both),
        wanted(&|w| (0.2..=0.9).contains(&w), &|p| p <= 785.0)
    );
    let failing =
        |condition: &str| folder.run(&["join", "plant.tdl", wind, power, "--where", condition]);
    failing("hb.power").failed(2, &["a series, =, and a range"]);
    failing("hb.power=x..").failed(2, &["`x` is not a number"]);
    failing("hb.power=NaN").failed(2, &["`NaN` is not a number"]);
    failing(r#"hb.power{turbine="B"}=1.."#).failed(2, &["not one of the joined series"]);
}

#[test]
fn policies_are_stored_and_applied() {
    let folder = Folder::with_plant("policies_are_stored_and_applied");
    folder
        .say("retention plant.tdl --set short --series hb.wind --keep 1d")
        .ok();
    let out = folder
        .say("retention plant.tdl --set cap --max-bytes 1000000000 -f csv")
        .ok();
    assert_eq!(
        out,
        "policy,series,keep_seconds,keep_from,max_bytes,cold_seconds,windows,suffix,functions\ncap,,,,1000000000,,,,\nshort,hb.wind,86400,now,,,,,\n"
    );
    let out = folder.say("retention plant.tdl --apply").ok();
    assert!(out.starts_with("240 rows removed from 2 series"), "{out}");
    let out = folder.say("retention plant.tdl --remove short -f csv").ok();
    assert!(!out.contains("short"), "{out}");
    folder
        .say("retention plant.tdl --remove short")
        .failed(3, &["no policy `short`"]);
    folder
        .say("retention plant.tdl --set none")
        .failed(2, &["needs a limit"]);
    folder.say("check plant.tdl").ok();
}

#[test]
fn functions_over_rows() {
    let folder = Folder::with_plant("functions_over_rows");
    folder.write(
        "counter.csv",
        "time,count\n2014-06-01T00:00:00,10\n2014-06-01T00:00:10,30\n2014-06-01T00:00:20,5\n",
    );
    folder.write(
        "other.csv",
        "time,whole\n2014-06-01T00:00:00,20\n2014-06-01T00:00:20,4\n",
    );
    folder
        .say("import c.tdl counter.csv other.csv --quiet")
        .ok();
    let scan = |function: &str| {
        let out = folder
            .say(&format!("scan c.tdl count -f csv --fn {function}"))
            .ok();
        let values = out
            .lines()
            .skip(1)
            .map(|line| line.rsplit(',').next().unwrap_or("").to_owned());
        values.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(scan("difference"), "20 -25");
    assert_eq!(scan("derivative"), "2 -2.5");
    assert_eq!(scan("rate(1m)"), "120 30");
    assert_eq!(scan("mean(2)"), "10 20 17.5");
    assert_eq!(scan("mean(11s)"), "10 20 17.5");
    assert_eq!(scan("sum"), "10 40 45");
    folder
        .say("scan c.tdl count --fn median")
        .failed(2, &["mean(ROWS)"]);
    let ratio = folder
        .say("join c.tdl count whole --kind inner --combine ratio -f csv")
        .ok();
    assert_eq!(
        ratio,
        "time,ratio\n2014-06-01T00:00:00Z,0.5\n2014-06-01T00:00:20Z,1.25\n"
    );
    let top = folder
        .say("aggregate c.tdl * --fn max,count --top 1 -f csv")
        .ok();
    assert_eq!(top, "series,max,count\ncount,30,3\n");
    let bottom = folder
        .say("aggregate c.tdl * --fn max,count --bottom 1 -f csv")
        .ok();
    assert_eq!(bottom, "series,max,count\nwhole,20,2\n");
}

#[test]
fn series_are_annotated() {
    let folder = Folder::with_plant("series_are_annotated");
    folder
        .say("annotate plant.tdl hb.wind --set unit=m/s --set place=north --merge error")
        .ok();
    folder
        .say("annotate plant.tdl hb.wind{turbine=\"A\"} --remove place")
        .ok();
    assert_eq!(
        folder.say("annotate plant.tdl -f csv").ok(),
        "series,key,text\n\
         \"hb.wind{turbine=\"\"A\"\"}\",unit,m/s\n\
         \"hb.wind{turbine=\"\"B\"\"}\",place,north\n\
         \"hb.wind{turbine=\"\"B\"\"}\",unit,m/s\n"
    );
    assert!(
        folder
            .say("series plant.tdl hb.wind -f csv")
            .ok()
            .contains(",error")
    );
    folder
        .say("annotate plant.tdl --set unit")
        .failed(2, &["unit=m/s"]);
    folder.say("copy plant.tdl copy.tdl").ok();
    let words = |file: &str| folder.say(&format!("annotate {file} -f csv")).ok();
    assert_eq!(words("copy.tdl"), words("plant.tdl"));
}

/// Windows of groups and windows with filled gaps begin at the same times as others: at the zone's offset at the
/// beginning of the range.
#[test]
fn filled_days_of_a_zone_begin_at_local_midnight() {
    let folder = Folder::new("filled_days_of_a_zone_begin_at_local_midnight");
    folder.write(
        "a.csv",
        "time,v\n2014-01-01,1\n2014-07-01T12:00Z,2\n2014-07-03T12:00Z,4\n",
    );
    folder.say("import a.tdl a.csv --quiet").ok();
    let range = "--from 2014-07-01 --to 2014-07-04 --tz Europe/Berlin -f csv";
    let days = format!("window a.tdl v --by 1d --fn count,sum {range}");
    let plain = folder.say(&days).ok();
    assert_eq!(
        plain,
        "series,time,count,sum\nv,2014-07-01T00:00:00+02:00,1,2\nv,2014-07-03T00:00:00+02:00,1,4\n"
    );
    let together = folder.run(&grouped(&days)).ok();
    assert_eq!(together, plain.replace("series,", "").replace("v,", ""));
    let filled = folder.say(&format!("{days} --fill null")).ok();
    assert_eq!(
        filled,
        "series,time,count,sum\nv,2014-07-01T00:00:00+02:00,1,2\nv,2014-07-02T00:00:00+02:00,0,\n\
         v,2014-07-03T00:00:00+02:00,1,4\n"
    );
}

/// Splits a command line into words, and adds the option that puts all series in one group.
fn grouped(line: &str) -> Vec<&str> {
    line.split_whitespace().chain(["--group-by", ""]).collect()
}

/// The value of a function does not depend on which other functions are printed.
#[test]
fn a_figure_alone_equals_the_figure_among_others() {
    let folder = Folder::with_plant("a_figure_alone_equals_the_figure_among_others");
    let all = "count,sum,mean,min,max,first,last,stddev,nan-count";
    let of = |functions: &str| {
        let line = format!("window plant.tdl hb.power --by 7m --fn {functions} -f csv");
        let text = folder.say(&line).ok();
        let lines = text.lines().map(|line| {
            // Commas within names are always inside quotes in this output.
            let (_, fields) = line.split_once("Z,").unwrap_or(("", "head"));
            fields.split(',').map(str::to_owned).collect::<Vec<_>>()
        });
        lines.skip(1).collect::<Vec<_>>()
    };
    let whole = of(all);
    assert_eq!(whole.len(), 36);
    for (place, function) in all.split(',').enumerate() {
        let alone: Vec<_> = of(function).into_iter().flatten().collect();
        let among: Vec<_> = whole.iter().map(|line| line[place].clone()).collect();
        assert_eq!(alone, among, "{function}");
    }
    let some: Vec<_> = of("max,mean").into_iter().flatten().collect();
    let among = whole
        .iter()
        .flat_map(|line| [line[4].clone(), line[2].clone()]);
    assert_eq!(some, among.collect::<Vec<_>>());
}
