//! Aggregates from the statistics in the trees of series.
//!
//! A query with `GROUP BY` is planned as two aggregates: a partial one over the scan, and a final one that merges the
//! partial states of the groups. If the groups are tags and time bins, and the trees have the required statistics, the
//! partial aggregate and the scan are replaced by a node that returns the same states without reading the rows.
//!
//! ```text
//! keys      keys of groups: tags and time bins
//! request   describes a partial aggregate, if the trees have the statistics for it
//! states    converts statistics of a series to states of the functions
//! bins      statistics of the bins of a series
//! node      the node that reads the statistics
//! rule      replaces aggregates in a plan
//! ```

pub(crate) mod bins;
pub(crate) mod keys;
pub(crate) mod node;
pub(crate) mod request;
pub(crate) mod rule;
pub(crate) mod states;
