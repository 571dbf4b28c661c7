//! The exact text of each mode.

use super::*;
use std::sync::Arc;
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampNanosecondArray,
};
use tidalite_sql::arrow::datatypes::{DataType, Field, Int64Type};

/// Two rows with values of several types; the second has NULLs and characters that need quotes.
fn sample() -> RecordBatch {
    let time = TimestampNanosecondArray::from(vec![1_401_581_400_000_000_000, 1_500_000_000]);
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(time.with_timezone("UTC"))),
        ("n", Arc::new(Int64Array::from(vec![Some(-7), None]))),
        ("x", Arc::new(Float64Array::from(vec![21.5, 1e300]))),
        (
            "text",
            Arc::new(StringArray::from(vec![Some("wind"), Some("a|\"b\",\nc")])),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn shown_in(settings: &Settings, width: Option<u16>, batches: &[RecordBatch]) -> String {
    let mut out = Vec::new();
    let mut format = format(settings, width, &batches[0].schema());
    for batch in batches {
        format.batch(batch, &mut out).unwrap();
    }
    format.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn shown(mode: Mode, batches: &[RecordBatch]) -> String {
    let settings = Settings {
        mode,
        ..Settings::default()
    };
    shown_in(&settings, None, batches)
}

#[test]
fn a_table_has_borders_and_numbers_on_the_right() {
    assert_eq!(
        shown(Mode::Box, &[sample()]),
        "\
┌──────────────────────────┬──────┬───────┬────────┐
│ time                     ┆ n    ┆ x     ┆ text   │
╞══════════════════════════╪══════╪═══════╪════════╡
│ 2014-06-01T00:10:00Z     ┆   -7 ┆  21.5 ┆ wind   │
│ 1970-01-01T00:00:01.500Z ┆ NULL ┆ 1e300 ┆ a|\"b\", │
│                          ┆      ┆       ┆ c      │
└──────────────────────────┴──────┴───────┴────────┘
"
    );
}

/// One column of texts.
fn texts(name: &str, texts: &[&str]) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    RecordBatch::try_from_iter([(name, texts)]).unwrap()
}

#[test]
fn a_table_fits_the_terminal() {
    let long = "word ".repeat(20);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.trim()]));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("text", texts)]).unwrap();
    let shown = shown_in(&Settings::default(), Some(40), &[batch]);
    let widths: Vec<usize> = shown.lines().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width <= 40), "{shown}");
    assert_eq!(shown.matches("word").count(), 20, "{shown}");
}

