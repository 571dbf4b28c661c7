//! Statements that run without a plan: looking up or changing a row by its primary key, and INSERT of constants and
//! parameters.
//!
//! ```text
//! value   constants and parameters
//! lookup  SELECT columns FROM relation WHERE key = value
//! insert  INSERT INTO table VALUES (value, ...)
//! change  UPDATE relation SET column = value WHERE key = value; DELETE FROM relation WHERE key = value
//! ```

pub(crate) mod change;
pub(crate) mod insert;
pub(crate) mod lookup;
pub(crate) mod value;
