//! `first(value, time)` and `last(value, time)`: value of the row with the least or the greatest time.
//!
//! The state of both functions consists of the value and its time. A null time means that no row was found; a value may
//! be null and is then the result.

mod end;
mod groups;
mod one;

use super::args;
use arrow::array::downcast_primitive;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use end::End;
use groups::ExtremesOfGroups;
use one::ExtremeOfGroup;
use std::sync::Arc;

/// The functions `first` and `last`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FirstLast {
    end: End,
    signature: Signature,
}

impl FirstLast {
    pub(super) fn first() -> Self {
        Self::new(End::First)
    }

    pub(super) fn last() -> Self {
        Self::new(End::Last)
    }

    fn new(end: End) -> Self {
        Self {
            end,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for FirstLast {
    fn name(&self) -> &str {
        match self.end {
            End::First => "first",
            End::Last => "last",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(self.name(), types.len(), (2, 2))?;
        let time = args::time_type(self.name(), &types[1])?;
        Ok(vec![types[0].clone(), time])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name: &str, ty: &DataType| {
            Arc::new(Field::new(
                format_state_name(args.name, name),
                ty.clone(),
                true,
            ))
        };
        Ok(vec![
            field("value", args.input_fields[0].data_type()),
            field("time", args.input_fields[1].data_type()),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let ty = args.expr_fields[1].data_type().clone();
        Ok(Box::new(ExtremeOfGroup::new(
            self.end,
            args.return_type(),
            ty,
        )?))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        args.return_type().is_primitive()
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let time = args.expr_fields[1].data_type().clone();
        let value = args.return_type();
        macro_rules! of {
            ($t:ty) => {
                Ok(Box::new(ExtremesOfGroups::<$t>::new(
                    self.end,
                    value.clone(),
                    time,
                )))
            };
        }
        downcast_primitive! {
            value => (of),
            other => not_impl_err!("{} of a {other} for many groups", self.name())
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
