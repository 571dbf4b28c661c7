//! Rewrites common expressions for time bins to `date_bin`, so that later rules need to recognise only that function.
//!
//! | written | rewritten |
//! |---|---|
//! | `date_trunc('hour', t)`, from microseconds to days | `date_bin(INTERVAL '1 hour', t)` |
//! | `date_trunc('week', t)` | `date_bin(INTERVAL '7 days', t, '2000-01-03')`, a Monday |
//! | `date_trunc('month', t)`, quarters and years | `date_bin(INTERVAL '1 month', t)` |
//! | `floor(extract(epoch from t) / 60) * 60` | `extract(epoch from date_bin(INTERVAL '60 s', t))` |
//!
//! The times must have no zone, or UTC. In other zones, `date_trunc` to days and longer units becomes `time_bucket`,
//! which follows the clocks of the zone; all other expressions are left unchanged. The results are equal with one
//! exception: `extract` rounds times in nanoseconds to a float with a precision of about 200 ns, which can move a time
//! just before the end of a bin into the next bin. `date_bin` is exact in this case.
//!
//! `(extract(epoch from t) / 60)::bigint * 60` is not rewritten: the conversion rounds towards zero, so times before
//! 1970 are in other bins. The rule that reads the trees recognises it if all times are since 1970.

use super::args;
use super::date_bin::date_bin;
use super::time_bucket::time_bucket;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

const NANOS_PER_DAY: i64 = 86_400 * args::NANOS_PER_SECOND;
const NANOS_PER_WEEK: i64 = 7 * NANOS_PER_DAY;
/// 2000-01-03, in nanoseconds since 1970.
const MONDAY: i64 = 946_857_600 * args::NANOS_PER_SECOND;

/// The rule. It must run after the conversion of types.
#[derive(Debug)]
pub(super) struct CanonicalBins;

impl AnalyzerRule for CanonicalBins {
    fn name(&self) -> &str {
        "canonical_bins"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| Ok(rewrite(expr, &schema)))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })?
            .map_data(|plan| plan.recompute_schema())
        })?;
        Ok(plan.data)
    }
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match truncated(&expr, schema).or_else(|| floored(&expr, schema)) {
        Some(bins) => Transformed::yes(bins),
        None => Transformed::no(expr),
    }
}

/// Rewrites `date_trunc(unit, t)` to bins.
fn truncated(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let [unit, time] = arguments(expr, "date_trunc")? else {
        return None;
    };
    let (months, nanos) = match args::text(&constant(unit)?)?.to_ascii_lowercase().as_str() {
        "microsecond" => (0, 1_000),
        "millisecond" => (0, 1_000_000),
        "second" => (0, args::NANOS_PER_SECOND),
        "minute" => (0, 60 * args::NANOS_PER_SECOND),
        "hour" => (0, 3_600 * args::NANOS_PER_SECOND),
        "day" => (0, NANOS_PER_DAY),
        "week" => (0, NANOS_PER_WEEK),
        "month" => (1, 0),
        "quarter" => (3, 0),
        "year" => (12, 0),
        _ => return None,
    };
    let width = IntervalMonthDayNano::new(months, 0, nanos);
    let ty: DataType = time.get_type(schema).ok()?;
    if matches!(ty, DataType::Timestamp(..)) && !args::is_utc(&ty) {
        // Where clocks change within an hour, as in Chatham, the two functions give different results for hours.
        let width = lit(ScalarValue::IntervalMonthDayNano(Some(width)));
        let is_long = months > 0 || nanos >= NANOS_PER_DAY;
        return is_long.then(|| time_bucket().call(vec![width, time.clone()]));
    }
    let origin = (nanos == NANOS_PER_WEEK).then_some(MONDAY);
    bins(width, (time, &ty), origin)
}

/// Rewrites `floor(extract(epoch from t) / n) * n` to bins.
fn floored(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (floor, seconds) = operands(expr, Operator::Multiply)?;
    // The factors may be in either order.
    let (floor, seconds) = match constant_number(seconds) {
        Some(seconds) => (floor, seconds),
        None => (seconds, constant_number(floor)?),
    };
    let [quotient] = arguments(floor, "floor")? else {
        return None;
    };
    let (epoch, divisor) = operands(quotient, Operator::Divide)?;
    if constant_number(divisor)? != seconds {
        return None;
    }
    let [part, time] = arguments(epoch, "date_part")? else {
        return None;
    };
    if !args::text(&constant(part)?)?.eq_ignore_ascii_case("epoch") {
        return None;
    }
    // Only widths of whole seconds are rewritten: then the starts of bins are whole seconds, which are exact as floats.
    let is_whole = seconds >= 1.0 && seconds.fract() == 0.0;
    let limit = (i64::MAX / args::NANOS_PER_SECOND) as f64;
    if !is_whole || seconds >= limit {
        return None;
    }
    let width = IntervalMonthDayNano::new(0, 0, seconds as i64 * args::NANOS_PER_SECOND);
    let bins = bins(width, (time, &time.get_type(schema).ok()?), None)?;
    Some(date_part().call(vec![part.clone(), bins]))
}

