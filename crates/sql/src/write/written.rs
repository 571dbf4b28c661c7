//! Collects the rows that a statement has written or removed, for RETURNING.

use crate::error::Result;
use crate::relational::columns::ColumnBuilder;
use crate::relational::types;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidalite::relation::{Cell, CellRef, Schema};

/// Number of rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Collects rows of a relation as batches.
pub(crate) struct Written {
    schema: SchemaRef,
    /// The columns, each with whether it belongs to the primary key.
    columns: Vec<(ColumnBuilder, bool)>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl Written {
    pub(crate) fn new(relation: &Schema) -> Self {
        let columns = relation.columns.iter().map(|column| {
            let is_key = relation.primary_key.contains(&column.name);
            (ColumnBuilder::new(column.kind), is_key)
        });
        Self {
            schema: types::schema(relation),
            columns: columns.collect(),
            rows: 0,
            batches: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &[Cell]) -> Result<()> {
        for ((column, is_key), cell) in self.columns.iter_mut().zip(row) {
            column.append_cell(match cell.as_ref() {
                // A key stores both zeros as positive zero.
                CellRef::F64(value) if *is_key && value == 0.0 => CellRef::F64(0.0),
                cell => cell,
            });
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS {
            self.finish_batch()?;
        }
        Ok(())
    }

    fn finish_batch(&mut self) -> Result<()> {
        let columns = self.columns.iter_mut();
        let columns = columns.map(|(column, _)| column.finish());
        let batch = RecordBatch::try_new(
            SchemaRef::clone(&self.schema),
            columns.collect::<Result<_>>()?,
        )?;
        self.rows = 0;
        self.batches.push(batch);
        Ok(())
    }

    /// Takes the rows collected so far.
    pub(crate) fn take(&mut self) -> Result<Vec<RecordBatch>> {
        if self.rows > 0 {
            self.finish_batch()?;
        }
        Ok(std::mem::take(&mut self.batches))
    }
}
