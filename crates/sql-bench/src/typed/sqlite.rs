//! Runs the same statements in SQLite, with a Python program.

use crate::python;
use crate::typed::plan::Plan;
use std::error::Error;
use std::ffi::OsStr;
use tempfile::TempDir;

/// Runs all measurements; returns them by name, or an empty list if SQLite is not installed.
pub(crate) fn run(plan: &Plan) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let path = scratch.path().join("typed.sqlite");
    let numbers = plan.arguments();
    let mut arguments = vec![path.as_os_str()];
    arguments.extend(numbers.iter().map(AsRef::<OsStr>::as_ref));
    let output = python::run(include_str!("sqlite.py"), &arguments, "SQLite")?;
    let figure = |line: &str| {
        let (name, value) = line.split_once('\t').unwrap_or_default();
        Ok((name.to_owned(), value.parse()?))
    };
    output.lines().map(figure).collect()
}
