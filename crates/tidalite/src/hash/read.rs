//! Hash tables, for reading.

use crate::catalog::table_name::Named;
use crate::tables::codec::{AsArg, TableKey, TableValue, key_of, value_of};
use crate::tables::lent::Lent;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::marker::PhantomData;
use tidalite_index::{HashOptions, HashReader, HashStat, Record, RoaringTreemap};

/// A hash table in a snapshot, or in the current state of a write transaction. Keys are of type `K`, values of type
/// `V`.
///
/// Setting a key adds a record, which has a number; records are never changed. The index maps a key to its record, or,
/// in a table with duplicates, to its records.
pub struct HashTable<'a, K: ?Sized = [u8], V: ?Sized = [u8]> {
    pub(crate) reader: HashReader<Pages<'a>>,
    pub(crate) named: Named<'a>,
    types: PhantomData<fn(&K, &V)>,
}

/// A record of a hash table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashRecord<K, V> {
    /// Number of the record, from 0, in the order in which records were written.
    pub number: u64,
    /// The key as it was set, with its upper and lower case.
    pub key: K,
    /// The value; `None` if this record is the removal of its key, or of one record of its key.
    pub value: Option<V>,
}

impl<'a, K: TableKey + ?Sized, V: TableValue + ?Sized> HashTable<'a, K, V> {
    pub(crate) fn new(reader: HashReader<Pages<'a>>, named: Named<'a>) -> Self {
        Self {
            reader,
            named,
            types: PhantomData,
        }
    }

    pub(crate) fn value_of(&self, record: &Record<'_>) -> Result<Option<V::Owned>> {
        value_in::<V>(&self.named, record)
    }

    pub(crate) fn key_of(&self, record: &Record<'_>) -> Result<K::Owned> {
        key_of::<K>(&self.named, record.key())
    }

    fn decoded(&self, record: &Record<'_>) -> Result<HashRecord<K::Owned, V::Owned>> {
        Ok(HashRecord {
            number: record.number(),
            key: self.key_of(record)?,
            value: self.value_of(record)?,
        })
    }