/// Columns are narrowed only as long as they remain readable.
#[test]
fn a_table_of_many_columns_may_be_wider() {
    let columns = (0..30).map(|column| {
        let cell: ArrayRef = Arc::new(StringArray::from(vec!["a long text of a cell"]));
        (format!("column{column}"), cell)
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let shown = shown_in(&Settings::default(), Some(80), &[batch]);
    assert!(shown.contains("┆ column29 │"), "{shown}");
}

#[test]
fn rows_beyond_the_first_block_keep_the_widths() {
    let first = texts("name", &["ab"; 10_000]);
    let later = texts("name", &["c", "abcdefg"]);
    let shown = shown(Mode::Box, &[first, later]);
    let end: Vec<&str> = shown.lines().rev().take(6).collect();
    assert_eq!(
        end,
        [
            "└──────┘",
            "│ efg  │",
            "│ abcd │",
            "│ c    │",
            "│ ab   │",
            "│ ab   │"
        ]
    );
    assert_eq!(shown.lines().count(), 3 + 10_000 + 3 + 1);
}

#[test]
fn control_characters_are_escaped_in_a_table() {
    let shown = shown(Mode::Box, &[texts("a", &["x\u{1b}[31my\t"])]);
    assert!(shown.contains("│ x\\u{1b}[31my\\t │"), "{shown}");
}

#[test]
fn an_empty_result_has_a_header() {
    let empty = sample().slice(0, 0);
    let batches = [empty];
    assert_eq!(
        shown(Mode::Box, &batches),
        "\
┌──────┬───┬───┬──────┐
│ time ┆ n ┆ x ┆ text │
╞══════╪═══╪═══╪══════╡
└──────┴───┴───┴──────┘
"
    );
    assert_eq!(shown(Mode::Csv, &batches), "time,n,x,text\n");
    assert_eq!(shown(Mode::Json, &batches), "[\n]\n");
    assert_eq!(shown(Mode::JsonLines, &batches), "");
    assert_eq!(shown(Mode::Line, &batches), "");
}

#[test]
fn csv_quotes_where_it_must() {
    assert_eq!(
        shown(Mode::Csv, &[sample()]),
        "\
time,n,x,text
2014-06-01T00:10:00Z,-7,21.5,wind
1970-01-01T00:00:01.500Z,,1e300,\"a|\"\"b\"\",
c\"
"
    );
}

#[test]
fn the_text_of_null_and_the_header_can_be_set() {
    let settings = Settings {
        mode: Mode::Csv,
        headers: false,
        null_text: Some("NA".to_owned()),
        ..Settings::default()
    };
    let text = shown_in(&settings, None, &[sample()]);
    assert!(text.starts_with("2014-06-01"), "{text}");
    assert!(text.contains(",NA,1e300,"), "{text}");
    let settings = Settings {
        mode: Mode::Box,
        ..settings
    };
    let text = shown_in(&settings, None, &[texts("a", &["b"])]);
    assert_eq!(text, "┌───┐\n│ b │\n└───┘\n");
}

/// The sample with a boolean, a list and a struct.
fn nested() -> RecordBatch {
    let lists = vec![Some(vec![Some(1), None]), None];
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let field = Arc::new(Field::new("b", DataType::Int64, false));
    let columns: [(&str, ArrayRef); 3] = [
        ("yes", Arc::new(BooleanArray::from(vec![true, false]))),
        ("list", Arc::new(lists)),
        ("object", Arc::new(StructArray::from(vec![(field, inner)]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn json_is_an_array_with_a_row_in_each_line() {
    assert_eq!(
        shown(Mode::Json, &[sample(), sample().slice(0, 1)]),
        r#"[
{"time":"2014-06-01T00:10:00Z","n":-7,"x":21.5,"text":"wind"},
{"time":"1970-01-01T00:00:01.500Z","n":null,"x":1.0e300,"text":"a|\"b\",\nc"},
{"time":"2014-06-01T00:10:00Z","n":-7,"x":21.5,"text":"wind"}
]
"#
    );
}

#[test]
fn json_lines_keep_nested_values() {
    assert_eq!(
        shown(Mode::JsonLines, &[nested()]),
        r#"{"yes":true,"list":[1,null],"object":{"b":1}}
{"yes":false,"list":null,"object":{"b":2}}
"#
    );
    assert_eq!(
        shown(Mode::Csv, &[nested()]),
        "yes,list,object\ntrue,\"[1, ]\",{b: 1}\nfalse,,{b: 2}\n"
    );
}

#[test]
fn markdown_escapes_its_own_characters() {
    assert_eq!(
        shown(Mode::Markdown, &[sample()]),
        "\
| time | n | x | text |
| --- | ---: | ---: | --- |
| 2014-06-01T00:10:00Z | -7 | 21.5 | wind |
| 1970-01-01T00:00:01.500Z | NULL | 1e300 | a\\|\"b\",<br>c |
"
    );
}

#[test]
fn lines_have_a_name_and_a_value() {
    assert_eq!(
        shown(Mode::Line, &[sample()]),
        "\
time = 2014-06-01T00:10:00Z
   n = -7
   x = 21.5
text = wind

time = 1970-01-01T00:00:01.500Z
   n = NULL
   x = 1e300
text = a|\"b\",\\nc
"
    );
}

#[test]
fn plans_are_not_put_in_a_table() {
    let columns: [(&str, ArrayRef); 2] = [
        (
            "plan_type",
            Arc::new(StringArray::from(vec!["logical_plan"])),
        ),
        ("plan", Arc::new(StringArray::from(vec!["Sort\n  Scan\n"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    assert_eq!(
        shown(Mode::Box, std::slice::from_ref(&batch)),
        "logical_plan:\n  Sort\n    Scan\n"
    );
    assert!(shown(Mode::Csv, &[batch]).starts_with("plan_type,plan\n"));
}
