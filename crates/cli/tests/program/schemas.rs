//! Series created by a program: other units, several columns, integers, GUIDs, the limits of time.

use crate::support::Folder;
use tidalite::{ColumnType, Database, Schema, Steps, Unit};

fn folder_with_trades(name: &str) -> Folder {
    let folder = Folder::new(name);
    let database = Database::open(folder.path("a.tdl")).unwrap();
    let mut txn = database.begin_write().unwrap();
    let schema = Schema::new(
        Unit::Ticks,
        [("volume", ColumnType::U64), ("price", ColumnType::I64)],
    );
    let mut trades = txn.series_with("trades", &schema).unwrap();
    // The times are 2020-01-02 12:00 and one hour later, in the ticks of .NET.
    for (hour, volume, price) in [(0, u64::MAX, -5), (1, 7, i64::MAX)] {
        let ticks = 637_135_632_000_000_000 + hour * 36_000_000_000;
        trades
            .insert_row(Steps(ticks), &[volume, price as u64])
            .unwrap();
    }
    let mut ends = txn.series("ends").unwrap();
    ends.insert_point(Steps(i64::MIN), 1, f64::NEG_INFINITY)
        .unwrap();
    ends.insert_point(Steps(0), 2, f64::NAN).unwrap();
    ends.insert_point(Steps(i64::MAX), 3, -0.0).unwrap();
    let guid = *b"0123456789abcdef";
    txn.series_of_guid(guid, &Schema::point())
        .unwrap()
        .insert_point(Steps(0), 0, 1.0)
        .unwrap();
    txn.commit().unwrap();
    folder
}

#[test]
fn ticks_and_integers_are_exact() {
    let folder = folder_with_trades("ticks_and_integers_are_exact");
    let out = folder.say("scan a.tdl trades -f csv").ok();
    assert_eq!(
        out,
        "series,time,volume,price\n\
         trades,2020-01-02T12:00:00Z,18446744073709551615,-5\n\
         trades,2020-01-02T13:00:00Z,7,9223372036854775807\n"
    );
    let out = folder
        .say("scan a.tdl trades -f csv --from 2020-01-02T12:00:00.0000001Z")
        .ok();
    assert_eq!(out.lines().count(), 2, "{out}");
    let out = folder
        .say("aggregate a.tdl trades --column price --fn min,max,max_time -f csv")
        .ok();
    assert!(
        out.ends_with("trades,-5,9223372036854775807,2020-01-02T13:00:00Z\n"),
        "{out}"
    );
    let out = folder
        .say("window a.tdl trades -c volume --by 1h --fn count -f csv")
        .ok();
    assert_eq!(
        out,
        "series,time,count\ntrades,2020-01-02T12:00:00Z,1\ntrades,2020-01-02T13:00:00Z,1\n"
    );
    let out = folder.say("series a.tdl trades").ok();
    assert!(out.contains("volume:u64 price:i64, time in ticks"), "{out}");
    folder.say("plot a.tdl trades").ok();
    folder
        .say("window a.tdl trades --by 50ns")
        .failed(2, &["shorter than one step"]);
    // A tick is 100 ns. A width that is not a whole number of ticks would have to be rounded, so it is refused.
    for line in [
        "window a.tdl trades --by 150ns",
        "plot a.tdl trades --by 150ns",
    ] {
        folder.say(line).failed(2, &["not a whole number of steps"]);
    }
    folder
        .say("window a.tdl trades --by 1h --origin 1970-01-01T00:00:00.00000005Z")
        .failed(2, &["--origin", "between two steps"]);
    folder.say("scan a.tdl *").failed(2, &["different columns"]);
}

#[test]
fn the_ends_of_time_are_shown() {
    let folder = folder_with_trades("the_ends_of_time_are_shown");
    let out = folder.say("scan a.tdl ends -f csv --flags").ok();
    assert_eq!(
        out,
        "series,time,flags,value\n\
         ends,1677-09-21T00:12:43.145224192Z,1,-inf\n\
         ends,1970-01-01T00:00:00Z,2,NaN\n\
         ends,2262-04-11T23:47:16.854775807Z,3,-0\n"
    );
    let json = folder.say("scan a.tdl ends -f json").ok();
    assert!(
        [
            r#""value":"-Infinity""#,
            r#""value":"NaN""#,
            r#""value":-0.0"#
        ]
        .iter()
        .all(|word| json.contains(word)),
        "{json}"
    );
    folder.say("plot a.tdl ends").ok();
    folder.say("plot a.tdl ends --by 1w --svg -").ok();
    let out = folder
        .say("window a.tdl ends --by 1d --fn count -f csv")
        .ok();
    assert_eq!(out.lines().count(), 4, "{out}");
}

#[test]
fn a_series_without_a_name_is_found_by_its_guid() {
    let folder = folder_with_trades("a_series_without_a_name_is_found_by_its_guid");
    let guid = "30313233-3435-3637-3839-616263646566";
    assert!(folder.say("series a.tdl").ok().contains(guid));
    let out = folder.say(&format!("scan a.tdl {guid} -f csv")).ok();
    assert_eq!(
        out,
        format!("series,time,value\n{guid},1970-01-01T00:00:00Z,1\n")
    );
}

/// The printed table has all columns that any of the series has; a cell is empty if its series lacks the column.
#[test]
fn the_newest_points_of_series_with_other_columns_are_one_table() {
    let folder = folder_with_trades("the_newest_points_of_series_with_other_columns");
    assert_eq!(
        folder.say("latest a.tdl -f csv").ok(),
        "series,time,value,volume,price\n\
         30313233-3435-3637-3839-616263646566,1970-01-01T00:00:00Z,1,,\n\
         ends,2262-04-11T23:47:16.854775807Z,-0,,\n\
         trades,2020-01-02T13:00:00Z,,7,9223372036854775807\n"
    );
}
