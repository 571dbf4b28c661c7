//! Values that users hold: schemas, columns, values, names, times, errors.

pub(crate) mod column;
pub(crate) mod decimal;
pub(crate) mod error;
pub(crate) mod grid;
pub(crate) mod interval;
pub(crate) mod into_column;
pub(crate) mod merge_policy;
pub(crate) mod name;
pub(crate) mod point;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod text_form;
pub(crate) mod time;
pub(crate) mod value;
