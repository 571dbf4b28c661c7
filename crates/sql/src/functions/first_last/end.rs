//! The two ends of a group.

/// Which row an aggregate looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    First,
    Last,
}

impl End {
    /// Whether a row replaces the one that was found before it.
    pub(super) fn replaces(self, time: i64, found: i64) -> bool {
        match self {
            Self::First => time < found,
            Self::Last => time >= found,
        }
    }
}
