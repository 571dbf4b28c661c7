//! The protocol with atomics that order as its own do.

#[expect(clippy::duplicate_mod, reason = "once for each kind of atomics")]
#[path = "../../../../pager/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
