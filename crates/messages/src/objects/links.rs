//! Links: random ids with which objects can be read without knowing their names. A link points to a name.
//!
//! ```text
//!  0  i64   expiry, 2^63 - 1 for none
//!  8  u64   number of reads
//! 16  u64   number of bytes read
//! 24  name of the object
//! ```

use crate::objects::bucket::BucketWriter;
use crate::objects::fields::Fields;
use crate::objects::keys::{check_name, name_of, time_key, time_of};
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::{Part, damaged, part, row_bytes};
use crate::objects::read::BucketReader;
use tidalite_pager::{PageRead, PageWrite, Result};
use tidalite_time::Timestamp;

const NO_EXPIRY: Timestamp = Timestamp::MAX;

/// Id of a link: 128 bits. If the link is to be secret, the caller takes them from a secure source of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub [u8; 16]);

/// A link to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLink {
    /// Name of the object. The object need not exist.
    pub name: String,
    /// Time from which on the link no longer exists; `None` if it does not expire.
    pub expires: Option<Timestamp>,
    /// Number of reads that were counted for the link.
    pub reads: u64,
    /// Number of bytes that were counted for the link.
    pub bytes: u64,
}

impl ObjectLink {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.expires.unwrap_or(NO_EXPIRY).0.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.reads.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new("link to an object", bytes);
        Ok(Self {
            expires: Some(fields.time()?).filter(|time| *time != NO_EXPIRY),
            reads: fields.u64()?,
            bytes: fields.u64()?,
            name: name_of(fields.rest())?.to_owned(),
        })
    }

    fn has_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|time| time.0 <= now)
    }
}

/// Decodes the key of a link.
pub(crate) fn link_id(key: &[u8]) -> Result<LinkId> {
    match key.try_into() {
        Ok(id) => Ok(LinkId(id)),
        Err(_) => Err(damaged("id of a link", key.escape_ascii(), "16 bytes")),
    }
}

impl<W: PageWrite> BucketWriter<'_, W> {
    /// Creates a link to the name of an object, or replaces the link with this id.
    ///
    /// # Errors
    /// `Limit` for a name that is too long; `InvalidName` for an empty name.
    pub fn link_object(
        &mut self,
        id: LinkId,
        name: &str,
        expires: Option<Timestamp>,
    ) -> Result<()> {
        check_name(name)?;
        self.revoke_link(id)?;
        let expires = expires.filter(|time| *time != NO_EXPIRY);
        let link = ObjectLink {
            name: name.to_owned(),
            expires,
            reads: 0,
            bytes: 0,
        };
        if let Some(time) = expires {
            self.insert(Part::LinkExpiry, &time_key(time, &id.0), b"")?;
        }
        self.insert(Part::Links, &id.0, &link.encode())
    }

    /// Removes a link; returns false if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    pub fn revoke_link(&mut self, id: LinkId) -> Result<bool> {
        let Some(link) = self.reader().link_row(id)? else {
            return Ok(false);
        };
        if let Some(time) = link.expires {
            self.remove(Part::LinkExpiry, &time_key(time, &id.0))?;
        }
        self.remove(Part::Links, &id.0)
    }

    /// Counts a read of this many bytes through a link; returns false if the link does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    pub fn count_link_read(&mut self, id: LinkId, bytes: u64) -> Result<bool> {
        let Some(mut link) = self.reader().link_row(id)? else {
            return Ok(false);
        };
        link.reads = link.reads.saturating_add(1);
        link.bytes = link.bytes.saturating_add(bytes);
        self.insert(Part::Links, &id.0, &link.encode())?;
        Ok(true)
    }

    /// Removes links that have expired, at most `limit`; sets `more` if others remain. Returns the number of removed
    /// links.
    pub(crate) fn purge_links(&mut self, now: i64, limit: u64, more: &mut bool) -> Result<u64> {
        let mut due = Vec::new();
        {
            let table = part(self.root, self.w, Part::LinkExpiry)?;
            let mut rows = table.cursor(self.w)?;
            let mut there = rows.first()?;
            while there && time_of(rows.key())?.0.0 <= now {
                if due.len() as u64 >= limit {
                    *more = true;
                    break;
                }
                due.push(rows.key().to_vec());
                there = rows.next()?;
            }
        }
        for key in &due {
            let (time, id) = time_of(key)?;
            // In a damaged file a row may contradict its link; then only the row is removed.
            let link = self.reader().link_row(link_id(id)?)?;
            if link.is_some_and(|link| link.expires == Some(time)) {
                self.remove(Part::Links, id)?;
            }
            self.remove(Part::LinkExpiry, key)?;
        }
        Ok(due.len() as u64)
    }
}

impl<R: PageRead> BucketReader<R> {
    /// The object to which a link points; `None` if the link or the object does not exist, or has expired at `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn linked(&self, id: LinkId, now: i64) -> Result<Option<ObjectInfo>> {
        match self.link(id, now)? {
            Some(link) => self.info(&link.name, now),
            None => Ok(None),
        }
    }

    /// The link with this id; `None` if it does not exist or has expired at `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn link(&self, id: LinkId, now: i64) -> Result<Option<ObjectLink>> {
        let link = self.link_row(id)?;
        Ok(link.filter(|link| !link.has_expired(now)))
    }

    /// Lists at most `limit` links, beginning with the id `from`, including expired ones that have not been removed.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn links(&self, from: LinkId, limit: usize) -> Result<Vec<(LinkId, ObjectLink)>> {
        let table = part(&self.root, &self.r, Part::Links)?;
        let mut rows = table.cursor(&self.r)?;
        let mut found = Vec::new();
        let mut there = rows.seek_ge(&from.0)?;
        while there && found.len() < limit {
            let link = ObjectLink::decode(&row_bytes(&rows.value()?)?)?;
            found.push((link_id(rows.key())?, link));
            there = rows.next()?;
        }
        Ok(found)
    }

    fn link_row(&self, id: LinkId) -> Result<Option<ObjectLink>> {
        let table = part(&self.root, &self.r, Part::Links)?;
        match table.get(&self.r, &id.0)? {
            Some(value) => ObjectLink::decode(&row_bytes(&value)?).map(Some),
            None => Ok(None),
        }
    }
}
