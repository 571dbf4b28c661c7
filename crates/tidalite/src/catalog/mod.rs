//! The catalog: everything that the roots lead to, except rows and pages of tables, and how the file stores it.
//!
//! ```text
//! roots          roots of all structures, in the app area of the meta block
//! commit_clock   the clock that every commit stores
//! tags           the index of series by metric and tags
//! entries        series by name, GUID and number, with their schemas
//! annotations    texts about series
//! retention      retention policies; downsample, rules: the replacement of old rows by windows
//! texts          strings, bytes and GUIDs of rows; text_block: a block of them
//! table_roots    tables by name, and their roots; table_name: the name in errors
//! ```

pub(crate) mod annotations;
pub(crate) mod commit_clock;
pub(crate) mod downsample;
pub(crate) mod entries;
pub(crate) mod retention;
pub(crate) mod roots;
pub(crate) mod rules;
pub(crate) mod table_name;
pub(crate) mod table_roots;
pub(crate) mod tags;
pub(crate) mod text_block;
pub(crate) mod texts;
