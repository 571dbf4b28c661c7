//! Functions of `window`, `aggregate` and `plot` that are computed from points, and functions of single columns.

use crate::support::Folder;

/// A series with the columns of a candle, in two days.
fn candles(name: &str) -> Folder {
    tidalite_testkit::watch();
    let folder = Folder::new(name);
    folder.write(
        "candle.csv",
        "time,isin,open,high,low,close,volume\n\
         2024-01-01 09:00,A,10,12,9,11,100\n\
         2024-01-01 10:00,A,11,15,10,14,50\n\
         2024-01-02 09:00,A,14,16,13,15,10\n\
         2024-01-01 09:00,B,1,2,1,2,5\n",
    );
    folder
        .say("import c.tdl candle.csv --tag isin --quiet")
        .ok();
    folder
}

#[test]
fn each_metric_has_its_own_functions() {
    let folder = candles("each_metric_has_its_own_functions");
    let functions = "first(open),max(high),min(low),last(close),sum(volume)";
    let line =
        format!("window c.tdl * --by 1d --fn {functions} --group-by isin --by-metric -f csv");
    assert_eq!(
        folder.say(&line).ok(),
        "isin,time,first(open),max(high),min(low),last(close),sum(volume)\n\
         A,2024-01-01T00:00:00Z,10,15,9,14,150\n\
         A,2024-01-02T00:00:00Z,14,16,13,15,10\n\
         B,2024-01-01T00:00:00Z,1,2,1,2,5\n"
    );
    let line = "window c.tdl * --by 1d --fn count,sum(volume) --group-by= --by-metric -f csv";
    let out = folder.say(line).ok();
    let head = "time,count(close),count(high),count(low),count(open),count(volume),sum(volume)\n";
    assert!(out.starts_with(head), "{out}");
    assert!(
        out.contains("\n2024-01-01T00:00:00Z,3,3,3,3,3,155\n"),
        "{out}"
    );
    let line = "window c.tdl * --by 1d --fn max(price) --group-by isin --by-metric";
    folder
        .say(line)
        .failed(3, &["max(price)", "close, high, low"]);
}

#[test]
fn columns_of_a_series_have_their_own_functions() {
    let folder = Folder::new("columns_of_a_series_have_their_own_functions");
    folder.write(
        "t.csv",
        "time,price,n,note\n2024-01-01 09:00,10.5,7,a\n2024-01-01 10:00,9.5,3,b\n2024-01-02 10:00,9,,a\n",
    );
    let columns = "price:f64,n:i64?,note:string";
    folder
        .say(&format!(
            "import t.tdl t.csv --into trades --columns {columns} --quiet"
        ))
        .ok();
    let functions = "first(price),min_time(price),sum(n),p50(n),count(n),distinct(note)";
    let line = format!("window t.tdl trades --by 1d --fn {functions} -f csv");
    assert_eq!(
        folder.say(&line).ok(),
        "series,time,first(price),min_time(price),sum(n),p50(n),count(n),distinct(note)\n\
         trades,2024-01-01T00:00:00Z,10.5,2024-01-01T10:00:00Z,10,5,2,2\n\
         trades,2024-01-02T00:00:00Z,9,2024-01-02T10:00:00Z,0,,0,1\n"
    );
    let line = format!("aggregate t.tdl trades --fn {functions} -f csv");
    assert_eq!(
        folder.say(&line).ok(),
        "series,first(price),min_time(price),sum(n),p50(n),count(n),distinct(note)\n\
         trades,10.5,2024-01-02T10:00:00Z,10,5,2,2\n"
    );
    folder
        .say("window t.tdl trades --by 1d --fn max(nothing)")
        .failed(3, &["no column `nothing`", "price, n, note"]);
    folder
        .say("aggregate t.tdl trades --fn median(note)")
        .failed(2, &["holds strings"]);
}

#[test]
fn figures_of_points_have_units_of_time() {
    let folder = Folder::new("figures_of_points_have_units_of_time");
    folder.write(
        "p.csv",
        "time,power,counter\n2024-01-01 00:00,2,100\n2024-01-01 00:30,4,160\n2024-01-01 01:30,4,20\n",
    );
    folder.say("import p.tdl p.csv --quiet").ok();
    let line = "window p.tdl power --by 1h --fn integral(1h),integral(previous,1h),time_mean,twa(previous),p75 -f csv";
    assert_eq!(
        folder.say(line).ok(),
        "series,time,integral(1h),integral(previous)(1h),time_mean,time_mean(previous),p75\n\
         power,2024-01-01T00:00:00Z,3.5,3,3.5,3,3.5\n\
         power,2024-01-01T01:00:00Z,2,2,4,4,4\n"
    );
    let line = "window p.tdl counter --by 1h --fn delta,increase,rate(1h) -f csv";
    assert_eq!(
        folder.say(line).ok(),
        "series,time,delta,increase,rate(1h)\n\
         counter,2024-01-01T00:00:00Z,60,60,120\n\
         counter,2024-01-01T01:00:00Z,-140,20,20\n"
    );
    let grouped = folder.say("window p.tdl counter --by 30m --fn increase --fill 0 -f csv");
    assert_eq!(
        grouped.ok().lines().nth(3),
        Some("counter,2024-01-01T01:00:00Z,0")
    );
    folder
        .say("plot p.tdl counter --by 1h --fn rate(1h) --svg rate.svg")
        .ok();
    let svg = std::fs::read_to_string(folder.path("rate.svg")).unwrap_or_default();
    assert!(svg.contains("rate(1h) of 2 windows"));
    folder
        .say("plot p.tdl counter --by 1h --fn max(value)")
        .failed(2, &["--column value"]);
    folder
        .say("aggregate p.tdl power --fn percentile(101)")
        .failed(2, &["from 0 to 100"]);
    let by_rate = folder
        .say("aggregate p.tdl * --fn rate,min_time --top 1 -f csv")
        .ok();
    assert!(by_rate.contains("\ncounter,"), "{by_rate}");
}

#[test]
fn latest_gives_values_at_a_time() {
    let folder = Folder::new("latest_gives_values_at_a_time");
    folder.write(
        "l.csv",
        "time,a,b\n2024-01-01 00:00,2,1\n2024-01-01 01:00,4,\n",
    );
    folder.say("import l.tdl l.csv --quiet").ok();
    let at = |more: &str| {
        let line = format!("latest l.tdl --at 2024-01-01T00:15 {more} -f csv");
        folder.say(&line).ok()
    };
    assert_eq!(
        at(""),
        "series,time,value\na,2024-01-01T00:00:00Z,2\nb,2024-01-01T00:00:00Z,1\n"
    );
    assert_eq!(
        at("--between linear"),
        "series,time,value\na,2024-01-01T00:15:00Z,2.5\n"
    );
    assert_eq!(
        at("--between previous"),
        "series,time,value\na,2024-01-01T00:15:00Z,2\nb,2024-01-01T00:15:00Z,1\n"
    );
    folder
        .say("latest l.tdl --at 2023-12-31 -f csv")
        .failed(3, &["no value at 2023-12-31"]);
    folder
        .say("latest l.tdl --between linear")
        .failed(2, &["--at"]);
    folder.say("latest l.tdl --at soon").failed(2, &["soon"]);
}
