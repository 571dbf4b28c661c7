//! The protocol with sequentially consistent accesses that are nothing of the kind.

#[path = "../../../../pager/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
