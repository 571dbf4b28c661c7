//! The plan node that scans series.
//!
//! The members that match the conditions on tags are divided among the partitions in order; each partition reads its
//! members one after the other.

use crate::error::Result;
use crate::leaf::leaf_methods;
use crate::metric::chunk::{self, Left, MemberRows, Piece};
use crate::metric::filters::{ValueRange, Wanted};
use crate::metric::layout::{Layout, Role};
use crate::pieces;
use crate::slot::Slot;
use crate::work::Work;
use arrow::array::{ArrayRef, Int32Array, RecordBatch, RecordBatchOptions};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Result as PlanResult, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{ConstExpr, EquivalenceProperties, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use std::fmt;
use std::sync::Arc;
use tidalite::AnyRead;

/// Reads the rows of members in an interval.
#[derive(Clone, Debug)]
pub(crate) struct SeriesScan {
    pub(crate) layout: Arc<Layout>,
    pub(crate) slot: Slot,
    pub(crate) wanted: Arc<Wanted>,
    /// The columns of the table to return.
    pub(crate) projection: Arc<[usize]>,
    /// The members of each partition.
    pub(crate) partitions: Arc<[Vec<usize>]>,
    /// Maximum number of rows of a partition.
    limit: Option<usize>,
    rows: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// If the estimated number of rows is below this, one partition reads all members: starting a second thread would take
/// about as long as it saves.
const ROWS_OF_ONE_THREAD: usize = 65_536;

impl SeriesScan {
    pub(crate) fn new(
        layout: &Arc<Layout>,
        slot: &Slot,
        wanted: Wanted,
        projection: Vec<usize>,
        threads: usize,
    ) -> Result<Self> {
        let rows = estimated_rows(layout, &slot.snapshot()?, &wanted)?;
        let threads = if rows < ROWS_OF_ONE_THREAD {
            1
        } else {
            threads
        };
        let partitions = divided(&wanted.members, threads);
        let schema = Arc::new(layout.schema.project(&projection)?);
        let equal = equivalences(layout, &wanted, &projection, schema)?;
        let properties = PlanProperties::new(
            equal,
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            layout: Arc::clone(layout),
            slot: slot.clone(),
            wanted: Arc::new(wanted),
            projection: projection.into(),
            partitions: partitions.into(),
            limit: None,
            rows,
            properties: Arc::new(properties.with_scheduling_type(SchedulingType::NonCooperative)),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    pub(crate) fn with_limit(self, limit: Option<usize>) -> Self {
        Self { limit, ..self }
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }
}

/// Divides members among partitions in order; returns at least one partition.
pub(crate) fn divided(members: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let each = members.len().div_ceil(threads.max(1)).max(1);
    let mut partitions: Vec<Vec<usize>> = members.chunks(each).map(<[usize]>::to_vec).collect();
    if partitions.is_empty() {
        partitions.push(Vec::new());
    }
    partitions
}

/// Number of members whose rows are counted for the estimate.
const COUNTED_MEMBERS: usize = 16;

/// Estimates the number of rows, assuming that the rows of a series are spread evenly over its span.
fn estimated_rows(layout: &Layout, snapshot: &AnyRead, wanted: &Wanted) -> Result<usize> {
    let step = wanted.members.len().div_ceil(COUNTED_MEMBERS).max(1);
    let mut rows = 0.0;
    for &member in wanted.members.iter().step_by(step) {
        let Some(part) = layout.members[member].parts.first() else {
            continue;
        };
        let series = chunk::open(snapshot, &part.info)?;
        let Some((first, last)) = series.span() else {
            continue;
        };
        let (from, to) = (
            part.clock.steps(wanted.from).0,
            part.clock.steps(wanted.to).1,
        );
        let covered = to.min(last) as f64 - from.max(first) as f64 + 1.0;
        let share = covered.max(0.0) / (last as f64 - first as f64 + 1.0);
        rows += series.query(..).count()? as f64 * share * step as f64;
    }
    Ok(rows as usize)
}

/// The sort order of the rows, and the columns that are constant.
fn equivalences(
    layout: &Layout,
    wanted: &Wanted,
    projection: &[usize],
    schema: SchemaRef,
) -> Result<EquivalenceProperties> {
    let place = |column: usize| projection.iter().position(|&own| own == column);
    let expr = |place: usize| {
        Arc::new(Column::new(schema.field(place).name(), place)) as Arc<dyn PhysicalExpr>
    };
    let mut equal = EquivalenceProperties::new(Arc::clone(&schema));
    let mut order = Vec::new();
    let mut is_whole = true;
    let mut constants = Vec::new();
    for tag in 0..layout.tags.len() {
        let mut numbers = wanted
            .members
            .iter()
            .map(|&member| layout.members[member].tags[tag]);
        let first = numbers.next();
        let is_constant = numbers.all(|number| Some(number) == first);
        match place(1 + tag) {
            Some(place) if is_constant => constants.push(ConstExpr::from(expr(place))),
            Some(place) if is_whole => order.push(PhysicalSortExpr::new(expr(place), ASCENDING)),
            // A later column is sorted only among rows with equal values of this one.
            None if !is_constant => is_whole = false,
            _ => {}
        }
    }
    let are_told_apart = has_different_tags(layout, wanted);
    if is_whole
        && are_told_apart
        && let Some(place) = place(0)
    {
        order.push(PhysicalSortExpr::new(expr(place), ASCENDING));
    }
    equal.add_constants(constants)?;
    if !order.is_empty() {
        equal.add_ordering(order);
    }
    Ok(equal)
}

/// Whether the members have pairwise different tags. Series without a name may have equal ones.
fn has_different_tags(layout: &Layout, wanted: &Wanted) -> bool {
    let tags = |member: usize| &layout.members[member].tags;
    let pairs = wanted.members.windows(2);
    pairs.into_iter().all(|pair| tags(pair[0]) != tags(pair[1]))
}

const ASCENDING: SortOptions = SortOptions {
    descending: false,
    nulls_first: true,
};

impl DisplayAs for SeriesScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SeriesScan: series={}, ", self.wanted.members.len())?;
        write_interval(f, &self.layout, (self.wanted.from, self.wanted.to))?;
        write!(f, "columns=[")?;
        for (at, &column) in self.projection.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", self.layout.schema.field(column).name())?;
        }
        f.write_str("]")?;
        for ValueRange { column, low, high } in &self.wanted.ranges {
            let field = self
                .layout
                .schema
                .field(1 + self.layout.tags.len() + column);
            write!(f, ", {} in {low:?}..{high:?}", field.name())?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

/// Writes the bounds of an interval, unless it is unbounded.
pub(crate) fn write_interval(
    f: &mut fmt::Formatter<'_>,
    layout: &Layout,
    (from, to): (i64, i64),
) -> fmt::Result {
    if (from, to) == (i64::MIN, i64::MAX) {
        return Ok(());
    }
    let text = |time: i64| match time {
        i64::MIN | i64::MAX => String::new(),
        time => {
            let array = pieces::times(layout.unit, vec![time]);
            arrow::util::display::array_value_to_string(&array, 0).unwrap_or_default()
        }
    };
    write!(f, "time={}..={}, ", text(from), text(to))
}

impl ExecutionPlan for SeriesScan {
    leaf_methods!("SeriesScan");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let batches = Batches {
            scan: self.clone(),
            snapshot: self.slot.snapshot()?,
            batch_rows: context.session_config().batch_size(),
            columns: value_columns(&self.layout, &self.projection),
            members: self.partitions[partition].clone().into_iter(),
            current: None,
            left: self.limit.unwrap_or(usize::MAX),
            work: Work::new(&self.metrics, partition),
        };
        let batches = batches.map(|batch| batch.map_err(DataFusionError::from));
        let schema = Arc::clone(self.properties.equivalence_properties().schema());
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter(batches),
        )))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> PlanResult<Arc<Statistics>> {
        let mut statistics =
            Statistics::new_unknown(self.properties.equivalence_properties().schema());
        let rows = match args.partition() {
            Some(_) => self.rows / self.partitions.len(),
            None => self.rows,
        };
        statistics.num_rows = Precision::Inexact(rows.min(self.limit.unwrap_or(usize::MAX)));
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.clone().with_limit(limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// The value columns among these columns of the table, as indexes among the value columns.
pub(crate) fn value_columns(layout: &Layout, projection: &[usize]) -> Vec<usize> {
    let columns = projection
        .iter()
        .filter_map(|&column| match layout.role(column) {
            Role::Value(value) => Some(value),
            _ => None,
        });
    columns.collect()
}

/// The batches of a partition.
struct Batches {
    scan: SeriesScan,
    snapshot: AnyRead,
    batch_rows: usize,
    columns: Vec<usize>,
    members: std::vec::IntoIter<usize>,
    /// The member that is being read, and its remaining rows.
    current: Option<(usize, Left)>,
    /// Number of rows that may still be returned.
    left: usize,
    work: Work,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if batch.is_err() {
            self.left = 0;
        }
        self.work.add(&self.snapshot);
        batch.transpose()
    }
}

impl Batches {
    /// Reads pieces until they fill a batch.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut pieces: Vec<Vec<ArrayRef>> = Vec::new();
        let mut rows = 0;
        while rows < self.batch_rows.min(self.left) {
            let wanted = self.batch_rows.min(self.left) - rows;
            let Some((member, piece)) = self.next_piece(wanted)? else {
                break;
            };
            let kept = piece.times.len().min(self.left - rows);
            if kept > 0 {
                rows += kept;
                pieces.push(columns_of(
                    &self.scan.layout,
                    &self.scan.projection,
                    member,
                    piece,
                    kept,
                )?);
            }
        }
        self.left -= rows;
        self.work.rows(rows);
        if rows == 0 {
            return Ok(None);
        }
        let schema = Arc::clone(self.scan.properties.equivalence_properties().schema());
        batch_of(schema, pieces, rows).map(Some)
    }

    /// The next rows, and the index of their member.
    fn next_piece(&mut self, rows: usize) -> Result<Option<(usize, Piece)>> {
        let (layout, wanted) = (Arc::clone(&self.scan.layout), Arc::clone(&self.scan.wanted));
        loop {
            let (number, from) = match self.current.take() {
                Some((number, left)) => (number, Some(left)),
                None => match self.members.next() {
                    Some(number) => {
                        self.work.series(layout.members[number].parts.len());
                        (number, None)
                    }
                    None => return Ok(None),
                },
            };
            let reading = (&self.columns[..], &wanted.ranges[..]);
            let mut member = MemberRows::new(
                &layout,
                &layout.members[number],
                (wanted.from, wanted.to),
                reading,
            );
            if let Some(left) = from {
                member = member.resume(left);
            }
            let piece = member.next(&self.snapshot, rows)?;
            self.current = member.left().map(|left| (number, left));
            if let Some(piece) = piece {
                return Ok(Some((number, piece)));
            }
        }
    }
}

/// The columns of the table for the first `rows` rows of a piece.
pub(crate) fn columns_of(
    layout: &Layout,
    projection: &[usize],
    member: usize,
    piece: Piece,
    rows: usize,
) -> Result<Vec<ArrayRef>> {
    let mut values = piece.columns.into_iter();
    let mut times = Some(piece.times);
    let mut columns = Vec::with_capacity(projection.len());
    for &column in projection {
        columns.push(match layout.role(column) {
            Role::Time => {
                let mut times = times.take().unwrap_or_default();
                times.truncate(rows);
                pieces::times(layout.unit, times)
            }
            Role::Tag(tag) => {
                let number = layout.members[member].tags[tag];
                layout.tags[tag].array(Int32Array::from(vec![number; rows]))?
            }
            Role::Value(_) => values
                .next()
                .map(|array| array.slice(0, rows))
                .unwrap_or_else(|| {
                    arrow::array::new_null_array(layout.schema.field(column).data_type(), rows)
                }),
        });
    }
    Ok(columns)
}

/// Concatenates the columns of several pieces.
pub(crate) fn batch_of(
    schema: SchemaRef,
    mut pieces: Vec<Vec<ArrayRef>>,
    rows: usize,
) -> Result<RecordBatch> {
    let columns = match pieces.len() {
        1 => pieces.pop().unwrap_or_default(),
        _ => (0..schema.fields().len())
            .map(|column| {
                let arrays: Vec<&dyn arrow::array::Array> =
                    pieces.iter().map(|piece| piece[column].as_ref()).collect();
                arrow::compute::concat(&arrays)
            })
            .collect::<std::result::Result<_, _>>()?,
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}
