//! Damage as JSON: the report of `check`, the losses of `salvage`, and the error if a database cannot be opened at all.
//!
//! Keys and names are complete. Keys have the form in which `tidalite kv` prints and reads them: printable ASCII
//! characters are unchanged, every other byte and the backslash are written as a backslash and two hex digits. Times
//! are in the series' own unit, as text.

use crate::bytes::typeable;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use tidalite::maintenance::{CheckReport, Finding, HitSeries, LossCause, LostCommits, Place};
use tidalite::{Error, ErrorKind};

/// Prints the report of `check` as one JSON document.
pub(crate) fn check_json(report: &CheckReport, terminal: &mut Terminal<'_>) -> Outcome {
    let document = json!({
        "clean": report.is_clean(),
        "checked": true,
        "notes": &report.notes,
        "lost_commits": report.lost_commits.as_ref().map(lost_json),
        "findings": report.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "pages": report.pages_total,
        "pages_used": report.pages_used,
        "pages_free": report.pages_free,
        "pages_pending": report.pages_pending,
        "tables": report.tables,
        "series": report.series,
        "leaves": report.leaves,
        "leaf_points": report.leaf_rows,
        "delta_points": report.delta_rows,
        "pins": report.pins,
    });
    print(&document, terminal)
}

/// Converts the report of missing durable commits to JSON.
fn lost_json(lost: &LostCommits) -> Value {
    let damaged = match lost.cause {
        LossCause::Log => "log",
        _ => "record",
    };
    json!({
        "found": lost.found.0,
        "newest_known": lost.newest.0,
        "missing": lost.missing(),
        "damaged": damaged,
    })
}

/// Prints the JSON document for a check that could not begin or could not finish.
pub(crate) fn failed_json(
    error: Option<&Error>,
    failure: &Failure,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let mut told = error.map_or_else(|| json!({"kind": "Other"}), error_json);
    told["message"] = json!(failure.message);
    let document = json!({
        "clean": false,
        "checked": false,
        "error": told,
        "exit_code": failure.exit as u8,
        "findings": [],
    });
    print(&document, terminal)
}

fn print(document: &Value, terminal: &mut Terminal<'_>) -> Outcome {
    writeln!(terminal.out, "{document}")?;
    Ok(terminal.out.flush()?)
}

/// Converts an error to JSON: the library's name of its kind; for an error in the bytes of the file also the structure,
/// the address, and the found and the expected content.
fn error_json(error: &Error) -> Value {
    let facts = error.found_and_expected();
    let head = |kind: &str, (found, expected): (&str, &str)| {
        json!({
            "kind": kind,
            "what": "head of the file",
            "address": 0,
            "found": found,
            "expected": expected,
        })
    };
    match (error.kind(), facts) {
        (ErrorKind::NotADatabase, Some(facts)) => return head("NotADatabase", facts),
        (ErrorKind::Unsupported, Some(facts)) => return head("Unsupported", facts),
        (ErrorKind::LargeFile, Some((found, expected))) => {
            let path = error.path().map(|path| path.display().to_string());
            return json!({
                "kind": "LargeFile",
                "what": path,
                "found": found,
                "expected": expected,
            });
        }
        _ => {}
    }
    if let Some(corrupt) = error.corrupt() {
        return json!({
            "kind": "Corrupt",
            "what": corrupt.what,
            "address": corrupt.at,
            "found": corrupt.found,
            "expected": corrupt.expected,
        });
    }
    match (error.path(), error.operation(), error.io_error()) {
        (Some(path), None, Some(source)) if error.kind() != ErrorKind::Locked => json!({
            "kind": "Open",
            "what": path.display().to_string(),
            "found": source.to_string(),
        }),
        (None, Some((operation, at)), Some(source)) => json!({
            "kind": "Io",
            "what": operation,
            "address": at,
            "found": source.to_string(),
        }),
        _ => json!({"kind": "Other"}),
    }
}

/// Converts a finding to JSON: the affected data, the address and the problem.
pub(crate) fn finding_json(finding: &Finding) -> Value {
    let keys = |place: &str, name: &str, from: &[u8], to: Option<&[u8]>| {
        json!({
            "place": place,
            "name": name,
            "from_key": typeable(from),
            "to_key": to.map(typeable),
        })
    };
    let mut value = match &finding.place {
        Place::Catalog { name, from, to } => keys("catalog", name, from, to.as_deref()),
        Place::Table { name, from, to } => keys("table", name, from, to.as_deref()),
        Place::Series {
            id,
            name,
            column,
            span,
            unit,
        } => json!({
            "place": "series",
            "id": id.0,
            "name": name,
            "column": column,
            "from_time": span.map(|(from, _)| unit.text(from)),
            "to_time": span.map(|(_, to)| unit.text(to)),
        }),
        Place::Delta {
            from,
            to,
            series,
            more_series,
        } => json!({
            "place": "delta",
            "from_series": from.map(|(id, _)| id.0),
            "to_series": to.map(|(id, _)| id.0),
            // The list is null if any row of the delta may be affected.
            "series": from.map(|_| series.iter().map(hit_json).collect::<Vec<_>>()),
            "more_series": more_series,
        }),
        _ => json!({"place": "file"}),
    };
    value["version"] = json!(finding.version);
    value["address"] = json!(finding.address);
    value["problem"] = json!(finding.problem);
    value
}

fn hit_json(hit: &HitSeries) -> Value {
    let (from, to) = hit.span;
    json!({
        "id": hit.id.0,
        "name": hit.name,
        "from_time": hit.unit.text(from),
        "to_time": hit.unit.text(to),
    })
}
