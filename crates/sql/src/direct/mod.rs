//! Statements that run without a plan: the look-up of a row by its primary key, and INSERT of constants and parameters.
//!
//! ```text
//! value   constants and parameters
//! lookup  SELECT columns FROM relation WHERE key = value
//! insert  INSERT INTO table VALUES (value, ...)
//! ```

pub(crate) mod insert;
pub(crate) mod lookup;
mod value;
