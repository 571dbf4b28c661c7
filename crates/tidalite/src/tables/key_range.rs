//! Ranges of keys as written in a call: `"a".."b"`, `..=key`, `..`, or two bounds.
//!
//! `RangeBounds<K>` would leave the key type undetermined if there are no bounds, as in `table.range(..)`.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// A range of keys of a table: any Rust range whose ends are bytes in some form, or a pair of bounds.
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
    /// The start bound.
    fn begin(&self) -> Bound<&[u8]>;

    /// The end bound.
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
