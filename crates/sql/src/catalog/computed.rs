//! A table whose rows are computed when a statement scans it.

use crate::error::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::sync::Arc;

type Compute = dyn Fn() -> Result<Vec<RecordBatch>> + Send + Sync;

/// The table.
pub(crate) struct ComputedTable {
    schema: SchemaRef,
    compute: Box<Compute>,
}

impl ComputedTable {
    /// A table with the columns of `schema`, whose rows `compute` returns.
    pub(crate) fn new(
        schema: SchemaRef,
        compute: impl Fn() -> Result<Vec<RecordBatch>> + Send + Sync + 'static,
    ) -> Self {
        let compute = Box::new(compute);
        Self { schema, compute }
    }
}

impl fmt::Debug for ComputedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ComputedTable")
    }
}

#[async_trait]
impl TableProvider for ComputedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let table = MemTable::try_new(self.schema(), vec![(self.compute)()?])?;
        table.scan(session, projection, filters, limit).await
    }
}
