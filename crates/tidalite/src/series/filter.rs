//! Value filters, which select the rows whose value in a column lies in a range.

use crate::types::column::{Column, ColumnType};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::value::units_at_or_below;
use std::ops::{Bound, RangeBounds};
use tidalite_series::ValueRange;

/// A filter: a range of values of one column; created by [`Query::filter`](crate::Query::filter).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueFilter {
    column: usize,
    low: Bound<f64>,
    high: Bound<f64>,
}

impl ValueFilter {
    pub(crate) fn new(column: usize, values: impl RangeBounds<f64>) -> Self {
        Self {
            column,
            low: values.start_bound().cloned(),
            high: values.end_bound().cloned(),
        }
    }

    /// Converts the range of values to a range of the column's stored words.
    pub(crate) fn range(&self, columns: &[Column]) -> Result<ValueRange> {
        let column = self.column;
        let Some(own) = columns.get(column) else {
            let problem = format!(
                "there are {} columns, filtered is number {column}",
                columns.len()
            );
            return Err(Error::from(Cause::Schema { problem }));
        };
        if own.ty.is_text() {
            return Err(own.problem("texts have no range of values"));
        }
        let words = own.words();
        Ok(match self.words(own.ty) {
            Some((low, high)) => ValueRange::new(column, words, low, high),
            None => ValueRange::empty(column, words),
        })
    }

    /// The words of the smallest and the largest value of the type in the range; `None` if the range contains no value.
    fn words(&self, ty: ColumnType) -> Option<(u64, u64)> {
        if matches!(ty, ColumnType::F64 | ColumnType::F32) {
            let low = match self.low {
                Bound::Included(x) => x,
                Bound::Excluded(x) => x.next_up(),
                Bound::Unbounded => f64::NEG_INFINITY,
            };
            let high = match self.high {
                Bound::Included(x) => x,
                Bound::Excluded(x) => x.next_down(),
                Bound::Unbounded => f64::INFINITY,
            };
            // Excluding infinity leaves no value, but the next float beyond infinity is infinity again, so this case is
            // tested.
            let beyond = matches!(self.low, Bound::Excluded(f64::INFINITY))
                || matches!(self.high, Bound::Excluded(f64::NEG_INFINITY));
            return (low <= high && !beyond).then(|| (low.to_bits(), high.to_bits()));
        }
        let (min, max) = match ty {
            ColumnType::I64 | ColumnType::Decimal(_) => {
                (i128::from(i64::MIN), i128::from(i64::MAX))
            }
            _ => (0, i128::from(u64::MAX)),
        };
        let nan = |bound: &Bound<f64>| matches!(bound, Bound::Included(x) | Bound::Excluded(x) if x.is_nan());
        if nan(&self.low) || nan(&self.high) {
            return None;
        }
        if let ColumnType::Decimal(scale) = ty {
            let at = |x| units_at_or_below(x, scale);
            let low = match self.low {
                Bound::Included(x) => at(x).0 + i128::from(!at(x).1),
                Bound::Excluded(x) => at(x).0 + 1,
                Bound::Unbounded => min,
            };
            let high = match self.high {
                Bound::Included(x) => at(x).0,
                Bound::Excluded(x) => at(x).0 - i128::from(at(x).1),
                Bound::Unbounded => max,
            };
            let (low, high) = (low.max(min), high.min(max));
            return (low <= high).then_some((low as u64, high as u64));
        }
        // The conversion of a float to `i128` is exact, or saturates far outside the range of both integer types.
        let low = match self.low {
            Bound::Included(x) => x.ceil() as i128,
            Bound::Excluded(x) => (x.floor() as i128).saturating_add(1),
            Bound::Unbounded => min,
        };
        let high = match self.high {
            Bound::Included(x) => x.floor() as i128,
            Bound::Excluded(x) => (x.ceil() as i128).saturating_sub(1),
            Bound::Unbounded => max,
        };
        let (low, high) = (low.max(min), high.min(max));
        // In two's complement the low 64 bits of the number are the word of either integer type.
        (low <= high).then_some((low as u64, high as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_bounds_of_integers_are_exact() {
        let words = |values: (Bound<f64>, Bound<f64>), ty| ValueFilter::new(0, values).words(ty);
        use Bound::{Excluded, Included, Unbounded};
        let signed = |low: i64, high: i64| Some((low as u64, high as u64));
        assert_eq!(
            words((Included(-1.5), Included(1.5)), ColumnType::I64),
            signed(-1, 1)
        );
        assert_eq!(
            words((Excluded(1.0), Excluded(3.0)), ColumnType::I64),
            signed(2, 2)
        );
        assert_eq!(
            words((Excluded(1.5), Unbounded), ColumnType::I64),
            signed(2, i64::MAX)
        );
        assert_eq!(words((Excluded(1.0), Excluded(2.0)), ColumnType::I64), None);
        let price = ColumnType::Decimal(2);
        assert_eq!(
            words((Included(0.29), Included(0.57)), price),
            signed(29, 57)
        );
        assert_eq!(
            words((Excluded(0.29), Excluded(0.57)), price),
            signed(30, 56)
        );
        assert_eq!(
            words((Included(-0.295), Excluded(0.575)), price),
            signed(-29, 57)
        );
        assert_eq!(words((Excluded(0.001), Excluded(0.009)), price), None);
        assert_eq!(
            words((Unbounded, Included(1e300)), price),
            signed(i64::MIN, i64::MAX)
        );
        assert_eq!(
            words((Included(-5.0), Included(-1.0)), ColumnType::U64),
            None
        );
        assert_eq!(
            words((Included(-5.0), Included(2.0)), ColumnType::U64),
            Some((0, 2))
        );
        assert_eq!(words((Included(1e300), Unbounded), ColumnType::U64), None);
        let all = (Included(f64::NEG_INFINITY), Included(f64::INFINITY));
        assert_eq!(words(all, ColumnType::I64), signed(i64::MIN, i64::MAX));
        assert_eq!(
            words((Included(f64::NAN), Unbounded), ColumnType::I64),
            None
        );
        assert_eq!(
            words((Included(f64::NAN), Unbounded), ColumnType::F64),
            None
        );
        assert_eq!(
            words((Excluded(f64::INFINITY), Unbounded), ColumnType::F64),
            None
        );
        let one_up = (1.0f64.next_up().to_bits(), f64::INFINITY.to_bits());
        assert_eq!(
            words((Excluded(1.0), Unbounded), ColumnType::F64),
            Some(one_up)
        );
    }
}
