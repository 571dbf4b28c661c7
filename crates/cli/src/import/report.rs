//! Describes the columns of an input for `--dry-run`: their use, their types, and an example of each.

use crate::import::field::{Nulls, boolean};
use crate::import::layout::Layout;
use crate::import::number::{Number, type_of_all};
use crate::import::open::Rows;
use crate::import::table::{Named, Names, Table};
use crate::output::{Cell, Column};
use std::collections::HashSet;
use tidalite::ColumnType;

/// Maximum number of characters of an example that is shown.
const EXAMPLE_CHARS_MAX: usize = 40;

/// The columns of the table that [`rows`] fills.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::number("column"),
        Column::text("name"),
        Column::text("use"),
        Column::text("type"),
        Column::text("unit"),
        Column::text("example"),
    ]
}

/// One row for each column of an input. `prefix` stands in front of the names of series; `into` is the name of the
/// series that receives all columns.
pub(crate) fn rows(
    rows: &Rows<'_>,
    nulls: &Nulls,
    prefix: &str,
    into: Option<&str>,
) -> Vec<Vec<Cell>> {
    let names = Names::new(&rows.names);
    let table = Table {
        names: &names,
        sample: &rows.sample,
        nulls,
    };
    let layout = rows.layout();
    let named_index =
        |columns: &[Named], index: usize| columns.iter().position(|column| column.index == index);
    (0..names.len())
        .map(|index| {
            let (used, ty) = if layout.time.contain(index) {
                ("time".to_owned(), layout.reader.format().to_string())
            } else if let Some(place) = named_index(&layout.tags, index) {
                let used = match layout.names_series {
                    true => "name of the series".to_owned(),
                    false => format!("tag {}", layout.tags[place].name),
                };
                (used, "text".to_owned())
            } else if let Some(place) = named_index(&layout.values, index) {
                let name = &layout.values[place].name;
                match layout.typed.get(place) {
                    Some(column) => {
                        let null = if column.nullable { "?" } else { "" };
                        let series = into.unwrap_or("the series");
                        (
                            format!("column {name} of {prefix}{series}"),
                            format!("{}{null}", column.ty.name()),
                        )
                    }
                    None => (
                        format!("series {prefix}{name}"),
                        match layout.given.get(place) {
                            Some(given) => given.stored_as().to_owned(),
                            None => value_type(&table, index, layout),
                        },
                    ),
                }
            } else {
                ("not used".to_owned(), other_type(&table, index))
            };
            let unit = rows.units.get(index).cloned().flatten();
            vec![
                Cell::Count(index as u64 + 1),
                Cell::Text(names.own[index].clone()),
                Cell::Text(used),
                Cell::Text(ty),
                unit.map_or(Cell::Missing, Cell::Text),
                table
                    .fields(index)
                    .next()
                    .map_or(Cell::Missing, |text| Cell::Text(shortened(text))),
            ]
        })
        .collect()
}

/// The type in which a new series stores the values of a column.
fn value_type(table: &Table<'_>, index: usize, layout: &Layout) -> String {
    if table.is_boolean(index) {
        return ColumnType::Bool.name().to_string();
    }
    let numbers = table.fields(index).filter_map(|text| {
        let plain = layout.digits.plain(text)?;
        Number::read(&plain).ok()
    });
    let (mut ty, mut words) = (ColumnType::F64, Vec::new());
    for number in numbers {
        match number.word(ty) {
            Ok(word) => words.push(word),
            Err(_) => {
                let Some((wider, converted)) = type_of_all(&words, ty, number) else {
                    continue;
                };
                (ty, words) = (wider, converted);
                words.extend(number.word(ty));
            }
        }
    }
    ty.name().to_string()
}

/// A description of a column that is not used.
fn other_type(table: &Table<'_>, index: usize) -> String {
    let texts: HashSet<&str> = table.fields(index).collect();
    if texts.is_empty() {
        return "empty".to_owned();
    }
    if texts.iter().all(|text| text.parse::<f64>().is_ok()) {
        return "numbers".to_owned();
    }
    if texts.iter().all(|text| boolean(text).is_some()) {
        return "true and false".to_owned();
    }
    match texts.len() {
        1 => "text, always the same".to_owned(),
        count => format!("text, {count} different"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
