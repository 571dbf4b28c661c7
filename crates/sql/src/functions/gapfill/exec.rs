//! The operator that fills gaps. It reads rows sorted by group and time, and adds the missing rows to each group.

use super::fill::{Filled, Grid};
use super::node::Fill;
use arrow::array::RecordBatch;
use arrow::compute::{SortOptions, concat_batches, partition};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The operator.
#[derive(Debug)]
pub(super) struct GapFillExec {
    input: Arc<dyn ExecutionPlan>,
    fills: Vec<Fill>,
    grid: Grid,
    /// The order of the input, and of the output.
    ordering: LexOrdering,
    properties: Arc<PlanProperties>,
}

impl GapFillExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, fills: Vec<Fill>, grid: Grid) -> Result<Self> {
        let of_input = input.schema();
        if of_input.fields().len() != fills.len() {
            return internal_err!("{} columns, {} fills", of_input.fields().len(), fills.len());
        }
        let column = |wanted: Fill| {
            let columns = fills.iter().enumerate();
            let columns = columns.filter(move |(_, fill)| **fill == wanted);
            columns.map(|(index, _)| {
                let name = of_input.field(index).name();
                let options = SortOptions {
                    descending: false,
                    nulls_first: false,
                };
                PhysicalSortExpr::new(Arc::new(Column::new(name, index)), options)
            })
        };
        let Some(ordering) = LexOrdering::new(column(Fill::Key).chain(column(Fill::Time))) else {
            return internal_err!("GapFill has no column of times");
        };
        let fields = of_input.fields().iter().zip(&fills).map(|(field, fill)| {
            let is_nullable = field.is_nullable() || !matches!(fill, Fill::Key | Fill::Time);
            Field::clone(field).with_nullable(is_nullable)
        });
        let schema =
            Schema::new_with_metadata(fields.collect::<Vec<_>>(), of_input.metadata().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(Arc::new(schema), [ordering.clone()]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            input,
            fills,
            grid,
            ordering,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for GapFillExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "GapFillExec: {}", self.ordering)
    }
}

impl ExecutionPlan for GapFillExec {
    fn name(&self) -> &str {
        "GapFillExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.ordering.clone()))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("GapFillExec has one child");
        };
        let exec = Self::new(input, self.fills.clone(), self.grid.clone())?;
        Ok(Arc::new(exec))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::ChildrenPropertiesMode;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("GapFillExec has one partition, found {partition}");
        }
        let schema = self.schema();
        let state = State {
            groups: Groups {
                input: self.input.execute(0, Arc::clone(&context))?,
                keys: keys(&self.fills),
                slices: VecDeque::new(),
                is_first: true,
            },
            current: None,
            fills: self.fills.clone(),
            grid: self.grid.clone(),
            schema: Arc::clone(&schema),
            memory: MemoryConsumer::new("GapFillExec").register(context.memory_pool()),
            rows_max: context.session_config().batch_size(),
        };
        let batches = futures::stream::try_unfold(state, |mut state| async move {
            let batch = state.next().await?;
            Ok(batch.map(|batch| (batch, state)))
        });
        let batches = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        // Filling a long range reads no input, so the operator must yield explicitly to be cancellable.
        Ok(make_cooperative(batches))
    }
}

/// The positions of the columns that identify a group.
fn keys(fills: &[Fill]) -> Vec<usize> {
    let columns = fills.iter().enumerate();
    let keys = columns.filter(|(_, fill)| **fill == Fill::Key);
    keys.map(|(index, _)| index).collect()
}

/// An execution of the operator.
struct State {
    groups: Groups,
    current: Option<Filled>,
    fills: Vec<Fill>,
    grid: Grid,
    schema: SchemaRef,
    /// Tracks the memory of the rows of the current group.
    memory: MemoryReservation,
    rows_max: usize,
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(batch) = current.next(self.rows_max)?
            {
                return Ok(Some(batch));
            }
            let Some(rows) = self.groups.next().await? else {
                return Ok(None);
            };
            self.memory.try_resize(rows.get_array_memory_size())?;
            let schema = Arc::clone(&self.schema);
            self.current = Some(Filled::new(rows, &self.fills, &self.grid, schema)?);
        }
    }
}

/// The rows of the input, group by group.
struct Groups {
    input: SendableRecordBatchStream,
    keys: Vec<usize>,
    /// Rows that were read; each slice belongs to one group.
    slices: VecDeque<RecordBatch>,
    is_first: bool,
}

impl Groups {
    /// All rows of the next group. Without key columns there is exactly one group, even if it has no rows.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut group: Vec<RecordBatch> = Vec::new();
        loop {
            while let Some(slice) = self.slices.pop_front() {
                if let Some(first) = group.first()
                    && self.key(first)? != self.key(&slice)?
                {
                    self.slices.push_front(slice);
                    return self.deliver(&group);
                }
                group.push(slice);
            }
            match self.input.next().await {
                Some(batch) => self.divide(&batch?)?,
                None if group.is_empty() && !(self.is_first && self.keys.is_empty()) => {
                    return Ok(None);
                }
                None => return self.deliver(&group),
            }
        }
    }

    fn deliver(&mut self, group: &[RecordBatch]) -> Result<Option<RecordBatch>> {
        self.is_first = false;
        Ok(Some(concat_batches(&self.input.schema(), group)?))
    }

    fn divide(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let keys = self.keys.iter();
        let keys = keys
            .map(|&key| Arc::clone(batch.column(key)))
            .collect::<Vec<_>>();
        if keys.is_empty() {
            self.slices.push_back(batch.clone());
            return Ok(());
        }
        let ranges = partition(&keys)?.ranges();
        let slices = ranges
            .into_iter()
            .map(|rows| batch.slice(rows.start, rows.len()));
        self.slices.extend(slices);
        Ok(())
    }

    fn key(&self, rows: &RecordBatch) -> Result<Vec<ScalarValue>> {
        let keys = self.keys.iter();
        keys.map(|&key| ScalarValue::try_from_array(rows.column(key), 0))
            .collect()
    }
}
