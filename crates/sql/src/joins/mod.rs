//! Joins on time: `asof_join`, `window_join` and ASOF JOIN. They are independent of the storage.
//!
//! ```text
//! SQL text   syntax      rewrites statements so that the planner recognises every table and every ASOF JOIN
//!            distance    lengths of time in arguments
//!            arguments   the arguments of the functions
//!            relation    plans the functions and ASOF JOIN as nodes
//! plan       node        TimeJoin, the logical node
//!            pushdown    pushes conditions below the node
//!            planner     creates the operator for the node
//! run        keyed       the rows of a batch, with their keys and times
//!            reader      reads both inputs from beginning to end
//!            asof        joins each left row with one right row
//!            window      joins each left row with aggregates of right rows
//!            exec        TimeJoinExec, the operator
//! ```

mod arguments;
mod asof;
mod distance;
mod exec;
mod keyed;
mod node;
mod planner;
mod pushdown;
mod reader;
mod relation;
mod syntax;
mod window;

#[cfg(test)]
mod tests;

pub(crate) use planner::TimeJoinPlanner;
pub(crate) use pushdown::PushBelowTimeJoin;
pub(crate) use relation::JoinRelations;
pub(crate) use syntax::{is_named, prepare};
