//! The protocol with correctly ordered atomics.

#[expect(clippy::duplicate_mod, reason = "once for each kind of atomics")]
#[path = "../../../../pager/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
