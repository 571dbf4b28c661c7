//! The logical node that adds rows for missing bins to the rows of an aggregation.

use super::bounds::{Bound, Bounds};
use arrow::datatypes::Field;
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The source of a column's values in rows for missing bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fill {
    /// The value of the group, which is the same in all of its rows.
    Key,
    /// The start of the bin.
    Time,
    /// Null.
    Null,
    /// The last preceding value that is not null.
    Locf,
    /// A straight line between the nearest values that are not null.
    Linear,
}

/// The node. It has the columns of its input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GapFill {
    pub(super) input: LogicalPlan,
    /// One for each column; exactly one of them is [`Fill::Time`].
    pub(super) fills: Vec<Fill>,
    /// The width and the time zone of the bins.
    pub(super) bins: Vec<Expr>,
    pub(super) bounds: Bounds,
    schema: DFSchemaRef,
}

impl GapFill {
    pub(super) fn new(
        input: LogicalPlan,
        fills: Vec<Fill>,
        bins: Vec<Expr>,
        bounds: Bounds,
    ) -> Result<Self> {
        let of_input = input.schema();
        if of_input.fields().len() != fills.len() {
            return internal_err!("{} columns, {} fills", of_input.fields().len(), fills.len());
        }
        let fields = of_input.iter().zip(&fills).map(|((table, field), fill)| {
            let is_nullable = field.is_nullable() || !matches!(fill, Fill::Key | Fill::Time);
            let field = Field::clone(field).with_nullable(is_nullable);
            (table.cloned(), Arc::new(field))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), of_input.metadata().clone())?;
        Ok(Self {
            fills,
            bins,
            bounds,
            schema: Arc::new(schema),
            input,
        })
    }

    /// The position of the column of times.
    pub(super) fn time(&self) -> usize {
        let time = self.fills.iter().position(|fill| *fill == Fill::Time);
        time.unwrap_or(0)
    }
}

/// Expressions have no order, so nodes have none either.
impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// The constants are included, so that the optimizer evaluates `now()` in them.
    fn expressions(&self) -> Vec<Expr> {
        let bounds = self.bounds.starts.iter().chain(&self.bounds.finishes);
        let bounds = bounds.map(|bound| bound.time.clone());
        self.bins.iter().cloned().chain(bounds).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (_, time) = self.schema.qualified_field(self.time());
        write!(f, "GapFill: {}", time.name())?;
        for bound in &self.bounds.starts {
            let operator = if bound.is_inclusive { ">=" } else { ">" };
            write!(f, ", {operator} {}", bound.time)?;
        }
        for bound in &self.bounds.finishes {
            let operator = if bound.is_inclusive { "<=" } else { "<" };
            write!(f, ", {operator} {}", bound.time)?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let count = self.bins.len() + self.bounds.starts.len() + self.bounds.finishes.len();
        let (Ok([input]), true) = (<[LogicalPlan; 1]>::try_from(inputs), exprs.len() == count)
        else {
            return internal_err!("GapFill has one input and {count} expressions");
        };
        let mut exprs = exprs.into_iter();
        let bins = exprs.by_ref().take(self.bins.len()).collect();
        let mut replaced = |bounds: &[Bound]| {
            let pairs = bounds.iter().zip(exprs.by_ref());
            let bound = |(bound, time): (&Bound, Expr)| Bound {
                time,
                is_inclusive: bound.is_inclusive,
            };
            pairs.map(bound).collect::<Vec<_>>()
        };
        let bounds = Bounds {
            starts: replaced(&self.bounds.starts),
            finishes: replaced(&self.bounds.finishes),
        };
        Self::new(input, self.fills.clone(), bins, bounds)
    }
}
