//! The schema of a relation, as its user describes it: columns, primary key, indexes.

use crate::cell::Cell;
use crate::error::{Result, unusable};
use crate::kind::ColumnType;
use std::collections::HashSet;

/// Maximum number of columns.
pub const COLUMNS_MAX: usize = 1024;
/// Maximum number of columns of a primary key, or of an index.
pub const KEY_COLUMNS_MAX: usize = 32;
/// Maximum number of indexes.
pub const INDEXES_MAX: usize = 200;
/// Maximum length in bytes of the name of a column or an index.
pub const RELATION_NAME_BYTES_MAX: usize = 255;
/// Maximum length in bytes of a default that is a text or bytes.
pub const DEFAULT_BYTES_MAX: usize = 4096;

/// A column of a relation.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: ColumnType,
    /// Whether null is refused.
    pub not_null: bool,
    /// The value of the column in rows that are inserted without one.
    pub default: Option<Cell>,
}

impl Column {
    /// Creates a column that may be null and has no default.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            kind,
            not_null: false,
            default: None,
        }
    }

    /// Refuses null.
    #[must_use]
    pub fn not_null(self) -> Self {
        Self {
            not_null: true,
            ..self
        }
    }

    /// Sets the value of the column in rows that are inserted without one.
    #[must_use]
    pub fn default(self, value: impl Into<Cell>) -> Self {
        Self {
            default: Some(value.into()),
            ..self
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("column", &self.name)?;
        let name = &self.name;
        if !self.kind.is_valid() {
            return unusable(format!("column {name} cannot be a {}", self.kind));
        }
        match &self.default {
            Some(value) if !value.fits(self.kind) => {
                unusable(format!("the default {value} does not fit column {name}"))
            }
            Some(Cell::Null) if self.not_null => {
                unusable(format!("the default of column {name} must not be null"))
            }
            Some(Cell::Text(text)) if text.len() > DEFAULT_BYTES_MAX => too_long(name),
            Some(Cell::Bytes(bytes)) if bytes.len() > DEFAULT_BYTES_MAX => too_long(name),
            _ => Ok(()),
        }
    }
}

fn too_long<T>(column: &str) -> Result<T> {
    unusable(format!(
        "the default of column {column} has more than {DEFAULT_BYTES_MAX} bytes"
    ))
}

/// A secondary index of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    /// The name.
    pub name: String,
    /// Names of the columns, in the order of the index.
    pub columns: Vec<String>,
    /// Whether two rows with equal values are refused, unless one of the values is null.
    pub unique: bool,
}

impl Index {
    /// Creates an index that is not unique.
    pub fn new<C: Into<String>>(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
    ) -> Self {
        Self {
            name: name.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            unique: false,
        }
    }

    /// Makes the index unique: a row is refused if another row has the same values, unless one of them is null.
    #[must_use]
    pub fn unique(self) -> Self {
        Self {
            unique: true,
            ..self
        }
    }
}

/// The schema of a relation.
///
/// Columns of the primary key are never null. Without a primary key, rows are ordered by a hidden number, which
/// increases with each insert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The columns, in the order of the cells of a row.
    pub columns: Vec<Column>,
    /// Names of the columns of the primary key, in the order of the key; may be empty.
    pub primary_key: Vec<String>,
    /// The secondary indexes.
    pub indexes: Vec<Index>,
}

impl Schema {
    /// Creates a schema without columns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Sets the primary key.
    #[must_use]
    pub fn primary_key<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an index.
    #[must_use]
    pub fn index(mut self, index: Index) -> Self {
        self.indexes.push(index);
        self
    }

    /// The columns, in the order of the cells of a row.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The secondary indexes.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// Position of the column with this name.
    #[must_use]
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|one| one.name == column)
    }

    /// Position of the column with this name; an error for an unknown name.
    pub(crate) fn expect(&self, column: &str) -> Result<usize> {
        match self.position(column) {
            Some(at) => Ok(at),
            None => unusable(format!("there is no column {column}")),
        }
    }

    /// Positions of columns; an error if a column is unknown or repeated, or if there are too many.
    pub(crate) fn positions(&self, what: &str, columns: &[String]) -> Result<Vec<usize>> {
        if columns.len() > KEY_COLUMNS_MAX {
            let found = columns.len();
            return unusable(format!(
                "{what} has {found} columns, at most {KEY_COLUMNS_MAX} can be"
            ));
        }
        let mut found = Vec::with_capacity(columns.len());
        for column in columns {
            let at = self.expect(column)?;
            if found.contains(&at) {
                return unusable(format!("{what} names column {column} twice"));
            }
            found.push(at);
        }
        Ok(found)
    }

    /// Positions of the columns of a new index.
    pub(crate) fn index_positions(&self, index: &Index) -> Result<Vec<usize>> {
        check_name("index", &index.name)?;
        if index.columns.is_empty() {
            return unusable(format!("index {} has no columns", index.name));
        }
        self.positions(&format!("index {}", index.name), &index.columns)
    }

    /// Checks all rules for schemas.
    pub(crate) fn check(&self) -> Result<()> {
        if self.columns.is_empty() || self.columns.len() > COLUMNS_MAX {
            let found = self.columns.len();
            return unusable(format!("{found} columns, 1 to {COLUMNS_MAX} can be"));
        }
        let mut names = HashSet::new();
        for column in &self.columns {
            column.check()?;
            if !names.insert(&column.name) {
                return unusable(format!("two columns have the name {}", column.name));
            }
        }
        self.positions("the primary key", &self.primary_key)?;
        if self.indexes.len() > INDEXES_MAX {
            let found = self.indexes.len();
            return unusable(format!("{found} indexes, at most {INDEXES_MAX} can be"));
        }
        let mut names = HashSet::new();
        for index in &self.indexes {
            self.index_positions(index)?;
            if !names.insert(&index.name) {
                return unusable(format!("two indexes have the name {}", index.name));
            }
        }
        Ok(())
    }
}

/// Checks the name of a column or an index.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > RELATION_NAME_BYTES_MAX {
        let found = name.len();
        return unusable(format!(
            "the name of a {what} has {found} bytes, 1 to {RELATION_NAME_BYTES_MAX} can be"
        ));
    }
    Ok(())
}
