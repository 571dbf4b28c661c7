//! Prints the points of several series under one header.

use crate::columns::{all_shown_columns, shown_columns};
use crate::database::{series_cell, time_cell};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, Format, Sheet};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::query::Interpolation;
use tidalite::{Row, Schema, Series, SeriesInfo, Timestamp};

/// Prints the points of several series under one header.
pub(super) struct Printer {
    /// Names of the printed columns. A series that lacks a column has empty cells in it.
    names: Vec<String>,
    with_series: bool,
    show: TimeShow,
}

impl Printer {
    /// Creates a printer for series with the same columns.
    pub(super) fn new(
        infos: &[Arc<SeriesInfo>],
        with_series: bool,
        flags: bool,
        column: Option<&str>,
        zone: jiff::tz::TimeZone,
    ) -> Outcome<Self> {
        let Some(first) = infos.first() else {
            return Err(Failure::not_found("no series"));
        };
        let all = names_of(&first.schema);
        if let Some(other) = infos.iter().find(|info| names_of(&info.schema) != all) {
            return Err(Failure::usage(format!(
                "{} and {} have different columns and cannot share a table",
                first.label(),
                other.label()
            ))
            .hint("print them separately; `tidalite export` writes all to one file"));
        }
        let names = match column {
            None => {
                let shown = shown_columns(&first.schema, flags).into_iter();
                shown.map(|index| all[index].to_owned()).collect()
            }
            Some(name) => {
                if !all.contains(&name) {
                    let why = format!("{} has no column `{name}`", first.label());
                    return Err(Failure::not_found(why).hint(format!("it has {}", all.join(", "))));
                }
                vec![name.to_owned()]
            }
        };
        Ok(Self {
            names,
            with_series,
            show: TimeShow::new(zone),
        })
    }

    /// Creates a printer for any series: it prints all columns that at least one of them has.
    pub(super) fn of_all(infos: &[Arc<SeriesInfo>], zone: jiff::tz::TimeZone) -> Self {
        Self {
            names: all_shown_columns(infos, false),
            with_series: true,
            show: TimeShow::new(zone),
        }
    }

    /// Whether a series has all printed columns.
    pub(super) fn fits(&self, info: &SeriesInfo) -> bool {
        let has = |name: &String| info.schema.column(name).is_some();
        self.names.iter().all(has)
    }

    pub(super) fn sheet<'a>(
        &self,
        format: Format,
        terminal: &'a mut Terminal<'_>,
    ) -> Sheet<&'a mut dyn std::io::Write> {
        let series = self.with_series.then(|| Column::text("series"));
        let values = self.names.iter().map(|name| Column::number(name.as_str()));
        let columns = series
            .into_iter()
            .chain([Column::text("time")])
            .chain(values)
            .collect();
        terminal.sheet(format, columns)
    }

    pub(super) fn cells(
        &self,
        series: &Series<'_>,
        name: &Cell,
        row: &Row,
    ) -> tidalite::Result<Vec<Cell>> {
        let mut cells = Vec::with_capacity(self.names.len() + 2);
        if self.with_series {
            cells.push(name.clone());
        }
        let schema = &series.info().schema;
        cells.push(time_cell(&self.show, schema.unit, row.time));
        for name in &self.names {
            cells.push(match schema.column(name) {
                Some(index) => series_cell(series, index, row.words[index])?,
                None => Cell::Missing,
            });
        }
        Ok(cells)
    }

    /// The values of numeric columns at a time between rows; `None` if no column has a value.
    pub(super) fn cells_between(
        &self,
        series: &Series<'_>,
        name: &Cell,
        (at, between): (Timestamp, Interpolation),
    ) -> tidalite::Result<Option<Vec<Cell>>> {
        let mut cells = Vec::with_capacity(self.names.len() + 2);
        if self.with_series {
            cells.push(name.clone());
        }
        cells.push(Cell::Text(self.show.show(at.0.into())));
        let schema = &series.info().schema;
        let mut any = false;
        for name in &self.names {
            let column = schema.column(name);
            let numeric = column.filter(|&column| !schema.columns[column].ty.is_text());
            let value = match numeric {
                Some(column) => series.value_at(at, column, between)?,
                None => None,
            };
            any |= value.is_some();
            cells.push(value.map_or(Cell::Missing, Cell::Computed));
        }
        Ok(any.then_some(cells))
    }
}

fn names_of(schema: &Schema) -> Vec<&str> {
    let columns = schema.columns.iter();
    columns.map(|column| column.name.as_str()).collect()
}
