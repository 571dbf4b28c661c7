//! LMDB (OpenLDAP Public License) behind a few safe calls, for a test that gives it and Tidalite the same operations.
//!
//! ```text
//! lmdb      Lmdb, Txn, Cursor     an environment with a plain table, one of sorted duplicates, and one of such of one length
//! tests/    same_answers          seeded operations, the same answers, the same content
//! ```

pub mod lmdb;
