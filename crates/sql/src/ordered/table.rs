//! An ordered table, as seen by the planner, and its scan. It has a row for each key, or for each value of a key.

use crate::error::Result;
use crate::leaf::leaf_methods;
use crate::ordered::codec::Part;
use crate::ordered::range::{KEY, KeyBounds};
use crate::slot::Slot;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as PlanResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::TableLayout;

/// An ordered table.
#[derive(Clone, Debug)]
pub(crate) struct OrderedTable {
    name: String,
    slot: Slot,
    key: Part,
    value: Part,
    is_set: bool,
    schema: SchemaRef,
}

impl OrderedTable {
    /// The table with this name; `None` if it does not exist, or is not an ordered table (for example a hash table or a
    /// queue).
    pub(crate) fn find(name: &str, slot: &Slot) -> Result<Option<Self>> {
        let snapshot = slot.snapshot()?;
        let Some(is_set) = snapshot.is_set_table(name)? else {
            return Ok(None);
        };
        let types = snapshot.table_types(name)?;
        let layout = types.as_ref().map(|types| types.layout());
        if layout.is_some_and(|layout| layout != TableLayout::Rows) {
            return Ok(None);
        }
        let key = Part::of(types.as_ref().map_or("", |types| types.key()), true);
        // The values of a set are also ordered, and are encoded like keys.
        let value = Part::of(types.as_ref().map_or("", |types| types.value()), is_set);
        let schema = Schema::new(vec![
            Field::new(KEY, key.data_type(), false),
            Field::new("value", value.data_type(), true),
        ]);
        Ok(Some(Self {
            name: name.to_owned(),
            slot: slot.clone(),
            key,
            value,
            is_set,
            schema: Arc::new(schema),
        }))
    }

    /// The names of all ordered tables.
    pub(crate) fn names(snapshot: &AnyRead) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in snapshot.tables()? {
            let types = snapshot.table_types(&name)?;
            if types.is_none_or(|types| types.layout() == TableLayout::Rows) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[async_trait]
impl TableProvider for OrderedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        let pushdown = |filter: &&Expr| match KeyBounds::of(filter, self.key) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(pushdown).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let ranges = filters
            .iter()
            .filter_map(|filter| KeyBounds::of(filter, self.key));
        let range = ranges.fold(KeyBounds::ALL, KeyBounds::and);
        let projection = projection.cloned().unwrap_or_else(|| vec![0, 1]);
        let schema = Arc::new(self.schema.project(&projection)?);
        let mut equal = EquivalenceProperties::new(Arc::clone(&schema));
        if let Some(place) = projection.iter().position(|&column| column == 0) {
            let key = Arc::new(Column::new(KEY, place));
            let ascending = SortOptions {
                descending: false,
                nulls_first: false,
            };
            equal.add_ordering([PhysicalSortExpr::new(key, ascending)]);
        }
        Ok(Arc::new(OrderedScan {
            table: self.clone(),
            range,
            projection,
            limit,
            properties: Arc::new(PlanProperties::new(
                equal,
                Partitioning::UnknownPartitioning(1),
                EmissionType::Incremental,
                Boundedness::Bounded,
            )),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }
}

/// Reads a range of keys.
#[derive(Clone, Debug)]
struct OrderedScan {
    table: OrderedTable,
    range: KeyBounds,
    projection: Vec<usize>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DisplayAs for OrderedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrderedScan: {}", self.table.name)?;
        if self.range != KeyBounds::ALL {
            f.write_str(", range of keys")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for OrderedScan {
    leaf_methods!("OrderedScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let batches = Batches {
            snapshot: self.table.slot.snapshot()?,
            batch_rows: context.session_config().batch_size(),
            left: self.limit.unwrap_or(usize::MAX),
            after: None,
            scan: self.clone(),
        };
        let batches = batches.map(move |batch| {
            let batch = batch.map_err(DataFusionError::from)?;
            rows.add(batch.num_rows());
            Ok(batch)
        });
        let schema = Arc::clone(self.properties.equivalence_properties().schema());
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter(batches),
        )))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = self.clone();
        Some(Arc::new(Self { limit, ..scan }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// A key and a value in stored form; a nested table has no value.
type Pair = (Vec<u8>, Option<Vec<u8>>);

struct Batches {
    scan: OrderedScan,
    snapshot: AnyRead,
    batch_rows: usize,
    /// Number of rows that may still be returned.
    left: usize,
    /// The last pair that was returned.
    after: Option<Pair>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let most = self.batch_rows.min(self.left);
        let batch = match self.pairs(most) {
            Ok(pairs) if pairs.is_empty() => return None,
            Ok(pairs) => {
                self.left -= pairs.len();
                self.after = pairs.last().cloned();
                self.batch(pairs)
            }
            Err(error) => Err(error),
        };
        if batch.is_err() {
            self.left = 0;
        }
        Some(batch)
    }
}

impl Batches {
    fn batch(&self, pairs: Vec<Pair>) -> Result<RecordBatch> {
        let rows = pairs.len();
        let (keys, values): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .map(|(key, value)| (Some(key), value))
            .unzip();
        let table = &self.scan.table;
        let columns = self.scan.projection.iter().map(|&column| match column {
            0 => table.key.array(&keys),
            _ => table.value.array(&values),
        });
        let columns = columns.collect::<Result<_>>()?;
        let schema = Arc::clone(self.scan.properties.equivalence_properties().schema());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// The next pairs.
    fn pairs(&self, most: usize) -> Result<Vec<Pair>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        match self.scan.table.is_set {
            true => self.set_pairs(most),
            false => self.row_pairs(most),
        }
    }

    fn row_pairs(&self, most: usize) -> Result<Vec<Pair>> {
        let mut pairs = Vec::with_capacity(most);
        let (range, name) = (&self.scan.range, &self.scan.table.name);
        let needs_values = self.scan.projection.contains(&1);
        let Some(table) = self.snapshot.table(name)? else {
            return Ok(pairs);
        };
        let table = table.bytes();
        let mut cursor = table.cursor();
        let mut there = match (&self.after, &range.low) {
            (Some((key, _)), _) | (None, Bound::Excluded(key)) => cursor.seek_gt(key)?,
            (None, Bound::Included(key)) => cursor.seek_ge(key)?,
            (None, Bound::Unbounded) => cursor.first()?,
        };
        while there && pairs.len() < most && range.is_within(cursor.key()) {
            let value = match needs_values && !cursor.is_nested() {
                true => Some(cursor.value()?),
                false => None,
            };
            pairs.push((cursor.key().to_vec(), value));
            there = cursor.next()?;
        }
        Ok(pairs)
    }

    fn set_pairs(&self, most: usize) -> Result<Vec<Pair>> {
        let mut pairs = Vec::with_capacity(most);
        let (range, name) = (&self.scan.range, &self.scan.table.name);
        let Some(table) = self.snapshot.set_table(name)? else {
            return Ok(pairs);
        };
        let table = table.bytes();
        let mut cursor = table.cursor();
        let mut there = match (&self.after, &range.low) {
            (Some((key, value)), _) => cursor.seek_gt(key, value.as_deref().unwrap_or_default())?,
            (None, Bound::Excluded(key)) => cursor.seek_key_gt(key)?,
            (None, Bound::Included(key)) => cursor.seek_key_ge(key)?,
            (None, Bound::Unbounded) => cursor.first()?,
        };
        while there && pairs.len() < most && range.is_within(cursor.key()) {
            pairs.push((cursor.key().to_vec(), Some(cursor.value().to_vec())));
            there = cursor.next()?;
        }
        Ok(pairs)
    }
}
