//! Statements that fail, and statements that see other commits.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tidalite::storage::MemoryStorage;
use tidalite::{ColumnType, Database, Options, Schema, Steps, Unit, Value};
use tidalite_sql::arrow::array::AsArray;
use tidalite_sql::arrow::datatypes::Int64Type;
use tidalite_sql::{Connection, ConnectionOptions, ErrorKind};

fn database(rows: i64) -> Database {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(r#"load{host="a"}"#).unwrap();
    for row in 0..rows {
        series
            .insert(Steps(row * 1_000_000_000), row as f64)
            .unwrap();
    }
    tx.commit().unwrap();
    db
}

/// The only number of a result.
fn number(connection: &mut Connection, sql: &str) -> i64 {
    let mut rows = connection.query(sql).unwrap();
    let batch = rows.next().unwrap().unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn errors_have_a_kind_and_a_position() {
    let mut sql = Connection::new(&database(3)).unwrap();
    let mut error = |text: &str| {
        let result = sql
            .query(text)
            .and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
        result.expect_err(text)
    };
    let syntax = error("SELECT 1 +\n  ) FROM load");
    assert_eq!(
        (syntax.kind(), syntax.position()),
        (ErrorKind::Syntax, Some((2, 3))),
        "{syntax}"
    );
    let column = error("SELECT\n  speed FROM load");
    assert_eq!(
        (column.kind(), column.position()),
        (ErrorKind::Plan, Some((2, 3))),
        "{column}"
    );
    assert_eq!(error("SELECT * FROM nothing").kind(), ErrorKind::Plan);
    assert_eq!(error("SELECT 1/0").kind(), ErrorKind::Execution);
    assert_eq!(error("CREATE VIEW v AS SELECT 1").kind(), ErrorKind::Syntax);
    assert_eq!(error("COPY load TO STDOUT").kind(), ErrorKind::Syntax);
    assert_eq!(error("COPY load FROM 'no.csv'").kind(), ErrorKind::File);
    assert_eq!(error("COMMIT").kind(), ErrorKind::Transaction);
    assert_eq!(
        error("SET datafusion.execution.batch_size = 1").kind(),
        ErrorKind::Syntax
    );
    assert_eq!(error("").kind(), ErrorKind::Syntax);
    assert_eq!(error("SELECT 1; SELECT 2").kind(), ErrorKind::Syntax);
}

#[test]
fn deep_and_long_statements_end_with_an_error_or_a_result() {
    let mut sql = Connection::new(&database(3)).unwrap();
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(sql.query(&nested).err().unwrap().kind(), ErrorKind::Syntax);
    let nested = format!(
        "{}SELECT 1{}",
        "SELECT * FROM (".repeat(10_000),
        ") t".repeat(10_000)
    );
    assert_eq!(sql.query(&nested).err().unwrap().kind(), ErrorKind::Syntax);
    // A megabyte of text.
    let list: Vec<String> = (0..90_000)
        .map(|number| format!("{:>10}", number + 1_000_000))
        .collect();
    let long = format!(
        "SELECT count(*) FROM load WHERE value IN ({})",
        list.join(", ")
    );
    assert!(long.len() > 1_000_000);
    assert_eq!(number(&mut sql, &long), 0);
    assert_eq!(number(&mut sql, "SELECT count(*) FROM load"), 3);
}

#[test]
fn a_query_beyond_its_memory_is_an_error() {
    let mut options = ConnectionOptions::default();
    options.memory_bytes = 1 << 20;
    let mut sql = Connection::with_options(&database(200_000), &options).unwrap();
    let text = "SELECT a.value, array_agg(b.value) FROM load a JOIN load b ON a.value = b.value GROUP BY a.value ORDER BY 1";
    let result = sql
        .query(text)
        .and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    assert_eq!(
        result.expect_err("more memory than given").kind(),
        ErrorKind::Memory
    );
    assert_eq!(number(&mut sql, "SELECT count(*) FROM load"), 200_000);
}

#[test]
fn a_statement_can_be_cancelled() {
    let mut sql = Connection::new(&database(20_000)).unwrap();
    let cancel = sql.cancel_handle();
    let began = Instant::now();
    let canceller = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        cancel.cancel();
    });
    // 400 million pairs.
    let text = "SELECT count(*) FROM load a, load b WHERE a.value + b.value > 3.5";
    let result = sql
        .query(text)
        .and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    canceller.join().unwrap();
    let error = result.expect_err("cancelled");
    assert_eq!(
        error.kind(),
        ErrorKind::Cancelled,
        "{error} after {:?}",
        began.elapsed()
    );
    assert_eq!(number(&mut sql, "SELECT count(*) FROM load"), 20_000);
}

