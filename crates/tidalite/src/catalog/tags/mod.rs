//! The index of series by metric and tags: a set of series ids for each metric, each tag key, and each tag with its
//! value (`tidalite_index`), in the tree `Roots::tags`.
//!
//! ```text
//! keys     keys of the sets
//! update   series created, renamed and removed
//! select   the series that a pattern selects
//! listing  metrics, tag keys and values with the numbers of their series
//! ```
//!
//! Invariant: the sets hold exactly the ids of the series in the catalog, each in the sets of its name. Within a write
//! transaction this holds after `update::store`; until then changes wait in `WriteTxn::tags`.

pub(crate) mod keys;
pub(crate) mod listing;
pub(crate) mod select;
pub(crate) mod update;
