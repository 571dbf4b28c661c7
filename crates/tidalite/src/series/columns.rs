//! Typed access to the values of rows, by column.

use crate::series::read::Series;
use crate::series::record::{Field, RowReader};
use crate::series::vectors::Vector;
use crate::types::column::ColumnType;
use crate::types::error::Result;
use crate::types::into_column::IntoColumn;
use bytemuck::cast_slice;

/// Whether words of a column can be read as a field of type `asked`. 32-bit floats are stored as 64-bit floats.
fn fits(own: ColumnType, asked: ColumnType) -> bool {
    match (own, asked) {
        (ColumnType::Decimal(_), ColumnType::Decimal(_)) | (ColumnType::F32, ColumnType::F64) => {
            true
        }
        (own, asked) => own == asked,
    }
}

impl Series<'_> {
    /// The number of a column, to be looked up once before a loop over many rows.
    ///
    /// # Errors
    /// `Schema` if the column does not exist.
    pub fn column(&self, column: impl IntoColumn) -> Result<usize> {
        column.column_of(&self.info().schema)
    }

    /// The value of a row in a column, as a Rust type that fits the column: `f64`, `i64`, `u32`, `bool`,
    /// [`Decimal`](crate::Decimal), `String`, or an `Option` of one of these if the column is nullable. A row is a
    /// [`Row`](crate::Row), a [`MergedRow`](crate::query::MergedRow), or a row's words.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Column, ColumnType, Options, Schema, Steps, Unit, Value};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let schema = Schema::new(Unit::Seconds, [("pieces", ColumnType::I64), ("shop", ColumnType::String)])
    ///     .with(Column::nullable("price", ColumnType::F64));
    /// let mut tx = db.begin_write()?;
    /// let mut sales = tx.series_with("sales", &schema)?;
    /// sales.insert_values(Steps(1), &[3.into(), "north".into(), Value::Null])?;
    /// let sales = sales.view()?;
    /// let row = sales.latest()?.ok_or("no row")?;
    /// assert_eq!(sales.get::<i64>(&row, "pieces")?, 3);
    /// assert_eq!(sales.get::<String>(&row, "shop")?, "north");
    /// assert_eq!(sales.get::<Option<f64>>(&row, "price")?, None);
    /// assert!(sales.get::<f64>(&row, "pieces").is_err(), "no column of floats");
    /// assert!(sales.get::<f64>(&row, "price").is_err(), "it is null");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist, if it has another type, or if the value is null and the type cannot be
    /// null; errors of the file for a text.
    ///
    /// # Cost
    /// A column number is range-checked, and a name is searched among the columns: call [`column`](Self::column) once
    /// before a loop to get the number. For whole vectors use [`Vector::floats`] and [`Vector::integers`].
    pub fn get<F: Field>(
        &self,
        row: &(impl AsRef<[u64]> + ?Sized),
        column: impl IntoColumn,
    ) -> Result<F> {
        let schema = &self.info().schema;
        let at = column.column_of(schema)?;
        let own = &schema.columns[at];
        if !fits(own.ty, F::TYPE) {
            let (own_type, asked) = (own.ty.name(), F::TYPE.name());
            return Err(own.problem(format!("it is of type {own_type}, asked for was {asked}")));
        }
        let words = row.as_ref();
        let Some(&word) = words.get(at) else {
            return Err(own.problem(format!("the row has {} words", words.len())));
        };
        if !F::NULLABLE && own.is_null(word) {
            return Err(own.problem("the value is null: ask for an Option"));
        }
        F::of_word(
            word,
            &mut RowReader {
                columns: &schema.columns,
                unit: schema.unit,
                time: 0,
                words,
                at,
                series: self,
            },
        )
    }
}

impl<'v> Vector<'v> {
    /// The values of a column of floats, f64 or f32. Nulls appear as a special NaN
    /// ([`Column::null`](crate::Column::null)).
    ///
    /// # Errors
    /// `Schema` if the column does not exist, has another type, or was not requested from the query.
    pub fn floats(&self, column: impl IntoColumn) -> Result<&'v [f64]> {
        let is_float = |ty| matches!(ty, ColumnType::F64 | ColumnType::F32);
        self.typed(column, is_float, "floats").map(cast_slice)
    }

    /// The values of a column of signed integers, or the units of a column of decimals. Nulls appear as `i64::MIN`.
    ///
    /// # Errors
    /// As for `floats`.
    pub fn integers(&self, column: impl IntoColumn) -> Result<&'v [i64]> {
        let is_integer = |ty| matches!(ty, ColumnType::I64 | ColumnType::Decimal(_));
        self.typed(column, is_integer, "signed integers")
            .map(cast_slice)
    }

    fn typed(
        &self,
        column: impl IntoColumn,
        is_wanted: fn(ColumnType) -> bool,
        wanted: &str,
    ) -> Result<&'v [u64]> {
        let at = column.column_of(self.schema)?;
        let own = &self.schema.columns[at];
        if !is_wanted(own.ty) {
            let ty = own.ty.name();
            return Err(own.problem(format!("it is of type {ty}, asked for were {wanted}")));
        }
        let words = self.words(at);
        if words.len() != self.times().len() {
            return Err(own.problem("it is none of the columns that are read"));
        }
        Ok(words)
    }
}
