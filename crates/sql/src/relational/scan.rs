//! The plan node that scans a relation.

use crate::error::{Error, ErrorKind, Result};
use crate::leaf::leaf_methods;
use crate::relational::columns::ColumnBuilder;
use crate::relational::range::Ranges;
use crate::relational::types;
use crate::slot::Slot;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Result as PlanResult, ScalarValue, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tidalite::AnyRead;
use tidalite::relation::{ColumnType, KeyBounds, Relation, RowKey, Rows, Schema};

/// Number of rows at which a scan is divided among several threads.
const ROWS_PER_THREAD: u64 = 32 << 10;

/// Minimum number of rows of the first batch, for a query that needs only a few rows of the scan.
const FIRST_BATCH_ROWS_MIN: usize = 16;

/// Number of batches that are buffered for the operators above.
const BATCHES_AHEAD: usize = 2;

/// A relation in one state of the database.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) slot: Slot,
    pub(crate) relation: Arc<Schema>,
    /// The columns of the scan, followed by the row key if the statement needs it.
    pub(crate) schema: SchemaRef,
}

/// The least and the greatest value of a column.
#[derive(Debug)]
struct Ends {
    /// The position of the column in the scan.
    place: usize,
    least: ScalarValue,
    greatest: ScalarValue,
}

