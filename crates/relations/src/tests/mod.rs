//! Tests on pages in memory. Others are in the database
//! (`crates/tidalite/tests/relation_*.rs`).

mod complexity;
mod damage;
mod recovery;
mod schemas;
mod table;
