//! Aggregates over the course of a value: over the rows of a group in order of time.
//!
//! ```text
//! points    Points      the rows of a group: collected, merged, sorted
//! figures   Figure      mean, integral, delta, increase and rate of sorted rows
//! lttb      Lttb        selects the rows that a chart needs
//! ```
//!
//! A row counts if it has a time, and a value that is neither null nor NaN. Rows may arrive in any order. Rows with
//! equal times are ordered by their values, so a result does not depend on the partitioning of the rows.

mod figures;
mod lttb;
mod points;

use super::args;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};
use figures::{Between, Figure};
use points::Points;
use std::sync::Arc;

/// The aggregates.
pub(super) fn functions() -> Vec<Arc<AggregateUDF>> {
    let of_course = [
        Kind::Mean,
        Kind::Integral,
        Kind::Delta,
        Kind::Increase,
        Kind::Rate,
    ];
    let of_course = of_course.map(|kind| Arc::new(AggregateUDF::from(OfCourse::new(kind))));
    let lttb = Arc::new(AggregateUDF::from(lttb::Lttb::default()));
    of_course.into_iter().chain([lttb]).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Mean,
    Integral,
    Delta,
    Increase,
    Rate,
}

/// An aggregate over values and times that returns a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfCourse {
    kind: Kind,
    signature: Signature,
}

impl OfCourse {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// Maximum number of arguments: value and time, then the method, then the unit.
    fn arguments_max(&self) -> usize {
        match self.kind {
            Kind::Mean => 3,
            Kind::Integral => 4,
            Kind::Delta | Kind::Increase | Kind::Rate => 2,
        }
    }

    fn figure(&self, args: &AccumulatorArgs) -> Result<Figure> {
        let text = |index: usize, name: &str| match args.exprs.get(index) {
            None => Ok(None),
            Some(expr) => args::constant(self.name(), name, expr).map(Some),
        };
        let between = match text(2, "method")?.as_ref().map(args::text) {
            None | Some(Some("locf")) => Between::Previous,
            Some(Some("linear")) => Between::Linear,
            Some(found) => {
                let found = found.unwrap_or("NULL");
                return plan_err!(
                    "{}: the method is '{found}', expected 'locf' or 'linear'",
                    self.name()
                );
            }
        };
        let unit_seconds = match text(3, "unit")?.as_ref().map(args::text) {
            None => 1.0,
            Some(unit) => unit_seconds(self.name(), unit.unwrap_or("NULL"))?,
        };
        Ok(match self.kind {
            Kind::Mean => Figure::Mean(between),
            Kind::Integral => Figure::Integral(between, unit_seconds),
            Kind::Delta => Figure::Delta,
            Kind::Increase => Figure::Increase,
            Kind::Rate => Figure::Rate,
        })
    }
}

/// Length of a unit of time in seconds.
fn unit_seconds(function: &str, unit: &str) -> Result<f64> {
    let name = unit.to_ascii_lowercase();
    Ok(match name.strip_suffix('s').unwrap_or(&name) {
        "microsecond" => 1e-6,
        "millisecond" => 1e-3,
        "second" => 1.0,
        "minute" => 60.0,
        "hour" => 3_600.0,
        "day" => 86_400.0,
        _ => {
            return plan_err!(
                "{function}: the unit is '{unit}', expected 'microsecond', 'millisecond', 'second', 'minute', 'hour' or 'day'"
            );
        }
    })
}

impl AggregateUDFImpl for OfCourse {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Mean => "time_weighted_avg",
            Kind::Integral => "integral",
            Kind::Delta => "delta",
            Kind::Increase => "increase",
            Kind::Rate => "rate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(self.name(), types.len(), (2, self.arguments_max()))?;
        let mut coerced = vec![
            args::number_type(self.name(), "value", &types[0])?,
            args::time_type(self.name(), &types[1])?,
        ];
        for option in &types[2..] {
            if !args::is_text(option) {
                return plan_err!("{}: found a {option}, expected text", self.name());
            }
            coerced.push(DataType::Utf8);
        }
        Ok(coerced)
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(Points::state_fields(
            args.name,
            args.input_fields[1].data_type(),
        ))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OfPoints {
            figure: self.figure(&args)?,
            points: Points::new(args.expr_fields[1].data_type().clone()),
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct OfPoints {
    figure: Figure,
    points: Points,
}

impl Accumulator for OfPoints {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        self.points.update(&arrays[0], &arrays[1])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.points.merge(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.points.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let step_seconds = self.points.step_seconds()?;
        let points = self.points.sorted();
        Ok(ScalarValue::Float64(self.figure.of(points, step_seconds)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.points.heap_bytes()
    }
}