    /// The value of a key; `None` if the key does not exist. In a table with duplicates, the value that was set last.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the bytes do not decode as `V`.
    ///
    /// # Cost
    /// Two descents: one in the index and one in the records. Each run that is not yet merged into the index adds a
    /// descent. If the index holds hashes, each record of another key with the same hash that is read first adds one as
    /// well.
    pub fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        match self.reader.get(&key.key_code())? {
            Some(record) => self.value_of(&record),
            None => Ok(None),
        }
    }

    /// The value of the newest record of a stored key, ignoring the records in `removed`, which must be empty in a
    /// table without duplicates.
    pub(crate) fn get_but(&self, code: &[u8], removed: RoaringTreemap) -> Result<Option<V::Owned>> {
        let record = match removed.is_empty() {
            true => self.reader.get(code)?,
            false => {
                let newest = self.reader.newest_but(code, removed)?;
                newest
                    .map(|number| self.reader.expect(number))
                    .transpose()?
            }
        };
        match record {
            Some(record) => self.value_of(&record),
            None => Ok(None),
        }
    }

    /// The values of many keys, in the order of the keys; `None` for a missing key. Costs as much as single gets.
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
    ///
    /// # Cost
    /// As for `get`, but values are not read, and a table with whole keys needs no record either.
    pub fn contains(&self, key: &K) -> Result<bool> {
        Ok(self.reader.contains(&key.key_code())?)
    }

    /// The numbers of all records of a key: at most one in a table without duplicates.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::hash_table::HashTableOptions;
    /// let mut tx = db.begin_write()?;
    /// let options = HashTableOptions::new().duplicates(true);
    /// let mut parts = tx.hash_table_with::<str, str>("parts by machine", &options)?;
    /// for (machine, part) in [("pump", "seal"), ("fan", "blade"), ("pump", "shaft")] {
    ///     parts.set(machine, part)?;
    /// }
    /// let parts = parts.view()?;
    /// let of_pump = parts.duplicates("pump")?;
    /// assert_eq!(of_pump.len(), 2);
    /// let values = of_pump.iter().map(|number| Ok(parts.record(number)?.and_then(|record| record.value)));
    /// let values: Vec<_> = values.collect::<tidalite::Result<_>>()?;
    /// assert_eq!(values, [Some("seal".to_owned()), Some("shaft".to_owned())]);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A descent of the index, and another one for each block of 65,536 record numbers that contains records of the
    /// key. If the index holds hashes, each record is read to compare its key.
    pub fn duplicates(&self, key: &K) -> Result<RoaringTreemap> {
        Ok(self.reader.duplicates(&key.key_code())?)
    }

    /// The record with this number, even if it has been replaced or removed, as long as it is kept. Cost: a descent.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the bytes do not decode.
    pub fn record(&self, number: u64) -> Result<Option<HashRecord<K::Owned, V::Owned>>> {
        let record = self.reader.record(number)?;
        record.map(|record| self.decoded(&record)).transpose()
    }

    /// The versions of a key that the table keeps, newest first. The first one is the current version, or the removal
    /// if the key does not exist. Older versions follow, including removals, as many as the table's option for history
    /// keeps. A table without history has only the current records.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::hash_table::{HashTableOptions, History};
    /// let mut tx = db.begin_write()?;
    /// let options = HashTableOptions::new().history(History::Last(2));
    /// let mut limits = tx.hash_table_with::<str, i64>("limits", &options)?;
    /// for limit in [10, 20, 30, 40] {
    ///     limits.set("speed", &limit)?;
    /// }
    /// let history = limits.view()?.history("speed")?;
    /// let values: Vec<_> = history.iter().map(|version| version.value).collect();
    /// assert_eq!(values, [Some(40), Some(30), Some(20)]);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the bytes do not decode.
    pub fn history(&self, key: &K) -> Result<Vec<HashRecord<K::Owned, V::Owned>>> {
        let versions = self.reader.history(&key.key_code())?;
        versions
            .iter()
            .map(|version| self.decoded(version))
            .collect()
    }

    /// Calls `f` with the records of the table in the order in which they were written, beginning with number `from`,
    /// until it returns false. This includes records that have been replaced or removed and are still kept.
    ///
    /// # Errors
    /// A damaged or unreadable page; `WrongType` if the bytes do not decode.
    pub fn each_record(
        &self,
        from: u64,
        mut f: impl FnMut(HashRecord<K::Owned, V::Owned>) -> bool,
    ) -> Result<()> {
        let mut failed = None;
        self.reader.each_record(from, &mut |record| {
            Ok(match self.decoded(&record) {
                Ok(record) => f(record),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            })
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Number of keys.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// None after [`HashTableMut::compact`](crate::hash_table::HashTableMut::compact); otherwise the index is read. In
    /// a table with duplicates whose index holds hashes, the index is always read, and records with the same hash are
    /// compared.
    pub fn count(&self) -> Result<u64> {
        Ok(self.reader.count_keys()?)
    }

    /// Number of records of all keys, duplicates included. Without duplicates this is the number of keys.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// As for [`count`](Self::count); with duplicates the index is always read.
    pub fn count_records(&self) -> Result<u64> {
        Ok(self.reader.count_records()?)
    }

    /// Whether the table has no key.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(!self.reader.walk(b"")?.step()?)
    }

    /// The options with which the table was created.
    #[must_use]
    pub fn options(&self) -> HashOptions {
        *self.reader.options()
    }

    /// Figures about the table.
    ///
    /// # Errors
    /// A damaged page.
    pub fn stat(&self) -> Result<HashStat> {
        Ok(self.reader.stat()?)
    }
}

pub(crate) fn value_in<V: TableValue + ?Sized>(
    named: &Named<'_>,
    record: &Record<'_>,
) -> Result<Option<V::Owned>> {
    match record.value() {
        Some(value) => match V::decode_value(value) {
            Some(value) => Ok(Some(value)),
            // Returns an error with the reason.
            None => value_of::<V>(named, Lent::from(value.to_vec())).map(Some),
        },
        None => Ok(None),
    }
}

/// Opens a hash table that was found.
pub(crate) fn view_of<'a, K, V>(pages: Pages<'a>, found: Found<'a>) -> Result<HashTable<'a, K, V>>
where
    K: TableKey + ?Sized,
    V: TableValue + ?Sized,
{
    let reader = HashReader::open(&found.tree, pages)?;
    Ok(HashTable::new(reader, found.named))
}
