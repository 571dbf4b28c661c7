//! Times at which `maintain` has work.
//!
//! ```text
//! | time: i64, order-preserving | kind: u8 | container: u32 | deletion: u64 |   -> nothing
//! ```
//!
//! The row of a container (`Kind::Container`) must not be later than the expiry of its first message, but may be
//! earlier. So the row of a container whose messages arrive in the order of their times stays the same as long as its
//! oldest message remains.

use crate::containers::parts::{damaged, shown};
use tidalite_base::Ordered;
use tidalite_pager::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A container has expired messages, or exceeds a limit.
    Container,
    /// The messages of a deletion can no longer be restored.
    Deletion,
    /// A dropped container can no longer be restored.
    Dropped,
}

/// Time in the row of a container that exceeds its limits.
pub(crate) const AT_ONCE: i64 = i64::MIN;
/// Time used for a container that has no row.
pub(crate) const NEVER: i64 = i64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) time: i64,
    pub(crate) kind: Kind,
    pub(crate) container: u32,
    /// 0 if the kind is not `Deletion`.
    pub(crate) deletion: u64,
}

impl Due {
    pub(crate) fn new(time: i64, kind: Kind, container: u32) -> Self {
        Self {
            time,
            kind,
            container,
            deletion: 0,
        }
    }

    pub(crate) fn of_deletion(time: i64, container: u32, deletion: u64) -> Self {
        Self {
            deletion,
            ..Self::new(time, Kind::Deletion, container)
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Container => 0_u8,
            Kind::Deletion => 1,
            Kind::Dropped => 2,
        };
        (self.time, kind, self.container, self.deletion).to_key()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || {
            damaged(
                "row of work that is due",
                shown(bytes),
                "a time and its work",
            )
        };
        type Fields = (i64, u8, u32, u64);
        let found = <Fields as Ordered>::from_key(bytes);
        let (time, kind, container, deletion) = found.ok_or_else(wrong)?;
        let kind = match kind {
            0 => Kind::Container,
            1 => Kind::Deletion,
            2 => Kind::Dropped,
            _ => return Err(wrong()),
        };
        if kind != Kind::Deletion && deletion != 0 {
            return Err(wrong());
        }
        Ok(Self {
            time,
            kind,
            container,
            deletion,
        })
    }
}
