//! Tests on pages in memory. Crate `torture` and the database have the tests against a model, of crashes and of salvage
//! (`crates/tidalite/tests/relation_*.rs`).

mod complexity;
mod damage;
mod recovery;
mod schemas;
mod table;
