//! Random statements that change a table and series, compared with maps of the standard library; and parameters.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, Steps};
use tidalite_sql::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch};
use tidalite_sql::arrow::datatypes::{Float64Type, Int64Type};
use tidalite_sql::{Connection, ErrorKind, ScalarValue};
use tidalite_testkit::rng::Rng;

fn empty() -> Database {
    Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// The rows of `t`: key, value, unique value; and of `m`: host and second, value.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    table: BTreeMap<i64, (i64, Option<i64>)>,
    series: BTreeMap<(String, i64), i64>,
}

impl Model {
    /// The key of the row that has a unique value.
    fn owner(&self, unique: Option<i64>) -> Option<i64> {
        unique?;
        let mut rows = self.table.iter();
        rows.find(|(_, row)| row.1 == unique).map(|(key, _)| *key)
    }

    /// Inserts a row; false if a key is taken.
    fn insert(&mut self, key: i64, value: i64, unique: Option<i64>) -> bool {
        if self.table.contains_key(&key) || self.owner(unique).is_some() {
            return false;
        }
        self.table.insert(key, (value, unique));
        true
    }
}

/// The state of the database in SQL.
fn stored(sql: &mut Connection) -> Model {
    let mut model = Model::default();
    for batch in sql.query("SELECT k, v, u FROM t ORDER BY k").unwrap() {
        let batch = batch.unwrap();
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().clone();
        let (keys, values, uniques) = (column(0), column(1), column(2));
        for row in 0..batch.num_rows() {
            let unique = uniques.is_valid(row).then(|| uniques.value(row));
            model
                .table
                .insert(keys.value(row), (values.value(row), unique));
        }
    }
    let rows = "SELECT CAST(host AS TEXT), CAST(time AS BIGINT), CAST(value AS BIGINT) FROM m";
    for batch in sql.query(rows).unwrap() {
        let batch = batch.unwrap();
        let hosts = batch.column(0).as_string::<i32>();
        let times = batch.column(1).as_primitive::<Int64Type>();
        let values = batch.column(2).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let key = (
                hosts.value(row).to_owned(),
                times.value(row) / 1_000_000_000,
            );
            model.series.insert(key, values.value(row));
        }
    }
    model
}

