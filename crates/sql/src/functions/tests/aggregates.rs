//! Tests of the aggregates; the expected results were computed by hand.

use super::*;
use arrow::array::{DictionaryArray, Int32Array, StringArray};
use arrow::datatypes::Int32Type;

/// A key, a time in seconds, a value and a text.
type Row<'r> = (&'r str, Option<i64>, Option<f64>, Option<&'r str>);

/// A session with a table `t`: a key, a time in seconds, a value, a text and a word of a dictionary.
fn session_of(rows: &[Row]) -> SessionContext {
    let context = session(1);
    let seconds = rows.iter().map(|row| row.1);
    let seconds = arrow::array::TimestampSecondArray::from_iter(seconds).with_timezone("UTC");
    let words = rows
        .iter()
        .map(|row| row.3)
        .collect::<DictionaryArray<Int32Type>>();
    let columns: [(&str, ArrayRef); 6] = [
        (
            "k",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        ),
        ("time", Arc::new(seconds)),
        ("v", floats(rows.iter().map(|row| row.2))),
        (
            "i",
            Arc::new(Int32Array::from_iter(
                rows.iter().map(|row| row.2.map(|v| v as i32)),
            )),
        ),
        (
            "s",
            Arc::new(StringArray::from_iter(rows.iter().map(|row| row.3))),
        ),
        ("d", Arc::new(words)),
    ];
    register(&context, "t", &columns, 1);
    context
}

fn gauge() -> SessionContext {
    session_of(&[
        ("a", Some(30), Some(3.0), Some("three")),
        ("a", Some(10), Some(1.0), Some("one")),
        ("a", Some(60), None, None),
        ("a", Some(20), Some(f64::NAN), Some("two")),
        ("b", Some(5), Some(7.0), Some("seven")),
        ("a", None, Some(9.0), Some("nine")),
        ("c", None, Some(9.0), Some("nine")),
        ("a", Some(50), Some(2.0), Some("fifty")),
    ])
}

#[test]
fn first_and_last_take_the_row_of_an_end() {
    let context = gauge();
    let sql = "SELECT k, first(v, time), last(v, time), first(s, time), last(s, time), first(d, time), last(d, time), \
               first(i, time), last(time, time) FROM t GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&context, sql),
        [
            "a 1.0 null one null one null 1 1970-01-01T00:01:00Z",
            "b 7.0 7.0 seven seven seven seven 7 1970-01-01T00:00:05Z",
            "c null null null null null null null null",
        ]
    );
    assert_eq!(
        rows(&context, "SELECT first(v, time), last(s, time) FROM t"),
        ["7.0 null"]
    );
    assert_eq!(
        rows(&context, "SELECT first(v, time) FROM t WHERE false"),
        ["null"]
    );
    let sql = "SELECT k, last(v, time) FILTER (WHERE v < 3) FROM t GROUP BY k ORDER BY k";
    assert_eq!(rows(&context, sql), ["a 2.0", "b null", "c null"]);
}

#[test]
fn rows_of_equal_time_keep_their_order() {
    let context = session_of(&[
        ("a", Some(1), Some(1.0), Some("x")),
        ("a", Some(1), Some(2.0), Some("y")),
        ("a", Some(1), Some(3.0), Some("z")),
    ]);
    let sql =
        "SELECT first(v, time), last(v, time), first(s, time), last(s, time) FROM t GROUP BY k";
    assert_eq!(rows(&context, sql), ["1.0 3.0 x z"]);
}

#[test]
fn the_state_is_value_and_time() {
    use datafusion::logical_expr::function::StateFieldsArgs;
    let fields = [
        Arc::new(Field::new("v", DataType::Utf8, true)),
        Arc::new(Field::new("t", utc(TimeUnit::Second), false)),
    ];
    let args = StateFieldsArgs {
        name: "x",
        input_fields: &fields,
        return_field: Arc::clone(&fields[0]),
        ordering_fields: &[],
        is_distinct: false,
    };
    let functions = crate::functions::aggregate();
    let state = functions[0].state_fields(args).unwrap();
    let types = state
        .iter()
        .map(|field| field.data_type().clone())
        .collect::<Vec<_>>();
    assert_eq!(types, [DataType::Utf8, utc(TimeUnit::Second)]);
    assert!(state[1].is_nullable());
}

#[test]
fn means_and_integrals_weigh_by_time() {
    let context = gauge();
    // Rows with a value: 1 at 10 s, 3 at 30 s, 2 at 50 s.
    let sql = "SELECT k, time_weighted_avg(v, time), time_weighted_avg(v, time, 'linear'), integral(v, time), \
               integral(v, time, 'linear'), integral(v, time, 'locf', 'minutes') FROM t GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&context, sql),
        [
            format!("a 2.0 2.25 80.0 90.0 {}", 80.0 / 60.0),
            "b null null null null null".to_owned(),
            "c null null null null null".to_owned(),
        ]
    );
}

