//! Tests with pages in memory. Further tests use a whole database (`crates/tidalite/tests/relation_*.rs`).

mod complexity;
mod damage;
mod recovery;
mod schemas;
mod table;
