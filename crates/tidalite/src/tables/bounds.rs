//! Bounds of a range of keys, or of pairs of key and value, as owned bytes.

use crate::tables::codec::{AsArg, TableKey};
use crate::tables::key_range::{KeyBounds, KeyRange, lent};
use std::borrow::Cow;
use std::ops::{Bound, RangeBounds};
use tidalite_base::after_prefix;

/// Lower and upper bound of a range of keys.
pub(crate) type Ends = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Whether a key lies before the end of a range with this upper bound.
pub(crate) fn is_before(key: &[u8], to: &Bound<Vec<u8>>) -> bool {
    let to = to.as_ref().map(Vec::as_slice);
    (Bound::Unbounded, to).contains(key)
}

pub(crate) fn owned((from, to): KeyBounds<'_>) -> Ends {
    (from.map(Cow::into_owned), to.map(Cow::into_owned))
}

/// The bounds of the range of all keys that begin with `prefix`.
pub(crate) fn prefixed(prefix: &[u8]) -> Ends {
    let end = after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), end)
}

pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// Lower and upper bound of a range of pairs of key and value.
pub(crate) type PairEnds = (Bound<Pair>, Bound<Pair>);

/// Converts bounds of keys to bounds of the pairs with these keys. The empty value is the least, so a range of pairs
/// begins with the empty value of its first key, and ends before the empty value of the first key that is excluded.
pub(crate) fn pairs_between(begin: Bound<&[u8]>, end: Bound<&[u8]>) -> PairEnds {
    let least = |key: &[u8]| (key.to_vec(), Vec::new());
    // The least key above a given key is that key with a zero byte appended.
    let beyond = |key: &[u8]| ([key, &[0]].concat(), Vec::new());
    let begin = match begin {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(least(key)),
        Bound::Excluded(key) => Bound::Included(beyond(key)),
    };
    let end = match end {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Excluded(beyond(key)),
        Bound::Excluded(key) => Bound::Excluded(least(key)),
    };
    (begin, end)
}

/// The bounds of all pairs whose keys lie in a range of keys.
pub(crate) fn pairs_of<K: ?Sized>(range: &impl KeyRange<K>) -> PairEnds {
    let (from, to) = range.bounds();
    pairs_between(lent(&from), lent(&to))
}

/// The bounds of the pairs of one key whose values lie in a range.
pub(crate) fn values_between<V: ?Sized>(key: Vec<u8>, range: &impl KeyRange<V>) -> PairEnds {
    let pair = |value: Cow<'_, [u8]>| (key.clone(), value.into_owned());
    let (from, to) = range.bounds();
    let from = match from {
        Bound::Unbounded => Bound::Included((key.clone(), Vec::new())),
        from => from.map(pair),
    };
    let to = match to {
        // The least key above this one is this key with a zero byte appended.
        Bound::Unbounded => Bound::Excluded(([&key[..], &[0]].concat(), Vec::new())),
        to => to.map(pair),
    };
    (from, to)
}

pub(crate) fn owned_pairs<K, V, A, B>(range: &impl RangeBounds<(A, B)>) -> PairEnds
where
    K: TableKey + ?Sized,
    V: TableKey + ?Sized,
    A: AsArg<K>,
    B: AsArg<V>,
{
    let owned = |bound: Bound<&(A, B)>| {
        bound.map(|(key, value)| {
            let (key, value) = (key.as_arg().key_code(), value.as_arg().key_code());
            (key.into_owned(), value.into_owned())
        })
    };
    (owned(range.start_bound()), owned(range.end_bound()))
}
