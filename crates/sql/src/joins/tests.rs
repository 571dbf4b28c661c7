//! Random joins of tables in memory, compared with nested loops.

use super::{JoinRelations, PushBelowTimeJoin, TimeJoinPlanner, prepare};
use crate::types::{constant_nanos, nanos_of};
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use tidalite_testkit::rng::Rng;

#[derive(Debug)]
struct Planner;

#[async_trait::async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        state: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planners: Vec<Arc<dyn datafusion::physical_planner::ExtensionPlanner + Send + Sync>> =
            vec![Arc::new(TimeJoinPlanner)];
        let planner = DefaultPhysicalPlanner::with_extension_planners(planners);
        planner.create_physical_plan(plan, state).await
    }
}

fn session(batch_rows: usize, partitions: usize) -> SessionContext {
    let config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_target_partitions(partitions);
    let mut rules = Optimizer::new().rules;
    let at = rules
        .iter()
        .position(|rule| rule.name() == "push_down_filter");
    rules.insert(at.unwrap() + 1, Arc::new(PushBelowTimeJoin));
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_optimizer_rules(rules)
        .with_relation_planners(vec![Arc::new(JoinRelations)])
        .with_query_planner(Arc::new(Planner))
        .build();
    SessionContext::new_with_state(state)
}

async fn rows_of(context: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let state = context.state();
    let mut statement = state.sql_to_statement(sql, &datafusion::config::Dialect::Generic)?;
    prepare(&mut statement);
    let plan = state.statement_to_plan(statement).await?;
    let frame = context.execute_logical_plan(plan).await?;
    let schema = Arc::clone(frame.schema().inner());
    Ok(concat_batches(&schema, &frame.collect().await?)?)
}

/// A row of either table: its number, key, and time in nanoseconds.
#[derive(Clone, Debug)]
struct Row {
    number: i64,
    key: Option<String>,
    time: Option<i128>,
}

/// Creates random rows, and registers them as a table in random batches.
fn table(rng: &mut Rng, context: &SessionContext, name: &str, rows: u64, spread: i64) -> Vec<Row> {
    let unit = *rng.pick(&[
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ]);
    let step = nanos_of(unit);
    // Times that differ between units, and many equal times.
    let per_second = nanos_of(TimeUnit::Second) / step;
    let mut keys: Vec<Option<String>> = Vec::new();
    let mut times: Vec<Option<i64>> = Vec::new();
    for _ in 0..rows {
        let key = (!rng.one_in(12)).then(|| format!("k{}", rng.below(4)));
        let quarters = rng.between(-spread, spread);
        let time = quarters * per_second / 4;
        keys.push(key);
        times.push((!rng.one_in(12)).then_some(time));
    }
    let as_rows = |(number, (key, time)): (usize, (&Option<String>, &Option<i64>))| Row {
        number: number as i64,
        key: key.clone(),
        time: time.map(|time| i128::from(time) * i128::from(step)),
    };
    let found: Vec<Row> = keys.iter().zip(&times).enumerate().map(as_rows).collect();
    let key: ArrayRef = Arc::new(StringArray::from(keys));
    let text = DataType::Utf8;
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(text.clone()));
    let key = cast(&key, rng.pick(&[text, dictionary])).unwrap();
    let time = cast(
        &Int64Array::from(times),
        &DataType::Timestamp(unit, Some("UTC".into())),
    );
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let half = Float64Array::from_iter_values((0..rows).map(|number| number as f64 / 2.0));
    let columns = [
        ("number", number),
        ("key", key),
        ("time", time.unwrap()),
        ("half", Arc::new(half)),
    ];
    let fields = columns.iter();
    let fields = fields.map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let all = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let parts = 1 + rng.below(3);
    let mut batches: Vec<Vec<u32>> = vec![Vec::new(); parts as usize];
    for row in 0..rows as u32 {
        batches[rng.index(parts as usize)].push(row);
    }
    let taken = batches
        .into_iter()
        .map(|rows| vec![take_record_batch(&all, &UInt32Array::from(rows)).unwrap()]);
    let table = MemTable::try_new(schema, taken.collect()).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
    found
}

/// The distance from the left row to the right one; `None` if their keys differ, or a key or a time is null.
fn distance(left: &Row, right: &Row) -> Option<i128> {
    let is_equal = left.key.is_some() && left.key == right.key;
    is_equal.then_some(right.time? - left.time?)
}

const SECOND: i128 = 1_000_000_000;

/// A condition on a row.
type Condition = Box<dyn Fn(&Row) -> bool>;

/// A condition on the left rows, as SQL and as a closure.
fn condition(rng: &mut Rng) -> (String, Condition) {
    let at = rng.between(-6, 6);
    let nanos = i128::from(at) * SECOND;
    let literal = format!("to_timestamp({at})");
    match rng.below(6) {
        0 => ("true".to_owned(), Box::new(|_| true)),
        1 => (
            format!("time >= {literal}"),
            Box::new(move |row| row.time.is_some_and(|time| time >= nanos)),
        ),
        2 => (
            format!("{literal} > time AND key <> 'k1'"),
            Box::new(move |row| {
                row.time.is_some_and(|time| time < nanos)
                    && row.key.as_ref().is_some_and(|key| key != "k1")
            }),
        ),
        3 => (
            format!("key IN ('k0', 'k2') AND number > {at}"),
            Box::new(move |row| row.number > at && matches!(row.key.as_deref(), Some("k0" | "k2"))),
        ),
        4 => (
            format!("time = {literal}"),
            Box::new(move |row| row.time == Some(nanos)),
        ),
        _ => ("key IS NULL".to_owned(), Box::new(|row| row.key.is_none())),
    }
}

