//! Aggregates from the trees equal those over the rows, for random rows and random queries.
//!
//! `TIDALITE_SQL_QUERIES` sets the number of queries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use tidalite::storage::MemoryStorage;
use tidalite::{Column, ColumnType, Database, MergePolicy, Options, Schema, Steps, Unit, Value};
use tidalite_sql::arrow::array::{Array, AsArray};
use tidalite_sql::arrow::datatypes::{DataType, Float64Type};
use tidalite_sql::arrow::util::display::array_value_to_string;
use tidalite_sql::{Connection, ConnectionOptions};
use tidalite_testkit::rng::Rng;

const UNITS: [Unit; 5] = [
    Unit::Seconds,
    Unit::Millis,
    Unit::Micros,
    Unit::Nanos,
    Unit::Ticks,
];

/// Maximum number of rows of a series, and number of queries, of a large database and of the others, whose rows take little
/// time.
const LARGE: (i64, usize) = (6_000, 20);
const SMALL: (i64, usize) = (120, 100);

/// Number of threads that run queries, each with random numbers of its own.
const THREADS: u64 = 2;

/// Where the rows of a database lie: seconds since 1970 of a row in the first half, and seconds from row to row.
#[derive(Clone, Copy)]
struct Course {
    base: i64,
    stride: i64,
    /// Maximum number of rows of a series.
    rows: i64,
}

impl Course {
    /// Rows around 1970, or around changes of the clocks in the zones of the bins.
    fn new(rng: &mut Rng, rows: i64) -> Self {
        let bases = [
            0,
            // Kathmandu goes from +05:30 to +05:45.
            504_900_000,
            // St. John's puts the clocks back at one minute past midnight.
            1_162_000_000,
            // Apia leaves out December 30.
            1_325_100_000,
            // Berlin in spring and in autumn.
            1_711_800_000,
            1_729_900_000,
        ];
        let strides = [1, 1, 60, 1_800, 40_000];
        Self {
            base: bases[rng.below(6) as usize],
            stride: strides[rng.below(5) as usize],
            rows,
        }
    }

    fn second(self, row: i64) -> i64 {
        self.base + row * self.stride
    }
}

/// Bins of equal width, and bins of the calendar.
const BINS: [&str; 19] = [
    "date_bin(INTERVAL '1 minute', time)",
    "date_bin(INTERVAL '7 seconds', time)",
    "date_bin(INTERVAL '1 hour', time, TIMESTAMP '2001-01-01T00:07:00Z')",
    "date_bin(INTERVAL '1 day', time)",
    "date_trunc('week', time)",
    "date_trunc('month', time)",
    "date_trunc('quarter', time)",
    "date_trunc('year', time)",
    "date_bin(INTERVAL '1 month', time, TIMESTAMP '1999-12-31T07:00:30Z')",
    "time_bucket('5 months', time)",
    "time_bucket('1 day', time, 'Europe/Berlin')",
    "time_bucket('6 hours', time, 'Europe/Berlin')",
    "time_bucket('1 hour', time, 'America/St_Johns')",
    "time_bucket('1 month', time, 'America/St_Johns', TIMESTAMP '2001-02-28T12:00:00Z')",
    "time_bucket('45 minutes', time, 'Asia/Kathmandu')",
    "time_bucket('1 day', time, 'Pacific/Apia')",
    "time_bucket('1 week', time, 'Pacific/Apia', TIMESTAMP '2001-01-01T00:00:17Z')",
    "time_bucket('2 hours', time AT TIME ZONE 'Europe/Berlin')",
    WHOLE_SECONDS,
];

/// Bins only of times since 1970.
const WHOLE_SECONDS: &str = "(extract(epoch FROM time) / 60)::bigint * 60";

fn is_bin(key: &str) -> bool {
    BINS.contains(&key)
}

