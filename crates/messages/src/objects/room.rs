//! Makes room for a new object: checks the limits of the bucket, removes expired objects, rotates old ones.

use crate::objects::attributes::ObjectAttributes;
use crate::objects::bucket::BucketWriter;
use crate::objects::condition::{ObjectCondition, ObjectOutcome};
use crate::objects::content_hash::ContentHash;
use crate::objects::keys::{COUNT_MAX, name_of, time_of};
use crate::objects::manifest::ObjectInfo;
use crate::objects::options::BucketOverflow;
use crate::objects::parts::{Part, part};
use crate::options::most;
use std::collections::BTreeMap;
use tidalite_pager::{Error, PageWrite, Result};
use tidalite_time::Timestamp;

/// Maximum number of objects that one put removes to make room. If a put needs more room, it fails with `Limit`;
/// `make_room` can then remove objects in steps.
pub const OBJECTS_ROTATED_PER_PUT_MAX: usize = 4096;

/// A summary of removed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedObjects {
    /// Number of objects.
    pub objects: u64,
    /// Total size in bytes of these objects.
    pub bytes: u64,
    /// Whether more objects must be removed, because the call has reached its limit.
    pub more: bool,
}

/// An object that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// The object.
    pub info: ObjectInfo,
    /// Whether it has replaced another one.
    pub replaced: bool,
    /// Other objects that were removed to make room.
    pub removed: RemovedObjects,
}

/// Contents that are about to become the contents of an object.
pub(crate) struct Contents {
    pub(crate) id: u64,
    pub(crate) size: u64,
    pub(crate) chunk_bytes: u32,
    pub(crate) hash: ContentHash,
}

/// Proof that an object may be stored: its condition holds and the bucket has room.
pub(crate) struct Place {
    old: Option<ObjectInfo>,
    removed: RemovedObjects,
}

/// Objects to be removed, by name.
#[derive(Default)]
struct Victims {
    list: BTreeMap<String, ObjectInfo>,
    bytes: u64,
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Maximum number of bytes of all objects, and of all uploads: the option, limited by the greatest value of a
    /// counter.
    pub(crate) fn bytes_max(&self) -> u64 {
        most(self.options.bytes_max).min(COUNT_MAX)
    }

