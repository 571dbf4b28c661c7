//! Changes of objects that do not affect their contents: deleting, renaming, copying, changing attributes.

use crate::objects::attributes::ObjectAttributes;
use crate::objects::bucket::BucketWriter;
use crate::objects::condition::{ObjectCondition, ObjectOutcome};
use crate::objects::keys::check_name;
use crate::objects::list::{ListQuery, ListToken};
use crate::objects::manifest::ObjectInfo;
use crate::objects::room::{Contents, RemovedObjects, StoredObject};
use tidalite_pager::{PageWrite, Result};
use tidalite_time::Timestamp;

/// New attributes of an object; `None` keeps an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectChange {
    /// New expiry; `Some(None)` if the object is not to expire.
    pub expires: Option<Option<Timestamp>>,
    /// Whether the object is protected.
    pub protected: Option<bool>,
    /// New content type.
    pub content_type: Option<String>,
    /// New metadata, which replaces all pairs.
    pub metadata: Option<Vec<(String, String)>>,
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Deletes an object, whether or not it is protected. Returns the deleted object.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// A few descents. Frees the chunks if they are at most [`CHUNKS_FREED_AT_ONCE`](crate::CHUNKS_FREED_AT_ONCE);
    /// otherwise `maintain` frees them.
    pub fn delete(
        &mut self,
        name: &str,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        let found = self.reader().info_if(name, condition, now)?;
        if let ObjectOutcome::Done(info) = &found {
            self.unlink(info)?;
            self.release(info.content)?;
            self.save()?;
        }
        Ok(found)
    }

    /// Deletes one page of the objects of a list, except protected ones; the delimiter has no effect. Returns the
    /// position at which to continue, if there are more objects.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// Reads the page, and deletes each object like `delete`.
    pub fn delete_listed(
        &mut self,
        query: &ListQuery,
        now: i64,
    ) -> Result<(RemovedObjects, Option<ListToken>)> {
        let query = ListQuery {
            delimiter: None,
            ..query.clone()
        };
        let page = self.reader().list(&query, now)?;
        let mut removed = RemovedObjects {
            more: page.next.is_some(),
            ..RemovedObjects::default()
        };
        for info in page
            .objects
            .iter()
            .filter(|info| !info.attributes.protected)
        {
            self.unlink(info)?;
            self.release(info.content)?;
            removed.objects += 1;
            removed.bytes = removed.bytes.saturating_add(info.size);
        }
        self.save()?;
        Ok((removed, page.next))
    }

    /// Renames an object, if the condition holds for the new name; an object with the new name is replaced. The times
    /// of the object do not change.
    ///
    /// # Errors
    /// `Limit` for a name that is too long; `InvalidName` for an empty name.
    ///
    /// # Cost
    /// A few descents; the contents are not touched.
    pub fn rename(
        &mut self,
        from: &str,
        to: &str,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        check_name(to)?;
        let Some(mut info) = self.reader().info(from, now)? else {
            return Ok(ObjectOutcome::NotFound);
        };
        let old = self.manifest(to)?;
        let live = old.as_ref().filter(|old| !old.has_expired(Timestamp(now)));
        if !condition.holds(live) {
            return Ok(ObjectOutcome::Refused(live.cloned().map(Box::new)));
        }
        if from == to {
            return Ok(ObjectOutcome::Done(info));
        }
        if let Some(old) = &old {
            self.unlink(old)?;
            self.release(old.content)?;
        }
        self.unlink(&info)?;
        to.clone_into(&mut info.name);
        self.link(&info)?;
        self.save()?;
        Ok(ObjectOutcome::Done(info))
    }

    /// Copies an object, if the condition holds for the new name; an object with the new name is replaced. Both objects
    /// share their chunks. The copy has the given `attributes`, or the attributes of the source if `None`.
    ///
    /// # Errors
    /// `Limit` for a name or attributes that are too long, and if there is no room for the copy; `InvalidName` for an
    /// empty name.
    ///
    /// # Cost
    /// A few descents; the contents are not touched.
    pub fn copy(
        &mut self,
        from: &str,
        to: &str,
        attributes: Option<ObjectAttributes>,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<StoredObject>> {
        check_name(to)?;
        if let Some(attributes) = &attributes {
            attributes.check()?;
        }
        let Some(source) = self.reader().info(from, now)? else {
            return Ok(ObjectOutcome::NotFound);
        };
        let place = match self.prepare(to, source.size, condition, Some(from), now)? {
            ObjectOutcome::Done(place) => place,
            ObjectOutcome::Refused(object) => return Ok(ObjectOutcome::Refused(object)),
            ObjectOutcome::NotFound => return Ok(ObjectOutcome::NotFound),
        };
        self.share(source.content)?;
        let contents = Contents {
            id: source.content,
            size: source.size,
            chunk_bytes: source.chunk_bytes,
            hash: source.hash,
        };
        let attributes = attributes.unwrap_or(source.attributes);
        self.place(place, to, &contents, attributes, now)
            .map(ObjectOutcome::Done)
    }

    /// Changes attributes of an object: sets, extends or clears its expiry, protects it, changes its metadata. The time
    /// of the last change of its contents is kept.
    ///
    /// # Errors
    /// `Limit` for attributes that are too long.
    ///
    /// # Cost
    /// A few descents; the contents are not touched.
    pub fn set_attributes(
        &mut self,
        name: &str,
        change: &ObjectChange,
        condition: &ObjectCondition,
        now: i64,
    ) -> Result<ObjectOutcome<ObjectInfo>> {
        let found = self.reader().info_if(name, condition, now)?;
        let ObjectOutcome::Done(old) = &found else {
            return Ok(found);
        };
        let mut info = old.clone();
        let attributes = &mut info.attributes;
        attributes.expires = change.expires.unwrap_or(attributes.expires);
        attributes.protected = change.protected.unwrap_or(attributes.protected);
        if let Some(content_type) = &change.content_type {
            content_type.clone_into(&mut attributes.content_type);
        }
        if let Some(metadata) = &change.metadata {
            metadata.clone_into(&mut attributes.metadata);
        }
        attributes.check()?;
        self.unlink(old)?;
        self.link(&info)?;
        self.save()?;
        Ok(ObjectOutcome::Done(info))
    }
}
