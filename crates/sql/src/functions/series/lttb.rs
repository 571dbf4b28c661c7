//! `lttb(time, value, n)`: selects the rows that preserve the shape of a chart, with the method of the largest triangle
//! in three buckets (Steinarsson, "Downsampling Time Series for Visual Representation", 2013).

use super::points::{Point, Points, list_of};
use crate::functions::args;
use arrow::array::{ArrayRef, Float64Array, Int64Array, StructArray};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

const NAME: &str = "lttb";

/// The aggregate `lttb`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Lttb {
    signature: Signature,
}

impl Default for Lttb {
    fn default() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for Lttb {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(NAME, types.len(), (3, 3))?;
        if !types[2].is_integer() {
            return plan_err!(
                "{NAME}: the number of rows is a {}, expected an integer",
                types[2]
            );
        }
        Ok(vec![
            args::time_type(NAME, &types[0])?,
            args::number_type(NAME, "value", &types[1])?,
            DataType::Int64,
        ])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let item = DataType::Struct(fields(&types[0]));
        Ok(DataType::List(Arc::new(Field::new_list_field(item, true))))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(Points::state_fields(
            args.name,
            args.input_fields[0].data_type(),
        ))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let rows = args::constant(NAME, "number of rows", &args.exprs[2])?;
        let rows_max = match rows {
            ScalarValue::Int64(Some(rows @ 2..)) => rows as usize,
            other => {
                return plan_err!("{NAME}: the number of rows is {other}, expected at least 2");
            }
        };
        Ok(Box::new(Downsampled {
            rows_max,
            points: Points::new(args.expr_fields[0].data_type().clone()),
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn fields(time: &DataType) -> Fields {
    Fields::from(vec![
        Field::new("time", time.clone(), true),
        Field::new("value", DataType::Float64, true),
    ])
}

#[derive(Debug)]
struct Downsampled {
    rows_max: usize,
    points: Points,
}

impl Accumulator for Downsampled {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        self.points.update(&arrays[1], &arrays[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.points.merge(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.points.state()
    }

    /// The selected rows as a list; null if there are no rows.
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let ty = self.points.time_type().clone();
        let rows = self.points.sorted();
        let kept = downsample(rows, self.rows_max);
        let times = Int64Array::from_iter_values(kept.iter().map(|&row| rows[row].time));
        let values = Float64Array::from_iter_values(kept.iter().map(|&row| rows[row].value));
        let columns: Vec<ArrayRef> = vec![args::retyped(&times, &ty)?, Arc::new(values)];
        let structs = StructArray::try_new(fields(&ty), columns, None)?;
        if kept.is_empty() {
            let item = Field::new_list_field(DataType::Struct(fields(&ty)), true);
            return ScalarValue::try_from(&DataType::List(Arc::new(item)));
        }
        Ok(list_of(Arc::new(structs)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.heap_bytes()
    }
}

/// Positions of at most `rows_max` rows, where `rows_max` is at least two: the first row, the last row, and one row of
/// each bucket between them.
fn downsample(points: &[Point], rows_max: usize) -> Vec<usize> {
    if points.len() <= rows_max {
        return (0..points.len()).collect();
    }
    let buckets = rows_max - 2;
    let inner = points.len() - 2;
    // The range of rows of a bucket. The buckets have equal numbers of rows; the last row is a bucket of its own.
    let bucket = |number: usize| {
        let limit = |number: usize| 1 + (number as u128 * inner as u128 / buckets as u128) as usize;
        if number < buckets {
            limit(number)..limit(number + 1)
        } else {
            points.len() - 1..points.len()
        }
    };
    let mut kept = Vec::with_capacity(rows_max);
    kept.push(0);
    let mut previous = 0;
    for number in 0..buckets {
        let next = mean(&points[bucket(number + 1)], points[previous].time);
        let rows = bucket(number);
        let mut best = (rows.start, f64::NEG_INFINITY);
        for row in rows {
            let area = triangle(points[previous], points[row], next);
            if area > best.1 {
                best = (row, area);
            }
        }
        previous = best.0;
        kept.push(previous);
    }
    kept.push(points.len() - 1);
    kept
}

/// Mean distance from a time, and mean value.
fn mean(points: &[Point], origin: i64) -> (f64, f64) {
    let count = points.len() as f64;
    let times = points.iter().map(|point| distance(origin, point.time));
    let values = points.iter().map(|point| point.value);
    (times.sum::<f64>() / count, values.sum::<f64>() / count)
}

/// Twice the area of the triangle formed by two rows and a third point, whose time is relative to the first row.
fn triangle(a: Point, b: Point, (c_distance, c_value): (f64, f64)) -> f64 {
    let b_distance = distance(a.time, b.time);
    (c_distance * (b.value - a.value) - b_distance * (c_value - a.value)).abs()
}

fn distance(from: i64, to: i64) -> f64 {
    (i128::from(to) - i128::from(from)) as f64
}
