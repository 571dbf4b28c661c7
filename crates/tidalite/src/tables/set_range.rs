//! Double-ended iterators over ranges of tables of sets.

use crate::tables::bounds::{
    PairEnds, owned_pairs, pairs_between, pairs_of, prefixed, values_between,
};
use crate::tables::codec::{AsArg, TableKey};
use crate::tables::key_range::KeyRange;
use crate::tables::range::{fewer, size_hint};
use crate::tables::set_cursor::SetCursor;
use crate::tables::set_table::SetTable;
use crate::types::error::Result;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Iterator over the pairs of a range, from either end. An error ends the iteration.
pub struct SetRange<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    steps: Steps<'a>,
    types: PhantomData<fn(&K, &V)>,
}

/// Iterator over the values of one key, from either end. An error ends the iteration.
pub struct SetValues<'a, V: ?Sized = [u8]> {
    steps: Steps<'a>,
    types: PhantomData<fn(&V)>,
}

impl<K: TableKey + ?Sized, V: TableKey + ?Sized> SetTable<'_, K, V> {
    /// The pairs with keys in a range, from either end (`rev`).
    ///
    /// # Errors
    /// A damaged or unreadable page. The iterator yields `WrongType` for a pair whose bytes do not decode as `K` or
    /// `V`.
    ///
    /// # Cost
    /// Two descents to open the range, one more for the first pair read from each end. Pairs are copied; a
    /// [`cursor`](Self::cursor) lends them instead.
    pub fn range(&self, range: impl KeyRange<K>) -> Result<SetRange<'_, K, V>> {
        self.between(pairs_of(&range))
    }

    /// The pairs in a range of pairs, from either end: for example, one of the parts found by [`split`](Self::split),
    /// or the values of a key from a given one on. Inverted bounds are an empty range.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As for `range`.
    pub fn range_of_pairs<A: AsArg<K>, B: AsArg<V>>(
        &self,
        range: impl RangeBounds<(A, B)>,
    ) -> Result<SetRange<'_, K, V>> {
        self.between(owned_pairs::<K, V, A, B>(&range))
    }

    /// The values of one key, from either end.
    ///
    /// # Errors
    /// As for `range`.
    pub fn values(&self, key: &K) -> Result<SetValues<'_, V>> {
        self.values_in(key, ..)
    }

    /// The values of one key that lie in a range, from either end.
    ///
    /// # Errors
    /// As for `range`.
    pub fn values_in(&self, key: &K, range: impl KeyRange<V>) -> Result<SetValues<'_, V>> {
        let ends = values_between(key.key_code().into_owned(), &range);
        Ok(SetValues {
            steps: self.steps(ends)?,
            types: PhantomData,
        })
    }

    /// All pairs, from either end. Reads nothing before the first pair is requested.
    #[must_use]
    pub fn iter(&self) -> SetRange<'_, K, V> {
        SetRange {
            steps: self.steps_of((Bound::Unbounded, Bound::Unbounded), self.count()),
            types: PhantomData,
        }
    }

    /// The least pair of the table; `None` if it is empty.
    ///
    /// # Errors
    /// A damaged or unreadable page; bytes that do not decode as `K` or `V` (`WrongType`).
    pub fn first(&self) -> Result<Option<(K::Owned, V::Owned)>> {
        self.iter().next().transpose()
    }

    /// The greatest pair of the table; `None` if it is empty.
    ///
    /// # Errors
    /// As for `first`.
    pub fn last(&self) -> Result<Option<(K::Owned, V::Owned)>> {
        self.iter().next_back().transpose()
    }

    fn between(&self, ends: PairEnds) -> Result<SetRange<'_, K, V>> {
        Ok(SetRange {
            steps: self.steps(ends)?,
            types: PhantomData,
        })
    }

    fn steps(&self, ends: PairEnds) -> Result<Steps<'_>> {
        let (from, to) = self.ranks(&ends)?;
        Ok(self.steps_of(ends, to.saturating_sub(from)))
    }

    fn steps_of(&self, ends: PairEnds, left: u64) -> Steps<'_> {
        Steps {
            front: self.cursor_as(),
            back: self.cursor_as(),
            ends,
            left,
        }
    }
}

impl<V: TableKey + ?Sized> SetTable<'_, [u8], V> {
    /// The pairs whose keys begin with these bytes, from either end.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn prefix(&self, prefix: &[u8]) -> Result<SetRange<'_, [u8], V>> {
        let (from, to) = prefixed(prefix);
        self.between(pairs_between(
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        ))
    }
}

/// The two cursors of an iteration over pairs, one for each end.
struct Steps<'a> {
    front: SetCursor<'a>,
    back: SetCursor<'a>,
    ends: PairEnds,
    /// Number of pairs that neither end has returned yet.
    left: u64,
}

impl<'a> Steps<'a> {
    /// Moves the front cursor to its next pair, which `read` converts to the item to return.
    fn next<T>(&mut self, read: impl FnOnce(&SetCursor<'a>) -> Result<T>) -> Option<Result<T>> {
        self.taken(|this| {
            let front = &mut this.front;
            let there = match &this.ends.0 {
                _ if front.is_at_entry() => front.next()?,
                Bound::Unbounded => front.first()?,
                Bound::Included((key, value)) => front.seek_ge(key, value)?,
                Bound::Excluded((key, value)) => front.seek_gt(key, value)?,
            };
            if there { read(front) } else { Err(fewer()) }
        })
    }

    /// Moves the back cursor to its previous pair, which `read` converts to the item to return.
    fn next_back<T>(
        &mut self,
        read: impl FnOnce(&SetCursor<'a>) -> Result<T>,
    ) -> Option<Result<T>> {
        self.taken(|this| {
            let back = &mut this.back;
            let there = match &this.ends.1 {
                _ if back.is_at_entry() => back.previous()?,
                Bound::Unbounded => back.last()?,
                Bound::Included((key, value)) => back.seek_le(key, value)?,
                Bound::Excluded((key, value)) => back.seek_lt(key, value)?,
            };
            if there { read(back) } else { Err(fewer()) }
        })
    }

    fn taken<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T>) -> Option<Result<T>> {
        if self.left == 0 {
            return None;
        }
        let taken = step(self);
        self.left = if taken.is_ok() { self.left - 1 } else { 0 };
        Some(taken)
    }
}

macro_rules! iterators {
    ($($name:ident [$($part:ident),*] $what:literal $item:ty, $read:expr;)*) => {$(
        impl<$($part: TableKey + ?Sized),*> $name<'_, $($part),*> {
            #[doc = concat!($what, " not yet taken from either end.")]
            #[must_use]
            pub fn left(&self) -> u64 {
                self.steps.left
            }
        }

        impl<$($part: TableKey + ?Sized),*> Iterator for $name<'_, $($part),*> {
            type Item = Result<$item>;

            fn next(&mut self) -> Option<Self::Item> {
                self.steps.next($read)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                size_hint(self.steps.left)
            }
        }

        impl<$($part: TableKey + ?Sized),*> DoubleEndedIterator for $name<'_, $($part),*> {
            fn next_back(&mut self) -> Option<Self::Item> {
                self.steps.next_back($read)
            }
        }

        impl<$($part: TableKey + ?Sized),*> FusedIterator for $name<'_, $($part),*> {}
    )*};
}
iterators! {
    SetRange [K, V] "Pairs" (K::Owned, V::Owned), |cursor| cursor.entry_as::<K, V>();
    SetValues [V] "Values" V::Owned, |cursor| cursor.value_as::<V>();
}
