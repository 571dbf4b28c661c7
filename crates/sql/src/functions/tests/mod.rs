//! Tests that call the functions from SQL, on tables in memory.

mod aggregates;
mod bins;
mod gaps;
mod partitions;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// A session with the functions.
fn session(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .build();
    let context = SessionContext::new_with_state(state);
    for function in super::scalar() {
        context.register_udf(function.as_ref().clone());
    }
    for function in super::aggregate() {
        context.register_udaf(function.as_ref().clone());
    }
    for rule in super::analyzer_rules() {
        context.add_analyzer_rule(rule);
    }
    let state = SessionStateBuilder::new_from_existing(context.state())
        .with_query_planner(Arc::new(Planner))
        .build();
    SessionContext::new_with_state(state)
}

#[derive(Debug)]
struct Planner;

#[async_trait::async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        state: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(super::extension_planners());
        planner.create_physical_plan(plan, state).await
    }
}

fn utc(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some("UTC".into()))
}

/// Registers a table whose rows are distributed over partitions round-robin.
fn register(context: &SessionContext, name: &str, columns: &[(&str, ArrayRef)], partitions: usize) {
    let fields = columns.iter();
    let fields = fields.map(|(name, values)| Field::new(*name, values.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, values)| Arc::clone(values));
    let all = RecordBatch::try_new(Arc::clone(&schema), arrays.collect()).unwrap();
    let part = |part: usize| {
        let rows = (part..all.num_rows()).step_by(partitions);
        let rows = UInt32Array::from_iter_values(rows.map(|row| row as u32));
        vec![arrow::compute::take_record_batch(&all, &rows).unwrap()]
    };
    let table = MemTable::try_new(schema, (0..partitions).map(part).collect()).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

/// The timestamps that these texts represent, as an array with this type.
fn times(texts: &[&str], ty: &DataType) -> ArrayRef {
    let texts = arrow::array::StringArray::from_iter(texts.iter().map(|text| match *text {
        "null" => None,
        text => Some(text),
    }));
    arrow::compute::cast(&texts, ty).unwrap()
}

fn floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(arrow::array::Float64Array::from_iter(values))
}

fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async { context.sql(sql).await?.collect().await })
}

/// The rows of a query, each as text with spaces between its values.
fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
    let batches = run(context, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let options = FormatOptions::new().with_null("null");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let columns = columns.collect::<Vec<_>>();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| column.value(row).to_string());
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows
}

/// The text of the error of a query.
fn error(context: &SessionContext, sql: &str) -> String {
    match run(context, sql) {
        Ok(_) => panic!("{sql} has no error"),
        Err(error) => error.find_root().to_string(),
    }
}

/// The optimised logical plan of a query.
fn plan(context: &SessionContext, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let frame = context.sql(sql).await.unwrap();
        frame
            .into_optimized_plan()
            .unwrap()
            .display_indent()
            .to_string()
    })
}
