//! Buckets of objects, for reading.

use crate::catalog::table_name::Named;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_messages::{
    BucketOptions, BucketReader, BucketStat, LinkId, ListPage, ListQuery, ObjectCondition,
    ObjectCursor, ObjectInfo, ObjectLink, ObjectOutcome, ObjectVerification, UploadId, UploadInfo,
    UploadPart,
};
use tidalite_time::Timestamp;

/// A bucket of objects, in a snapshot or in the current state of a write transaction.
///
/// An object is a sequence of bytes of any length with a name, a content type, metadata and a hash. A reader sees the
/// whole object of its snapshot, even while another object replaces it.
pub struct Bucket<'a> {
    reader: BucketReader<Pages<'a>>,
    named: Named<'a>,
    now: i64,
}

impl<'a> Bucket<'a> {
    pub(super) fn of(pages: Pages<'a>, found: Found<'a>, now: i64) -> Result<Self> {
        Ok(Self {
            reader: BucketReader::open(&found.tree, pages)?,
            named: found.named,
            now,
        })
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        self.named.as_str()
    }

    /// Whether `maintain` has work at the time `now`.
    pub(crate) fn is_maintenance_due(&self, now: Timestamp) -> Result<bool> {
        Ok(self.reader.is_maintenance_due(now.0)?)
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &BucketOptions {
        self.reader.options()
    }

    /// Counters of the bucket.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<BucketStat> {
        Ok(self.reader.stat()?)
    }

    /// The object with this name; `None` if it does not exist, or has expired.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn info(&self, name: &str) -> Result<Option<ObjectInfo>> {
        Ok(self.reader.info(name, self.now)?)
    }

    /// The object with this name, if a condition holds, for example that its hash differs from the one that a client
    /// has.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn info_if(
        &self,
        name: &str,
        condition: &ObjectCondition,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        Ok(self.reader.info_if(name, condition, self.now)?)
    }

    /// A cursor at the first byte of an object; it implements seek and read. `info` must come from this view, or from
    /// another view of the same snapshot.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn cursor(&self, info: &ObjectInfo) -> Result<ObjectCursor<'_, Pages<'a>>> {
        Ok(self.reader.cursor(info)?)
    }

    /// Reads up to `len` bytes of an object from `offset` on; fewer if the object ends earlier.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Memory for the bytes. Use [`cursor`](Self::cursor) to read in pieces.
    pub fn read(&self, info: &ObjectInfo, offset: u64, len: u64) -> Result<Vec<u8>> {
        let len = len.min(info.size.saturating_sub(offset));
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0).min(1 << 24));
        self.reader.read(info, offset, len, &mut |slice| {
            bytes.extend_from_slice(slice);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Lists one page of objects in the order of their names.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn list(&self, query: &ListQuery) -> Result<ListPage> {
        Ok(self.reader.list(query, self.now)?)
    }

    /// Reads all bytes of an object and compares them with its hashes; `None` if it does not exist.
    ///
    /// # Errors
    /// An unreadable page; damage is part of the result.
    pub fn verify(&self, name: &str) -> Result<Option<ObjectVerification>> {
        Ok(self.reader.verify(name, self.now)?)
    }

    /// An upload; `None` if it does not exist or has expired.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn upload(&self, id: UploadId) -> Result<Option<UploadInfo>> {
        Ok(self.reader.upload(id, self.now)?)
    }

    /// Lists at most `limit` uploads, beginning with the id `from`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn uploads(&self, from: UploadId, limit: usize) -> Result<Vec<UploadInfo>> {
        Ok(self.reader.uploads(from, limit)?)
    }

    /// Lists at most `limit` stored parts of an upload, beginning with the number `from`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn upload_parts(&self, id: UploadId, from: u32, limit: usize) -> Result<Vec<UploadPart>> {
        Ok(self.reader.upload_parts(id, from, limit)?)
    }

    /// The object to which a link points; `None` if the link or the object does not exist, or has expired.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn linked(&self, id: LinkId) -> Result<Option<ObjectInfo>> {
        Ok(self.reader.linked(id, self.now)?)
    }

    /// The link with this id; `None` if it does not exist or has expired.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn link(&self, id: LinkId) -> Result<Option<ObjectLink>> {
        Ok(self.reader.link(id, self.now)?)
    }

    /// Lists at most `limit` links, beginning with the id `from`, including expired ones that have not been removed.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn links(&self, from: LinkId, limit: usize) -> Result<Vec<(LinkId, ObjectLink)>> {
        Ok(self.reader.links(from, limit)?)
    }

    /// Checks every rule of the format for the rows of the table, and calls `problem` with each violation;
    /// [`verify`](Self::verify) compares contents with their hashes. The check of a database does the same with all
    /// tables, and also checks their pages.
    ///
    /// # Errors
    /// A damaged or unreadable page, rows that cannot be decoded.
    ///
    /// # Cost
    /// Reads all rows.
    pub fn check(&self, problem: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(self.reader.check(&mut |text| problem(&text))?)
    }
}
