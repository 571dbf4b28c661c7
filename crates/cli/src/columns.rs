//! Selects the column of a series that a command works on, and the columns that the command prints.
//!
//! ```text
//! --column given    that column
//! not given         `value` if it holds numbers, else the last column that holds numbers, else the last column
//! ```
//!
//! Numbers are floats, integers, decimals and truth values. The words of strings, bytes and GUIDs are addresses of
//! texts in the file: a command that computes figures rejects such columns ([`figures_column`]), because it could only
//! print these addresses.

use crate::args::{Asked, ColumnArg, Function};
use crate::exit::{Failure, Outcome};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite::{Figure, Schema, SeriesInfo};

/// The number of the column that the user has selected, or else of the default column.
pub(crate) fn column_of(info: &SeriesInfo, wanted: &ColumnArg) -> Outcome<usize> {
    match &wanted.column {
        Some(name) => column_named(info, name),
        None => Ok(default_column(&info.schema)),
    }
}

/// The number of the column with this name; an error if the series has no such column.
pub(crate) fn column_named(info: &SeriesInfo, name: &str) -> Outcome<usize> {
    info.schema.column(name).ok_or_else(|| {
        let names: Vec<&str> = info
            .schema
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        Failure::not_found(format!("{} has no column `{name}`", info.label()))
            .hint(format!("it has {}", names.join(", ")))
    })
}

/// Selects the column of a function: the one in its brackets, otherwise the one that [`column_of`] selects. The only
/// figures of a text column are `count` and `distinct`.
pub(crate) fn column_of_function(
    info: &SeriesInfo,
    wanted: &ColumnArg,
    function: &Asked,
) -> Outcome<usize> {
    let wanted = match &function.of {
        Some(of) => &ColumnArg {
            column: Some(of.clone()),
        },
        None => wanted,
    };
    figures_column(info, wanted, std::slice::from_ref(function))
}

/// Selects a column like [`column_of`], for a command that computes these figures.
pub(crate) fn figures_column(
    info: &SeriesInfo,
    wanted: &ColumnArg,
    functions: &[Asked],
) -> Outcome<usize> {
    let column = column_of(info, wanted)?;
    let counts = |asked: &Asked| {
        matches!(
            asked.function,
            Function::Figure(Figure::Count | Figure::Distinct, _)
        )
    };
    if !functions.iter().all(counts) {
        refuse_texts(info, column)
            .map_err(|failure| match numbers_of(&info.schema).is_empty() {
                true => failure.hint("none of its columns holds numbers: --fn count,distinct are the only functions for strings, and tidalite scan prints them"),
                false => failure,
            })?;
    }
    Ok(column)
}

/// Selects a column like [`column_of`], for a command that draws or combines values: it must hold numbers.
pub(crate) fn numeric_column(info: &SeriesInfo, wanted: &ColumnArg) -> Outcome<usize> {
    let column = column_of(info, wanted)?;
    refuse_texts(info, column)?;
    Ok(column)
}

fn refuse_texts(info: &SeriesInfo, column: usize) -> Outcome {
    let own = &info.schema.columns[column];
    if !own.ty.is_text() {
        return Ok(());
    }
    let numbers: Vec<&str> = numbers_of(&info.schema)
        .into_iter()
        .map(|column| info.schema.columns[column].name.as_str())
        .collect();
    let failure = Failure::usage(format!(
        "column `{}` of {} holds {}, not numbers",
        own.name,
        info.label(),
        match own.ty {
            tidalite::ColumnType::String => "strings",
            tidalite::ColumnType::Bytes => "bytes",
            _ => "GUIDs",
        }
    ));
    Err(match &numbers[..] {
        [] => failure.hint("none of its columns holds numbers; tidalite scan prints its values"),
        numbers => failure.hint(format!(
            "choose a numeric column with --column: {}",
            numbers.join(", ")
        )),
    })
}

/// The numbers of the columns that hold numeric values.
fn numbers_of(schema: &Schema) -> Vec<usize> {
    let columns = schema.columns.iter().enumerate();
    columns
        .filter(|(_, column)| !column.ty.is_text())
        .map(|(place, _)| place)
        .collect()
}

fn default_column(schema: &Schema) -> usize {
    let numbers = numbers_of(schema);
    let value = schema
        .column("value")
        .filter(|column| numbers.contains(column));
    value
        .or(numbers.last().copied())
        .unwrap_or(schema.columns.len().saturating_sub(1))
}

/// The numbers of the columns to print: all columns, but the flags of the default point only if `flags` is true.
pub(crate) fn shown_columns(schema: &Schema, flags: bool) -> Vec<usize> {
    let hide_flags = !flags && schema.columns == Schema::point().columns;
    (0..schema.columns.len())
        .filter(|index| !(hide_flags && *index == 0))
        .collect()
}

/// The names of all columns to print for these series, each once, in order of first occurrence.
pub(crate) fn all_shown_columns(infos: &[Arc<SeriesInfo>], flags: bool) -> Vec<String> {
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for info in infos {
        for column in shown_columns(&info.schema, flags) {
            let name = &info.schema.columns[column].name;
            if known.insert(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::{ColumnType, Unit};

    #[test]
    fn the_column_of_figures_is_value_or_the_last_one_of_numbers() {
        use ColumnType::{Bool, F64, Guid, I64, String};
        for (columns, chosen) in [
            (&[("g", Guid), ("b", Bool), ("t", ColumnType::Bytes)][..], 1),
            (&[("n", I64), ("msg", String)], 0),
            (&[("value", F64), ("other", F64)], 0),
            (&[("value", String), ("a", F64), ("b", I64)], 2),
            (&[("a", String), ("b", String)], 1),
        ] {
            let schema = Schema::new(Unit::Seconds, columns.iter().copied());
            assert_eq!(default_column(&schema), chosen, "{schema}");
        }
        assert_eq!(default_column(&Schema::point()), 1);
    }
}
