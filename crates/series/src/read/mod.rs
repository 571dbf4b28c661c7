//! Reading a series: the tree and the late rows as one.

pub(crate) mod candles;
pub(crate) mod collect;
pub(crate) mod cursor;
pub(crate) mod filter;
pub(crate) mod fold;
pub(crate) mod lines;
pub(crate) mod matching;
pub(crate) mod scan;
pub(crate) mod segments;
pub(crate) mod vector_cursor;
pub(crate) mod view;
