//! Values of a hash table that can be incremented and decremented.

use crate::hash::write::HashTableMut;
use crate::tables::codec::{TableKey, TableValue};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};

/// A number to which another one can be added.
pub trait Counter: TableValue<Borrowed = Self, Owned = Self> + Sized {
    /// The value of a key that does not exist.
    const ZERO: Self;

    /// The sum; `None` if the type cannot hold it.
    fn plus(&self, other: &Self) -> Option<Self>;

    /// The difference; `None` if the type cannot hold it.
    fn minus(&self, other: &Self) -> Option<Self>;
}

macro_rules! integers {
    ($($number:ty),*) => {$(
        impl Counter for $number {
            const ZERO: Self = 0;

            fn plus(&self, other: &Self) -> Option<Self> {
                self.checked_add(*other)
            }

            fn minus(&self, other: &Self) -> Option<Self> {
                self.checked_sub(*other)
            }
        }
    )*};
}
integers! { u8, u16, u32, u64, u128, i8, i16, i32, i64, i128 }

macro_rules! floats {
    ($($number:ty),*) => {$(
        impl Counter for $number {
            const ZERO: Self = 0.0;

            fn plus(&self, other: &Self) -> Option<Self> {
                Some(self + other)
            }

            fn minus(&self, other: &Self) -> Option<Self> {
                Some(self - other)
            }
        }
    )*};
}
floats! { f32, f64 }

impl<K: TableKey + ?Sized, V: Counter> HashTableMut<'_, K, V> {
    /// Adds `by` to the value of a key and returns the sum. A key that does not exist counts as zero. In a table with
    /// duplicates the sum becomes an additional record of the key.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut stock = tx.hash_table::<str, i64>("stock")?;
    /// assert_eq!(stock.increment("bolt", &5)?, 5);
    /// assert_eq!(stock.decrement("bolt", &2)?, 3);
    /// assert!(stock.increment("bolt", &i64::MAX).is_err());
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) if the type of the value cannot hold the sum: nothing has changed. As for
    /// [`set`](Self::set).
    ///
    /// # Cost
    /// A lookup. The transaction is the only writer, so the value cannot change between the read and the write.
    pub fn increment(&mut self, key: &K, by: &V) -> Result<V> {
        self.count(key, |value| value.plus(by))
    }

    /// Subtracts `by` from the value of a key and returns the difference.
    ///
    /// # Errors
    /// As for [`increment`](Self::increment).
    pub fn decrement(&mut self, key: &K, by: &V) -> Result<V> {
        self.count(key, |value| value.minus(by))
    }

    fn count(&mut self, key: &K, change: impl FnOnce(&V) -> Option<V>) -> Result<V> {
        let value = self.get(key)?.unwrap_or(V::ZERO);
        let Some(value) = change(&value) else {
            let counter = V::NAME.name.to_owned();
            return Err(Error::from(Cause::CounterOverflow { counter }));
        };
        self.set(key, &value)?;
        Ok(value)
    }
}