/// Six series with gaps, late rows, nulls, and several rows of a time. The floats are quarters, whose sums are exact.
fn database(rng: &mut Rng, course: Course, (has_nan, has_several): (bool, bool)) -> Database {
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    for number in 0..6 {
        let unit = UNITS[rng.below(5) as usize];
        let schema = Schema {
            unit,
            columns: vec![
                Column::nullable("x", ColumnType::F64),
                Column::nullable("n", ColumnType::I64),
                Column::new("u", ColumnType::U64),
                Column::nullable("d", ColumnType::Decimal(2)),
                Column::nullable("b", ColumnType::Bool),
            ],
        };
        let dc = ["", r#",dc="north""#, r#",dc="south""#][number % 3];
        let mut series = tx
            .series_with(&format!(r#"m{{host="h{number}"{dc}}}"#), &schema)
            .unwrap();
        if has_several && rng.one_in(2) {
            series.set_merge(MergePolicy::KeepAll).unwrap();
        }
        let second = 1_000_000_000 / unit.nanos();
        let rows = rng.below(course.rows as u64) as i64;
        for row in 0..rows {
            let late = if rng.one_in(20) {
                -(rng.below(course.rows as u64 / 20) as i64)
            } else {
                0
            };
            let at = course.second(row - course.rows / 6 + late) * second + unit.steps_to_1970();
            let quarter = |rng: &mut Rng| (rng.below(4_000) as f64 - 2_000.0) / 4.0;
            let values = [
                match rng.below(40) {
                    0 => Value::Null,
                    1 if has_nan => Value::F64(f64::NAN),
                    2 => Value::F64(-0.0),
                    _ => Value::F64(quarter(rng)),
                },
                if rng.one_in(9) {
                    Value::Null
                } else {
                    Value::I64(rng.u64() as i64 >> 20)
                },
                Value::U64(rng.below(1000)),
                if rng.one_in(9) {
                    Value::Null
                } else {
                    let units = rng.below(100_000) as i64 - 50_000;
                    Value::Decimal(tidalite::Decimal { units, scale: 2 })
                },
                if rng.one_in(9) {
                    Value::Null
                } else {
                    Value::Bool(rng.one_in(2))
                },
            ];
            series.insert_values(Steps(at), &values).unwrap();
        }
    }
    tx.commit().unwrap();
    db
}

/// A query, and the number of its group columns.
fn query(
    rng: &mut Rng,
    course: Course,
    (has_nan, has_several): (bool, bool),
) -> (Vec<&'static str>, Vec<String>, String) {
    let mut keys = Vec::new();
    for key in ["host", "dc"] {
        if rng.one_in(2) {
            keys.push(key);
        }
    }
    if rng.one_in(2) {
        keys.push(BINS[rng.below(BINS.len() as u64) as usize]);
    }
    let mut figures = Vec::new();
    for _ in 0..1 + rng.below(6) {
        let column = ["x", "n", "u", "d", "b"][rng.below(5) as usize];
        figures.push(match rng.below(12) {
            0 => "count(*)".to_owned(),
            1 => "min(time)".to_owned(),
            2 => "max(time)".to_owned(),
            3 => "count(dc)".to_owned(),
            4 => format!("count({column})"),
            5 if column != "b" => format!("sum({column})"),
            6 if column != "b" => format!("avg({column})"),
            7 if column == "x" => "stddev(x)".to_owned(),
            // DataFusion's extremes of groups with NaN depend on the order of the rows.
            8 if !(has_nan && column == "x") => format!("min({column})"),
            9 if !(has_nan && column == "x") => format!("max({column})"),
            // Rows of one time have no order: only a series without them has a last row.
            10 if keys.contains(&"host") && !has_several => {
                format!("first_value({column} ORDER BY time DESC)")
            }
            _ => format!("count({column})"),
        });
    }
    let mut conditions = Vec::new();
    let is_since_1970 = keys.contains(&WHOLE_SECONDS);
    if is_since_1970 || rng.one_in(2) {
        let from = course.second(rng.below(course.rows as u64 * 2 / 3) as i64 - course.rows / 4);
        let from = if is_since_1970 { from.max(0) } else { from };
        conditions.push(format!("time >= to_timestamp({from})"));
    }
    if rng.one_in(3) {
        let to = course.second(rng.below(course.rows as u64) as i64 - course.rows / 6);
        conditions.push(format!("time < to_timestamp_millis({to}500)"));
    }
    if rng.one_in(3) {
        let tags = [
            "host IN ('h1', 'h4', 'h5')",
            "dc = 'north'",
            "dc IS NULL",
            "host LIKE 'h%' AND host <> 'h2'",
            "dc ~ '^s'",
        ];
        conditions.push(tags[rng.below(5) as usize].to_owned());
    }
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    (keys, figures, filter)
}

fn sql((keys, figures, filter): &(Vec<&str>, Vec<String>, String)) -> String {
    let columns = keys
        .iter()
        .map(|key| (*key).to_owned())
        .chain(figures.iter().cloned());
    let group = match keys.is_empty() {
        true => String::new(),
        false => format!(" GROUP BY {}", keys.join(", ")),
    };
    let columns: Vec<_> = columns
        .enumerate()
        .map(|(at, column)| format!("{column} AS c{at}"))
        .collect();
    format!("SELECT {} FROM m{filter}{group}", columns.join(", "))
}

/// A value of a result: floats are compared as numbers, all else as text.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Float(f64),
    Text(String),
}

fn rows(connection: &mut Connection, sql: &str, keys: usize) -> BTreeMap<Vec<String>, Vec<Cell>> {
    let mut found = BTreeMap::new();
    for batch in connection
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    {
        let batch = batch.unwrap_or_else(|error| panic!("{sql}: {error}"));
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| {
                if *column.data_type() == DataType::Float64 && column.is_valid(row) {
                    return Cell::Float(column.as_primitive::<Float64Type>().value(row));
                }
                Cell::Text(array_value_to_string(column, row).unwrap())
            });
            let mut cells: Vec<Cell> = cells.collect();
            let values = cells.split_off(keys);
            let key = cells.into_iter().map(|cell| format!("{cell:?}")).collect();
            assert!(found.insert(key, values).is_none(), "a group twice: {sql}");
        }
    }
    found
}

