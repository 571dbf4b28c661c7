//! Ordered tables of a transaction: bytes or typed, with one value or a set of values a key.

pub(crate) mod bounds;
pub(crate) mod cached;
pub(crate) mod key_range;
pub(crate) mod multi;
pub(crate) mod multi_edit;
pub(crate) mod multi_mut;
pub(crate) mod open_read;
pub(crate) mod open_write;
pub(crate) mod range;
pub(crate) mod retain;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod table_edit;
pub(crate) mod table_mut;
pub(crate) mod typed;
pub(crate) mod typed_multi;
