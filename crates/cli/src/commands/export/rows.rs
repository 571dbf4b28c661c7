//! Writes the rows of an export in one of its formats: as text, or as arrays for Parquet and Arrow.

#[cfg(feature = "sql")]
use super::arrays::Arrays;
use super::heads::{Head, Kind};
use crate::exit::Outcome;
use crate::output::{Cell, Column, Format, Sheet};
use crate::style::Palette;
use std::io::Write;

/// A writer of rows.
pub(super) enum Rows<'w> {
    Text(Sheet<&'w mut dyn Write>),
    #[cfg(feature = "sql")]
    Arrays(Box<Arrays<'w>>),
}

impl<'w> Rows<'w> {
    /// A writer of CSV or JSON lines.
    pub(super) fn text(out: &'w mut dyn Write, format: Format, heads: Vec<Head>) -> Self {
        let columns = heads.into_iter().map(|head| match head.kind {
            Kind::Values(_) | Kind::Decimals(_) => Column::number(head.name),
            Kind::Names | Kind::Time => Column::text(head.name),
        });
        Self::Text(Sheet::new(out, format, Palette::PLAIN, columns.collect()))
    }

    /// Writes a row, with one cell for each column.
    pub(super) fn row(&mut self, cells: &[Cell]) -> Outcome {
        match self {
            Self::Text(sheet) => Ok(sheet.row(cells)?),
            #[cfg(feature = "sql")]
            Self::Arrays(arrays) => arrays.row(cells),
        }
    }

    /// Writes the end of the output.
    pub(super) fn finish(self) -> Outcome {
        match self {
            Self::Text(sheet) => Ok(sheet.finish()?),
            #[cfg(feature = "sql")]
            Self::Arrays(arrays) => arrays.finish(),
        }
    }
}