#[test]
fn a_statement_sees_one_commit_and_the_next_statement_the_next() {
    let db = database(100_000);
    let mut sql = Connection::new(&db).unwrap();
    let text = "SELECT value FROM load";
    let mut rows = sql.query(text).unwrap();
    let mut found = rows.next().unwrap().unwrap().num_rows();
    let mut tx = db.begin_write().unwrap();
    tx.series(r#"load{host="a"}"#)
        .unwrap()
        .insert(Steps(1), 0.0)
        .unwrap();
    tx.commit().unwrap();
    // The plan of this text is in use: the second statement has its own.
    let again: usize = sql
        .query(text)
        .unwrap()
        .map(|batch| batch.unwrap().num_rows())
        .sum();
    found += rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!((found, again), (100_000, 100_001));
    // The same text with the plan of before sees new rows, and new series.
    for rows in 0..3 {
        let mut tx = db.begin_write().unwrap();
        tx.series(r#"load{host="b"}"#)
            .unwrap()
            .insert(Steps(rows), 0.0)
            .unwrap();
        tx.commit().unwrap();
        let count = number(&mut sql, "SELECT count(*) FROM load WHERE host = 'b'");
        assert_eq!(count, rows + 1);
    }
}

#[test]
fn the_present_time_is_not_kept_with_a_plan() {
    let mut sql = Connection::new(&database(1)).unwrap();
    let text = "SELECT CAST(CAST(now() AS TIMESTAMP) AS BIGINT) FROM load";
    let first = number(&mut sql, text);
    thread::sleep(Duration::from_millis(5));
    assert!(number(&mut sql, text) > first);
}

#[test]
fn a_call_in_a_task_of_an_async_runtime_is_an_error() {
    let db = database(1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let error = runtime.block_on(async { Connection::new(&db).err().map(|error| error.kind()) });
    assert_eq!(error, Some(ErrorKind::Execution));
}

#[test]
fn a_connection_retains_no_snapshot_between_statements() {
    let db = database(100_000);
    let mut sql = Connection::new(&db).unwrap();
    let readers = || db.readers().unwrap().len();
    for _ in 0..2 {
        let mut rows = sql.query("SELECT value FROM load").unwrap();
        rows.next().unwrap().unwrap();
        assert_eq!(readers(), 1);
        drop(rows);
        assert_eq!(readers(), 0);
    }
    assert!(sql.query("SELECT nothing FROM load").is_err());
    assert!(sql.query("SELEC").is_err());
    assert!(sql.tables().unwrap().len() > 1);
    assert_eq!(readers(), 0);
}

#[test]
fn explain_analyze_counts_the_work_of_the_trees() {
    let mut sql = Connection::new(&database(100_000)).unwrap();
    let mut work = |query: &str| -> String {
        let rows = sql.query(&format!("EXPLAIN ANALYZE {query}")).unwrap();
        let lines = rows.map(|batch| format!("{:?}", batch.unwrap()));
        lines.collect()
    };
    // All rows, from the statistics of the whole tree.
    let whole = work("SELECT host, count(*), avg(value) FROM load GROUP BY host");
    assert!(
        whole.contains("series_opened=1") && whole.contains("vectors_decoded=0"),
        "{whole}"
    );
    // The same rows without statistics of single values: all 98 vectors.
    let rows = work("SELECT host, count(DISTINCT value) FROM load GROUP BY host");
    assert!(rows.contains("vectors_decoded=98"), "{rows}");
    // Ten rows of the last vector.
    let last = work("SELECT time FROM load ORDER BY time DESC LIMIT 10");
    assert!(last.contains("vectors_decoded=1"), "{last}");
}

#[test]
fn bins_of_the_calendar_decode_few_vectors() {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(r#"load{host="a"}"#).unwrap();
    // A row every two minutes for 400 days from 2023-12-25: 282 vectors.
    for row in 0..400 * 720 {
        let time = Steps((1_703_462_400 + row * 120) * 1_000_000_000);
        series.insert(time, row as f64).unwrap();
    }
    tx.commit().unwrap();
    let mut sql = Connection::new(&db).unwrap();
    let mut decoded = |query: &str| -> u64 {
        let rows = sql.query(&format!("EXPLAIN ANALYZE {query}")).unwrap();
        let text: String = rows.map(|batch| format!("{:?}", batch.unwrap())).collect();
        let (_, count) = text.split_once("vectors_decoded=").expect(&text);
        let end = count.find(|c: char| !c.is_ascii_digit()).unwrap();
        count[..end].parse().unwrap()
    };
    let figures = "count(*), max(value), avg(value) FROM load GROUP BY bin";
    // Each of 13 limits of months cuts a vector.
    for bin in [
        "date_trunc('month', time)",
        "time_bucket('1 month', time, 'Europe/Berlin')",
        "time_bucket('1 month', time AT TIME ZONE 'America/St_Johns')",
    ] {
        let vectors = decoded(&format!("SELECT {bin} AS bin, {figures}"));
        assert!((1..=26).contains(&vectors), "{bin}: {vectors}");
    }
    // Days cut all vectors, but each is decoded once, beside the changes of the clocks.
    let days = "SELECT time_bucket('1 day', time, 'Europe/Berlin') AS bin";
    let vectors = decoded(&format!("{days}, {figures}"));
    assert!((200..=290).contains(&vectors), "{vectors}");
    let vectors = decoded(&format!("{days}, {figures} ORDER BY bin DESC LIMIT 2"));
    assert!((1..=10).contains(&vectors), "{vectors}");
    // All vectors, if rows are read.
    let rows =
        "SELECT date_trunc('month', time) AS bin, count(DISTINCT value) FROM load GROUP BY bin";
    assert_eq!(decoded(rows), 282);
}

#[test]
fn bins_of_times_beyond_the_calendar_are_an_error() {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Seconds, [("value", ColumnType::F64)]);
    // The years 2024 and 9999, and the year 14645.
    for (name, times) in [
        (r#"far{host="a"}"#, &[1_704_067_200, 253_400_000_000][..]),
        (r#"far{host="b"}"#, &[400_000_000_000]),
    ] {
        let mut series = tx.series_with(name, &schema).unwrap();
        for &time in times {
            series
                .insert_values(Steps(time), &[Value::F64(1.0)])
                .unwrap();
        }
    }
    tx.commit().unwrap();
    let mut sql = Connection::new(&db).unwrap();
    let months =
        "SELECT count(*) FROM (SELECT time_bucket('1 month', time) AS bin, count(*) FROM far";
    let all = sql.query(&format!("{months} GROUP BY bin)"));
    let error = all.and_then(|rows| rows.collect::<Result<Vec<_>, _>>());
    assert_eq!(error.expect_err("year 14645").kind(), ErrorKind::Execution);
    let text = format!("{months} WHERE host = 'a' GROUP BY bin)");
    assert_eq!(number(&mut sql, &text), 2);
}
