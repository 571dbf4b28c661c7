//! The keys of groups: tags and time bins.

use crate::functions::bucket::Buckets;
use crate::metric::layout::Role;
use crate::metric::trace::Trace;
use crate::types::{constant_nanos, interval_nanos, nanos_of, time_type};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr};
use datafusion::physical_plan::PhysicalExpr;
use std::fmt;
use std::sync::Arc;

/// A column by which rows are grouped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GroupKey {
    Tag(usize),
    /// The start of a time bin, in the type of the expression.
    Bin(Bin),
    /// The start of a time bin in seconds since 1970, as a float.
    BinSeconds(Bin),
    /// The start of a time bin in whole seconds since 1970.
    BinWholeSeconds(Bin),
}

/// Time bins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bin {
    /// Bins of equal width.
    Even {
        width_ns: i64,
        /// The start of any one bin, in nanoseconds since 1970.
        origin_ns: i64,
    },
    /// Bins of months, or in a time zone.
    Calendar(Arc<Buckets>),
}

impl fmt::Display for Bin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even { width_ns, .. } => write!(f, "bin({width_ns} ns)"),
            Self::Calendar(buckets) => write!(f, "bin({buckets})"),
        }
    }
}

impl GroupKey {
    /// The key for an expression of GROUP BY; `None` if the expression is neither a tag nor a time bin.
    pub(crate) fn of(trace: &Trace<'_>, expr: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (expr, depth) = trace.traced(expr, 0);
        if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
            return match epoch(trace, call, depth) {
                Some(bin) => {
                    let (bin, depth) = trace.traced(bin, depth);
                    Bin::of(trace, bin.downcast_ref()?, depth).map(Self::BinSeconds)
                }
                None => Bin::of(trace, call, depth).map(Self::Bin),
            };
        }
        if let Some(product) = expr.downcast_ref::<BinaryExpr>() {
            return whole_seconds(trace, product, depth).map(Self::BinWholeSeconds);
        }
        match trace.role(expr, depth)? {
            Role::Tag(tag) => Some(Self::Tag(tag)),
            _ => None,
        }
    }

    /// The bins of the key, if the key is a time bin.
    pub(crate) fn bin(&self) -> Option<&Bin> {
        match self {
            Self::Tag(_) => None,
            Self::Bin(bin) | Self::BinSeconds(bin) | Self::BinWholeSeconds(bin) => Some(bin),
        }
    }
}

impl Bin {
    /// The bins of a call of `date_bin` or `time_bucket` with constant arguments.
    fn of(trace: &Trace<'_>, call: &ScalarFunctionExpr, depth: usize) -> Option<Self> {
        let [width, time, options @ ..] = call.args() else {
            return None;
        };
        let ty = type_of_times(trace, time, depth)?;
        let width = trace.literal(width, depth)?;
        let options = options.iter();
        let options = options.map(|option| trace.literal(option, depth).cloned());
        let options: Vec<ScalarValue> = options.collect::<Option<_>>()?;
        let bin = match call.fun().name() {
            "date_bin" => Self::dates(width, &options)?,
            "time_bucket" => Self::buckets(width, &ty, &options)?,
            _ => return None,
        };
        bin.fits(trace).then_some(bin)
    }

    /// The bins of `date_bin`. They follow UTC in every zone, and one of them begins in 1970 unless the call has
    /// another origin.
    fn dates(width: &ScalarValue, options: &[ScalarValue]) -> Option<Self> {
        let origin_ns = match options {
            [] => 0,
            [origin] => i64::try_from(constant_nanos(origin)?).ok()?,
            _ => return None,
        };
        match interval_nanos(width) {
            Some(width_ns) => Some(Self::Even {
                width_ns: i64::try_from(width_ns).ok().filter(|&width| width > 0)?,
                origin_ns,
            }),
            None => {
                let origin = ScalarValue::TimestampNanosecond(Some(origin_ns), None);
                Self::buckets(width, &time_type(TimeUnit::Nanosecond), &[origin])
            }
        }
    }