#[test]
fn changes_count_restarts_of_a_counter() {
    let context = session_of(&[
        ("a", Some(40), Some(1.0), None),
        ("a", Some(0), Some(5.0), None),
        ("a", Some(10), Some(8.0), None),
        ("a", Some(30), Some(2.0), None),
        ("b", Some(30), Some(2.0), None),
        ("c", Some(30), Some(2.0), None),
        ("c", Some(30), Some(4.0), None),
    ]);
    let sql = "SELECT k, delta(v, time), increase(v, time), rate(v, time), rate(i, time) FROM t GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&context, sql),
        [
            "a -4.0 6.0 0.15 0.15",
            "b null null null null",
            "c 2.0 2.0 null null"
        ]
    );
    assert_eq!(
        rows(&context, "SELECT delta(v, time) FROM t WHERE false"),
        ["null"]
    );
}

#[test]
fn histograms_count_values_outside_as_well() {
    let context = gauge();
    let sql = "SELECT k, histogram(v, 1, 3, 4) FROM t GROUP BY k ORDER BY k";
    assert_eq!(
        rows(&context, sql),
        [
            "a [0, 1, 0, 1, 0, 2]",
            "b [0, 0, 0, 0, 0, 1]",
            "c [0, 0, 0, 0, 0, 1]"
        ]
    );
    assert_eq!(
        rows(&context, "SELECT histogram(v, 8.5, 9.5, 2) FROM t"),
        ["[4, 0, 2, 0]"]
    );
    assert_eq!(
        rows(&context, "SELECT histogram(v, 0, 1, 2) FROM t WHERE false"),
        ["null"]
    );
}

#[test]
fn lttb_keeps_the_ends_and_the_peaks() {
    let context = session_of(&[
        ("a", Some(0), Some(0.0), None),
        ("a", Some(2), Some(9.0), None),
        ("a", Some(1), Some(1.0), None),
        ("a", Some(3), Some(1.0), None),
        ("a", Some(4), Some(0.0), None),
        ("a", Some(5), Some(-8.0), None),
        ("a", Some(6), Some(0.0), None),
        ("a", Some(7), Some(1.0), None),
    ]);
    let sql = "SELECT r.time, r.value FROM (SELECT unnest(lttb(time, v, 4)) AS r FROM t)";
    assert_eq!(
        rows(&context, sql),
        [
            "1970-01-01T00:00:00Z 0.0",
            "1970-01-01T00:00:02Z 9.0",
            "1970-01-01T00:00:05Z -8.0",
            "1970-01-01T00:00:07Z 1.0",
        ]
    );
    let count = |n: usize| {
        rows(
            &context,
            &format!("SELECT cardinality(lttb(time, v, {n})) FROM t"),
        )
    };
    assert_eq!([count(2), count(8), count(100)], [["2"], ["8"], ["8"]]);
    assert_eq!(
        rows(&context, "SELECT lttb(time, v, 3) FROM t WHERE false"),
        ["null"]
    );
}

#[test]
fn percentiles_are_those_of_the_built_in_function() {
    let context = gauge();
    let sql = "SELECT approx_percentile(i, 0.5), approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM t WHERE k = 'a'";
    let found = rows(&context, sql);
    let (own, other) = found[0].split_once(' ').unwrap();
    assert_eq!(own, other);
}

#[test]
fn aggregates_work_as_window_functions() {
    let context = gauge();
    let sql = "SELECT time, last(v, time) OVER (ORDER BY time), integral(v, time) OVER (ORDER BY time) FROM t \
               WHERE k = 'a' AND time IS NOT NULL AND v IS NOT NULL ORDER BY time";
    assert_eq!(
        rows(&context, sql),
        [
            "1970-01-01T00:00:10Z 1.0 null",
            "1970-01-01T00:00:20Z NaN null",
            "1970-01-01T00:00:30Z 3.0 20.0",
            "1970-01-01T00:00:50Z 2.0 80.0",
        ]
    );
}

#[test]
fn wrong_arguments_are_refused() {
    let context = gauge();
    let cases = [
        ("first(v)", "found 1 arguments, expected 2"),
        ("first(v, v)", "the time is a Float64, expected a timestamp"),
        ("rate(s, time)", "the value is a Utf8, expected a number"),
        (
            "integral(v, time, 'cubic')",
            "the method is 'cubic', expected 'locf' or 'linear'",
        ),
        ("integral(v, time, s)", "expected a constant"),
        (
            "integral(v, time, 'locf', 'month')",
            "the unit is 'month', expected",
        ),
        (
            "histogram(v, 3, 1, 4)",
            "min is 3 and max is 1, expected min < max",
        ),
        (
            "histogram(v, 1, 3, 0)",
            "the number of buckets is 0, expected 1 to 1000000",
        ),
        ("histogram(v, v, 3, 4)", "expected a constant"),
        (
            "lttb(time, v, 1)",
            "the number of rows is 1, expected at least 2",
        ),
    ];
    for (call, expected) in cases {
        let found = error(&context, &format!("SELECT {call} FROM t"));
        assert!(found.contains(expected), "{call}: {found}");
    }
}
