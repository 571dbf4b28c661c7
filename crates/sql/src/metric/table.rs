//! A table of series, as seen by the planner.

use crate::metric::layout::Layout;
use crate::metric::scan::SeriesScan;
use crate::slot::Slot;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The rows of series in one state of the database.
#[derive(Debug)]
pub(crate) struct SeriesTable {
    pub(crate) layout: Arc<Layout>,
    pub(crate) slot: Slot,
}

#[async_trait]
impl TableProvider for SeriesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.layout.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| self.layout.pushdown(filter))
            .collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = self.layout.wanted(session, filters)?;
        let all = || (0..self.layout.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let threads = session.config().target_partitions();
        let scan = SeriesScan::new(&self.layout, &self.slot, wanted, projection, threads)?;
        Ok(Arc::new(scan.with_limit(limit)))
    }
}
