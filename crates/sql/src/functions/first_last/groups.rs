//! First or last rows of many groups, for values of a primitive type.

use super::end::End;
use crate::functions::args;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use std::sync::Arc;

pub(super) struct ExtremesOfGroups<T: ArrowPrimitiveType> {
    end: End,
    value_type: DataType,
    time_type: DataType,
    /// The time of the row found for each group; `None` until a row is found.
    times: Vec<Option<i64>>,
    values: Vec<Option<T::Native>>,
}

impl<T: ArrowPrimitiveType> ExtremesOfGroups<T> {
    pub(super) fn new(end: End, value_type: DataType, time_type: DataType) -> Self {
        Self {
            end,
            value_type,
            time_type,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    fn values(&mut self, emit_to: EmitTo) -> ArrayRef {
        let values = emit_to.take_needed(&mut self.values);
        let values = PrimitiveArray::<T>::from_iter(values);
        Arc::new(values.with_data_type(self.value_type.clone()))
    }
}

impl<T: ArrowPrimitiveType + Send> GroupsAccumulator for ExtremesOfGroups<T> {
    fn update_batch(
        &mut self,
        arrays: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_len: usize,
    ) -> Result<()> {
        self.times.resize(groups_len, None);
        self.values.resize(groups_len, None);
        let values = arrays[0].as_primitive::<T>();
        let times = args::times(&arrays[1])?;
        for (row, (&group, time)) in groups.iter().zip(times.iter()).enumerate() {
            let Some(time) = time else { continue };
            if filter.is_some_and(|filter| !passes(filter, row)) {
                continue;
            }
            if self.times[group].is_none_or(|found| self.end.replaces(time, found)) {
                self.times[group] = Some(time);
                self.values[group] = values.is_valid(row).then(|| values.value(row));
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_len: usize,
    ) -> Result<()> {
        self.update_batch(states, groups, None, groups_len)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        emit_to.take_needed(&mut self.times);
        Ok(self.values(emit_to))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let times = Int64Array::from(emit_to.take_needed(&mut self.times));
        let times = args::retyped(&times, &self.time_type)?;
        Ok(vec![self.values(emit_to), times])
    }

    fn convert_to_state(
        &self,
        arrays: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let Some(filter) = filter else {
            return Ok(arrays.to_vec());
        };
        // A row that does not match the filter becomes a group without rows.
        let times = args::retyped(&arrays[1], &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        let passing = NullBuffer::from_iter((0..filter.len()).map(|row| passes(filter, row)));
        let nulls = NullBuffer::union(times.nulls(), Some(&passing));
        let times = Int64Array::new(times.values().clone(), nulls);
        Ok(vec![
            Arc::clone(&arrays[0]),
            args::retyped(&times, &self.time_type)?,
        ])
    }

    fn size(&self) -> usize {
        self.times.capacity() * size_of::<Option<i64>>()
            + self.values.capacity() * size_of::<Option<T::Native>>()
    }
}

fn passes(filter: &BooleanArray, row: usize) -> bool {
    filter.is_valid(row) && filter.value(row)
}