/// Reads ranges of rows.
#[derive(Clone, Debug)]
pub(crate) struct RelationScan {
    table: Source,
    ranges: Ranges,
    /// The first key of each partition after the first partition.
    cuts: Vec<RowKey>,
    /// Number of rows in the ranges.
    rows: u64,
    projection: Vec<usize>,
    limit: Option<usize>,
    /// Whether the last row comes first.
    is_reversed: bool,
    /// Number of rows that the query wants first.
    wanted_first: Option<usize>,
    /// The least and the greatest key; set when they are first requested.
    ends: Arc<OnceLock<Option<Ends>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RelationScan {
    pub(crate) fn new(
        table: &Source,
        ranges: Ranges,
        projection: Vec<usize>,
        threads: usize,
    ) -> Result<Self> {
        let snapshot = table.slot.snapshot()?;
        let relation = relation(&snapshot, &table.name)?;
        let mut rows = 0;
        for range in &ranges.ranges {
            rows += match &ranges.index {
                None => relation.count_in(range.clone())?,
                Some(index) => relation.count_by(index, range.clone())?,
            };
        }
        let cuts = match (&ranges.index, &ranges.ranges[..]) {
            (None, [range]) => {
                let parts = (rows / ROWS_PER_THREAD).clamp(1, threads.max(1) as u64);
                match parts {
                    1 => Vec::new(),
                    parts => relation.split(range.clone(), parts as usize)?,
                }
            }
            _ => Vec::new(),
        };
        let schema = Arc::new(table.schema.project(&projection)?);
        let properties = PlanProperties::new(
            order(table, &ranges, &projection, &schema, false),
            Partitioning::UnknownPartitioning(cuts.len() + 1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            table: table.clone(),
            ranges,
            cuts,
            rows,
            projection,
            limit: None,
            is_reversed: false,
            wanted_first: None,
            ends: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The scan in one of the two directions, for a query that wants its `first` rows; `None` if the scan has a limit,
    /// because another direction would then return other rows.
    pub(crate) fn in_order(&self, is_reversed: bool, first: Option<usize>) -> Option<Self> {
        if self.limit.is_some() {
            return None;
        }
        let schema = self.schema_ref();
        let equal = order(
            &self.table,
            &self.ranges,
            &self.projection,
            &schema,
            is_reversed,
        );
        let properties = self.properties.as_ref().clone();
        Some(Self {
            is_reversed,
            wanted_first: first,
            properties: Arc::new(properties.with_eq_properties(equal)),
            ..self.clone()
        })
    }

    /// The least and the greatest value of the first column of the primary key. `None` if the scan reads only some of
    /// the rows, or if the order of the column's type is not the same in the database and in Arrow.
    fn ends(&self) -> Option<&Ends> {
        let first = self.table.relation.primary_key.first()?;
        let column = self.table.relation.position(first)?;
        let place = self.projection.iter().position(|&own| own == column)?;
        let kind = self.table.relation.columns[column].kind;
        let is_total = matches!(
            kind,
            ColumnType::I16
                | ColumnType::I32
                | ColumnType::I64
                | ColumnType::U64
                | ColumnType::Text
                | ColumnType::Date
                | ColumnType::Time { .. }
        );
        if !is_total || self.ranges != Ranges::all() || self.limit.is_some() {
            return None;
        }
        let read = || {
            let snapshot = self.table.slot.snapshot()?;
            let relation = relation(&snapshot, &self.table.name)?;
            let value = |mut rows: Rows<'_>| match rows.next()? {
                Some(row) => types::constant(kind, &row.cell(column)?.to_cell()).map(Some),
                None => Ok(None),
            };
            let least = value(relation.rows(KeyBounds::all())?)?;
            let greatest = value(relation.rows(KeyBounds::all())?.rev())?;
            let both = least.zip(greatest);
            Ok::<_, Error>(both.map(|(least, greatest)| Ends {
                place,
                least,
                greatest,
            }))
        };
        // If reading the statistics fails, a later read reports the error.
        let ends = self.ends.get_or_init(|| read().unwrap_or(None));
        ends.as_ref()
    }

    fn schema_ref(&self) -> SchemaRef {
        Arc::clone(self.properties.equivalence_properties().schema())
    }

    /// The name of the relation.
    pub(crate) fn table(&self) -> &Arc<str> {
        &self.table.name
    }

    /// Number of rows of the whole relation, in the state that the running statement reads.
    pub(crate) fn rows_of_table(&self) -> Result<u64> {
        let snapshot = self.table.slot.snapshot()?;
        Ok(relation(&snapshot, &self.table.name)?.count())
    }

    /// Reads a partition. `emit` returns false if no more rows are needed.
    fn read(
        &self,
        partition: usize,
        batch_rows: usize,
        pages: &Count,
        emit: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let snapshot = self.table.slot.snapshot()?;
        let done = self.read_from(&snapshot, partition, batch_rows, emit);
        let read = snapshot.counters().pages_read.load(Ordering::Relaxed);
        pages.add(read as usize);
        done
    }

    fn read_from(
        &self,
        snapshot: &AnyRead,
        partition: usize,
        batch_rows: usize,
        emit: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<()> {
        let relation = relation(snapshot, &self.table.name)?;
        let mut builder = BatchBuilder::new(self);
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut full = match self.wanted_first {
            Some(rows) => rows.clamp(FIRST_BATCH_ROWS_MIN.min(batch_rows), batch_rows),
            None => batch_rows,
        };
        for range in &self.ranges.ranges {
            let range = range.clone();
            let mut rows: Rows<'_> = match &self.ranges.index {
                Some(index) => relation.rows_by(index, range)?,
                None if self.cuts.is_empty() => relation.rows(range)?,
                None => {
                    let from = partition.checked_sub(1).map(|cut| &self.cuts[cut]);
                    relation.rows_between(range, from, self.cuts.get(partition))?
                }
            };
            if self.is_reversed {
                rows = rows.rev();
            }
            while left > 0
                && let Some(row) = rows.next()?
            {
                builder.append(&row)?;
                left -= 1;
                if builder.rows == full {
                    if !emit(builder.finish()?) {
                        return Ok(());
                    }
                    full = (2 * full).min(batch_rows);
                }
            }
        }
        if builder.rows > 0 {
            emit(builder.finish()?);
        }
        Ok(())
    }
}

/// The relation of a scan. It exists in every state with the same schemas.
fn relation<'s>(snapshot: &'s AnyRead, name: &str) -> Result<Relation<'s>> {
    let gone = || Error::new(ErrorKind::Plan, format!("table {name} is gone"));
    snapshot.relation(name)?.ok_or_else(gone)
}

/// The sort order of the rows of a scan: by the primary key, in one of the two directions.
fn order(
    table: &Source,
    ranges: &Ranges,
    projection: &[usize],
    schema: &SchemaRef,
    is_reversed: bool,
) -> EquivalenceProperties {
    let mut equal = EquivalenceProperties::new(Arc::clone(schema));
    if ranges.index.is_some() || ranges.ranges.len() != 1 {
        return equal;
    }
    let options = SortOptions {
        descending: is_reversed,
        nulls_first: is_reversed,
    };
    let mut keys = Vec::new();
    for column in &table.relation.primary_key {
        let place = table.relation.position(column);
        let place = place.and_then(|place| projection.iter().position(|&own| own == place));
        let Some(place) = place else { break };
        let column = Arc::new(Column::new(column, place));
        keys.push(PhysicalSortExpr::new(column, options));
    }
    if !keys.is_empty() {
        equal.add_ordering(keys);
    }
    equal
}

/// Builds batches of rows.
struct BatchBuilder {
    columns: Vec<(Option<usize>, ColumnBuilder)>,
    schema: SchemaRef,
    rows: usize,
}

impl BatchBuilder {
    fn new(scan: &RelationScan) -> Self {
        let columns = &scan.table.relation.columns;
        let builder = |&column: &usize| match columns.get(column) {
            Some(own) => (Some(column), ColumnBuilder::new(own.kind)),
            None => (None, ColumnBuilder::keys()),
        };
        Self {
            columns: scan.projection.iter().map(builder).collect(),
            schema: scan.schema_ref(),
            rows: 0,
        }
    }

