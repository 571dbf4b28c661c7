//! Maintenance in bounded steps: removes expired objects and abandoned uploads, and frees chunks.

use crate::objects::bucket::BucketWriter;
use crate::objects::keys::{id_of, name_of, time_key, time_of};
use crate::objects::parts::{Part, part};
use crate::objects::read::BucketReader;
use crate::objects::room::RemovedObjects;
use crate::objects::upload::UploadId;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};
use tidalite_time::Timestamp;

/// Result of one call of `maintain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketMaintenance {
    /// Expired objects that were removed.
    pub expired: RemovedObjects,
    /// Number of abandoned uploads and puts that were removed.
    pub uploads: u64,
    /// Number of expired links that were removed.
    pub links: u64,
    /// Number of chunks of removed contents that were freed.
    pub chunks: u64,
    /// Size in bytes of these chunks.
    pub chunk_bytes: u64,
    /// Whether work remains.
    pub more: bool,
}

impl<R: PageRead> BucketReader<R> {
    /// Whether [`BucketWriter::maintain`] has work at the time `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// Four rows.
    pub fn is_maintenance_due(&self, now: i64) -> Result<bool> {
        for of in [Part::Expiry, Part::UploadExpiry, Part::LinkExpiry] {
            let mut rows = part(&self.root, &self.r, of)?.cursor(&self.r)?;
            if rows.first()? && time_of(rows.key())?.0.0 <= now {
                return Ok(true);
            }
        }
        Ok(!part(&self.root, &self.r, Part::Orphans)?.is_empty())
    }
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Removes objects, uploads and links that have expired at `now`, and frees chunks of removed contents: at most
    /// `limit` in total.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// Proportional to `limit`. For each object and upload, at most
    /// [`CHUNKS_FREED_AT_ONCE`](crate::CHUNKS_FREED_AT_ONCE) chunks are freed in addition.
    pub fn maintain(&mut self, now: i64, limit: u64) -> Result<BucketMaintenance> {
        let mut done = BucketMaintenance {
            expired: self.purge_expired(now, limit)?,
            ..BucketMaintenance::default()
        };
        done.more = done.expired.more;
        let mut left = limit - done.expired.objects;
        for id in self.due_uploads(now, left, &mut done.more)? {
            if let Some(upload) = self.reader().upload_row(id)? {
                self.remove_upload(&upload)?;
            }
            done.uploads += 1;
        }
        left -= done.uploads;
        done.links = self.purge_links(now, left, &mut done.more)?;
        left -= done.links;
        self.free_orphans(left, &mut done)?;
        self.save()?;
        Ok(done)
    }

    /// Removes objects that have expired at `now`, at most `limit`.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// As much as `delete` for each object.
    pub fn purge_expired(&mut self, now: i64, limit: u64) -> Result<RemovedObjects> {
        let (names, more) = due_names(self.root, self.w, now, limit)?;
        let mut removed = RemovedObjects {
            more,
            ..RemovedObjects::default()
        };
        for (time, name) in names {
            removed.objects += 1;
            match self.manifest(&name)? {
                Some(info) if info.has_expired(Timestamp(now)) => {
                    removed.bytes = removed.bytes.saturating_add(info.size);
                    self.unlink(&info)?;
                    self.release(info.content)?;
                }
                _ => {}
            }
            // In an undamaged file, removing the object also removes this row. It still exists only if it contradicts
            // the manifest.
            self.remove(Part::Expiry, &time_key(time, name.as_bytes()))?;
        }
        self.save()?;
        Ok(removed)
    }

    /// Ids of uploads that have expired. Also removes rows of uploads that do not exist, which occur only in a damaged
    /// file.
    fn due_uploads(&mut self, now: i64, limit: u64, more: &mut bool) -> Result<Vec<UploadId>> {
        let mut due = Vec::new();
        let mut lost = Vec::new();
        {
            let reader = self.reader();
            let table = part(self.root, self.w, Part::UploadExpiry)?;
            let mut rows = table.cursor(self.w)?;
            let mut there = rows.first()?;
            while there {
                let (time, id) = time_of(rows.key())?;
                if time.0 > now {
                    break;
                }
                if (due.len() + lost.len()) as u64 >= limit {
                    *more = true;
                    break;
                }
                let id = UploadId(id_of(id)?);
                match reader.upload_row(id)? {
                    Some(upload) if upload.expires == time => due.push(id),
                    _ => lost.push(rows.key().to_vec()),
                }
                there = rows.next()?;
            }
        }
        for key in lost {
            self.remove(Part::UploadExpiry, &key)?;
        }
        Ok(due)
    }

    /// Frees chunks of orphans, at most `left`.
    fn free_orphans(&mut self, mut left: u64, done: &mut BucketMaintenance) -> Result<()> {
        loop {
            let key = {
                let table = part(self.root, self.w, Part::Orphans)?;
                let mut rows = table.cursor(self.w)?;
                if !rows.first()? {
                    return Ok(());
                }
                rows.key().to_vec()
            };
            if left == 0 {
                done.more = true;
                return Ok(());
            }
            let freed = self.free_chunks(id_of(&key)?, (0, u32::MAX), left)?;
            done.chunks += freed.chunks;
            done.chunk_bytes = done.chunk_bytes.saturating_add(freed.bytes);
            if freed.more {
                done.more = true;
                return Ok(());
            }
            self.remove(Part::Orphans, &key)?;
            // An orphan without chunks also counts as one.
            left -= freed.chunks.max(1);
        }
    }
}

/// Expiry times and names of objects that have expired, at most `limit`, and whether more have expired.
fn due_names<R: PageRead>(
    root: &Tree,
    r: &R,
    now: i64,
    limit: u64,
) -> Result<(Vec<(Timestamp, String)>, bool)> {
    let table = part(root, r, Part::Expiry)?;
    let mut rows = table.cursor(r)?;
    let mut names = Vec::new();
    let mut there = rows.first()?;
    while there {
        let (time, name) = time_of(rows.key())?;
        if time.0 > now {
            break;
        }
        if names.len() as u64 >= limit {
            return Ok((names, true));
        }
        names.push((time, name_of(name)?.to_owned()));
        there = rows.next()?;
    }
    Ok((names, false))
}
