//! The first example of the article about the LMDB time-series engine, as a user would write it for Tidalite.

use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, Result, Schema, SearchResult, Timestamp, Unit};

fn database() -> Result<Database> {
    let memory = std::sync::Arc::new(MemoryStorage::default());
    Options::new().open_storage(tidalite_testkit::Monitor::new(memory))
}

#[test]
fn insert_step_and_search() -> Result<()> {
    let db = database()?;
    let guid = *b"the first series";
    let schema = Schema {
        unit: Unit::Ticks,
        ..Schema::point()
    };
    let mut tx = db.begin_write()?;
    let mut series = tx.series_of_guid(guid, &schema)?;
    for (day, value) in [
        ("2020-01-01", 1.0),
        ("2020-01-02", 2.0),
        ("2020-01-04", 4.0),
    ] {
        series.insert(day, value)?;
    }
    series.insert("2020-01-03", 3.0)?;
    series.insert("2020-01-04", 40.0)?;
    tx.commit()?;

    let snap = db.begin_read()?;
    let series = snap
        .series_of_guid(&guid)?
        .expect("the series was committed");
    let mut cursor = series.cursor();
    let mut values = Vec::new();
    let mut row = cursor.first()?;
    while let Some(current) = row {
        values.push(current.f64(1));
        row = cursor.next()?;
    }
    assert_eq!(values, [1.0, 2.0, 3.0, 40.0]);
    assert_eq!(
        cursor.previous()?.map(|row| row.f64(1)),
        Some(40.0),
        "back from behind the end"
    );

    let noon = Timestamp::parse("2020-01-02T12:00:00Z")?;
    let found = cursor.search(noon)?.expect("a row before noon");
    assert_eq!(Unit::Ticks.text(found.time), "2020-01-02T00:00:00Z");
    assert_eq!(cursor.search("2019-12-31")?, None, "nothing is that early");
    assert_eq!(cursor.current(), None, "in front of the first");

    // Each search of the article with its result, and the value at the cursor's position afterwards.
    for (t, found, value) in [
        ("2019-12-31", SearchResult::Greater, 1.0),
        ("2020-01-01", SearchResult::Equal, 1.0),
        ("2020-01-01T00:00:00.00000005", SearchResult::Less, 1.0),
        ("2020-01-02T12:00", SearchResult::Less, 2.0),
        ("2020-01-04", SearchResult::Equal, 40.0),
        ("2021-01-01", SearchResult::Less, 40.0),
    ] {
        assert_eq!(cursor.seek(t)?, found, "{t}");
        assert_eq!(cursor.current().map(|row| row.f64(1)), Some(value), "{t}");
    }
    assert_eq!(cursor.next()?, None, "behind the last");
    assert_eq!(cursor.current(), None);

    // Three starts of a query: from the row that was current at noon, from noon itself, and from a time before the
    // first row.
    assert_eq!(series.query(noon..).from_current().count()?, 3);
    assert_eq!(series.query(noon..).count()?, 2);
    assert_eq!(series.query("2019-12-31"..).from_current().count()?, 4);
    // The same between two times: first only the rows of the interval, then also the row that was current at the start.
    let noons = noon..Timestamp::parse("2020-01-03T12:00:00Z")?;
    assert_eq!(series.query(noons.clone()).aggregate(1)?.sum(), 3.0);
    assert_eq!(series.query(noons).from_current().aggregate(1)?.sum(), 5.0);
    for (times, rows) in [
        ("2019-12-31".."2020-01-02", 1),
        ("2020-01-02".."2020-01-02", 0),
        ("2020-01-02T12:00".."2020-01-02T12:00", 1),
        ("2020-01-01".."2020-01-04T00:00:00.0000001Z", 4),
        ("2021-01-01".."2022-01-01", 1),
        ("2018-01-01".."2019-01-01", 0),
    ] {
        let found = series.query(times.clone()).from_current();
        assert_eq!(found.count()?, rows, "{times:?}");
    }
    assert_eq!(
        series.query("2020-01-02".."2020-01-04").aggregate(1)?.sum(),
        5.0
    );
    Ok(())
}

#[test]
fn dropping_a_transaction_rolls_everything_back() -> Result<()> {
    let db = database()?;
    let mut tx = db.begin_write()?;
    tx.series("a")?.insert("2020-01-01", 1.0)?;
    tx.table("t")?.put(b"k", b"v")?;
    assert_eq!(
        tx.table("t")?.get(b"k")?.as_deref(),
        Some(&b"v"[..]),
        "own writes are read"
    );
    assert_eq!(tx.series("a")?.view()?.count()?, 1);
    drop(tx);
    let snap = db.begin_read()?;
    assert!(snap.series("a")?.is_none() && snap.tables()?.is_empty());
    Ok(())
}
