//! Value types that users hold and all other folders share.
//!
//! ```text
//! error                                    errors
//! schema, column, value, decimal           columns of a series, and the values of its rows
//! name, pattern                            names of series, and patterns that select them
//! name_text                                words and quoted texts in both
//! relative_time, instant, interval         times relative to the present, time arguments and intervals
//! grid, calendar, zone                     windows of time, those of the calendar, time zones
//! row, point                               a row, and a struct of fixed columns as a row
//! merge_policy                             treatment of a row whose time is taken
//! into_column, text_form                   columns by number or name; keys and GUIDs as text
//! table_types                              names of the types of a table
//! sum                                      compensated sums
//! figure, interpolation                    statistics of a column and their names; values between rows
//! ```

pub(crate) mod calendar;
pub(crate) mod column;
pub(crate) mod decimal;
pub(crate) mod error;
pub(crate) mod figure;
pub(crate) mod grid;
pub(crate) mod instant;
pub(crate) mod interpolation;
pub(crate) mod interval;
pub(crate) mod into_column;
pub(crate) mod merge_policy;
pub(crate) mod name;
mod name_text;
pub(crate) mod pattern;
pub(crate) mod point;
mod relative_time;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod sum;
pub(crate) mod table_types;
pub(crate) mod text_form;
pub(crate) mod value;
pub(crate) mod zone;
