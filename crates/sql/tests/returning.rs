//! RETURNING with parameters, for a program.

use std::sync::Arc;
use tidalite::Options;
use tidalite::storage::MemoryStorage;
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::util::display::array_value_to_string;
use tidalite_sql::{Connection, ErrorKind, ScalarValue};

fn connection() -> Connection {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    Connection::new(&db).unwrap()
}

/// The number of changed rows, and the returned ones with a space between two values.
fn run(sql: &mut Connection, text: &str, values: &[ScalarValue]) -> (Option<u64>, Vec<String>) {
    let rows = sql.query_with(text, values).unwrap();
    let (affected, schema) = (rows.affected_rows(), rows.schema());
    let batches: Vec<RecordBatch> = rows.collect::<Result<_, _>>().unwrap();
    let mut lines = Vec::new();
    for batch in &batches {
        assert_eq!(batch.schema().fields(), schema.fields());
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter();
            let cells = columns.map(|column| array_value_to_string(column, row).unwrap());
            lines.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    (affected, lines)
}

#[test]
fn statements_with_parameters_return_their_rows() {
    let mut sql = connection();
    sql.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v REAL DEFAULT 0.5, text TEXT)")
        .unwrap();
    let insert = "INSERT INTO t (id, text) VALUES ($1, $2) RETURNING id + $3 AS next, v, text";
    for id in 1..4_i64 {
        let values = [
            ScalarValue::from(id),
            ScalarValue::from("x"),
            ScalarValue::from(100_i64),
        ];
        let (affected, rows) = run(&mut sql, insert, &values);
        assert_eq!(affected, Some(1));
        assert_eq!(rows, [format!("{} 0.5 x", id + 100)]);
    }
    let values = [ScalarValue::from(2_i64), ScalarValue::from(7_i64)];
    let by_key = "UPDATE t SET v = $2 WHERE id = $1 RETURNING v, id";
    assert_eq!(
        run(&mut sql, by_key, &values),
        (Some(1), vec!["7.0 2".to_owned()])
    );
    let joined = "UPDATE t SET v = $2, text = o.text FROM (SELECT $1 AS id, 'new' AS text) AS o WHERE o.id = t.id RETURNING *";
    assert_eq!(
        run(&mut sql, joined, &values),
        (Some(1), vec!["2 7.0 new".to_owned()])
    );
    let delete = "DELETE FROM t USING (SELECT $1 AS id) AS o WHERE t.id >= o.id AND v < $2 RETURNING t.id, $1";
    assert_eq!(
        run(&mut sql, delete, &values),
        (Some(1), vec!["3 2".to_owned()])
    );
    let missing = sql.query_with(by_key, &values[..1]).map(drop);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::Plan);
    assert_eq!(sql.execute("SELECT * FROM t").unwrap(), 2);
}

#[test]
fn many_rows_are_returned_in_batches() {
    let mut sql = connection();
    sql.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, double BIGINT)")
        .unwrap();
    let insert = "INSERT INTO t SELECT value, 2 * value FROM unnest(generate_series(1, 20000)) AS s (value) RETURNING double - id";
    let (affected, mut rows) = run(&mut sql, insert, &[]);
    rows.sort_unstable_by_key(|row| row.parse::<u64>().unwrap());
    let expected: Vec<String> = (1..=20_000).map(|id: u64| id.to_string()).collect();
    assert_eq!(affected, Some(20_000));
    assert!(rows == expected, "{} rows", rows.len());
    let (affected, rows) = run(&mut sql, "DELETE FROM t RETURNING 1", &[]);
    assert_eq!((affected, rows.len()), (Some(20_000), 20_000));
}