/// A random statement, its effect on the model, and the number of rows; `None` if it must fail.
fn change(rng: &mut Rng, model: &mut Model) -> (String, Option<u64>) {
    let key = rng.below(40) as i64;
    let value = rng.below(1000) as i64;
    let unique = (rng.below(3) > 0).then(|| rng.below(60) as i64);
    let text = unique.map_or("NULL".to_owned(), |unique| unique.to_string());
    let host = ["a", "b", "c"][rng.below(3) as usize];
    let second = rng.below(50) as i64;
    match rng.below(13) {
        9 => {
            // A row by its key.
            let sql = format!("UPDATE t SET v = {value}, u = {text} WHERE k = {key}");
            let taken = model.owner(unique).is_some_and(|owner| owner != key);
            match model.table.get_mut(&key) {
                None => (sql, Some(0)),
                Some(_) if taken => (sql, None),
                Some(row) => {
                    *row = (value, unique);
                    (sql, Some(1))
                }
            }
        }
        10 => {
            let sql = format!("DELETE FROM t WHERE k = {key}");
            (sql, Some(u64::from(model.table.remove(&key).is_some())))
        }
        11 => {
            // Rows of series by their values, here and there.
            let rest = value % 3;
            let sql =
                format!("DELETE FROM m WHERE CAST(value AS BIGINT) % 3 = {rest} AND host <> 'b'");
            let before = model.series.len();
            model
                .series
                .retain(|(own, _), value| own == "b" || *value % 3 != rest);
            (sql, Some((before - model.series.len()) as u64))
        }
        12 => {
            // Each row gets the value of the next one, as it was before.
            let sql = "UPDATE t SET v = o.v FROM t AS o WHERE o.k = t.k + 1".to_owned();
            let before = model.table.clone();
            let mut rows = 0;
            for (key, row) in &mut model.table {
                if let Some(next) = before.get(&(key + 1)) {
                    row.0 = next.0;
                    rows += 1;
                }
            }
            (sql, Some(rows))
        }
        0 | 1 => {
            let sql = format!("INSERT INTO t VALUES ({key}, {value}, {text})");
            (sql, model.insert(key, value, unique).then_some(1))
        }
        2 => {
            // Two rows: both or none.
            let before = model.clone();
            let both = model.insert(key, value, unique) && model.insert(key + 1, value, None);
            if !both {
                *model = before;
            }
            let other = key + 1;
            let sql = format!(
                "INSERT INTO t (u, k, v) VALUES ({text}, {key}, {value}), (NULL, {other}, {value})"
            );
            (sql, both.then_some(2))
        }
        3 => {
            let sql = format!(
                "INSERT INTO t VALUES ({key}, {value}, {text}) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v"
            );
            if let Some(row) = model.table.get_mut(&key) {
                row.0 += value;
                return (sql, Some(1));
            }
            (sql, model.insert(key, value, unique).then_some(1))
        }
        4 => {
            // All keys move at once: only the final ones must differ.
            let moved: Vec<i64> = model.table.range(key..).map(|(key, _)| *key).collect();
            let sql = format!("UPDATE t SET k = k + 1 WHERE k >= {key}");
            let rows: Vec<_> = moved
                .iter()
                .map(|key| model.table.remove(key).unwrap())
                .collect();
            for (key, row) in moved.iter().zip(rows) {
                model.table.insert(key + 1, row);
            }
            (sql, Some(moved.len() as u64))
        }
        5 => {
            let sql = format!("DELETE FROM t WHERE k BETWEEN {key} AND {}", key + 3);
            let before = model.table.len();
            model.table.retain(|own, _| !(key..=key + 3).contains(own));
            (sql, Some((before - model.table.len()) as u64))
        }
        6 | 7 => {
            let other = second + 1;
            let sql = format!(
                "INSERT INTO m (time, host, value) VALUES (to_timestamp({second}), '{host}', {value}), (to_timestamp({other}), '{host}', 7)"
            );
            model.series.insert((host.to_owned(), second), value);
            model.series.insert((host.to_owned(), other), 7);
            (sql, Some(2))
        }
        _ => {
            let to = second + 5;
            let sql = format!(
                "DELETE FROM m WHERE host = '{host}' AND time >= to_timestamp({second}) AND time < to_timestamp({to})"
            );
            let before = model.series.len();
            model
                .series
                .retain(|(own, time), _| own != host || !(second..to).contains(time));
            (sql, Some((before - model.series.len()) as u64))
        }
    }
}

