//! `time_bucket(width, time [, timezone] [, origin])`: the start of the bin that contains a time.

use super::args;
use super::bucket::Buckets;
use super::date_bin::date_bin;
use crate::types::nanos_of;
use arrow::array::{Array, Int64Array};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::sync::{Arc, LazyLock};

const NAME: &str = "time_bucket";

/// The function.
pub(super) fn time_bucket() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(TimeBucket::default())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

impl Default for TimeBucket {
    fn default() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(NAME, types.len(), (2, 4))?;
        let mut coerced = vec![
            args::width_type(NAME, &types[0])?,
            args::time_type(NAME, &types[1])?,
        ];
        for option in &types[2..] {
            coerced.push(option_type(NAME, option)?);
        }
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[1].clone())
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = |index: usize| match &call.args[index] {
            ColumnarValue::Scalar(value) => Ok(value.clone()),
            ColumnarValue::Array(_) => {
                let what = if index == 0 {
                    "width"
                } else {
                    "time zone or origin"
                };
                exec_err!("{NAME}: the {what} differs from row to row, expected a constant")
            }
        };
        let options = (2..call.args.len()).map(constant);
        let options = options.collect::<Result<Vec<_>>>()?;
        let time = &call.args[1];
        let ty = time.data_type();
        let Some(buckets) = Buckets::new(NAME, &constant(0)?, &ty, &options)? else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&ty)?));
        };
        let step = nanos_of(args::unit_of(&ty)?).into();
        Ok(match time {
            ColumnarValue::Array(array) => {
                let begins = begins(&buckets, &args::times(array)?, step);
                ColumnarValue::Array(args::retyped(&begins, &ty)?)
            }
            ColumnarValue::Scalar(value) => {
                let begins = begins(&buckets, &args::times(&value.to_array()?)?, step);
                let begin = begins.is_valid(0).then(|| begins.value(0));
                ColumnarValue::Scalar(args::timestamp(begin, &ty)?)
            }
        })
    }

    /// If the bins need no time zone, the call is replaced by `date_bin`, the only function that the rules of the
    /// storage recognise.
    fn simplify(&self, mut call: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let constant = |expr: &Expr| match expr {
            Expr::Literal(value, _) => Some(value.clone()),
            _ => None,
        };
        let options = call[2..].iter().map(constant).collect::<Option<Vec<_>>>();
        let (Some(width), Some(options)) = (constant(&call[0]), options) else {
            return Ok(ExprSimplifyResult::Original(call));
        };
        let ty = info.get_data_type(&call[1])?;
        let buckets = Buckets::new(NAME, &width, &ty, &options)?;
        let Some((interval, origin)) = buckets.and_then(|buckets| buckets.as_date_bin()) else {
            return Ok(ExprSimplifyResult::Original(call));
        };
        let interval = lit(ScalarValue::IntervalMonthDayNano(Some(interval)));
        let mut bin = vec![interval, call.swap_remove(1)];
        if let (Some(origin), DataType::Timestamp(_, zone)) = (origin, ty) {
            bin.push(lit(ScalarValue::TimestampNanosecond(Some(origin), zone)));
        }
        Ok(ExprSimplifyResult::Simplified(date_bin().call(bin)))
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let is_constant =
            |input: &ExprProperties| input.sort_properties == SortProperties::Singleton;
        let mut others = inputs.iter().enumerate().filter(|(index, _)| *index != 1);
        Ok(match others.all(|(_, input)| is_constant(input)) {
            true => inputs[1].sort_properties,
            false => SortProperties::Unordered,
        })
    }
}

/// The starts of the bins that contain these times, all in steps of this many nanoseconds. A start outside the range of
/// times is null, as for `date_bin`.
fn begins(buckets: &Buckets, times: &Int64Array, step: i128) -> Int64Array {
    // Rows are mostly in order of time, and computing a bin in a time zone requires a search in the rules of the zone.
    let mut current: Option<(std::ops::Range<i128>, Option<i64>)> = None;
    let begin = |time: Option<i64>| {
        let nanos = i128::from(time?) * step;
        if let Some((bin, begin)) = &current
            && bin.contains(&nanos)
        {
            return *begin;
        }
        let begin = buckets.begin(nanos)?;
        let steps = i64::try_from(begin.div_euclid(step)).ok();
        current = buckets.next(begin).map(|next| (begin..next, steps));
        steps
    };
    times.iter().map(begin).collect()
}

/// The type to which a time zone or origin argument is converted.
fn option_type(function: &str, found: &DataType) -> Result<DataType> {
    match found {
        DataType::Timestamp(_, _) => Ok(found.clone()),
        DataType::Date32 | DataType::Date64 => Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        DataType::Null => Ok(DataType::Utf8),
        text if args::is_text(text) => Ok(DataType::Utf8),
        other => plan_err!("{function}: found a {other}, expected a time zone or an origin"),
    }
}
