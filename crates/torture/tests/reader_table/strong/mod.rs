//! The protocol of the reader table with correctly ordered atomics.

#[expect(clippy::duplicate_mod, reason = "once for each kind of atomics")]
#[expect(unreachable_pub, reason = "public in its own crate")]
#[path = "../../../../disk/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
