//! `histogram(value, min, max, buckets)`: counts the values in buckets of equal width.

use super::args;
use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

const NAME: &str = "histogram";
/// Maximum number of buckets: a group takes 8 bytes for each of them.
const BUCKETS_MAX: i64 = 1_000_000;

/// The aggregate `histogram`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Histogram {
    signature: Signature,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for Histogram {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(NAME, types.len(), (4, 4))?;
        if !types[3].is_integer() {
            return plan_err!(
                "{NAME}: the number of buckets is a {}, expected an integer",
                types[3]
            );
        }
        Ok(vec![
            args::number_type(NAME, "value", &types[0])?,
            args::number_type(NAME, "min", &types[1])?,
            args::number_type(NAME, "max", &types[2])?,
            DataType::Int64,
        ])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Int64, true))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(DataType::Int64, true);
        let name = format_state_name(args.name, "counts");
        Ok(vec![Arc::new(Field::new_list(name, item, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let min = args::constant_number(NAME, "min", &args.exprs[1])?;
        let max = args::constant_number(NAME, "max", &args.exprs[2])?;
        if min >= max {
            return plan_err!("{NAME}: min is {min} and max is {max}, expected min < max");
        }
        let buckets = args::constant(NAME, "number of buckets", &args.exprs[3])?;
        let buckets = match buckets {
            ScalarValue::Int64(Some(buckets @ 1..=BUCKETS_MAX)) => buckets as usize,
            other => {
                return plan_err!(
                    "{NAME}: the number of buckets is {other}, expected 1 to {BUCKETS_MAX}"
                );
            }
        };
        Ok(Box::new(Counts {
            min,
            max,
            buckets,
            counts: Vec::new(),
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The counts of a group: below `min`, in each bucket, and at or above `max`. Empty until the group has a value.
#[derive(Debug)]
struct Counts {
    min: f64,
    max: f64,
    buckets: usize,
    counts: Vec<i64>,
}

impl Counts {
    fn position(&self, value: f64) -> usize {
        if value < self.min {
            return 0;
        }
        if value >= self.max {
            return self.buckets + 1;
        }
        // Each operand is halved, so that a wide range does not overflow.
        let part = (value / 2.0 - self.min / 2.0) / (self.max / 2.0 - self.min / 2.0);
        let bucket = (part * self.buckets as f64) as usize;
        // For a value just below `max`, rounding may give the number of buckets as the index.
        1 + bucket.min(self.buckets - 1)
    }

    fn list(&self) -> ScalarValue {
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        if self.counts.is_empty() {
            return ScalarValue::List(Arc::new(ListArray::new_null(item, 1)));
        }
        let offsets = OffsetBuffer::from_lengths([self.counts.len()]);
        let counts = Arc::new(Int64Array::from(self.counts.clone()));
        ScalarValue::List(Arc::new(ListArray::new(item, offsets, counts, None)))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        for value in args::numbers(&arrays[0])?.iter().flatten() {
            if value.is_nan() {
                continue;
            }
            self.counts.resize(self.buckets + 2, 0);
            let position = self.position(value);
            self.counts[position] += 1;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for counts in states[0].as_list::<i32>().iter().flatten() {
            self.counts.resize(self.buckets + 2, 0);
            let counts = counts.as_primitive::<Int64Type>();
            for (own, other) in self.counts.iter_mut().zip(counts.values()) {
                *own += other;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.list())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<i64>()
    }
}
