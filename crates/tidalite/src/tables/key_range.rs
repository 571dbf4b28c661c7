//! Ranges of keys as they are written in a call: `"a".."b"`, `..=key`, `..`, or two bounds.
//!
//! `RangeBounds<K>` would leave the type of the keys open where there are none, as in `table.range(..)`.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of keys of a table: every range of the language whose ends are bytes in some form, and a pair of bounds.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::MemoryStorage::new()))?;
/// # use std::ops::Bound;
/// let mut tx = db.begin_write()?;
/// let mut table = tx.table("t")?;
/// table.extend([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let view = table.view()?;
/// assert_eq!(view.count_range(..)?, 3);
/// assert_eq!(view.count_range("b"..)?, 2);
/// assert_eq!(view.count_range(b"a"..=b"b")?, 2);
/// assert_eq!(view.count_range((Bound::Excluded(vec![b'a']), Bound::Unbounded))?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait KeyRange {
    /// Where it begins.
    fn begin(&self) -> Bound<&[u8]>;

    /// Where it ends.
    fn end(&self) -> Bound<&[u8]>;
}

impl KeyRange for RangeFull {
    fn begin(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn end(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn begin(&self) -> Bound<&[u8]> {
                self.start_bound().map(AsRef::as_ref)
            }

            fn end(&self) -> Bound<&[u8]> {
                self.end_bound().map(AsRef::as_ref)
            }
        }
    )*};
}
ranges! {
    Range<K>, RangeInclusive<K>, RangeFrom<K>, RangeTo<K>, RangeToInclusive<K>, (Bound<K>, Bound<K>)
}
