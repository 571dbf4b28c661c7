//! The rows of a batch with their keys and times, in a form that the join can compare.
//!
//! Keys are encoded as bytes that sort like the values, so that dictionary values of one input equal plain texts of the
//! other.

use crate::types::nanos_of;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, SortOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, Schema, TimeUnit};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use std::cmp::Ordering;
use std::sync::Arc;

/// The sort order of both inputs, for each of their key columns and for their times.
pub(super) const ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: true,
};

/// The columns of an input that the join compares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Side {
    pub(super) by: Vec<usize>,
    pub(super) time: usize,
}

/// The number of nanoseconds in a step of a column of times, or 1 if the times are plain integers; `None` for other
/// types.
pub(super) fn step_of(ty: &DataType) -> Option<i64> {
    match ty {
        DataType::Timestamp(unit, _) => Some(nanos_of(*unit)),
        DataType::Date32 => Some(86_400 * nanos_of(TimeUnit::Second)),
        _ if ty.is_integer() => Some(1),
        _ => None,
    }
}

/// Encodes the batches of one input.
pub(super) struct Encoder {
    side: Side,
    converter: Option<RowConverter>,
    step: i128,
    /// For each aggregate, its arguments.
    arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
}

/// An encoded batch.
pub(super) struct Keyed {
    pub(super) batch: RecordBatch,
    /// For each aggregate, the values of its arguments.
    pub(super) values: Vec<Vec<ArrayRef>>,
    keys: Option<Rows>,
    /// Marks the rows whose keys contain no null.
    valid: Option<NullBuffer>,
    times: Int64Array,
    step: i128,
}

/// A position in the order of the rows: before all rows with this key and time, or after them.
pub(super) struct Target<'k> {
    pub(super) key: &'k [u8],
    pub(super) time: i128,
    pub(super) is_behind: bool,
}

impl Encoder {
    pub(super) fn new(
        schema: &Schema,
        side: &Side,
        arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    ) -> Result<Self> {
        let fields = side.by.iter().map(|&column| {
            SortField::new_with_options(schema.field(column).data_type().clone(), ORDER)
        });
        let fields: Vec<SortField> = fields.collect();
        let converter = match fields.is_empty() {
            true => None,
            false => Some(RowConverter::new(fields)?),
        };
        let step = step_of(schema.field(side.time).data_type()).unwrap_or(1);
        Ok(Self {
            side: side.clone(),
            converter,
            step: step.into(),
            arguments,
        })
    }

    pub(super) fn encode(&self, batch: RecordBatch) -> Result<Keyed> {
        let by: Vec<ArrayRef> = self
            .side
            .by
            .iter()
            .map(|&at| Arc::clone(batch.column(at)))
            .collect();
        let valid = by.iter().fold(None, |valid: Option<NullBuffer>, column| {
            NullBuffer::union(valid.as_ref(), column.logical_nulls().as_ref())
        });
        let keys = match &self.converter {
            Some(converter) => Some(converter.convert_columns(&by)?),
            None => None,
        };
        let time = batch.column(self.side.time);
        let time = match time.data_type() {
            DataType::Date32 => cast(time, &DataType::Int32)?,
            _ => Arc::clone(time),
        };
        let strict = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let times = cast_with_options(&time, &DataType::Int64, &strict)?;
        let rows = batch.num_rows();
        let evaluate = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&batch)?.into_array(rows);
        let values = self
            .arguments
            .iter()
            .map(|exprs| exprs.iter().map(evaluate).collect());
        Ok(Keyed {
            values: values.collect::<Result<_>>()?,
            keys,
            valid,
            times: times.as_primitive::<Int64Type>().clone(),
            step: self.step,
            batch,
        })
    }
}

impl Keyed {
    pub(super) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Size in memory.
    pub(super) fn bytes(&self) -> usize {
        let arrays = self
            .batch
            .columns()
            .iter()
            .chain(self.values.iter().flatten());
        arrays.map(bytes_of).sum::<usize>() + self.keys.as_ref().map_or(0, Rows::size)
    }

    pub(super) fn key(&self, row: usize) -> &[u8] {
        self.keys.as_ref().map_or(&[], |keys| keys.row(row).data())
    }

    /// The time of a row; `None` if it is null.
    pub(super) fn time(&self, row: usize) -> Option<i128> {
        let is_valid = self.times.is_valid(row);
        is_valid.then(|| i128::from(self.times.value(row)) * self.step)
    }

    /// The time of a row that can be joined, which requires that neither the time nor a part of the key is null;
    /// otherwise `None`.
    pub(super) fn joined_time(&self, row: usize) -> Option<i128> {
        let is_valid = self.valid.as_ref().is_none_or(|valid| valid.is_valid(row));
        self.time(row).filter(|_| is_valid)
    }

    /// Whether a row comes before a target position.
    fn precedes(&self, row: usize, target: &Target<'_>) -> bool {
        let times = || self.time(row).cmp(&Some(target.time));
        match self.key(row).cmp(target.key).then_with(times) {
            Ordering::Less => true,
            Ordering::Equal => target.is_behind,
            Ordering::Greater => false,
        }
    }

    /// The first row at or after `from` that does not come before the target; the number of rows if no such row exists.
    /// The cost is logarithmic in the distance.
    pub(super) fn seek(&self, from: usize, target: &Target<'_>) -> usize {
        // Every row below `low` comes before the target, and no row from `high` on does.
        let (mut low, mut high, mut step) = (from, self.len(), 1);
        while low + step <= high {
            let row = low + step - 1;
            if !self.precedes(row, target) {
                high = row;
                break;
            }
            low = row + 1;
            step *= 2;
        }
        while low < high {
            let middle = low.midpoint(high);
            match self.precedes(middle, target) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Size of the values of an array, which may be a slice of an array that other batches share.
fn bytes_of(array: &ArrayRef) -> usize {
    let bytes = array.to_data().get_slice_memory_size();
    bytes.unwrap_or_else(|_| array.get_array_memory_size())
}
