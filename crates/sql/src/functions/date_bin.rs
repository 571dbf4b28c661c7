//! `date_bin(width, time [, origin])`: DataFusion's function with other argument types.
//!
//! The signature of the original converts times with a zone to nanoseconds, which changes the type of the result and
//! hides the column from rules. This function keeps the unit and the zone of the times, and replaces the original under
//! the same name.

use super::args;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::Result;
use datafusion::functions::datetime::date_bin::DateBinFunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

const NAME: &str = "date_bin";

/// The function.
pub(super) fn date_bin() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(DateBin::default())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin {
    original: DateBinFunc,
    signature: Signature,
}

impl Default for DateBin {
    fn default() -> Self {
        Self {
            original: DateBinFunc::new(),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        args::check_count(NAME, types.len(), (2, 3))?;
        let width = match args::width_type(NAME, &types[0])? {
            width @ DataType::Interval(_) => width,
            _ => DataType::Interval(IntervalUnit::MonthDayNano),
        };
        let time = match &types[1] {
            time @ (DataType::Time32(_) | DataType::Time64(_)) => time.clone(),
            other => args::time_type(NAME, other)?,
        };
        let origin = match &time {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
            other => other.clone(),
        };
        let mut coerced = vec![width, time, origin];
        coerced.truncate(types.len());
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.original.return_type(types)
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.original.invoke_with_args(call)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.original.output_ordering(inputs)
    }
}
