//! Reads the first or the last rows of a table by time, for `ORDER BY time DESC LIMIT n`.
//!
//! The node returns all rows that can be among the first `n` in the order of the sort, which remains above it: for each
//! member, the rows up to its own `n`-th row in that order. A member is not read if earlier members have `n` rows
//! before its first row.

use crate::error::Result;
use crate::leaf::leaf_methods;
use crate::metric::chunk::{self, Piece};
use crate::metric::layout::Role;
use crate::metric::scan::{SeriesScan, batch_of, columns_of, value_columns};
use crate::metric::trace::Trace;
use crate::pieces;
use crate::types::Clock;
use crate::work::Work;
use arrow::array::{RecordBatch, new_empty_array, new_null_array};
use datafusion::common::Result as PlanResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::Steps;

/// Maximum limit for which this node is used.
const ROWS_MAX: usize = 100_000;

/// Replaces scans below a sort by time with a limit.
#[derive(Debug)]
pub(crate) struct NewestFirst;

impl PhysicalOptimizerRule for NewestFirst {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            Ok(match replacement(&plan) {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "newest_first"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn replacement(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let sort = plan.downcast_ref::<SortExec>()?;
    let rows = sort.fetch().filter(|&rows| rows <= ROWS_MAX)?;
    let trace = Trace::to_scan(sort.input())?;
    let scan = trace.scan;
    let first = sort.expr().first();
    let is_by_time = trace.role(&first.expr, 0) == Some(Role::Time);
    if !is_by_time
        || scan.limit().is_some()
        || !scan.wanted.ranges.is_empty()
        || scan.layout.is_joined()
    {
        return None;
    }
    let node = FirstRows::new(scan.clone(), rows, first.options.descending);
    let input = trace.replaced(Arc::new(node))?;
    let sorted = SortExec::new(sort.expr().clone(), input).with_fetch(sort.fetch());
    Some(Arc::new(sorted))
}

/// Reads the first rows by time, in one of the two directions.
#[derive(Clone, Debug)]
struct FirstRows {
    scan: SeriesScan,
    rows: usize,
    descending: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl FirstRows {
    fn new(scan: SeriesScan, rows: usize, descending: bool) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scan.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            scan,
            rows,
            descending,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for FirstRows {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.descending { "last" } else { "first" };
        write!(f, "FirstRows: {order} {} of ", self.rows)?;
        self.scan.fmt_as(kind, f)
    }
}

impl ExecutionPlan for FirstRows {
    leaf_methods!("FirstRows");

    fn execute(
        &self,
        partition: usize,
        _: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let node = self.clone();
        let mut work = Work::new(&self.metrics, partition);
        let snapshot = self.scan.slot.snapshot()?;
        let batch = futures::stream::once(async move {
            let batch = node.read(&snapshot, &mut work);
            work.add(&snapshot);
            batch.map_err(DataFusionError::from)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.scan.schema(),
            batch,
        )))
    }
}

impl FirstRows {
    fn read(&self, snapshot: &AnyRead, work: &mut Work) -> Result<RecordBatch> {
        let (layout, wanted) = (&self.scan.layout, &self.scan.wanted);
        let columns = value_columns(layout, &self.scan.projection);
        // The positions of the best rows so far in the order of the sort; the greatest is the worst of them.
        let mut best: BinaryHeap<i64> = BinaryHeap::new();
        let mut found = Vec::new();
        let mut rows = 0;
        for &number in &wanted.members {
            let member = &layout.members[number];
            let [part] = &member.parts[..] else { continue };
            let series = chunk::open(snapshot, &part.info)?;
            work.series(1);
            let (from, to) = (
                part.clock.steps(wanted.from).0,
                part.clock.steps(wanted.to).1,
            );
            let Some((first, last)) = series.span().filter(|_| from <= to) else {
                continue;
            };
            let nearest = if self.descending {
                last.min(to)
            } else {
                first.max(from)
            };
            let is_full = best.len() == self.rows;
            if is_full
                && best
                    .peek()
                    .is_some_and(|&worst| self.place(part.clock, nearest) > worst)
            {
                continue;
            }
            let numbers: Vec<usize> = columns
                .iter()
                .filter_map(|&column| member.columns[column])
                .map(|(_, own)| own)
                .collect();
            let query = series
                .query(Steps(from)..=Steps(to))
                .columns(numbers.iter().copied());
            let query = if self.descending {
                query.reverse()
            } else {
                query
            };
            let (mut times, mut words) = (Vec::new(), vec![Vec::new(); numbers.len()]);
            let mut scan = query.vectors()?;
            // The time of the last row that is needed, once it is known.
            let mut end: Option<i64> = None;
            while let Some(vector) = scan.next()? {
                let own = vector.times();
                let kept = self.kept(own, times.len(), &mut end);
                take(&mut times, &own[kept.clone()], self.descending);
                for (words, &number) in words.iter_mut().zip(&numbers) {
                    take(words, &vector.words(number)[kept.clone()], self.descending);
                }
                if kept.len() < own.len() {
                    break;
                }
            }
            for &step in &times {
                best.push(self.place(part.clock, step));
                if best.len() > self.rows {
                    best.pop();
                }
            }
            let kept = times.len();
            let mut words = words.into_iter();
            let mut arrays = Vec::with_capacity(columns.len());
            for &column in &columns {
                let ty = layout
                    .schema
                    .field(1 + layout.tags.len() + column)
                    .data_type();
                arrays.push(match member.columns[column] {
                    Some((_, number)) => {
                        let array =
                            pieces::column(&series, number, words.next().unwrap_or_default())?;
                        arrow::compute::cast(&array, ty)?
                    }
                    None => new_null_array(ty, kept),
                });
            }
            let piece = Piece {
                times: chunk::table_times(part, times)?,
                columns: arrays,
            };
            if kept > 0 {
                rows += kept;
                found.push(columns_of(
                    layout,
                    &self.scan.projection,
                    number,
                    piece,
                    kept,
                )?);
            }
        }
        work.rows(rows);
        let schema = self.scan.schema();
        if rows == 0 {
            let empty = schema
                .fields()
                .iter()
                .map(|field| new_empty_array(field.data_type()));
            let empty = empty.collect();
            let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(0));
            return Ok(RecordBatch::try_new_with_options(schema, empty, &options)?);
        }
        batch_of(schema, found, rows)
    }

    /// The position of a time in the order of the sort: smaller positions come first.
    fn place(&self, clock: Clock, step: i64) -> i64 {
        let time = clock.time(step).unwrap_or(i64::MAX);
        if self.descending { !time } else { time }
    }

    /// The rows of the next vector that are needed if `before` rows were already taken: up to the limit, plus all rows
    /// that have the time of the last one.
    fn kept(&self, times: &[i64], before: usize, end: &mut Option<i64>) -> std::ops::Range<usize> {
        let rows = times.len();
        let missing = self.rows.saturating_sub(before);
        if end.is_none() && 0 < missing && missing <= rows {
            *end = Some(if self.descending {
                times[rows - missing]
            } else {
                times[missing - 1]
            });
        }
        match (*end, self.descending) {
            (None, _) => 0..rows,
            (Some(end), true) => times.partition_point(|&time| time < end)..rows,
            (Some(end), false) => 0..times.partition_point(|&time| time <= end),
        }
    }
}

/// Adds the values of a vector. In a backward scan the vectors arrive in descending order, but their values are
/// ascending.
fn take<T: Copy>(values: &mut Vec<T>, own: &[T], descending: bool) {
    match descending {
        true => values.extend(own.iter().rev()),
        false => values.extend(own),
    }
}
