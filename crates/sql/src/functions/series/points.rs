//! The rows of one group.

use crate::functions::args;
use crate::types::nanos_of;
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::utils::format_state_name;
use std::sync::Arc;

/// A value at a time. The time is in steps of the unit of its column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) time: i64,
    pub(super) value: f64,
}

/// Rows with a time and a value. The state is a list of values and a list of times.
#[derive(Debug)]
pub(super) struct Points {
    points: Vec<Point>,
    is_sorted: bool,
    time_type: DataType,
}

impl Points {
    pub(super) fn new(time_type: DataType) -> Self {
        Self {
            points: Vec::new(),
            is_sorted: true,
            time_type,
        }
    }

    /// Adds rows.
    pub(super) fn update(&mut self, values: &ArrayRef, times: &ArrayRef) -> Result<()> {
        let (values, times) = (args::numbers(values)?, args::times(times)?);
        for (value, time) in values.iter().zip(&times) {
            if let (Some(value), Some(time)) = (value, time)
                && !value.is_nan()
            {
                self.points.push(Point { time, value });
            }
        }
        self.is_sorted = false;
        Ok(())
    }

    /// Adds the rows of other states.
    pub(super) fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, times) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for row in (0..values.len()).filter(|&row| values.is_valid(row)) {
            self.update(&values.value(row), &times.value(row))?;
        }
        Ok(())
    }

    pub(super) fn state_fields(name: &str, time_type: &DataType) -> Vec<FieldRef> {
        let list = |part: &str, ty: &DataType| {
            let item = Field::new_list_field(ty.clone(), true);
            Arc::new(Field::new_list(format_state_name(name, part), item, true))
        };
        vec![list("values", &DataType::Float64), list("times", time_type)]
    }

    pub(super) fn state(&self) -> Result<Vec<ScalarValue>> {
        let values = Float64Array::from_iter_values(self.points.iter().map(|point| point.value));
        let times = Int64Array::from_iter_values(self.points.iter().map(|point| point.time));
        let times = args::retyped(&times, &self.time_type)?;
        Ok(vec![list_of(Arc::new(values)), list_of(times)])
    }

    /// The rows sorted by time; rows with equal times are sorted by value.
    pub(super) fn sorted(&mut self) -> &[Point] {
        if !self.is_sorted {
            let by_value = |a: &Point, b: &Point| a.value.total_cmp(&b.value);
            self.points
                .sort_unstable_by(|a, b| a.time.cmp(&b.time).then_with(|| by_value(a, b)));
            self.is_sorted = true;
        }
        &self.points
    }

    /// Length of a step of the times in seconds.
    pub(super) fn step_seconds(&self) -> Result<f64> {
        let nanos = nanos_of(args::unit_of(&self.time_type)?);
        Ok(nanos as f64 / args::NANOS_PER_SECOND as f64)
    }

    pub(super) fn time_type(&self) -> &DataType {
        &self.time_type
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.points.capacity() * size_of::<Point>()
    }
}

/// A list that contains these values.
pub(super) fn list_of(values: ArrayRef) -> ScalarValue {
    let item = Field::new_list_field(values.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list = ListArray::new(Arc::new(item), offsets, values, None);
    ScalarValue::List(Arc::new(list))
}
