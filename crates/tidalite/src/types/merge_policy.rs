//! What a series does with a row whose time is taken.

use tidalite_base::limits::COLUMNS_MAX;

/// What a series does with a row at a time that it has a row at. Stored with the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MergePolicy {
    /// The new row takes the place of the old one. Inserting then never has to look.
    #[default]
    Replace,
    /// The old row stays, the new one is left out without a word.
    KeepFirst,
    /// The call is refused with [`Error::TimeTaken`](crate::Error::TimeTaken) and changes nothing; the transaction goes on.
    Error,
    /// Both stay, in the order in which they arrived, across transactions too. All rows of a time are counted, aggregated,
    /// scanned and deleted; what names one row by its time ([`Series::at`](crate::Series::at), a search, a join) takes the last
    /// to arrive. A time has room for 1024 rows, for fewer in a series of more than five columns ([`time_rows_max`]);
    /// one more is refused as beyond a limit. Changed to another policy, a series keeps the rows that it has: a row that replaces takes
    /// the place of all at its time.
    KeepAll,
    /// As [`KeepAll`](Self::KeepAll), but a row that is equal to one of those at its time is left out without a word: the rows
    /// of a time are a set, in the order in which each first arrived. So what is loaded twice is there once, and what differs is lost to
    /// nobody. [`Replace`](Self::Replace) and [`KeepFirst`](Self::KeepFirst) keep one row of a time, whatever others say.
    ///
    /// Rows are equal when all their columns are: numbers by their bits (a NaN is equal to the same NaN, 0.0 is not -0.0), null to
    /// null, texts by what they say. Of A, B, A the second A is left out, wherever the first one lies by then, and B stays the last
    /// to arrive. A row that is left out needs no room. Rows that were there before the series had this policy stay, equal ones too.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{MemoryStorage, MergePolicy, Options, Schema};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// for _ in 0..2 {
    ///     let mut tx = db.begin_write()?;
    ///     let mut series = tx.series_merging("loads", &Schema::point(), MergePolicy::KeepDistinct)?;
    ///     for (time, value) in [(1_i64, 0.5), (2, 0.75), (2, 0.8), (2, 0.75)] {
    ///         series.insert(time, value)?;
    ///     }
    ///     tx.commit()?;
    /// }
    /// let snap = db.begin_read()?;
    /// assert_eq!(snap.series("loads")?.ok_or("no such series")?.count()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    KeepDistinct,
}

/// Rows of one time that a series of so many columns takes at most under [`MergePolicy::KeepAll`] and
/// [`MergePolicy::KeepDistinct`].
#[must_use]
pub fn time_rows_max(columns: usize) -> usize {
    tidalite_runs::time_rows_max(columns.clamp(1, COLUMNS_MAX))
}

impl MergePolicy {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Replace,
        Self::KeepFirst,
        Self::Error,
        Self::KeepAll,
        Self::KeepDistinct,
    ];

    /// As the program writes it: `replace`, `keep-first`, `error`, `keep-all`, `keep-distinct`.
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

    /// Whether several rows of one time stay.
    pub(crate) fn keeps_several(self) -> bool {
        matches!(self, Self::KeepAll | Self::KeepDistinct)
    }

    /// Three bits of a catalog entry.
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
