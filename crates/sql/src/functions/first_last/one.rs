//! First or last row of one group, with a value of any type.

use super::end::End;
use crate::functions::args;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

#[derive(Debug)]
pub(super) struct ExtremeOfGroup {
    end: End,
    value: ScalarValue,
    time: Option<i64>,
    time_type: DataType,
}

impl ExtremeOfGroup {
    pub(super) fn new(end: End, value: &DataType, time_type: DataType) -> Result<Self> {
        Ok(Self {
            end,
            value: ScalarValue::try_from(value)?,
            time: None,
            time_type,
        })
    }
}

impl Accumulator for ExtremeOfGroup {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let times = args::times(&arrays[1])?;
        let mut found = None;
        for (row, time) in times.iter().enumerate() {
            let Some(time) = time else { continue };
            if self.time.is_none_or(|found| self.end.replaces(time, found)) {
                self.time = Some(time);
                found = Some(row);
            }
        }
        if let Some(row) = found {
            self.value = ScalarValue::try_from_array(&arrays[0], row)?;
            // Without a copy, the value would keep its whole batch in memory.
            self.value.compact();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let time = args::timestamp(self.time, &self.time_type)?;
        Ok(vec![self.value.clone(), time])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() - size_of_val(&self.value)
    }
}
