//! The logical node: joins each left row with its right row, or with aggregates of right rows.

use super::asof::AsOf;
use super::keyed::{Side, step_of};
use super::window::Window;
use arrow::datatypes::{DataType, Field};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, internal_err, plan_err};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Extension, LogicalPlan, UserDefinedLogicalNodeCore,
};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The right part of a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    /// The columns of one right row.
    AsOf(AsOf),
    /// Aggregates of the right rows in a window.
    Window(Window, Vec<Expr>),
}

/// The node. It has the columns of the left input, followed by the columns of the right input or the aggregates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeJoin {
    pub(super) left: LogicalPlan,
    pub(super) right: LogicalPlan,
    /// The pairs of left and right columns that must be equal in matching rows.
    pub(super) by: Vec<(Column, Column)>,
    /// The time columns of the left and the right input.
    pub(super) times: (Column, Column),
    pub(super) rule: Rule,
    schema: DFSchemaRef,
}

impl TimeJoin {
    /// Creates a node, and checks the types of its columns.
    pub(super) fn plan(
        (left, right): (LogicalPlan, LogicalPlan),
        mut by: Vec<(Column, Column)>,
        times: (Column, Column),
        rule: Rule,
    ) -> Result<LogicalPlan> {
        // The inputs are sorted by these columns in this order. Series are stored in the order of their columns.
        by.sort_by_key(|(column, _)| left.schema().index_of_column(column).ok());
        for (one, other) in &by {
            let types = (type_of(&left, one)?, type_of(&right, other)?);
            if value_type(&types.0) != value_type(&types.1) {
                return plan_err!(
                    "{one} is {} and {other} is {}: cast one of them in a subquery",
                    types.0,
                    types.1
                );
            }
            if !RowConverter::supports_fields(&[SortField::new(types.0.clone())]) {
                return plan_err!("{one} is {}, which has no order", types.0);
            }
        }
        let types = (type_of(&left, &times.0)?, type_of(&right, &times.1)?);
        for (column, ty) in [(&times.0, &types.0), (&times.1, &types.1)] {
            if step_of(ty).is_none() {
                return plan_err!("{column} is {ty}, expected times or integers");
            }
        }
        if types.0.is_integer() != types.1.is_integer() {
            return plan_err!("{} is {}, but {} is {}", times.0, types.0, times.1, types.1);
        }
        let node = Arc::new(Self::new((left, right), by, times, rule)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn new(
        (left, right): (LogicalPlan, LogicalPlan),
        by: Vec<(Column, Column)>,
        times: (Column, Column),
        rule: Rule,
    ) -> Result<Self> {
        let nullable = |field: &Field| Arc::new(field.clone().with_nullable(true));
        let mut fields: Vec<_> = left
            .schema()
            .iter()
            .map(|(table, field)| (table.cloned(), Arc::clone(field)))
            .collect();
        match &rule {
            Rule::AsOf(_) => fields.extend(
                right
                    .schema()
                    .iter()
                    .map(|(table, field)| (table.cloned(), nullable(field))),
            ),
            Rule::Window(_, aggregates) => {
                for aggregate in aggregates {
                    let (table, field) = aggregate.to_field(right.schema())?;
                    fields.push((table, nullable(&field)));
                }
            }
        }
        let schema = DFSchema::new_with_metadata(fields, left.schema().metadata().clone())?;
        Ok(Self {
            left,
            right,
            by,
            times,
            rule,
            schema: Arc::new(schema),
        })
    }

    /// The same join of other inputs.
    pub(super) fn with_inputs(&self, left: LogicalPlan, right: LogicalPlan) -> Result<Self> {
        Self::new(
            (left, right),
            self.by.clone(),
            self.times.clone(),
            self.rule.clone(),
        )
    }

    /// The columns of each input that the join compares.
    pub(super) fn sides(&self) -> Result<(Side, Side)> {
        let side = |plan: &LogicalPlan, by: Vec<&Column>, time: &Column| {
            let index = |column: &Column| plan.schema().index_of_column(column);
            Ok::<_, datafusion::common::DataFusionError>(Side {
                by: by.into_iter().map(index).collect::<Result<_>>()?,
                time: index(time)?,
            })
        };
        let (left, right) = self.by.iter().map(|(left, right)| (left, right)).unzip();
        Ok((
            side(&self.left, left, &self.times.0)?,
            side(&self.right, right, &self.times.1)?,
        ))
    }
}

/// The type of a column.
pub(super) fn type_of(plan: &LogicalPlan, column: &Column) -> Result<DataType> {
    let at = plan.schema().index_of_column(column)?;
    Ok(plan.schema().field(at).data_type().clone())
}

/// The type of the values of a column, even if a dictionary holds them.
pub(super) fn value_type(ty: &DataType) -> &DataType {
    match ty {
        DataType::Dictionary(_, value) => value_type(value),
        DataType::LargeUtf8 | DataType::Utf8View => &DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => &DataType::Binary,
        other => other,
    }
}

/// Expressions have no order, so nodes have none either.
impl PartialOrd for TimeJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for TimeJoin {
    fn name(&self) -> &str {
        "TimeJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        match &self.rule {
            Rule::AsOf(_) => Vec::new(),
            Rule::Window(_, aggregates) => aggregates.clone(),
        }
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "TimeJoin: {}, {}", self.times.0, self.times.1)?;
        for (left, right) in &self.by {
            write!(f, ", {left} = {right}")?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return internal_err!("TimeJoin has two inputs");
        };
        let rule = match &self.rule {
            Rule::AsOf(rule) => Rule::AsOf(rule.clone()),
            Rule::Window(window, _) => Rule::Window(window.clone(), exprs),
        };
        Self::new((left, right), self.by.clone(), self.times.clone(), rule)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let (left, right) = self.sides().ok()?;
        let columns = self.left.schema().fields().len();
        let own = output_columns
            .iter()
            .copied()
            .filter(|&column| column < columns);
        let other = output_columns
            .iter()
            .filter_map(|column| column.checked_sub(columns));
        let needed = |columns: Vec<usize>, side: Side| {
            let mut columns = [columns, side.by, vec![side.time]].concat();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let other = match self.rule {
            Rule::AsOf(_) => other.collect(),
            // The optimizer adds the columns used in `expressions`.
            Rule::Window(..) => Vec::new(),
        };
        Some(vec![needed(own.collect(), left), needed(other, right)])
    }
}