#[test]
fn aggregates_from_trees_equal_those_over_rows() {
    let count = std::env::var("TIDALITE_SQL_QUERIES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000);
    let first = 0x5a1e;
    println!("{count} queries on {THREADS} threads with the seeds from {first:#x} on");
    let found = thread::scope(|scope| {
        let workers = (0..THREADS).map(|worker| {
            let seed = first + worker;
            scope.spawn(move || compare(seed, count / THREADS as usize))
        });
        let workers: Vec<_> = workers.collect();
        let found = workers.into_iter().map(|worker| worker.join().unwrap());
        found.collect::<Vec<_>>()
    });
    let mut bins = BTreeMap::new();
    for (bin, groups) in found.into_iter().flatten() {
        *bins.entry(bin).or_insert(0) += groups;
    }
    let from_trees = bins.remove("").unwrap_or(0);
    println!("{from_trees} plans read trees; groups of the bins: {bins:#?}");
    assert!(from_trees > count / 20, "{from_trees}");
    assert!(
        count < 400 || bins.len() == BINS.len(),
        "all bins: {bins:?}"
    );
}

/// Runs random queries on random databases; returns the number of groups by bins, with the number of plans that read trees
/// under an empty name.
fn compare(seed: u64, count: usize) -> BTreeMap<&'static str, usize> {
    let mut rng = Rng::new(seed);
    let mut bins = BTreeMap::new();
    let mut done = 0;
    while done < count {
        let (rows, queries) = if rng.one_in(8) { LARGE } else { SMALL };
        let has = (rng.one_in(3), rng.one_in(2));
        let course = Course::new(&mut rng, rows);
        let db = database(&mut rng, course, has);
        let mut plain = ConnectionOptions::default();
        plain.use_statistics = false;
        let mut trees = Connection::new(&db).unwrap();
        let mut plain = Connection::with_options(&db, &plain).unwrap();
        for _ in 0..queries {
            let asked = query(&mut rng, course, has);
            let (groups, reads_trees) = compare_one(&mut rng, (&mut trees, &mut plain), &asked);
            *bins.entry("").or_insert(0) += usize::from(reads_trees);
            for key in asked.0.iter().filter(|key| is_bin(key)) {
                *bins.entry(*key).or_insert(0) += groups;
            }
        }
        done += queries;
    }
    bins
}

/// Compares the results of a query; returns the number of groups, and whether its plan was seen to read trees.
fn compare_one(
    rng: &mut Rng,
    (trees, plain): (&mut Connection, &mut Connection),
    asked: &(Vec<&'static str>, Vec<String>, String),
) -> (usize, bool) {
    let text = sql(asked);
    let own = rows(trees, &text, asked.0.len());
    let expected = rows(plain, &text, asked.0.len());
    assert_eq!(own.len(), expected.len(), "groups of {text}");
    for (key, cells) in &own {
        let other = &expected[key];
        for (cell, (wanted, figure)) in cells.iter().zip(other.iter().zip(&asked.1)) {
            assert!(
                are_equal(cell, wanted, figure),
                "{text}\ngroup {key:?}, {figure}: {cell:?}, expected {wanted:?}"
            );
        }
    }
    // With a limit, only the last bins are read.
    if let Some(at) = asked.0.iter().position(|key| is_bin(key))
        && rng.one_in(3)
    {
        let order = if rng.one_in(2) { "DESC" } else { "ASC" };
        let limit = 1 + rng.below(9);
        let limited = format!("SELECT * FROM ({text} ORDER BY c{at} {order} LIMIT {limit})");
        let some = rows(trees, &limited, asked.0.len());
        assert_eq!(some.len(), expected.len().min(limit as usize), "{limited}");
        for (key, cells) in &some {
            assert!(
                cells
                    .iter()
                    .zip(&own[key])
                    .all(|(one, other)| format!("{one:?}") == format!("{other:?}")),
                "{limited}\n{key:?}"
            );
        }
    }
    let mut reads_trees = false;
    if rng.one_in(8) {
        let explained = trees.query(&format!("EXPLAIN {text}")).unwrap();
        let plan: String = explained
            .map(|batch| format!("{:?}", batch.unwrap()))
            .collect();
        reads_trees = plan.contains("TreeAggregate");
        // A query that is answered by constants has no aggregate.
        assert!(
            reads_trees || !plan.contains("AggregateExec"),
            "{text}\n{plan}"
        );
    }
    (own.len(), reads_trees)
}

/// Sums of quarters are exact; means and deviations are divided once.
fn are_equal(cell: &Cell, wanted: &Cell, figure: &str) -> bool {
    let (Cell::Float(own), Cell::Float(wanted)) = (cell, wanted) else {
        return cell == wanted;
    };
    if figure.starts_with("avg") || figure.starts_with("stddev") {
        let tolerance = (wanted.abs() + 1.0)
            * if figure.starts_with("avg") {
                2f64.powi(-50)
            } else {
                1e-9
            };
        return own.is_nan() && wanted.is_nan() || (own - wanted).abs() <= tolerance;
    }
    own.is_nan() && wanted.is_nan() || own.to_bits() == wanted.to_bits()
}
