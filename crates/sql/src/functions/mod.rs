//! Time series functions for a DataFusion session. They are independent of the storage.
//!
//! ```text
//! time_bucket     time_bucket(width, time, ..)
//! date_bin        date_bin(width, time, ..) that keeps the unit of the times
//! canonical       rewrites other expressions for time bins to date_bin
//! first_last      first(value, time), last(value, time)
//! series          aggregates over the course of a value: time_weighted_avg, integral, delta, increase, rate, lttb
//! histogram       histogram(value, min, max, buckets)
//! percentile      approx_percentile(value, p)
//! gapfill         time_bucket_gapfill, locf, interpolate
//! bucket          time bins, also in a time zone
//! args            arguments of the functions
//! ```

mod args;
pub(crate) mod bucket;
mod canonical;
mod date_bin;
mod first_last;
mod gapfill;
mod histogram;
mod percentile;
mod series;
mod time_bucket;

#[cfg(test)]
mod tests;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_planner::ExtensionPlanner;
use std::sync::Arc;

/// The scalar functions. One of them replaces the built-in `date_bin`.
pub(crate) fn scalar() -> Vec<Arc<ScalarUDF>> {
    let mut functions = vec![time_bucket::time_bucket(), date_bin::date_bin()];
    functions.extend(gapfill::functions());
    functions
}

/// The aggregates.
pub(crate) fn aggregate() -> Vec<Arc<AggregateUDF>> {
    let mut functions = vec![
        Arc::new(AggregateUDF::from(first_last::FirstLast::first())),
        Arc::new(AggregateUDF::from(first_last::FirstLast::last())),
        Arc::new(AggregateUDF::from(histogram::Histogram::default())),
        Arc::new(AggregateUDF::from(percentile::ApproxPercentile::default())),
    ];
    functions.extend(series::functions());
    functions
}

/// Analyzer rules that must run after the built-in ones.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(gapfill::GapFillRule),
        Arc::new(canonical::CanonicalBins),
    ]
}

/// Planners for the logical nodes that the rules insert.
pub(crate) fn extension_planners() -> Vec<Arc<dyn ExtensionPlanner + Send + Sync>> {
    vec![Arc::new(gapfill::GapFillPlanner)]
}
