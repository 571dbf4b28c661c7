//! Buffered tables, for reading.

use crate::catalog::table_name::Named;
use crate::tables::codec::{AsArg, TableKey, TableValue, value_of};
use crate::tables::lent::Lent;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::marker::PhantomData;
use tidalite_index::{BufferedReader, BufferedStat, FoundValue};

/// A buffered table in a snapshot, or in the current state of a write transaction. Keys are of type `K` and sorted in
/// the order of that type; values are of type `V`.
pub struct BufferedTable<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    pub(crate) reader: BufferedReader<Pages<'a>>,
    pub(crate) named: Named<'a>,
    types: PhantomData<fn(&K, &V)>,
}

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> BufferedTable<'a, K, V> {
    /// The value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the bytes do not decode as `V`.
    ///
    /// # Cost
    /// A descent of the rows, and one for each run that is not yet merged into them.
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        let found = match self.reader.get(&key.key_code())? {
            Some(FoundValue::Row(value)) => Lent::of(value)?,
            Some(FoundValue::Run(value)) => Lent::from(value),
            None => return Ok(None),
        };
        value_of::<V>(&self.named, found).map(Some)
    }

    /// The values of many keys, in the order of the keys; `None` for a missing key.
    ///
    /// # Errors
    /// As for `get`, for the whole call.
    pub fn get_many<A: AsArg<K>>(&self, keys: &[A]) -> Result<Vec<Option<V::Owned>>> {
        keys.iter().map(|key| self.get(key.as_arg())).collect()
    }

    /// Whether a key exists.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn contains(&self, key: &K) -> Result<bool> {
        Ok(self.reader.get(&key.key_code())?.is_some())
    }

    /// Number of keys.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// None after [`BufferedTableMut::compact`](crate::table::BufferedTableMut::compact); otherwise the entries of the
    /// runs are looked up in the rows.
    pub fn count(&self) -> Result<u64> {
        Ok(self.reader.count()?)
    }

    /// Figures about the table.
    ///
    /// # Errors
    /// A damaged page.
    pub fn stat(&self) -> Result<BufferedStat> {
        Ok(self.reader.stat()?)
    }
}

/// Opens a buffered table that was found.
pub(crate) fn view_of<'a, K, V>(
    pages: Pages<'a>,
    found: Found<'a>,
) -> Result<BufferedTable<'a, K, V>>
where
    K: TableKey + ?Sized,
    V: TableValue + ?Sized,
{
    Ok(BufferedTable {
        reader: BufferedReader::open(&found.tree, pages)?,
        named: found.named,
        types: PhantomData,
    })
}
