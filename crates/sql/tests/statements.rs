//! Statements that fail, and statements that see other commits.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tidalite::storage::MemoryStorage;
use tidalite::{ColumnType, Database, Options, Schema, Steps, Unit, Value};
use tidalite_sql::arrow::array::AsArray;
use tidalite_sql::arrow::datatypes::Int64Type;
use tidalite_sql::arrow::util::pretty::pretty_format_batches;
use tidalite_sql::{Connection, ConnectionOptions, ErrorKind, ScalarValue};

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
    assert_eq!(error("CREATE SEQUENCE s").kind(), ErrorKind::Syntax);
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

/// The rows of a result as text, in order.
fn text(connection: &mut Connection, sql: &str) -> String {
    let rows = connection.query(sql).unwrap();
    let batches: Vec<_> = rows.collect::<Result<_, _>>().unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[test]
fn kept_plans_of_tables_follow_their_changes() {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut kept = Connection::new(&db).unwrap();
    kept.execute("CREATE TABLE site (id BIGINT PRIMARY KEY, name TEXT)")
        .unwrap();
    kept.execute("CREATE TABLE unit (id BIGINT PRIMARY KEY, site BIGINT, rated DOUBLE)")
        .unwrap();
    kept.execute("CREATE INDEX unit_site ON unit (site, rated)")
        .unwrap();
    let queries = [
        "SELECT count(*) FROM unit",
        "SELECT count(*), max(rated) FROM unit",
        "SELECT (SELECT count(*) FROM unit) AS units, count(*) AS sites FROM site WHERE name > 'a'",
        "SELECT id FROM unit WHERE site = 2 ORDER BY id",
        "SELECT id FROM unit WHERE site = 2 AND rated > 3 ORDER BY id LIMIT 5",
        "SELECT s.name, count(u.id) FROM site s LEFT JOIN unit u ON u.site = s.id GROUP BY s.name ORDER BY 1",
        "SELECT u.id FROM unit u JOIN site s ON u.site = s.id WHERE s.name = 'b' AND u.rated < 4 ORDER BY u.id",
        "SELECT id FROM site WHERE id IN (SELECT site FROM unit) ORDER BY id",
        "SELECT id, rated FROM unit ORDER BY id LIMIT 3",
        "SELECT count(*) FROM (SELECT id FROM unit LIMIT 2)",
    ];
    let mut compare = |step: &str| {
        let mut planned = Connection::new(&db).unwrap();
        for sql in queries {
            // The second run is the plan of the first one.
            for _ in 0..2 {
                assert_eq!(
                    text(&mut kept, sql),
                    text(&mut planned, sql),
                    "{step}: {sql}"
                );
            }
        }
    };
    compare("empty tables");
    let mut other = Connection::new(&db).unwrap();
    let mut run = |sql: &str| other.execute(sql).unwrap();
    run("INSERT INTO site VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    compare("rows of one table");
    run(
        "INSERT INTO unit SELECT value, value % 5, value / 100.0 FROM unnest(generate_series(1, 500)) AS s (value)",
    );
    compare("some rows");
    run(
        "INSERT INTO unit SELECT value, value % 5, value / 100.0 FROM unnest(generate_series(501, 90000)) AS s (value)",
    );
    compare("many rows");
    run("DELETE FROM unit WHERE id > 40");
    compare("few rows");
    run("DROP INDEX unit_site");
    compare("no index");
    run("ALTER TABLE unit DROP COLUMN rated");
    run("ALTER TABLE unit ADD COLUMN rated DOUBLE DEFAULT 3.5");
    compare("another column");
    run("DROP TABLE unit");
    run("CREATE TABLE unit (id TEXT PRIMARY KEY, rated DECIMAL(9, 2), site BIGINT)");
    run("INSERT INTO unit VALUES ('x', 3.25, 2), ('y', 9, 3)");
    compare("another table");
}

/// Checks that the only row of a query is this value.
fn assert_has(connection: &mut Connection, sql: &str, value: &str) {
    let text = text(connection, sql);
    let line = text.lines().nth(3).unwrap_or_default();
    assert_eq!(line.trim_matches(['|', ' ']), value, "{text}");
}

#[test]
fn inserts_that_are_run_again_follow_the_schema_and_the_parameters() {
    let mut sql = Connection::new(&database(0)).unwrap();
    sql.query("CREATE TABLE t (id BIGINT PRIMARY KEY, v DOUBLE DEFAULT 0.5, g UUID, UNIQUE (g))")
        .unwrap();
    let insert = "INSERT INTO t (id, v) VALUES ($1, $2)";
    let upsert =
        "INSERT INTO t (id, v) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v";
    let assign =
        "INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET v = $2 WHERE t.v < $2";
    let row = |id: i64, v: ScalarValue| [ScalarValue::from(id), v];
    let run = |sql: &mut Connection, text: &str, values: &[ScalarValue]| {
        let rows = sql.query_with(text, values)?;
        Ok::<_, tidalite_sql::Error>(rows.affected_rows())
    };
    for id in 1..=3 {
        assert_eq!(
            run(&mut sql, insert, &row(id, ScalarValue::from(1.0))).unwrap(),
            Some(1)
        );
    }
    // Values of other types are converted.
    run(
        &mut sql,
        insert,
        &[ScalarValue::from("4"), ScalarValue::from(2_i32)],
    )
    .unwrap();
    let error = run(&mut sql, insert, &row(5, ScalarValue::from("x"))).unwrap_err();
    assert!(error.to_string().starts_with("column v: "), "{error}");
    assert_eq!(error.kind(), ErrorKind::Execution);
    for (id, expected) in [(1, "1:3.5"), (1, "1:6.0"), (2, "2:3.5")] {
        assert_eq!(
            run(&mut sql, upsert, &row(id, ScalarValue::from(2.5))).unwrap(),
            Some(1)
        );
        let found = format!("SELECT concat(id, ':', v) FROM t WHERE id = {id}");
        assert_has(&mut sql, &found, expected);
    }
    for (v, changed) in [(9.0, 1), (8.0, 0), (10.0, 1)] {
        assert_eq!(
            run(&mut sql, assign, &row(3, ScalarValue::from(v))).unwrap(),
            Some(changed)
        );
    }
    assert_has(&mut sql, "SELECT v FROM t WHERE id = 3", "10.0");
    // Functions of the present time are evaluated each time.
    sql.query("CREATE TABLE seen (id BIGINT PRIMARY KEY, at TIMESTAMPTZ)")
        .unwrap();
    let touch =
        "INSERT INTO seen VALUES ($1, '2000-01-01') ON CONFLICT (id) DO UPDATE SET at = now()";
    let mut times = Vec::new();
    for _ in 0..4 {
        run(&mut sql, touch, &[ScalarValue::from(1_i64)]).unwrap();
        times.push(number(&mut sql, "SELECT at::BIGINT FROM seen"));
        thread::sleep(Duration::from_millis(2));
    }
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    // Another schema, in a transaction that is rolled back, and committed.
    for end in ["ROLLBACK", "COMMIT"] {
        sql.query("BEGIN").unwrap();
        sql.query("ALTER TABLE t ADD COLUMN w TEXT DEFAULT 'new'")
            .unwrap();
        run(&mut sql, insert, &row(10, ScalarValue::Null)).unwrap();
        assert_has(&mut sql, "SELECT w FROM t WHERE id = 10", "new");
        sql.query(end).unwrap();
    }
    sql.query("ALTER TABLE t DROP COLUMN v").unwrap();
    let error = run(&mut sql, insert, &row(11, ScalarValue::from(1.0))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Plan, "{error}");
    sql.query("DROP TABLE t").unwrap();
    sql.query("CREATE TABLE t (v TEXT, id TEXT)").unwrap();
    run(&mut sql, insert, &row(11, ScalarValue::from(true))).unwrap();
    assert_has(&mut sql, "SELECT concat(v, ' ', id) FROM t", "true 11");
    // A statement that fails changes nothing, and the transaction continues.
    sql.query("CREATE TABLE g (g UUID PRIMARY KEY)").unwrap();
    let many = "INSERT INTO g VALUES ($1), ($2), ($1)";
    let one = "INSERT INTO g VALUES ($1)";
    let guid = |digit: u8| ScalarValue::from(format!("{digit:032x}"));
    sql.query("BEGIN").unwrap();
    assert_eq!(run(&mut sql, one, &[guid(1)]).unwrap(), Some(1));
    let error = run(&mut sql, one, &[ScalarValue::from("no")]).unwrap_err();
    assert!(error.to_string().contains("is not a GUID"), "{error}");
    for _ in 0..2 {
        assert!(run(&mut sql, many, &[guid(2), guid(3)]).is_err());
        assert!(run(&mut sql, one, &[guid(1)]).is_err());
    }
    assert_eq!(number(&mut sql, "SELECT count(*) FROM g"), 1);
    sql.query("COMMIT").unwrap();
    assert_eq!(number(&mut sql, "SELECT count(*) FROM g"), 1);
}

#[test]
fn rows_are_looked_up_by_the_first_columns_of_a_key() {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut sql = Connection::new(&db).unwrap();
    sql.execute("CREATE TABLE unit (site TEXT, number INT, kind TEXT, PRIMARY KEY (site, number))")
        .unwrap();
    sql.execute("CREATE INDEX unit_kind ON unit (kind, number)")
        .unwrap();
    sql.execute(
        "INSERT INTO unit SELECT 'a' || (value % 3), value, CASE value % 7 WHEN 0 THEN NULL ELSE 'k' || (value % 7) END
         FROM unnest(generate_series(1, 6000)) AS s (value)",
    )
    .unwrap();
    for (condition, parameters, wanted) in [
        ("site = $1 AND number = $2", &["a1", "4"][..], 1),
        ("number = $2 AND site = $1", &["a1", "5"], 0),
        // More rows than a look-up reads.
        ("site = $1", &["a1"], 2000),
        ("kind = $1", &["k3"], 857),
        ("kind = $1 AND number = $2", &["k3", "10"], 1),
        ("kind = $1", &["k9"], 0),
        ("number = $1", &["10"], 1),
        ("kind = $1 AND site = $2", &["k3", "a1"], 286),
    ] {
        let values: Vec<ScalarValue> = parameters
            .iter()
            .map(|&value| match value.parse::<i32>() {
                Ok(number) => ScalarValue::from(number),
                Err(_) => ScalarValue::from(value),
            })
            .collect();
        let query = format!("SELECT number, site, kind FROM unit WHERE {condition}");
        let mut text = condition.to_owned();
        for (number, value) in parameters.iter().enumerate() {
            text = text.replace(&format!("${}", number + 1), &format!("'{value}'"));
        }
        let constant = format!("SELECT number, site, kind FROM unit WHERE {text}");
        for _ in 0..2 {
            let found = sql.query_with(&query, &values).unwrap();
            let batches: Vec<_> = found.collect::<Result<_, _>>().unwrap();
            let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
            assert_eq!(rows, wanted, "{query} {parameters:?}");
            for batch in &batches {
                let schema = batch.schema();
                let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
                assert_eq!(names, ["number", "site", "kind"]);
            }
            assert_eq!(
                sql.execute(&constant).unwrap() as usize,
                wanted,
                "{constant}"
            );
        }
    }
    // A null equals no row.
    let null = [ScalarValue::Utf8(None)];
    let none = sql
        .query_with("SELECT * FROM unit WHERE kind = $1", &null)
        .unwrap();
    assert_eq!(
        none.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        0
    );
}

#[test]
fn the_last_rows_of_a_table_are_read_from_its_end() {
    let mut sql = Connection::new(&database(1)).unwrap();
    sql.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, text TEXT)")
        .unwrap();
    sql.execute(
        "INSERT INTO t SELECT value, 'row ' || value FROM unnest(generate_series(1, 100000)) AS s (value)",
    )
    .unwrap();
    // The figures of the scan.
    let mut scan = |query: &str| -> (u64, u64) {
        let rows = sql.query(&format!("EXPLAIN ANALYZE {query}")).unwrap();
        let lines: String = rows.map(|batch| format!("{:?}", batch.unwrap())).collect();
        let line = lines.split("RelationScan: t").nth(1).unwrap();
        let figure = |name: &str| {
            let (_, rest) = line.split_once(name).unwrap();
            // Thousands are written as "100.0 K".
            let text = rest.split([',', ']']).next().unwrap();
            match text.strip_suffix(" K") {
                Some(text) => (text.parse::<f64>().unwrap() * 1000.0) as u64,
                None => text.parse().unwrap(),
            }
        };
        (figure("output_rows="), figure("pages_read="))
    };
    let (rows, all_pages) = scan("SELECT * FROM t WHERE text LIKE '%x'");
    assert_eq!(rows, 100_000);
    assert!(all_pages > 100, "{all_pages}");
    for query in [
        "SELECT * FROM t ORDER BY id DESC LIMIT 10",
        "SELECT * FROM t ORDER BY id LIMIT 10",
    ] {
        let (rows, pages) = scan(query);
        // One limit for each part of a scan that is divided among threads.
        assert!((10..=40).contains(&rows), "{query}: {rows} rows");
        assert!((1..=40).contains(&pages), "{query}: {pages} pages");
    }
    // A condition that is not part of the range: a few small batches.
    let (rows, pages) =
        scan("SELECT * FROM t WHERE text LIKE '%7' AND id > 1000 ORDER BY id DESC LIMIT 3");
    assert!((30..2_000).contains(&rows), "{rows} rows");
    assert!(pages < all_pages / 4, "{pages} of {all_pages} pages");
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
