//! Describes a partial aggregate by its tags, time bins and value columns.

use crate::aggregate::keys::GroupKey;
use crate::metric::layout::{Layout, Role};
use crate::metric::scan::SeriesScan;
use crate::metric::trace::Trace;
use crate::types::column_type;
use arrow::datatypes::DataType;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use std::sync::Arc;

/// A function that can be computed from the statistics of the rows in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// Number of rows; with a tag, number of rows that have this tag.
    Rows(Option<usize>),
    FirstTime,
    LastTime,
    /// Functions of a value column.
    Count(usize),
    Sum(usize),
    Mean(usize),
    /// Count, mean, and sum of the squares of the differences from it.
    Deviation(usize),
    Min(usize),
    Max(usize),
    /// The value of the first or the last row, and its time. The flag is true if the state has a third field, which
    /// contains whether a row exists.
    First(usize, bool),
    Last(usize, bool),
}

impl Function {
    /// The value column that the function needs.
    pub(crate) fn column(self) -> Option<usize> {
        match self {
            Self::Rows(_) | Self::FirstTime | Self::LastTime => None,
            Self::Count(column)
            | Self::Sum(column)
            | Self::Mean(column)
            | Self::Deviation(column)
            | Self::Min(column)
            | Self::Max(column)
            | Self::First(column, _)
            | Self::Last(column, _) => Some(column),
        }
    }
}

/// A partial aggregate that can be computed from the trees.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) scan: SeriesScan,
    pub(crate) groups: Vec<GroupKey>,
    pub(crate) functions: Vec<Function>,
}

impl Request {
    /// The request for a partial aggregate; `None` if its rows must be read.
    pub(crate) fn of(partial: &AggregateExec) -> Option<Self> {
        let reader = Reader(Trace::to_scan(partial.input())?);
        let scan = reader.0.scan;
        if scan.limit().is_some() || !scan.wanted.ranges.is_empty() {
            return None;
        }
        let group_by = partial.group_expr();
        if group_by.has_grouping_set() {
            return None;
        }
        let groups = group_by.expr().iter();
        let groups = groups.map(|(expr, _)| GroupKey::of(&reader.0, expr));
        let groups: Vec<GroupKey> = groups.collect::<Option<_>>()?;
        let mut bins = groups.iter().filter_map(GroupKey::bin);
        if let Some(bin) = bins.next()
            && bins.any(|other| other != bin)
        {
            return None;
        }
        if partial.filter_expr().iter().any(Option::is_some) {
            return None;
        }
        let functions = partial
            .aggr_expr()
            .iter()
            .map(|function| reader.function(function));
        let functions: Vec<Function> = functions.collect::<Option<_>>()?;
        let is_counting_rows = functions
            .iter()
            .any(|function| matches!(function, Function::Rows(_)));
        // A joined table has a row for each time that occurs in any of the joined series.
        if scan.layout.is_joined() && is_counting_rows {
            return None;
        }
        Some(Self {
            scan: scan.clone(),
            groups,
            functions,
        })
    }
}

/// Interprets expressions as columns of the table.
struct Reader<'p>(Trace<'p>);

impl Reader<'_> {
    fn layout(&self) -> &Layout {
        &self.0.scan.layout
    }

    fn role(&self, expr: &Arc<dyn PhysicalExpr>, depth: usize) -> Option<Role> {
        self.0.role(expr, depth)
    }

    fn function(&self, function: &AggregateFunctionExpr) -> Option<Function> {
        let arguments = function.expressions();
        let name = function.fun().name();
        if function.is_distinct() || function.ignore_nulls() {
            return None;
        }
        if matches!(name, "first_value" | "last_value") {
            return self.ordered(function, &arguments);
        }
        if !function.order_bys().is_empty() {
            return None;
        }
        match (name, &arguments[..]) {
            ("count", []) => Some(Function::Rows(None)),
            ("count", [argument]) => {
                if let Some(value) = self.0.literal(argument, 0) {
                    return (!value.is_null()).then_some(Function::Rows(None));
                }
                match self.role(argument, 0)? {
                    Role::Time => Some(Function::Rows(None)),
                    Role::Tag(tag) => Some(Function::Rows(Some(tag))),
                    Role::Value(column) => self.known(column).map(Function::Count),
                }
            }
            ("min", [argument]) if self.role(argument, 0) == Some(Role::Time) => {
                Some(Function::FirstTime)
            }
            ("max", [argument]) if self.role(argument, 0) == Some(Role::Time) => {
                Some(Function::LastTime)
            }
            ("min", [argument]) => self.plain_number(argument).map(Function::Min),
            ("max", [argument]) => self.plain_number(argument).map(Function::Max),
            ("sum", [argument]) => self.number(argument).map(Function::Sum),
            ("avg", [argument]) => self.number(argument).map(Function::Mean),
            ("stddev" | "stddev_pop" | "var" | "var_pop", [argument]) => {
                self.number(argument).map(Function::Deviation)
            }
            ("first", [value, time]) if self.role(time, 0) == Some(Role::Time) => self
                .plain_number(value)
                .map(|column| Function::First(column, false)),
            ("last", [value, time]) if self.role(time, 0) == Some(Role::Time) => self
                .plain_number(value)
                .map(|column| Function::Last(column, false)),
            _ => None,
        }
    }

    /// Interprets `first_value(x ORDER BY time)` and similar calls.
    fn ordered(
        &self,
        function: &AggregateFunctionExpr,
        arguments: &[Arc<dyn PhysicalExpr>],
    ) -> Option<Function> {
        let ([argument], [order]) = (arguments, function.order_bys()) else {
            return None;
        };
        if self.role(&order.expr, 0)? != Role::Time {
            return None;
        }
        let column = self.plain_number(argument)?;
        let is_first = (function.fun().name() == "first_value") != order.options.descending;
        Some(match is_first {
            true => Function::First(column, true),
            false => Function::Last(column, true),
        })
    }

    /// A value column that has the type of the table in all series.
    fn known(&self, column: usize) -> Option<usize> {
        let layout = self.layout();
        let field = layout.schema.field(1 + layout.tags.len() + column);
        let is_same = |member: &usize| {
            let member = &layout.members[*member];
            member.columns[column].is_none_or(|(part, number)| {
                let own = &member.parts[part].info.schema.columns[number];
                column_type(own.ty) == *field.data_type()
            })
        };
        self.0
            .scan
            .wanted
            .members
            .iter()
            .all(is_same)
            .then_some(column)
    }

    /// A column of numbers or booleans.
    fn plain_number(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let Role::Value(column) = self.role(expr, 0)? else {
            return None;
        };
        let layout = self.layout();
        let field = layout.schema.field(1 + layout.tags.len() + column);
        let ty = field.data_type();
        (ty.is_numeric() || *ty == DataType::Boolean).then_some(())?;
        self.known(column)
    }

    /// A column of numbers, possibly converted to floats.
    fn number(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let (expr, depth) = self.0.traced(expr, 0);
        let Some(cast) = expr.downcast_ref::<CastExpr>() else {
            return self.plain_number_at(expr, depth);
        };
        if cast.cast_type() != &DataType::Float64 {
            return None;
        }
        self.plain_number_at(cast.expr(), depth)
    }

    fn plain_number_at(&self, expr: &Arc<dyn PhysicalExpr>, depth: usize) -> Option<usize> {
        let Role::Value(column) = self.role(expr, depth)? else {
            return None;
        };
        let layout = self.layout();
        let field = layout.schema.field(1 + layout.tags.len() + column);
        (field.data_type().is_numeric()).then_some(())?;
        self.known(column)
    }
}
