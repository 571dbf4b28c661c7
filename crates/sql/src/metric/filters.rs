//! Conditions of a query that a scan of series evaluates itself: time intervals, conditions on tags, value ranges.

use crate::error::Result;
use crate::metric::layout::{Layout, Role};
use crate::types::{constant_nanos, nanos_of};
use arrow::array::{Array, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, TableProviderFilterPushDown};
use std::ops::Bound;

/// The way in which a condition is evaluated.
enum Condition {
    /// The rows whose time lies in the interval, in units of the table, including both ends. The result is exact, or
    /// else a superset.
    Times { from: i64, to: i64, is_exact: bool },
    /// A condition on tags alone.
    Tags,
    /// The rows whose value in a column lies in this range, and possibly others.
    Values(ValueRange),
}

/// A range of values of a column. The column is given by its number among the value columns of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueRange {
    pub(crate) column: usize,
    pub(crate) low: Bound<f64>,
    pub(crate) high: Bound<f64>,
}

/// The rows that a scan reads.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// First and last time, in units of the table.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The indexes of the members, in ascending order.
    pub(crate) members: Vec<usize>,
    /// Rows outside these ranges may be skipped.
    pub(crate) ranges: Vec<ValueRange>,
}

impl Layout {
    /// Returns how far the scan evaluates a condition by itself.
    pub(crate) fn pushdown(&self, filter: &Expr) -> TableProviderFilterPushDown {
        match self.condition(filter) {
            Some(Condition::Times { is_exact: true, .. } | Condition::Tags) => {
                TableProviderFilterPushDown::Exact
            }
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        }
    }

    /// The rows that match all filters, as far as the filters can be evaluated here.
    pub(crate) fn wanted(&self, session: &dyn Session, filters: &[Expr]) -> Result<Wanted> {
        let mut wanted = Wanted {
            from: i64::MIN,
            to: i64::MAX,
            members: (0..self.members.len()).collect(),
            ranges: Vec::new(),
        };
        let mut on_tags = Vec::new();
        for filter in filters.iter().flat_map(split_conjunction) {
            match self.condition(filter) {
                Some(Condition::Times { from, to, .. }) => {
                    wanted.from = wanted.from.max(from);
                    wanted.to = wanted.to.min(to);
                }
                Some(Condition::Tags) => on_tags.push(filter),
                Some(Condition::Values(range)) => wanted.ranges.push(range),
                None => {}
            }
        }
        if !on_tags.is_empty() {
            wanted.members = self.members_with(session, &on_tags)?;
        }
        Ok(wanted)
    }

    /// The members whose tags match all conditions.
    fn members_with(&self, session: &dyn Session, filters: &[&Expr]) -> Result<Vec<usize>> {
        let rows = self.tag_rows()?;
        let schema = DFSchema::try_from(rows.schema().as_ref().clone())?;
        let mut matching = vec![true; rows.num_rows()];
        for &filter in filters {
            let physical = session.create_physical_expr(filter.clone(), &schema)?;
            let found = physical.evaluate(&rows)?.into_array(rows.num_rows())?;
            let found = arrow::compute::cast(&found, &DataType::Boolean)?;
            let Some(found) = found.as_any().downcast_ref::<BooleanArray>() else {
                continue;
            };
            for (row, matches) in matching.iter_mut().enumerate() {
                *matches &= found.is_valid(row) && found.value(row);
            }
        }
        let members = matching.into_iter().enumerate();
        Ok(members
            .filter_map(|(at, matches)| matches.then_some(at))
            .collect())
    }

    fn role_of(&self, expr: &Expr) -> Option<Role> {
        let Expr::Column(column) = expr else {
            return None;
        };
        Some(self.role(self.column(&column.name)?))
    }

    fn condition(&self, filter: &Expr) -> Option<Condition> {
        if self.is_on_tags(filter) {
            return Some(Condition::Tags);
        }
        if let Some((from, to, is_exact)) = self.times(filter) {
            return Some(Condition::Times { from, to, is_exact });
        }
        self.value_range(filter).map(Condition::Values)
    }

    /// Whether a condition depends only on tags.
    fn is_on_tags(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !columns.is_empty()
            && columns.iter().all(|column| {
                let number = self.column(&column.name);
                number.is_some_and(|number| matches!(self.role(number), Role::Tag(_)))
            })
            && !filter.is_volatile()
            && !has_subquery(filter)
    }

