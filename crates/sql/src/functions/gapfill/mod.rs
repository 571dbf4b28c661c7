//! Filling of gaps: `time_bucket_gapfill` in GROUP BY, with `locf` and `interpolate` in the select list.
//!
//! ```text
//! calls       the functions as declared to SQL; the rule replaces their calls
//! rule        finds the calls in a plan and inserts the node
//! bounds      the range to fill, from arguments and from conditions in WHERE
//! node        GapFill       the logical node, above the aggregation
//! planner     evaluates the constants of the node
//! exec        GapFillExec   reads the rows of each group
//! fill        Filled        the rows of one group, together with the missing rows
//! ```

mod bounds;
mod calls;
mod exec;
mod fill;
mod node;
mod planner;
mod rule;

pub(super) use calls::functions;
pub(super) use planner::GapFillPlanner;
pub(super) use rule::GapFillRule;
