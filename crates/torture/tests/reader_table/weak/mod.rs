//! The protocol with relaxed accesses in place of sequentially consistent ones.

#[path = "../../../../pager/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