/// The rows of a result, by the number of the left row.
fn by_number(batch: &RecordBatch) -> Vec<usize> {
    let numbers = batch.column(0).as_primitive::<Int64Type>().values();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|&row| numbers[row]);
    order
}

async fn as_of(rng: &mut Rng, context: &SessionContext, (left, right): (&[Row], &[Row])) {
    let direction = *rng.pick(&["backward", "forward", "nearest"]);
    let is_strict = rng.one_in(3);
    let tolerance = rng.one_in(2).then(|| rng.below(12) as i128);
    let (condition, holds) = condition(rng);
    let argument = match tolerance {
        Some(quarters) => {
            format!(", tolerance => INTERVAL '{} milliseconds'", quarters * 250)
        }
        None => String::new(),
    };
    let sql = format!(
        "SELECT number, number_right, time_right FROM asof_join(l, r, by => key, direction => '{direction}', strict => {is_strict}{argument}) WHERE {condition}"
    );
    let found = rows_of(context, &sql).await.expect(&sql);
    let order = by_number(&found);
    let rows: Vec<&Row> = left.iter().filter(|row| holds(row)).collect();
    assert_eq!(order.len(), rows.len(), "{sql}");
    for (at, row) in order.into_iter().zip(rows) {
        let fits = |distance: &i128| {
            let is_on_side = match direction {
                "backward" => *distance <= 0,
                "forward" => *distance >= 0,
                _ => true,
            };
            let most = tolerance.map(|quarters| quarters * SECOND / 4);
            is_on_side
                && (*distance != 0 || !is_strict)
                && most.is_none_or(|most| distance.abs() <= most)
        };
        let distances = right.iter().filter_map(|other| distance(row, other));
        // If two rows are equally near, the older one is expected.
        let best = distances
            .filter(fits)
            .min_by_key(|distance| (distance.abs(), *distance));
        let numbers = found.column(1).as_primitive::<Int64Type>();
        let match_number = numbers.is_valid(at).then(|| numbers.value(at) as usize);
        // Among rows with the same time any row is correct, because the sort does not preserve their order.
        let own = match_number.map(|number| distance(row, &right[number]));
        assert_eq!(own, best.map(Some), "{sql}\n{row:?}");
        let time = ScalarValue::try_from_array(found.column(2), at).unwrap();
        let expected = match_number.and_then(|number| right[number].time);
        assert_eq!(constant_nanos(&time), expected, "{sql}\n{row:?}");
    }
}

async fn windows(rng: &mut Rng, context: &SessionContext, (left, right): (&[Row], &[Row])) {
    let from = rng.between(-12, 8);
    let to = from + rng.between(0, 12);
    let (condition, holds) = condition(rng);
    let (begin, end) = (from * 250, to * 250);
    let sql = format!(
        "SELECT number, n, total, high, mean FROM window_join(l, r, '{begin} milliseconds', '{end} milliseconds', by => key, n => count(*), total => sum(number), high => max(number), mean => avg(half)) WHERE {condition}"
    );
    let found = rows_of(context, &sql).await.expect(&sql);
    let order = by_number(&found);
    let rows: Vec<&Row> = left.iter().filter(|row| holds(row)).collect();
    assert_eq!(order.len(), rows.len(), "{sql}");
    for (at, row) in order.into_iter().zip(rows) {
        let quarter = SECOND / 4;
        let window = i128::from(from) * quarter..=i128::from(to) * quarter;
        let within = right.iter().filter(|other| {
            distance(row, other).is_some_and(|distance| window.contains(&distance))
        });
        let numbers: Vec<i64> = within.map(|other| other.number).collect();
        let integer = |column: usize| {
            let array = found.column(column).as_primitive::<Int64Type>();
            array.is_valid(at).then(|| array.value(at))
        };
        let any = !numbers.is_empty();
        let sum: i64 = numbers.iter().sum();
        assert_eq!(integer(1), Some(numbers.len() as i64), "{sql}\n{row:?}");
        assert_eq!(integer(2), any.then_some(sum), "{sql}\n{row:?}");
        assert_eq!(integer(3), numbers.iter().copied().max(), "{sql}\n{row:?}");
        let means = found.column(4).as_primitive::<Float64Type>();
        let mean = means.is_valid(at).then(|| means.value(at));
        let expected = any.then(|| sum as f64 / 2.0 / numbers.len() as f64);
        assert_eq!(mean, expected, "{sql}\n{row:?}");
    }
}

#[test]
fn joins_equal_nested_loops() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(compare());
}

async fn compare() {
    for seed in 1..=40_u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let context = session(1 + rng.index(9), 1 + rng.index(3));
        let (few, spread) = (rng.below(40), rng.between(1, 30));
        let left = table(&mut rng, &context, "l", few, spread);
        let many = rng.below(if seed % 10 == 0 { 1500 } else { 60 });
        let right = table(&mut rng, &context, "r", many, spread);
        for _ in 0..4 {
            as_of(&mut rng, &context, (&left, &right)).await;
            windows(&mut rng, &context, (&left, &right)).await;
        }
    }
}
