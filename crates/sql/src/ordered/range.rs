//! Converts conditions on the key to a range of keys.

use crate::ordered::codec::Part;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use std::ops::Bound;

/// The name of the key column.
pub(crate) const KEY: &str = "key";

/// A range of keys in stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
}

impl KeyBounds {
    pub(crate) const ALL: Self = Self {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    };

    /// The range of keys for which a condition is true; `None` if the condition depends on other columns, or is not a
    /// single range.
    pub(crate) fn of(filter: &Expr, part: Part) -> Option<Self> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match is_key(left) {
                true => Self::compared(*op, key(right, part)?),
                false if is_key(right) => Self::compared(op.swap()?, key(left, part)?),
                false => None,
            },
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) if is_key(expr) => Some(Self {
                low: Bound::Included(key(low, part)?),
                high: Bound::Included(key(high, part)?),
            }),
            _ => None,
        }
    }

    fn compared(op: Operator, key: Vec<u8>) -> Option<Self> {
        let (low, high) = match op {
            Operator::Eq => (Bound::Included(key.clone()), Bound::Included(key)),
            Operator::Gt => (Bound::Excluded(key), Bound::Unbounded),
            Operator::GtEq => (Bound::Included(key), Bound::Unbounded),
            Operator::Lt => (Bound::Unbounded, Bound::Excluded(key)),
            Operator::LtEq => (Bound::Unbounded, Bound::Included(key)),
            _ => return None,
        };
        Some(Self { low, high })
    }

    /// The intersection of both ranges.
    pub(crate) fn and(self, other: Self) -> Self {
        // If the two bounds have equal keys, the excluding bound is narrower.
        let narrow = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Unbounded => None,
            Bound::Included(key) => Some((key.clone(), false)),
            Bound::Excluded(key) => Some((key.clone(), true)),
        };
        let low = match (narrow(&self.low), narrow(&other.low)) {
            (Some(one), Some(two)) if two > one => other.low,
            (None, Some(_)) => other.low,
            _ => self.low,
        };
        let high = match (narrow(&self.high), narrow(&other.high)) {
            (Some(one), Some(two)) if (&two.0, !two.1) < (&one.0, !one.1) => other.high,
            (None, Some(_)) => other.high,
            _ => self.high,
        };
        Self { low, high }
    }

    /// Whether a key is within the upper bound.
    pub(crate) fn is_within(&self, key: &[u8]) -> bool {
        match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
        }
    }
}

fn is_key(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(column) if column.name == KEY)
}

fn key(expr: &Expr, part: Part) -> Option<Vec<u8>> {
    match expr {
        Expr::Literal(value, _) => part.key(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_intersected() {
        let bound = |op, key: u8| KeyBounds::compared(op, vec![key]).unwrap();
        let both = bound(Operator::GtEq, 1)
            .and(bound(Operator::Gt, 1))
            .and(bound(Operator::LtEq, 9));
        assert_eq!(
            both,
            KeyBounds {
                low: Bound::Excluded(vec![1]),
                high: Bound::Included(vec![9])
            }
        );
        let both = both.and(bound(Operator::Lt, 9)).and(KeyBounds::ALL);
        assert_eq!(both.high, Bound::Excluded(vec![9]));
        assert!(both.is_within(&[8]) && !both.is_within(&[9]));
        assert_eq!(both.clone().and(bound(Operator::LtEq, 9)), both);
    }
}