    /// Checks the size of an object against its limits.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        let limit = most(self.options.object_bytes_max).min(self.bytes_max());
        if size > limit {
            return Err(too_large("bytes of an object", size, limit));
        }
        Ok(())
    }

    /// Checks the condition of a put, and makes room for an object of this size. The object named `keep` is not
    /// removed.
    pub(crate) fn prepare(
        &mut self,
        name: &str,
        size: u64,
        condition: &ObjectCondition,
        keep: Option<&str>,
        now: i64,
    ) -> Result<ObjectOutcome<Place>> {
        let old = self.manifest(name)?;
        let live = old.as_ref().filter(|old| !old.has_expired(Timestamp(now)));
        if !condition.holds(live) {
            return Ok(ObjectOutcome::Refused(live.cloned().map(Box::new)));
        }
        self.check_size(size)?;
        let (objects, bytes) = match &old {
            Some(old) => (
                self.state.objects,
                self.state.bytes.saturating_sub(old.size),
            ),
            None => (self.state.objects.saturating_add(1), self.state.bytes),
        };
        let bytes = bytes.saturating_add(size);
        let spared = |other: &str| other == name || Some(other) == keep;
        let victims = self.victims((objects, bytes), &spared, now, OBJECTS_ROTATED_PER_PUT_MAX)?;
        let left = objects.saturating_sub(victims.list.len() as u64);
        let limit = most(self.options.objects_max);
        if left > limit {
            return Err(too_large("objects of the bucket", left, limit));
        }
        let left = bytes.saturating_sub(victims.bytes);
        let limit = self.bytes_max();
        if left > limit {
            return Err(too_large("bytes of all objects of the bucket", left, limit));
        }
        let removed = self.remove_victims(victims)?;
        Ok(ObjectOutcome::Done(Place { old, removed }))
    }

    /// Stores the manifest of an object, which replaces the object with the same name.
    pub(crate) fn place(
        &mut self,
        place: Place,
        name: &str,
        contents: &Contents,
        attributes: ObjectAttributes,
        now: i64,
    ) -> Result<StoredObject> {
        let mut info = ObjectInfo {
            name: name.to_owned(),
            size: contents.size,
            chunk_bytes: contents.chunk_bytes,
            created: Timestamp(now),
            modified: Timestamp(now),
            hash: contents.hash,
            attributes,
            content: contents.id,
        };
        let mut replaced = false;
        if let Some(old) = &place.old {
            replaced = !old.has_expired(Timestamp(now));
            if replaced {
                info.created = old.created;
            }
            self.unlink(old)?;
            self.release(old.content)?;
        }
        self.link(&info)?;
        self.save()?;
        Ok(StoredObject {
            info,
            replaced,
            removed: place.removed,
        })
    }

    /// Removes expired objects, and with [`BucketOverflow::DropOldest`] also the oldest ones, until the limits leave
    /// room for the given number of further objects and bytes. Call it after limits were lowered, and before puts that
    /// need much room.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// A few descents for each removed object. At most `limit` objects are removed; a limit of 0 counts as 1.
    pub fn make_room(
        &mut self,
        (objects, bytes): (u64, u64),
        now: i64,
        limit: usize,
    ) -> Result<RemovedObjects> {
        let limit = limit.max(1);
        let after = |bucket: &Self| {
            let objects = bucket.state.objects.saturating_add(objects);
            (objects, bucket.state.bytes.saturating_add(bytes))
        };
        let victims = self.victims(after(self), &|_| false, now, limit)?;
        let is_full = victims.list.len() >= limit;
        let mut removed = self.remove_victims(victims)?;
        self.save()?;
        removed.more = is_full && self.is_above(after(self));
        Ok(removed)
    }

    /// Whether this number of objects and bytes exceeds a limit.
    fn is_above(&self, (objects, bytes): (u64, u64)) -> bool {
        objects > most(self.options.objects_max) || bytes > self.bytes_max()
    }

    /// The objects to remove so that the bucket does not exceed its limits, expired ones first; at most `limit`.
    fn victims(
        &self,
        (objects, bytes): (u64, u64),
        spared: &dyn Fn(&str) -> bool,
        now: i64,
        limit: usize,
    ) -> Result<Victims> {
        let mut victims = Victims::default();
        let reader = self.reader();
        for table in [Part::Expiry, Part::Ages] {
            if table == Part::Ages && self.options.overflow != BucketOverflow::DropOldest {
                break;
            }
            let rows = part(self.root, self.w, table)?;
            let mut rows = rows.cursor(self.w)?;
            // An index may contain objects that are already in the list, and the object to be kept.
            let rows_max = limit.saturating_add(victims.list.len()).saturating_add(2);
            let mut seen = 0;
            let mut there = rows.first()?;
            while there && victims.list.len() < limit && seen < rows_max {
                let left = objects.saturating_sub(victims.list.len() as u64);
                if !self.is_above((left, bytes.saturating_sub(victims.bytes))) {
                    break;
                }
                let (time, name) = time_of(rows.key())?;
                if table == Part::Expiry && time.0 > now {
                    break;
                }
                let name = name_of(name)?;
                if !spared(name)
                    && !victims.list.contains_key(name)
                    && let Some(info) = reader.manifest(name)?
                    && match table {
                        // In a damaged file a row may contradict the manifest; then the object is not removed.
                        Part::Expiry => info.has_expired(Timestamp(now)),
                        _ => !info.attributes.protected && info.modified == time,
                    }
                {
                    victims.bytes = victims.bytes.saturating_add(info.size);
                    victims.list.insert(name.to_owned(), info);
                }
                seen += 1;
                there = rows.next()?;
            }
        }
        Ok(victims)
    }

    fn remove_victims(&mut self, victims: Victims) -> Result<RemovedObjects> {
        for info in victims.list.values() {
            self.unlink(info)?;
            self.release(info.content)?;
        }
        Ok(RemovedObjects {
            objects: victims.list.len() as u64,
            bytes: victims.bytes,
            more: false,
        })
    }
}

#[cold]
pub(crate) fn too_large(what: &'static str, found: u64, limit: u64) -> Error {
    Error::Limit { what, found, limit }
}
