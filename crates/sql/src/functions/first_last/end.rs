//! The two ends of a group: its first and its last row.

/// The row that an aggregate searches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    First,
    Last,
}

impl End {
    /// Whether a row replaces the one found so far.
    pub(super) fn replaces(self, time: i64, found: i64) -> bool {
        match self {
            Self::First => time < found,
            Self::Last => time >= found,
        }
    }
}