#[test]
fn random_changes_equal_those_of_maps() {
    let seed = std::env::var("TIDALITE_SEED").map_or(29, |seed| seed.parse().unwrap());
    let steps = std::env::var("TIDALITE_SQL_CHANGES").map_or(400, |steps| steps.parse().unwrap());
    println!("seed {seed}, {steps} steps");
    let mut rng = Rng::new(seed);
    let db = empty();
    let mut tx = db.begin_write().unwrap();
    tx.series(r#"m{host="a"}"#).unwrap();
    tx.commit().unwrap();
    let mut sql = Connection::new(&db).unwrap();
    sql.query("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, u BIGINT UNIQUE)")
        .unwrap();
    let mut model = Model::default();
    // The states at BEGIN and at each savepoint.
    let mut marks: Vec<(String, Model)> = Vec::new();
    for step in 0..steps {
        match rng.below(14) {
            0 if marks.is_empty() => {
                sql.query("BEGIN").unwrap();
                marks.push((String::new(), model.clone()));
            }
            0 => {
                sql.query("COMMIT").unwrap();
                marks.clear();
            }
            1 if !marks.is_empty() => {
                sql.query("ROLLBACK").unwrap();
                model = marks.swap_remove(0).1;
                marks.clear();
            }
            2 if !marks.is_empty() => {
                let name = format!("s{step}");
                sql.query(&format!("SAVEPOINT {name}")).unwrap();
                marks.push((name, model.clone()));
            }
            3 if marks.len() > 1 => {
                let at = 1 + rng.below(marks.len() as u64 - 1) as usize;
                sql.query(&format!("ROLLBACK TO {}", marks[at].0)).unwrap();
                model = marks[at].1.clone();
                marks.truncate(at + 1);
            }
            _ => {
                let (text, rows) = change(&mut rng, &mut model);
                let done = sql.execute(&text);
                match (rows, done) {
                    (Some(rows), Ok(found)) => assert_eq!(found, rows, "step {step}: {text}"),
                    (None, Err(error)) => {
                        assert_eq!(error.kind(), ErrorKind::Database, "step {step}: {text}");
                    }
                    (rows, done) => panic!("step {step}: {text}: {rows:?}, {done:?}"),
                }
            }
        }
        if step % 5 == 0 {
            assert_eq!(stored(&mut sql), model, "step {step}");
        }
    }
    drop(sql);
    let report = db.check().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// The only value of the column of floats of a result.
fn float(rows: tidalite_sql::Result<tidalite_sql::Rows>) -> Option<f64> {
    let batches: Vec<RecordBatch> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    let batch = batches.into_iter().find(|batch| batch.num_rows() > 0)?;
    Some(batch.column(0).as_primitive::<Float64Type>().value(0))
}

#[test]
fn parameters_take_the_types_of_columns() {
    let db = empty();
    let mut tx = db.begin_write().unwrap();
    tx.series(r#"m{host="a"}"#)
        .unwrap()
        .insert(Steps(1), 0.5)
        .unwrap();
    tx.commit().unwrap();
    let mut sql = Connection::new(&db).unwrap();
    sql.query("CREATE TABLE t (id TEXT, part INT, rated DOUBLE, PRIMARY KEY (id, part))")
        .unwrap();
    for part in 0..3_i64 {
        for round in 0..2 {
            let values = [
                ScalarValue::from("R1"),
                ScalarValue::from(part),
                ScalarValue::from(part + round),
            ];
            let insert = "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id, part) DO UPDATE SET rated = excluded.rated";
            assert_eq!(
                sql.query_with(insert, &values).unwrap().affected_rows(),
                Some(1)
            );
        }
    }
    // A look-up by the key; parameters may have another type than the column.
    let lookup = "SELECT rated FROM t WHERE part = $2 AND id = $1";
    for part in [
        ScalarValue::Int32(Some(2)),
        ScalarValue::Int64(Some(2)),
        ScalarValue::from("2"),
    ] {
        let values = [ScalarValue::from("R1"), part];
        assert_eq!(float(sql.query_with(lookup, &values)), Some(3.0));
    }
    assert_eq!(
        float(sql.query_with(lookup, &[ScalarValue::from("R1"), ScalarValue::Int32(None)])),
        None
    );
    assert_eq!(
        float(sql.query_with(lookup, &[ScalarValue::from("R1"), ScalarValue::from(9)])),
        None
    );
    let missing = sql.query_with(lookup, &[ScalarValue::from("R1")]).map(drop);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::Plan);
    // It sees changes of the row and of the table.
    sql.query("UPDATE t SET rated = 9 WHERE part = 2").unwrap();
    let values = [ScalarValue::from("R1"), ScalarValue::from(2)];
    assert_eq!(float(sql.query_with(lookup, &values)), Some(9.0));
    sql.query("ALTER TABLE t RENAME COLUMN rated TO kw")
        .unwrap();
    assert_eq!(
        sql.query_with(lookup, &values)
            .map(drop)
            .unwrap_err()
            .kind(),
        ErrorKind::Plan
    );
    sql.query("ALTER TABLE t RENAME COLUMN kw TO rated")
        .unwrap();
    sql.query("BEGIN").unwrap();
    sql.query("DELETE FROM t").unwrap();
    assert_eq!(float(sql.query_with(lookup, &values)), None);
    sql.query("ROLLBACK").unwrap();
    assert_eq!(float(sql.query_with(lookup, &values)), Some(9.0));
    // Other statements with parameters.
    let sum = "SELECT sum(rated) FROM t WHERE part >= $1";
    assert_eq!(
        float(sql.query_with(sum, &[ScalarValue::from(1)])),
        Some(11.0)
    );
    assert_eq!(
        float(sql.query_with(sum, &[ScalarValue::from(2)])),
        Some(9.0)
    );
    let update = "UPDATE t SET rated = rated + $1 WHERE part = $2";
    let rows = sql
        .query_with(update, &[ScalarValue::from(0.5), ScalarValue::from(0)])
        .unwrap();
    assert_eq!(rows.affected_rows(), Some(1));
    // The change of a row by its key; a number between two keys is none.
    let by_key = "UPDATE t SET rated = $3 WHERE id = $1 AND $2 = part";
    for (part, rows) in [
        (ScalarValue::from(2), 1),
        (ScalarValue::from(2.0), 1),
        (ScalarValue::from(2.5), 0),
    ] {
        let values = [ScalarValue::from("R1"), part.clone(), ScalarValue::from(4)];
        let updated = sql.query_with(by_key, &values).unwrap();
        assert_eq!(updated.affected_rows(), Some(rows), "{part}");
        let found = float(sql.query_with(lookup, &values[..2]));
        assert_eq!(found, (rows == 1).then_some(4.0), "{part}");
    }
    assert_eq!(
        sql.execute("DELETE FROM t WHERE id = 'R1' AND part = 7")
            .unwrap(),
        0
    );
    let far = [ScalarValue::from("R1"), ScalarValue::from(1_i64 << 40)];
    assert_eq!(float(sql.query_with(lookup, &far)), None);
    let delete = "DELETE FROM t WHERE part = $1";
    assert_eq!(
        sql.query_with(delete, &[ScalarValue::from(1)])
            .unwrap()
            .affected_rows(),
        Some(1)
    );
    let insert = "INSERT INTO m (time, host, value) VALUES ($1, $2, $3)";
    let values = [
        ScalarValue::from("2024-01-01"),
        ScalarValue::from("b"),
        ScalarValue::from(2),
    ];
    assert_eq!(
        sql.query_with(insert, &values).unwrap().affected_rows(),
        Some(1)
    );
    assert_eq!(
        float(sql.query_with(
            "SELECT value FROM m WHERE host = $1",
            &[ScalarValue::from("b")]
        )),
        Some(2.0)
    );
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn batches_are_loaded_whole_or_not_at_all() {
    let db = empty();
    let mut sql = Connection::new(&db).unwrap();
    sql.query("CREATE TABLE t (k BIGINT PRIMARY KEY, v DOUBLE DEFAULT 1.5)")
        .unwrap();
    let good = batch([("k", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)]);
    let same = batch([
        ("v", Arc::new(Float64Array::from(vec![3.0])) as ArrayRef),
        ("k", Arc::new(Int32Array::from(vec![2])) as ArrayRef),
    ]);
    let error = sql.insert("t", [good.clone(), same]).unwrap_err();
    assert!(
        error
            .database()
            .is_some_and(|error| error.unique_violation().is_some()),
        "{error}"
    );
    assert_eq!(float(sql.query("SELECT v FROM t")), None);
    assert_eq!(sql.insert("t", [good]).unwrap(), 2);
    assert_eq!(float(sql.query("SELECT sum(v) FROM t")), Some(3.0));
    let other = batch([("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    assert_eq!(
        sql.insert("t", [other]).unwrap_err().kind(),
        ErrorKind::Plan
    );
    assert_eq!(sql.insert("none", []).unwrap_err().kind(), ErrorKind::Plan);
}
