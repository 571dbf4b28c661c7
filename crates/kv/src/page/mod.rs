//! The bytes of one page: layout, search, changes in place, rewriting.

pub(crate) mod edit;
pub(crate) mod entries;
pub(crate) mod header;
pub(crate) mod key;
pub(crate) mod layout;
pub(crate) mod node;
pub(crate) mod overflow;
pub(crate) mod point_get;
pub(crate) mod prefetch;
pub(crate) mod read_ahead;
pub(crate) mod row;
pub(crate) mod row_count;
pub(crate) mod search;
