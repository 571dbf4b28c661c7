//! Converts batches from other sources to the columns of a table.

use crate::error::{Error, ErrorKind, Result};
use crate::types::cast;
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use std::collections::HashMap;
use std::sync::Arc;

/// Arranges the columns of batches in the order of a table.
pub(crate) struct Aligned<'t> {
    table: &'t str,
    /// The columns of the table. Nulls are detected when rows are stored.
    schema: SchemaRef,
    defaults: HashMap<String, ScalarValue>,
    /// The names of the batches' columns, if the batches do not contain names.
    columns: &'t [String],
}

impl<'t> Aligned<'t> {
    pub(crate) fn new(
        table: &Arc<dyn TableProvider>,
        name: &'t str,
        columns: &'t [String],
    ) -> Self {
        let fields = table.schema();
        let fields = fields.fields().iter();
        let mut defaults = HashMap::new();
        for field in fields.clone() {
            if let Some(Expr::Literal(value, _)) = table.get_column_default(field.name()) {
                defaults.insert(field.name().clone(), value.clone());
            }
        }
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        Self {
            table: name,
            schema: Arc::new(Schema::new(fields.map(nullable).collect::<Vec<_>>())),
            defaults,
            columns,
        }
    }

    /// The batch with the columns of the table, in order.
    pub(crate) fn align(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let plan_error = |problem: String| Error::new(ErrorKind::Plan, problem);
        let own = batch.schema();
        let names: Vec<&str> = match self.columns.is_empty() {
            true => own
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect(),
            false => self.columns.iter().map(String::as_str).collect(),
        };
        if names.len() != batch.num_columns() {
            return Err(plan_error(format!(
                "{} columns are named, the rows have {}",
                names.len(),
                batch.num_columns()
            )));
        }
        for name in &names {
            if self.schema.index_of(name).is_err() {
                return Err(plan_error(format!(
                    "the rows have a column {name}, which table {} lacks",
                    self.table
                )));
            }
        }
        let rows = batch.num_rows();
        let column = |field: &Arc<Field>| -> Result<ArrayRef> {
            if let Some(place) = names.iter().position(|name| name == field.name()) {
                return cast(batch.column(place), field.data_type()).map_err(|error| {
                    Error::new(error.kind(), format!("column {}: {error}", field.name()))
                });
            }
            Ok(match self.defaults.get(field.name()) {
                Some(default) => default.to_array_of_size(rows)?,
                None => new_null_array(field.data_type(), rows),
            })
        };
        let columns = self.schema.fields().iter().map(column);
        let columns = columns.collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
