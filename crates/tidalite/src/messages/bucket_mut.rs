//! Buckets of objects, for changes.

use crate::messages::bucket::Bucket;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::io::Read;
use tidalite_messages::{
    BucketMaintenance, BucketOptions, BucketReader, BucketWriter, LinkId, ListQuery, ListToken,
    ObjectAttributes, ObjectChange, ObjectCondition, ObjectInfo, ObjectOutcome, ObjectPut,
    RemovedObjects, StoredObject,
};
use tidalite_pager::WriteTxn as PagesMut;
use tidalite_time::Timestamp;

/// Size in bytes of the slices that `put_from` reads.
const SLICE_BYTES: usize = 1 << 20;

/// A bucket in a write transaction, for changes. [`WriteTxn::bucket`](crate::WriteTxn::bucket) opens it.
pub struct BucketMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> BucketMut<'t> {
    pub(super) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    pub(super) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut BucketWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        let now = self.txn.now_ns();
        self.txn.change_table(self.index, |tree, pages| {
            change(&mut BucketWriter::open(tree, pages)?, now)
        })
    }

    /// Like `change`, for a change that frees space.
    pub(super) fn free<T>(
        &mut self,
        change: impl FnOnce(&mut BucketWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.txn.free_space();
        self.change(change)
    }

    /// The options.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn options(&self) -> Result<BucketOptions> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(*BucketReader::open(tree, pages)?.options())
    }

    /// A view of the bucket in its current state, for reading.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn view(&self) -> Result<Bucket<'_>> {
        self.txn.check_usable()?;
        let found = Found::open(&self.txn.tables[self.index]);
        Bucket::of(self.txn.pages_view(), found, self.txn.now_ns())
    }

    /// Changes the options. Stored objects keep the size of their chunks; limits apply to later puts and uploads.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    pub fn set_options(&mut self, options: &BucketOptions) -> Result<()> {
        self.change(|bucket, _| bucket.set_options(*options))
    }

    /// Puts an object whose bytes are in memory, replacing the object with this name, if the condition holds.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a name or attributes that are too long, and if there is no room for the
    /// object: nothing has changed then. A full disk; a damaged page.
    ///
    /// # Cost
    /// Writes the bytes once, in chunks, and hashes them.
    pub fn put(
        &mut self,
        name: &str,
        bytes: &[u8],
        attributes: ObjectAttributes,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<StoredObject>> {
        self.change(|bucket, now| bucket.put(name, bytes, attributes, condition, now))
    }

    /// Puts an object with all bytes of a reader. Keeps at most one chunk and one MiB of them in memory.
    ///
    /// # Errors
    /// As for `put`; errors of the reader, after which nothing has changed.
    pub fn put_from(
        &mut self,
        name: &str,
        bytes: &mut dyn Read,
        attributes: ObjectAttributes,
        condition: ObjectCondition,
    ) -> Result<ObjectOutcome<StoredObject>> {
        let mut put = self.begin_put(name, attributes, condition)?;
        match self.write_all(&mut put, bytes) {
            Ok(()) => self.finish_put(put),
            Err(error) => {
                // If the transaction is broken, rolling it back removes the bytes.
                if self.txn.check_usable().is_ok() {
                    self.abort_put(put)?;
                }
                Err(error)
            }
        }
    }

    fn write_all(&mut self, put: &mut ObjectPut, bytes: &mut dyn Read) -> Result<()> {
        let mut slice = vec![0; SLICE_BYTES];
        loop {
            match bytes.read(&mut slice) {
                Ok(0) => return Ok(()),
                Ok(len) => self.write_put(put, &slice[..len])?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from(Cause::Io(error))),
            }
        }
    }

    /// Begins a put whose bytes arrive in slices through [`write_put`](Self::write_put);
    /// [`finish_put`](Self::finish_put) ends it. It may extend over several transactions.
    ///
    /// # Errors
    /// `Limit` for a name or attributes that are too long; `InvalidName` for an empty name.
    pub fn begin_put(
        &mut self,
        name: &str,
        attributes: ObjectAttributes,
        condition: ObjectCondition,
    ) -> Result<ObjectPut> {
        self.change(|bucket, now| ObjectPut::new(bucket, name, attributes, condition, now))
    }

    /// Adds bytes to a put.
    ///
    /// # Errors
    /// `Limit` if there is no room for the bytes; `NotFound` if the put was rolled back. A full disk; a damaged page.
    pub fn write_put(&mut self, put: &mut ObjectPut, bytes: &[u8]) -> Result<()> {
        self.change(|bucket, _| put.write(bucket, bytes))
    }

    /// Turns the bytes of a put into an object, if its condition holds. Otherwise the bytes are removed.
    ///
    /// # Errors
    /// As for `write_put`.
    pub fn finish_put(&mut self, put: ObjectPut) -> Result<ObjectOutcome<StoredObject>> {
        self.change(|bucket, now| put.finish(bucket, now))
    }

    /// Removes the bytes of a put. If a put is dropped without this call, [`maintain`](Self::maintain) removes its
    /// bytes after a day.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn abort_put(&mut self, put: ObjectPut) -> Result<()> {
        self.free(|bucket, _| put.abort(bucket))
    }

    /// Deletes an object, protected or not, if the condition holds. Returns the deleted object.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    ///
    /// # Cost
    /// Frees the chunks of a small object; [`maintain`](Self::maintain) frees the chunks of a large one.
    pub fn delete(
        &mut self,
        name: &str,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        self.free(|bucket, now| bucket.delete(name, condition, now))
    }

    /// Deletes one page of the objects of a list, except protected ones. Returns the place at which to continue, if
    /// there are more objects.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn delete_listed(
        &mut self,
        query: &ListQuery,
    ) -> Result<(RemovedObjects, Option<ListToken>)> {
        self.free(|bucket, now| bucket.delete_listed(query, now))
    }

    /// Renames an object, replacing the object that has the new name, if the condition holds for that one.
    ///
    /// # Errors
    /// `Limit` for a name that is too long; `InvalidName` for an empty name. A full disk; a damaged page.
    pub fn rename(
        &mut self,
        from: &str,
        to: &str,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        self.change(|bucket, now| bucket.rename(from, to, condition, now))
    }

    /// Copies an object to another name, with its attributes or with new ones. Both objects share the same bytes.
    ///
    /// # Errors
    /// As for `rename`; `Limit` if there is no room for the object.
    pub fn copy(
        &mut self,
        from: &str,
        to: &str,
        attributes: Option<ObjectAttributes>,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<StoredObject>> {
        self.change(|bucket, now| bucket.copy(from, to, attributes, condition, now))
    }

    /// Changes attributes of an object, if the condition holds.
    ///
    /// # Errors
    /// `Limit` for attributes that are too long. A full disk; a damaged page.
    pub fn set_attributes(
        &mut self,
        name: &str,
        change: &ObjectChange,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        self.change(|bucket, now| bucket.set_attributes(name, change, condition, now))
    }

    /// Removes the oldest unprotected objects, at most `limit`, until there is room for the given number of further
    /// objects and bytes.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn make_room(
        &mut self,
        (objects, bytes): (u64, u64),
        limit: usize,
    ) -> Result<RemovedObjects> {
        self.free(|bucket, now| bucket.make_room((objects, bytes), now, limit))
    }

    /// Creates a link to the name of an object, or replaces the link with this id. A client that knows the id, which
    /// should be random, can read the object, as far as the server permits it.
    ///
    /// # Errors
    /// `Limit` for a name that is too long; `InvalidName` for an empty name. A full disk; a damaged page.
    pub fn link_object(
        &mut self,
        id: LinkId,
        name: &str,
        expires: Option<Timestamp>,
    ) -> Result<()> {
        self.change(|bucket, _| bucket.link_object(id, name, expires))
    }

    /// Removes a link; returns false if it does not exist.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn revoke_link(&mut self, id: LinkId) -> Result<bool> {
        self.free(|bucket, _| bucket.revoke_link(id))
    }

    /// Counts a read of this many bytes through a link; returns false if the link does not exist.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn count_link_read(&mut self, id: LinkId, bytes: u64) -> Result<bool> {
        self.change(|bucket, _| bucket.count_link_read(id, bytes))
    }

    /// Removes objects, uploads and links that have expired, and frees chunks of removed objects: at most `limit` in
    /// total. Call it from time to time, repeatedly until nothing is left to do;
    /// [`Database::maintain`](crate::Database::maintain) does this for all tables.
    ///
    /// # Errors
    /// A full disk; a damaged page.
    pub fn maintain(&mut self, limit: u64) -> Result<BucketMaintenance> {
        self.maintain_at(Timestamp(self.txn.now_ns()), limit)
    }

    pub(crate) fn maintain_at(&mut self, now: Timestamp, limit: u64) -> Result<BucketMaintenance> {
        self.free(|bucket, _| bucket.maintain(now.0, limit))
    }

    /// Rebuilds a bucket that may have lost parts. Passes a description of each loss to `report`.
    pub(crate) fn recover(&mut self, report: &mut dyn FnMut(String)) -> Result<()> {
        self.txn.change_table(self.index, |tree, pages| {
            let options = BucketOptions::default();
            BucketWriter::recover(tree, pages, options, report).map(drop)
        })
    }
}
