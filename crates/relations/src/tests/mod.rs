//! Tests on pages in memory. The tests against a model, of crashes and of salvage are those of the database
//! (`crates/tidalite/tests/relation_*.rs`).

mod complexity;
mod damage;
mod recovery;
mod schemas;
mod table;
