//! The join operator. It merges both inputs, which are sorted by key and time.

use super::asof::{AsOf, AsOfJoin};
use super::keyed::{Encoder, ORDER, Side};
use super::reader::{Left, Right};
use super::window::{Window, WindowJoin};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
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
use std::fmt;
use std::sync::Arc;

/// The columns that the join adds to the columns of the left input.
#[derive(Clone, Debug)]
pub(super) enum Columns {
    AsOf(AsOf),
    Window(Window, Vec<Arc<AggregateFunctionExpr>>),
}

/// The operator.
#[derive(Debug)]
pub(super) struct TimeJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    sides: (Side, Side),
    columns: Columns,
    /// The sort orders of the inputs. The output is sorted like the left input.
    orders: (LexOrdering, LexOrdering),
    properties: Arc<PlanProperties>,
}

impl TimeJoinExec {
    pub(super) fn new(
        (left, right): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
        sides: (Side, Side),
        columns: Columns,
        schema: SchemaRef,
    ) -> Result<Self> {
        let orders = (order(&left, &sides.0)?, order(&right, &sides.1)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, [orders.0.clone()]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            left,
            right,
            sides,
            columns,
            orders,
            properties: Arc::new(properties),
        })
    }
}

/// The order in which an input is read.
fn order(input: &Arc<dyn ExecutionPlan>, side: &Side) -> Result<LexOrdering> {
    let schema = input.schema();
    let columns = side.by.iter().chain([&side.time]).map(|&column| {
        let name = schema.field(column).name();
        PhysicalSortExpr::new(Arc::new(Column::new(name, column)), ORDER)
    });
    match LexOrdering::new(columns) {
        Some(order) => Ok(order),
        None => internal_err!("TimeJoinExec has no column of times"),
    }
}

impl DisplayAs for TimeJoinExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.columns {
            Columns::AsOf(rule) => write!(f, "TimeJoinExec: {:?}, ", rule.direction)?,
            Columns::Window(_, aggregates) => {
                let names: Vec<&str> = aggregates.iter().map(|expr| expr.name()).collect();
                write!(f, "TimeJoinExec: [{}], ", names.join(", "))?;
            }
        }
        write!(f, "left=[{}], right=[{}]", self.orders.0, self.orders.1)
    }
}

impl ExecutionPlan for TimeJoinExec {
    fn name(&self) -> &str {
        "TimeJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; 2])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let orders = [&self.orders.0, &self.orders.1].into_iter();
        orders
            .map(|order| Some(OrderingRequirements::from(order.clone())))
            .collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true, false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; 2]
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
        let Ok([left, right]) = <[_; 2]>::try_from(children) else {
            return internal_err!("TimeJoinExec has two children");
        };
        let schema = self.schema();
        let exec = Self::new(
            (left, right),
            self.sides.clone(),
            self.columns.clone(),
            schema,
        )?;
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
            return internal_err!("TimeJoinExec has one partition, found {partition}");
        }
        let schema = self.schema();
        let arguments = match &self.columns {
            Columns::AsOf(_) => Vec::new(),
            Columns::Window(_, aggregates) => {
                aggregates.iter().map(|expr| expr.expressions()).collect()
            }
        };
        // A long search in an input returns no rows, so the operator must yield explicitly to be cancellable.
        let left = Left::new(
            make_cooperative(self.left.execute(0, Arc::clone(&context))?),
            Encoder::new(&self.left.schema(), &self.sides.0, Vec::new())?,
        );
        let right = Right::new(
            make_cooperative(self.right.execute(0, Arc::clone(&context))?),
            Encoder::new(&self.right.schema(), &self.sides.1, arguments)?,
            MemoryConsumer::new("TimeJoinExec").register(context.memory_pool()),
        );
        let state = match &self.columns {
            Columns::AsOf(rule) => State::AsOf(AsOfJoin::new(
                left,
                right,
                rule.clone(),
                Arc::clone(&schema),
            )),
            Columns::Window(window, aggregates) => State::Window(WindowJoin::new(
                (left, right),
                window.clone(),
                aggregates,
                Arc::clone(&schema),
            )?),
        };
        let batches = futures::stream::try_unfold(state, |mut state| async move {
            let batch = state.next().await?;
            Ok(batch.map(|batch| (batch, state)))
        });
        let batches = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        Ok(make_cooperative(batches))
    }
}

/// An execution of the operator.
enum State {
    AsOf(AsOfJoin),
    Window(WindowJoin),
}

impl State {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::AsOf(join) => join.next().await,
            Self::Window(join) => join.next().await,
        }
    }
}
