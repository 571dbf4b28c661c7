//! The protocol of the reader table with relaxed accesses in place of sequentially consistent accesses.

#[expect(unreachable_pub, reason = "public in its own crate")]
#[path = "../../../../disk/src/lock/protocol.rs"]
pub(crate) mod protocol;
pub(crate) mod sync;
