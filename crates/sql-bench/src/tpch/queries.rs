//! The queries in the dialects of the engines.

use crate::tpch::tables::TABLES;
use std::path::Path;

/// All queries, in the dialect of Tidalite and DuckDB. Each is a single line without comments.
pub(crate) fn all(scale: f64) -> Vec<String> {
    // Query 11 compares with a fraction of the total value; the fraction is inversely proportional to the number of
    // suppliers.
    let fraction = format!("{:.10}", 0.0001 / scale);
    let texts = include_str!("queries.sql").replace("{fraction}", &fraction);
    let queries = texts.split("-- Query ").skip(1);
    let line = |query: &str| {
        let (_number, text) = query.split_once('\n').unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    queries.map(line).collect()
}

/// The query, changed to read Parquet files, which are named like the tables.
pub(crate) fn over_parquet(query: &str, folder: &Path) -> String {
    let tables = TABLES.map(|table| {
        let file = folder.join(format!("{}.parquet", table.name));
        format!("{} AS (SELECT * FROM '{}')", table.name, file.display())
    });
    let tables = tables.join(", ");
    match query.strip_prefix("WITH ") {
        Some(rest) => format!("WITH {tables}, {rest}"),
        None => format!("WITH {tables} {query}"),
    }
}

/// A query in the dialect of SQLite, whose dates are texts.
pub(crate) fn in_sqlite(query: &str) -> String {
    let mut query = query.replace("DATE '", "'");
    for column in ["l_shipdate", "o_orderdate"] {
        query = query.replace(
            &format!("extract(YEAR FROM {column})"),
            &format!("CAST(strftime('%Y', {column}) AS INTEGER)"),
        );
    }
    query
}
