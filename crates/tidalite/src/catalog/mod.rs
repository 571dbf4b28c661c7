//! What the file knows of its series and tables: the roots of all structures, entries of series, texts, roots of tables.

pub(crate) mod annotations;
pub(crate) mod commit_clock;
pub(crate) mod entries;
pub(crate) mod retention;
pub(crate) mod roots;
pub(crate) mod table_name;
pub(crate) mod table_roots;
pub(crate) mod text_block;
pub(crate) mod texts;