    fn append(&mut self, row: &tidalite::relation::RowRef<'_>) -> Result<()> {
        for (column, builder) in &mut self.columns {
            match *column {
                Some(column) => builder.append(row, column)?,
                None => builder.append_key(row),
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut();
        let columns = columns.map(|(_, builder)| builder.finish());
        let options =
            RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }
}

impl DisplayAs for RelationScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelationScan: {}", self.table.name)?;
        match &self.ranges.index {
            Some(index) => write!(f, ", index={index}")?,
            None if self.ranges != Ranges::all() => f.write_str(", primary key")?,
            None => {}
        }
        match &self.ranges.ranges[..] {
            [_] if self.ranges.is_unique => f.write_str(", one row")?,
            [_] => {}
            ranges => write!(f, ", ranges={}", ranges.len())?,
        }
        if self.is_reversed {
            f.write_str(", last row first")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for RelationScan {
    leaf_methods!("RelationScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let counter: Count = MetricBuilder::new(&self.metrics).output_rows(partition);
        let pages = MetricBuilder::new(&self.metrics).counter("pages_read", partition);
        let batch_rows = context.session_config().batch_size();
        let (mut scan, schema) = (self.clone(), self.schema_ref());
        if self.ranges.is_unique && self.ranges.ranges.len() <= batch_rows {
            // A small number of rows is read at once, without another thread, as one batch.
            scan.wanted_first = None;
            let batch = futures::stream::once(async move {
                let mut found = None;
                scan.read(partition, batch_rows, &pages, &mut |batch| {
                    found = Some(batch);
                    true
                })?;
                let empty = || RecordBatch::new_empty(scan.schema_ref());
                let batch = found.unwrap_or_else(empty);
                counter.add(batch.num_rows());
                Ok(batch)
            });
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batch)));
        }
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, BATCHES_AHEAD);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let mut send = |batch: RecordBatch| {
                counter.add(batch.num_rows());
                sender.blocking_send(Ok(batch)).is_ok()
            };
            scan.read(partition, batch_rows, &pages, &mut send)
                .map_err(DataFusionError::from)
        });
        Ok(builder.build())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> PlanResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema_ref());
        if partition.is_none() || self.cuts.is_empty() {
            let rows = self
                .limit
                .map_or(self.rows, |limit| self.rows.min(limit as u64));
            // Only the number of all rows is exact, so only this number may be used to compute a result.
            statistics.num_rows = match self.ranges == Ranges::all() && self.limit.is_none() {
                true => Precision::Exact(rows as usize),
                false => Precision::Inexact(rows as usize),
            };
        }
        if partition.is_none()
            && let Some(ends) = self.ends()
            && let Some(column) = statistics.column_statistics.get_mut(ends.place)
        {
            column.min_value = Precision::Exact(ends.least.clone());
            column.max_value = Precision::Exact(ends.greatest.clone());
        }
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let scan = self.clone();
        Some(Arc::new(Self { limit, ..scan }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}
