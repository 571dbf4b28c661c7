//! The functions as declared to SQL. They have names and types only; the rule replaces their calls.

use crate::functions::args;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// A function of this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Bucket,
    Locf,
    Interpolate,
}

/// The functions.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let kinds = [Kind::Bucket, Kind::Locf, Kind::Interpolate];
    let function = |kind| Arc::new(ScalarUDF::from(Marker::new(kind)));
    kinds.map(function).to_vec()
}

/// The kind and the arguments of a call of one of the functions.
pub(super) fn call(expr: &Expr) -> Option<(Kind, &[Expr])> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let marker = call.func.inner().downcast_ref::<Marker>()?;
    Some((marker.kind, &call.args))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Marker {
    kind: Kind,
    signature: Signature,
}

impl Marker {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bucket => "time_bucket_gapfill",
            Self::Locf => "locf",
            Self::Interpolate => "interpolate",
        }
    }
}

impl ScalarUDFImpl for Marker {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match self.kind {
            Kind::Bucket => bucket_types(types),
            Kind::Locf => {
                args::check_count(name, types.len(), (1, 1))?;
                Ok(types.to_vec())
            }
            Kind::Interpolate => {
                args::check_count(name, types.len(), (1, 1))?;
                Ok(vec![args::number_type(name, "value", &types[0])?])
            }
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let of = usize::from(self.kind == Kind::Bucket);
        Ok(types[of].clone())
    }

    fn invoke_with_args(&self, _call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        misplaced(self.kind)
    }
}

/// Arguments are width and time; a time zone follows as third argument, or start and finish follow as third and fourth,
/// or all three follow.
fn bucket_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let name = Kind::Bucket.name();
    args::check_count(name, types.len(), (2, 5))?;
    let mut coerced = vec![
        args::width_type(name, &types[0])?,
        args::time_type(name, &types[1])?,
    ];
    let rest = &types[2..];
    let (zone, limits) = rest.split_at(rest.len() % 2);
    for zone in zone {
        if !args::is_text(zone) && !zone.is_null() {
            return plan_err!("{name}: the time zone is a {zone}, expected text");
        }
        coerced.push(DataType::Utf8);
    }
    for limit in limits {
        coerced.push(match (args::time_type(name, limit)?, &coerced[1]) {
            // A text without an offset is interpreted in the zone of the column.
            (_, DataType::Timestamp(_, zone)) if !matches!(limit, DataType::Timestamp(_, _)) => {
                DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())
            }
            (ty, _) => ty,
        });
    }
    Ok(coerced)
}

/// The error for a call in a place where it cannot run.
pub(super) fn misplaced<T>(kind: Kind) -> Result<T> {
    match kind {
        Kind::Bucket => plan_err!(
            "time_bucket_gapfill must be one of the expressions of GROUP BY, without grouping sets"
        ),
        Kind::Locf | Kind::Interpolate => plan_err!(
            "{} must be in the select list or in HAVING of a query that has time_bucket_gapfill in GROUP BY",
            kind.name()
        ),
    }
}
