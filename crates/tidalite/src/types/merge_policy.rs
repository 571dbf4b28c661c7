//! Merge policies: the treatment of a new row whose time already has a row.

use tidalite_base::limits::COLUMNS_MAX;

/// The treatment of a new row whose time already has a row. The policy is stored with the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MergePolicy {
    /// The new row replaces the old one, so an insert never has to look up its time.
    #[default]
    Replace,
    /// The old row stays; the new row is ignored silently.
    KeepFirst,
    /// The insert is refused with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) and changes nothing; the
    /// transaction continues.
    Error,
    /// Both rows stay, in order of arrival, across transactions too. All rows of a time are counted, aggregated,
    /// scanned and deleted. A call that names one row by its time ([`Series::at`](crate::Series::at), a search, a join)
    /// returns the last one to arrive. A time has room for 1024 rows, or fewer in a series of more than five columns
    /// ([`time_rows_max`]); another row is an error of kind `Limit`. After a change to another policy a series keeps
    /// its rows; a row that replaces then replaces all rows at its time.
    KeepAll,
    /// Like [`KeepAll`](Self::KeepAll), but a row equal to an existing row of its time is ignored silently: the rows of
    /// a time are a set, ordered by first arrival. Data loaded twice is stored once, and rows that differ are all kept.
    /// [`Replace`](Self::Replace) and [`KeepFirst`](Self::KeepFirst) keep only one row of each time.
    ///
    /// Rows are equal if all their columns are equal: numbers by their bits (a NaN equals the same NaN, 0.0 differs
    /// from -0.0), null equals null, texts by content. If the rows A, B, A arrive, the second A is ignored, wherever
    /// the first one is stored by then, and B remains the last to arrive. An ignored row needs no room. Rows stored
    /// before the series had this policy stay, even equal ones.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{MergePolicy, Options, Schema, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// for _ in 0..2 {
    ///     let mut tx = db.begin_write()?;
    ///     let mut series = tx.open_series("loads").merge(MergePolicy::KeepDistinct).open()?;
    ///     for (time, value) in [(1_i64, 0.5), (2, 0.75), (2, 0.8), (2, 0.75)] {
    ///         series.insert(Steps(time), value)?;
    ///     }
    ///     tx.commit()?;
    /// }
    /// let snap = db.begin_read()?;
    /// assert_eq!(snap.series("loads")?.ok_or("no such series")?.count()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    KeepDistinct,
}

/// Maximum number of rows of one time, for a series with this many columns under [`MergePolicy::KeepAll`] and
/// [`MergePolicy::KeepDistinct`].
#[must_use]
pub fn time_rows_max(columns: usize) -> usize {
    tidalite_delta::time_rows_max(columns.clamp(1, COLUMNS_MAX))
}

impl MergePolicy {
    /// All merge policies.
    pub const ALL: [Self; 5] = [
        Self::Replace,
        Self::KeepFirst,
        Self::Error,
        Self::KeepAll,
        Self::KeepDistinct,
    ];

    /// The name of the policy in the command-line program: `replace`, `keep-first`, `error`, `keep-all`,
    /// `keep-distinct`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::KeepFirst => "keep-first",
            Self::Error => "error",
            Self::KeepAll => "keep-all",
            Self::KeepDistinct => "keep-distinct",
        }
    }

    /// Whether the policy keeps several rows of one time.
    pub(crate) fn keeps_several(self) -> bool {
        matches!(self, Self::KeepAll | Self::KeepDistinct)
    }

    /// The policy as three bits in the flags of a catalog entry.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Self::Replace => 0,
            Self::KeepFirst => 1,
            Self::Error => 2,
            Self::KeepAll => 3,
            Self::KeepDistinct => 4,
        }
    }

    pub(crate) fn of_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.bits() == bits)
    }
}
