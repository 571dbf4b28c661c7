//! Values that users hold: schemas, columns, values, names, times, errors.

pub(crate) mod column;
pub(crate) mod error;
pub(crate) mod name;
pub(crate) mod point;
pub(crate) mod schema;
pub(crate) mod time;
pub(crate) mod value;
