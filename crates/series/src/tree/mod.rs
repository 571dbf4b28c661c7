//! The tree of one series: the record, and modifications of the tree below it.

pub(crate) mod cool;
pub(crate) mod edit;
pub(crate) mod leaf_cursor;
pub(crate) mod link_encoded;
pub(crate) mod record;
pub(crate) mod series_tree;
pub(crate) mod walk;