    /// The interval that contains all times that a condition may select. The flag is true if the condition selects
    /// exactly this interval.
    fn times(&self, filter: &Expr) -> Option<(i64, i64, bool)> {
        match filter {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => match (self.times(left), self.times(right)) {
                (Some(one), Some(other)) => {
                    Some((one.0.max(other.0), one.1.min(other.1), one.2 && other.2))
                }
                (Some((from, to, _)), None) | (None, Some((from, to, _))) => {
                    Some((from, to, false))
                }
                (None, None) => None,
            },
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Or,
                right,
            }) => {
                let (one, other) = (self.times(left)?, self.times(right)?);
                Some((one.0.min(other.0), one.1.max(other.1), false))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let (Some(factor), Some(time)) = (self.time_factor(left), nanos(right)) {
                    return interval(*op, time, factor);
                }
                let (factor, time) = (self.time_factor(right)?, nanos(left)?);
                interval(op.swap()?, time, factor)
            }
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                let factor = self.time_factor(expr)?;
                let low = interval(Operator::GtEq, nanos(low)?, factor)?;
                let high = interval(Operator::LtEq, nanos(high)?, factor)?;
                Some((low.0, high.1, true))
            }
            Expr::InList(list) if !list.negated && !list.list.is_empty() => {
                let factor = self.time_factor(&list.expr)?;
                let mut hull: Option<(i64, i64)> = None;
                for item in &list.list {
                    let (from, to, _) = interval(Operator::Eq, nanos(item)?, factor)?;
                    let (low, high) = hull.unwrap_or((from, to));
                    hull = Some((low.min(from), high.max(to)));
                }
                hull.map(|(from, to)| (from, to, list.list.len() == 1))
            }
            _ => None,
        }
    }

    /// Nanoseconds in a unit of the table, if the expression is the time column or a conversion of it to a finer unit.
    fn time_factor(&self, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Cast(cast) => {
                let DataType::Timestamp(unit, Some(_)) = cast.field.data_type() else {
                    return None;
                };
                (self.role_of(&cast.expr)? == Role::Time && nanos_of(*unit) <= nanos_of(self.unit))
                    .then(|| nanos_of(self.unit))
            }
            _ => (self.role_of(expr)? == Role::Time).then(|| nanos_of(self.unit)),
        }
    }

    /// The range of values of a column that a comparison with a number may select.
    fn value_range(&self, filter: &Expr) -> Option<ValueRange> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let (Some(column), Some(number)) = (self.number_column(left), number(right)) {
                    return range(column, *op, number);
                }
                range(self.number_column(right)?, op.swap()?, number(left)?)
            }
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                let column = self.number_column(expr)?;
                let low = range(column, Operator::GtEq, number(low)?)?;
                let high = range(column, Operator::LtEq, number(high)?)?;
                Some(ValueRange {
                    high: high.high,
                    ..low
                })
            }
            _ => None,
        }
    }

    /// The numeric value column that an expression refers to. A conversion to floats is allowed, because it preserves
    /// the order.
    fn number_column(&self, expr: &Expr) -> Option<usize> {
        let expr = match expr {
            Expr::Cast(cast) if cast.field.data_type() == &DataType::Float64 => &cast.expr,
            other => other,
        };
        let Role::Value(column) = self.role_of(expr)? else {
            return None;
        };
        let field = self.schema.field(1 + self.tags.len() + column);
        let ty = field.data_type();
        (ty.is_numeric()).then_some(column)
    }
}

fn has_subquery(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
        ))
    })
    .unwrap_or(true)
}

/// Nanoseconds since 1970 of a constant time with a zone.
fn nanos(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(value, _) => match value.data_type() {
            DataType::Timestamp(_, Some(_)) => constant_nanos(value),
            _ => None,
        },
        _ => None,
    }
}

/// The interval of times, in units of `factor` nanoseconds, for which `time op moment` is true.
fn interval(op: Operator, moment: i128, factor: i64) -> Option<(i64, i64, bool)> {
    let factor = i128::from(factor);
    let floor = moment.div_euclid(factor);
    let is_whole = moment.rem_euclid(factor) == 0;
    let ceiling = floor + i128::from(!is_whole);
    let (all_from, all_to) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let (from, to) = match op {
        Operator::Gt => (floor + 1, all_to),
        Operator::GtEq => (ceiling, all_to),
        Operator::Lt => (all_from, ceiling - 1),
        Operator::LtEq => (all_from, floor),
        Operator::Eq => (ceiling, floor),
        _ => return None,
    };
    // An interval outside the range of the unit contains no time.
    if from > all_to || to < all_from || from > to {
        return Some((1, 0, true));
    }
    Some((from.max(all_from) as i64, to.min(all_to) as i64, true))
}

/// A constant number as a float, and whether the float is exactly that number.
fn number(expr: &Expr) -> Option<(f64, bool)> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    if !value.data_type().is_numeric() || value.is_null() {
        return None;
    }
    let float = value.cast_to(&DataType::Float64).ok()?;
    let ScalarValue::Float64(Some(float)) = float else {
        return None;
    };
    let is_exact = match value {
        ScalarValue::Float64(_) | ScalarValue::Float32(_) => true,
        ScalarValue::Decimal128(..) | ScalarValue::Decimal256(..) => false,
        _ => float.abs() < (1_u64 << 53) as f64,
    };
    float.is_finite().then_some((float, is_exact))
}

/// The range of values for which `value op number` may be true. If the number is not exactly a float, the range is
/// widened.
fn range(column: usize, op: Operator, (number, is_exact): (f64, bool)) -> Option<ValueRange> {
    // The ends are included, because the database treats the two zeros as one value, but comparisons of Arrow do not.
    let low = Bound::Included(if is_exact { number } else { number.next_down() });
    let high = Bound::Included(if is_exact { number } else { number.next_up() });
    let (low, high) = match op {
        Operator::Gt | Operator::GtEq => (low, Bound::Unbounded),
        Operator::Lt | Operator::LtEq => (Bound::Unbounded, high),
        Operator::Eq => (low, high),
        _ => return None,
    };
    Some(ValueRange { column, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_times_between_two_units_round_inwards() {
        let second = 1_000_000_000;
        let moment = 2 * i128::from(second) + 5;
        let all = |op| interval(op, moment, second).unwrap();
        assert_eq!(all(Operator::Gt).0, 3);
        assert_eq!(all(Operator::GtEq).0, 3);
        assert_eq!(all(Operator::Lt).1, 2);
        assert_eq!(all(Operator::LtEq).1, 2);
        assert_eq!(all(Operator::Eq), (1, 0, true));
        let before = -1;
        assert_eq!(interval(Operator::GtEq, before, second).unwrap().0, 0);
        assert_eq!(interval(Operator::LtEq, before, second).unwrap().1, -1);
        assert_eq!(interval(Operator::Eq, 0, second), Some((0, 0, true)));
    }
}
