//! Records whose time is a `Timestamp` in series of every unit, and records whose time is a number in series of another
//! unit.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, ErrorKind, Options, Record, Result, Sample, Schema, Steps,
    Timestamp, Unit,
};

#[derive(Record, Clone, Debug, PartialEq)]
struct Wind {
    time: Timestamp,
    speed: f64,
}

/// A record with the same columns and unit as another one whose time is a `Timestamp`.
#[derive(Record, Clone, Debug, PartialEq)]
struct Numbered {
    time: i64,
    speed: f64,
}

#[derive(Record, Clone, Debug, PartialEq)]
#[record(unit = "s")]
struct WindInSeconds {
    time: Timestamp,
    speed: f64,
}

#[derive(Record, Clone, Debug, PartialEq)]
struct Note {
    time: Timestamp,
    text: String,
}

const UNITS: [Unit; 5] = [
    Unit::Nanos,
    Unit::Micros,
    Unit::Millis,
    Unit::Seconds,
    Unit::Ticks,
];

fn db() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).unwrap()
}

fn at(unit: Unit, text: &str) -> i64 {
    let t = Timestamp::parse(text).unwrap().0;
    t / unit.nanos() + unit.steps_to_1970()
}

#[test]
fn an_instant_is_stored_in_the_unit_of_its_series() {
    let times = ["2014-06-01T00:10:00Z", "1969-12-31T23:59:59Z", "2026-11-24"];
    for unit in UNITS {
        let db = db();
        let schema = Schema::new(unit, [("speed", ColumnType::F64)]);
        let notes = Schema::new(unit, [("text", ColumnType::String)]);
        let mut tx = db.begin_write().unwrap();
        tx.series_with("a", &schema).unwrap();
        tx.series_with("b", &schema).unwrap();
        tx.series_with("notes", &notes).unwrap();
        let winds = times.map(|text| Wind {
            time: Timestamp::parse(text).unwrap(),
            speed: 7.5,
        });
        let note = Note {
            time: winds[0].time,
            text: "gusts".to_owned(),
        };
        for wind in &winds {
            tx.series("a").unwrap().insert_record(wind).unwrap();
        }
        std::thread::scope(|scope| {
            let mut appender = tx.appenders(1).unwrap().remove(0);
            let (winds, note) = (&winds, &note);
            scope.spawn(move || {
                for wind in winds {
                    let own = WindInSeconds {
                        time: wind.time,
                        speed: wind.speed,
                    };
                    appender.series("b").unwrap().insert_record(&own).unwrap();
                }
                appender
                    .series("notes")
                    .unwrap()
                    .insert_record(note)
                    .unwrap();
                appender.finish().unwrap();
            });
        });
        tx.commit().unwrap();

        let snap = db.begin_read().unwrap();
        for name in ["a", "b"] {
            let series = snap.series(name).unwrap().unwrap();
            let mut expected = winds.to_vec();
            expected.sort_by_key(|wind| wind.time);
            let mut raw = Vec::new();
            series.query(..).for_each(|time, _| raw.push(time)).unwrap();
            let steps: Vec<i64> = expected
                .iter()
                .map(|w| at(unit, &w.time.to_string()))
                .collect();
            assert_eq!(raw, steps, "{name} in {unit:?}");
            let mut found = Vec::new();
            series
                .query(..)
                .for_each_record(|wind: Wind| found.push(wind))
                .unwrap();
            assert_eq!(found, expected, "{name} in {unit:?}");
            let mut times = Vec::new();
            let take = |wind: WindInSeconds| times.push(wind.time);
            series.query(..).for_each_record(take).unwrap();
            assert!(times.iter().eq(expected.iter().map(|wind| &wind.time)));
        }
        let notes = snap.series("notes").unwrap().unwrap();
        assert_eq!(notes.span(), Some((at(unit, times[0]), at(unit, times[0]))));
        assert_eq!(
            notes
                .record::<Note>(&notes.latest().unwrap().unwrap())
                .unwrap(),
            note
        );
    }
}

#[test]
fn an_instant_between_two_steps_goes_to_the_one_before() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, [("speed", ColumnType::F64)]);
    let mut series = tx.series_with("a", &schema).unwrap();
    for nanos in [1_999_999_999, -1] {
        let time = Timestamp(nanos);
        series.insert_record(&Wind { time, speed: 1.0 }).unwrap();
    }
    assert_eq!(series.view().unwrap().span(), Some((-1, 1)));
    // A time beyond the range of nanoseconds is an error; it does not wrap around.
    series.insert_row(Steps(i64::MAX), &[0]).unwrap();
    let read = series
        .view()
        .unwrap()
        .query(..)
        .for_each_record(|_: Wind| {});
    assert!(
        matches!(read, Err(ref error) if error.kind() == ErrorKind::InvalidInput),
        "{read:?}"
    );
}

fn refused<T: std::fmt::Debug>(result: Result<T>) {
    let problem = match result {
        Err(error) if error.kind() == ErrorKind::Schema => error.to_string(),
        other => panic!("{other:?}"),
    };
    for part in ["a", "Millis", "Nanos", "Timestamp"] {
        assert!(problem.contains(part), "{problem}");
    }
}

#[test]
fn steps_of_another_unit_are_refused() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let point = Schema {
        unit: Unit::Millis,
        ..Schema::point()
    };
    let speed = Schema::new(Unit::Millis, [("speed", ColumnType::F64)]);
    let texts = speed.clone().with(Column::new("text", ColumnType::String));
    let number = Numbered {
        time: 5,
        speed: 1.0,
    };
    let wind = Wind {
        time: Timestamp(5_000_000),
        speed: 2.0,
    };
    for _ in 0..2 {
        // The second round shows that accepting one record type does not make the other one acceptable.
        let mut series = tx.series_with("a", &speed).unwrap();
        refused(series.insert_record(&number));
        series.insert_record(&wind).unwrap();
        refused(series.insert_record(&number));
        let mut series = tx.series_with("a-point", &point).unwrap();
        let sample = Sample::default();
        refused(series.insert_record(&sample));
        series.insert(Steps(7), 1.0).unwrap();
        refused(series.insert_record(&sample));
        series.insert("1970-01-01T00:00:00.007Z", 2.0).unwrap();
    }
    tx.series_with("a-text", &texts).unwrap();
    let mut appender = tx.appenders(1).unwrap().remove(0);
    for _ in 0..2 {
        let mut series = appender.series("a").unwrap();
        refused(series.insert_record(&number));
        series.insert_record(&wind).unwrap();
        refused(series.insert_record(&number));
    }
    let mut series = appender.series("a-text").unwrap();
    refused(series.insert_record(&Said {
        time: 1,
        speed: 1.0,
        text: String::new(),
    }));
    appender.finish().unwrap();
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let series = snap.series("a").unwrap().unwrap();
    assert_eq!((series.count().unwrap(), series.span()), (1, Some((5, 5))));
    refused(series.query(..).for_each_record(|_: Numbered| {}));
    refused(series.reader_of::<Numbered>().map(drop));
    let points = snap.series("a-point").unwrap().unwrap();
    assert_eq!(points.span(), Some((7, 7)));
    refused(points.query(..).for_each_record(|_: Sample| {}));
    // Points of the default schema can be read in any unit; their times are in the unit of the series.
    let mut times = Vec::new();
    points
        .query(..)
        .for_each_sample(|sample| times.push(sample.time))
        .unwrap();
    assert_eq!(times, [7]);
}

#[derive(Record)]
struct Said {
    time: i64,
    speed: f64,
    text: String,
}