    fn buckets(width: &ScalarValue, ty: &DataType, options: &[ScalarValue]) -> Option<Self> {
        // If an argument is wrong, the function itself reports the error when it is called.
        let buckets = Buckets::new("time_bucket", width, ty, options).ok()??;
        Some(Self::Calendar(Arc::new(buckets)))
    }

    /// Whether the bins begin at whole steps of all wanted series, and at whole units of the table.
    fn fits(&self, trace: &Trace<'_>) -> bool {
        let fits = |step_ns: i64| match self {
            Self::Even {
                width_ns,
                origin_ns,
            } => width_ns % step_ns == 0 && origin_ns % step_ns == 0,
            Self::Calendar(buckets) => buckets.are_multiples_of(step_ns),
        };
        let layout = &trace.scan.layout;
        let members = trace.scan.wanted.members.iter();
        let mut parts = members.flat_map(|&member| &layout.members[member].parts);
        fits(nanos_of(layout.unit)) && parts.all(|part| fits(part.info.schema.unit.nanos()))
    }
}

/// The argument of `extract(epoch FROM ..)`.
fn epoch<'c>(
    trace: &Trace<'_>,
    call: &'c ScalarFunctionExpr,
    depth: usize,
) -> Option<&'c Arc<dyn PhysicalExpr>> {
    let ("date_part", [part, time]) = (call.fun().name(), call.args()) else {
        return None;
    };
    let ScalarValue::Utf8(Some(part)) = trace.literal(part, depth)? else {
        return None;
    };
    part.eq_ignore_ascii_case("epoch").then_some(time)
}

/// The type of an expression that is the time of the rows, either as stored or converted with `AT TIME ZONE` and the
/// like, which changes the zone or the unit to a finer one.
fn type_of_times(
    trace: &Trace<'_>,
    expr: &Arc<dyn PhysicalExpr>,
    depth: usize,
) -> Option<DataType> {
    let own = trace.scan.layout.unit;
    let (expr, depth) = trace.traced(expr, depth);
    let (time, ty) = match expr.downcast_ref::<CastExpr>() {
        Some(cast) => (cast.expr(), cast.cast_type().clone()),
        None => (expr, time_type(own)),
    };
    let DataType::Timestamp(unit, _) = ty else {
        return None;
    };
    let is_exact = nanos_of(unit) <= nanos_of(own);
    (is_exact && trace.role(time, depth)? == Role::Time).then_some(ty)
}

/// The bins of `(extract(epoch FROM time) / n)::bigint * n`. The conversion rounds towards zero, so the values are bins
/// only for times since 1970.
fn whole_seconds(trace: &Trace<'_>, product: &BinaryExpr, depth: usize) -> Option<Bin> {
    if trace.scan.wanted.from < 0 || *product.op() != Operator::Multiply {
        return None;
    }
    let seconds = |expr: &Arc<dyn PhysicalExpr>| match trace.literal(expr, depth)? {
        ScalarValue::Int64(Some(seconds)) if *seconds > 0 => Some(*seconds),
        _ => None,
    };
    let (quotient, seconds) = match seconds(product.right()) {
        Some(seconds) => (product.left(), seconds),
        None => (product.right(), seconds(product.left())?),
    };
    let (quotient, depth) = trace.traced(quotient, depth);
    let cast = quotient.downcast_ref::<CastExpr>()?;
    if *cast.cast_type() != DataType::Int64 {
        return None;
    }
    let (quotient, depth) = trace.traced(cast.expr(), depth);
    let quotient = quotient.downcast_ref::<BinaryExpr>()?;
    let divisor = trace.literal(quotient.right(), depth)?;
    let is_same = *divisor == ScalarValue::Float64(Some(seconds as f64));
    if *quotient.op() != Operator::Divide || !is_same {
        return None;
    }
    let (call, depth) = trace.traced(quotient.left(), depth);
    let time = epoch(trace, call.downcast_ref()?, depth)?;
    let (time, depth) = trace.traced(time, depth);
    if trace.role(time, depth)? != Role::Time {
        return None;
    }
    let bin = Bin::Even {
        width_ns: seconds.checked_mul(1_000_000_000)?,
        origin_ns: 0,
    };
    bin.fits(trace).then_some(bin)
}
