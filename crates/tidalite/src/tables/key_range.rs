//! Ranges of keys as written in a call: `"a".."b"`, `..=key`, `..`, or two bounds.
//!
//! This trait exists because `RangeBounds<K>` would leave the type of the ends undetermined if there are none, as in
//! `table.range(..)`, and is not implemented for `[u8]` and `str`.

use crate::tables::codec::{AsArg, TableKey};
use std::borrow::Cow;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// Lower and upper bound of a range, as the stored bytes of keys.
pub type KeyBounds<'r> = (Bound<Cow<'r, [u8]>>, Bound<Cow<'r, [u8]>>);

/// A range of keys of a table with keys of type `K`: any Rust range, or a pair of bounds, whose ends are keys,
/// references to keys, or, for keys of bytes and of text, bytes or text in some form.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// # use std::ops::Bound;
/// let mut tx = db.begin_write()?;
/// let mut table = tx.table("t")?;
/// table.extend([("a", "1"), ("b", "2"), ("c", "3")])?;
/// let view = table.view()?;
/// assert_eq!(view.count_range(..)?, 3);
/// assert_eq!(view.count_range("b"..)?, 2);
/// assert_eq!(view.count_range(b"a"..=b"b")?, 2);
/// assert_eq!(view.count_range((Bound::Excluded(vec![b'a']), Bound::Unbounded))?, 2);
/// let mut squares = tx.typed_table::<u32, u64>("squares")?;
/// squares.extend((0..10).map(|n| (n, u64::from(n) * u64::from(n))))?;
/// assert_eq!(squares.remove_range(3..=4)?, 2);
/// assert_eq!(squares.remove_range(..)?, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait KeyRange<K: ?Sized> {
    /// The bounds of the range, as the stored bytes of keys.
    fn bounds(&self) -> KeyBounds<'_>;
}

impl<K: ?Sized> KeyRange<K> for RangeFull {
    fn bounds(&self) -> KeyBounds<'_> {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl<K: TableKey + ?Sized, A: AsArg<K>> KeyRange<K> for $range {
            fn bounds(&self) -> KeyBounds<'_> {
                (code(self.start_bound()), code(self.end_bound()))
            }
        }
    )*};
}
ranges! {
    Range<A>, RangeInclusive<A>, RangeFrom<A>, RangeTo<A>, RangeToInclusive<A>, (Bound<A>, Bound<A>)
}

fn code<K: TableKey + ?Sized, A: AsArg<K>>(bound: Bound<&A>) -> Bound<Cow<'_, [u8]>> {
    match bound {
        Bound::Included(key) => Bound::Included(key.as_arg().key_code()),
        Bound::Excluded(key) => Bound::Excluded(key.as_arg().key_code()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Borrows the bytes of a bound.
pub(crate) fn lent<'b>(bound: &'b Bound<Cow<'_, [u8]>>) -> Bound<&'b [u8]> {
    bound.as_ref().map(AsRef::as_ref)
}
