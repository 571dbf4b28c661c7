//! Safe calls of LMDB (OpenLDAP Public License), for a test that executes the same operations with LMDB and with
//! Tidalite.
//!
//! ```text
//! lmdb      Lmdb, Txn, Cursor     an environment with a plain table, one of sorted duplicates, and one of such of one length
//! tests/    same_answers          seeded operations, the same answers, the same content
//! ```

pub mod lmdb;
