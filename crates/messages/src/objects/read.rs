//! Reading a bucket: manifests, contents, uploads.

use crate::objects::condition::{ObjectCondition, ObjectOutcome};
use crate::objects::cursor::ObjectCursor;
use crate::objects::keys::id_of;
use crate::objects::manifest::ObjectInfo;
use crate::objects::options::BucketOptions;
use crate::objects::parts::{Part, part, row, row_bytes};
use crate::objects::state::{BucketStat, State, stat};
use crate::objects::upload::{UploadId, UploadInfo};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

/// Reads a bucket of objects.
#[derive(Debug)]
pub struct BucketReader<R> {
    pub(crate) root: Tree,
    pub(crate) r: R,
    pub(crate) options: BucketOptions,
    pub(crate) state: State,
}

impl<R: PageRead> BucketReader<R> {
    /// Opens a bucket.
    ///
    /// # Errors
    /// A damaged or unreadable page; `Corrupt` for a table that is not a bucket.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        let options = BucketOptions::decode(&row(root, &r, Part::Options)?)?;
        let state = State::decode(&row(root, &r, Part::State)?)?;
        Ok(Self {
            root: *root,
            r,
            options,
            state,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &BucketOptions {
        &self.options
    }

    /// Counters of the bucket.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<BucketStat> {
        stat(&self.root, &self.r, &self.state)
    }

    /// The object with this name; `None` if it does not exist or has expired at `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One descent.
    pub fn info(&self, name: &str, now: i64) -> Result<Option<ObjectInfo>> {
        let info = self.manifest(name)?;
        Ok(info.filter(|info| !info.has_expired(Timestamp(now))))
    }

    /// The object with this name, if the condition holds for it.
    ///
    /// # Errors
    /// As for `info`.
    pub fn info_if(
        &self,
        name: &str,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        Ok(match self.info(name, now)? {
            None => ObjectOutcome::NotFound,
            Some(info) if condition.holds(Some(&info)) => ObjectOutcome::Done(info),
            Some(info) => ObjectOutcome::Refused(Some(Box::new(info))),
        })
    }

    /// A cursor at the first byte of an object. `info` must come from this reader, or from another reader of the same
    /// snapshot.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn cursor(&self, info: &ObjectInfo) -> Result<ObjectCursor<'_, R>> {
        ObjectCursor::new(&self.root, &self.r, info)
    }

    /// Passes up to `len` bytes of an object from `offset` on to `found`, in slices that are borrowed from the pages.
    /// Returns the number of bytes, which is smaller if the object ends earlier. `info` must come from this reader, or
    /// from another reader of the same snapshot.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `found`.
    ///
    /// # Cost
    /// Reads the bytes in blocks of 64 KiB. In the first chunk it also reads the blocks before them, because the
    /// checksum of a block is stored in the previous one. The memory does not depend on `len`.
    pub fn read(
        &self,
        info: &ObjectInfo,
        offset: u64,
        len: u64,
        found: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut cursor = self.cursor(info)?;
        cursor.seek(offset);
        let mut left = len;
        while let Some(slice) = cursor.next_slice(left)? {
            left -= slice.len() as u64;
            found(slice)?;
        }
        Ok(len - left)
    }

    /// The manifest with a name, whether or not the object has expired.
    pub(crate) fn manifest(&self, name: &str) -> Result<Option<ObjectInfo>> {
        let table = part(&self.root, &self.r, Part::Objects)?;
        match table.get(&self.r, name.as_bytes())? {
            Some(value) => ObjectInfo::decode(name.as_bytes(), &row_bytes(&value)?).map(Some),
            None => Ok(None),
        }
    }

    /// The upload with this id; `None` if it does not exist or has expired at `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn upload(&self, id: UploadId, now: i64) -> Result<Option<UploadInfo>> {
        let upload = self.upload_row(id)?;
        Ok(upload.filter(|upload| now < upload.expires.0 && !upload.is_put))
    }

    /// Lists at most `limit` uploads, beginning with the id `from`, including expired ones that have not been removed.
    /// Puts in progress are omitted. To continue, call again with the id after the last one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn uploads(&self, from: UploadId, limit: usize) -> Result<Vec<UploadInfo>> {
        let table = part(&self.root, &self.r, Part::Uploads)?;
        let mut rows = table.cursor(&self.r)?;
        let mut found = Vec::new();
        let mut there = rows.seek_ge(&from.0.to_be_bytes())?;
        while there && found.len() < limit {
            let id = id_of(rows.key())?;
            let upload = UploadInfo::decode(id, &row_bytes(&rows.value()?)?)?;
            if !upload.is_put {
                found.push(upload);
            }
            there = rows.next()?;
        }
        Ok(found)
    }

    /// The row of an upload or a put, whether or not it has expired.
    pub(crate) fn upload_row(&self, id: UploadId) -> Result<Option<UploadInfo>> {
        let table = part(&self.root, &self.r, Part::Uploads)?;
        match table.get(&self.r, &id.0.to_be_bytes())? {
            Some(value) => UploadInfo::decode(id.0, &row_bytes(&value)?).map(Some),
            None => Ok(None),
        }
    }
}