/// The bins of times with this type, which must have no zone or UTC. The origin, in nanoseconds since 1970, is 0 if not
/// given.
fn bins(
    width: IntervalMonthDayNano,
    (time, ty): (&Expr, &DataType),
    origin: Option<i64>,
) -> Option<Expr> {
    let DataType::Timestamp(_, zone) = ty else {
        return None;
    };
    if !args::is_utc(ty) {
        return None;
    }
    let width = lit(ScalarValue::IntervalMonthDayNano(Some(width)));
    let mut bin = vec![width, time.clone()];
    if let Some(origin) = origin {
        bin.push(lit(ScalarValue::TimestampNanosecond(
            Some(origin),
            zone.clone(),
        )));
    }
    Some(date_bin().call(bin))
}

/// The arguments, if the expression is a call of this function.
fn arguments<'e>(expr: &'e Expr, name: &str) -> Option<&'e [Expr]> {
    match within(expr) {
        Expr::ScalarFunction(call) if call.name() == name => Some(&call.args),
        _ => None,
    }
}

fn operands(expr: &Expr, operator: Operator) -> Option<(&Expr, &Expr)> {
    match within(expr) {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == operator => Some((left, right)),
        _ => None,
    }
}

/// The expression without its alias and without a conversion to a float.
fn within(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => within(&alias.expr),
        Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Float64 => within(expr),
        _ => expr,
    }
}

/// The value of a constant, which may be wrapped in a type conversion.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => constant(&alias.expr),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}

fn constant_number(expr: &Expr) -> Option<f64> {
    let value = constant(expr).filter(|value| value.data_type().is_numeric())?;
    match value.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(number)) => number,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, ArrayRef, AsArray, TimestampSecondArray};
    use arrow::datatypes::{Field, TimeUnit};
    use datafusion::functions::datetime::date_trunc;
    use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
    use std::sync::Arc;

    fn call(function: &ScalarUDF, first: ScalarValue, times: &ArrayRef) -> Result<ArrayRef> {
        let ty = times.data_type().clone();
        let field = |ty: DataType| Arc::new(Field::new("argument", ty, true));
        let value = function.invoke_with_args(ScalarFunctionArgs {
            arg_fields: vec![field(first.data_type()), field(ty.clone())],
            args: vec![
                ColumnarValue::Scalar(first),
                ColumnarValue::Array(ArrayRef::clone(times)),
            ],
            number_rows: times.len(),
            return_field: field(ty),
            config_options: Arc::default(),
        })?;
        value.into_array(times.len())
    }

    /// The clocks of these zones change by whole and half hours, at midnight and in the daytime.
    #[test]
    fn truncated_times_in_zones_are_buckets() {
        const ZONES: [&str; 7] = [
            "Europe/Berlin",
            "America/New_York",
            "Asia/Kolkata",
            "Asia/Kathmandu",
            "Australia/Lord_Howe",
            "Pacific/Chatham",
            "America/Sao_Paulo",
        ];
        let widths = [
            ("day", IntervalMonthDayNano::new(0, 0, NANOS_PER_DAY)),
            ("week", IntervalMonthDayNano::new(0, 0, NANOS_PER_WEEK)),
            ("month", IntervalMonthDayNano::new(1, 0, 0)),
            ("quarter", IntervalMonthDayNano::new(3, 0, 0)),
            ("year", IntervalMonthDayNano::new(12, 0, 0)),
        ];
        // From 2015 to 2025, in steps of 12 minutes and 34 seconds.
        let seconds = (1_420_070_400..1_735_689_600).step_by(754);
        let seconds: Vec<i64> = seconds.collect();
        let mut differences = Vec::new();
        for zone in ZONES {
            let times = TimestampSecondArray::from(seconds.clone()).with_timezone(zone);
            let times: ArrayRef = Arc::new(times);
            for (unit, width) in widths {
                let width = ScalarValue::IntervalMonthDayNano(Some(width));
                let ours = call(&time_bucket(), width, &times).unwrap();
                assert_eq!(
                    *ours.data_type(),
                    DataType::Timestamp(TimeUnit::Second, Some(zone.into()))
                );
                let theirs = call(&date_trunc(), ScalarValue::from(unit), &times).unwrap();
                let (ours, theirs): (&TimestampSecondArray, &TimestampSecondArray) =
                    (ours.as_primitive(), theirs.as_primitive());
                let pairs = ours.values().iter().zip(theirs.values());
                let pairs = pairs.zip(&seconds).filter(|((a, b), _)| a != b);
                differences.extend(pairs.map(|((a, b), time)| (zone, unit, *time, *a, *b)));
            }
        }
        assert_eq!(differences, []);
    }
}
