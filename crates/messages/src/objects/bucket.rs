//! A bucket in a write transaction.

use crate::objects::keys::{CONTENT_MAX, time_key};
use crate::objects::manifest::ObjectInfo;
use crate::objects::options::BucketOptions;
use crate::objects::parts::{Part, row};
use crate::objects::read::BucketReader;
use crate::objects::state::{BucketStat, State, stat};
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::{Error, PageWrite, Refusal, Result};

/// A bucket of objects that a write transaction changes.
///
/// Errors `Limit` and `Refused` are returned before anything is changed. After any
/// other error the transaction must be rolled back.
#[derive(Debug)]
pub struct BucketWriter<'b, W> {
    pub(crate) root: &'b mut Tree,
    pub(crate) w: &'b mut W,
    pub(crate) options: BucketOptions,
    pub(crate) state: State,
}

impl<'b, W: PageWrite> BucketWriter<'b, W> {
    /// Creates a bucket in an empty table.
    ///
    /// # Errors
    /// `InvalidInput` for options outside their limits; `AlreadyExists` for a table that has rows.
    pub fn create(root: &'b mut Tree, w: &'b mut W, options: BucketOptions) -> Result<Self> {
        if !root.is_empty() {
            return Err(Error::refused(
                Refusal::AlreadyExists,
                format!("a table of {} rows", root.len()),
                "an empty table for a new bucket",
            ));
        }
        let options = options.checked()?;
        root.insert(w, &Part::Options.key(), &options.encode())?;
        let mut bucket = Self {
            root,
            w,
            options,
            state: State::default(),
        };
        bucket.save()?;
        Ok(bucket)
    }

    /// Opens a bucket.
    ///
    /// # Errors
    /// A damaged or unreadable page; `Corrupt` for a table that is not a bucket.
    pub fn open(root: &'b mut Tree, w: &'b mut W) -> Result<Self> {
        let options = BucketOptions::decode(&row(root, w, Part::Options)?)?;
        let state = State::decode(&row(root, w, Part::State)?)?;
        Ok(Self {
            root,
            w,
            options,
            state,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &BucketOptions {
        &self.options
    }

    /// Changes the options. Stored objects keep the size of their chunks; limits apply to later puts and uploads.
    ///
    /// # Errors
    /// `InvalidInput` for options outside their limits.
    pub fn set_options(&mut self, options: BucketOptions) -> Result<()> {
        self.options = options.checked()?;
        self.root
            .insert(self.w, &Part::Options.key(), &options.encode())?;
        Ok(())
    }

    /// Counters of the bucket.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<BucketStat> {
        stat(self.root, self.w, &self.state)
    }

    /// A reader of the bucket with the changes made so far in this transaction.
    #[must_use]
    pub fn reader(&self) -> BucketReader<&W> {
        BucketReader {
            root: *self.root,
            r: self.w,
            options: self.options,
            state: self.state,
        }
    }

    /// Stores the counters. Every public change does this at its end.
    pub(crate) fn save(&mut self) -> Result<()> {
        self.root
            .insert(self.w, &Part::State.key(), &self.state.encode())?;
        Ok(())
    }

    pub(crate) fn change<T>(
        &mut self,
        part: Part,
        change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
    ) -> Result<T> {
        tidalite_kv::change_part(self.root, self.w, &part.key(), change)
    }

    pub(crate) fn insert(&mut self, part: Part, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(part, &mut |w, table| table.insert(w, key, value).map(drop))
    }

    pub(crate) fn remove(&mut self, part: Part, key: &[u8]) -> Result<bool> {
        self.change(part, &mut |w, table| table.remove(w, key))
    }

    /// The next content id; a `Limit` error if all ids are used.
    pub(crate) fn next_content(&self) -> Result<u64> {
        let id = self.state.next_content;
        if id >= CONTENT_MAX {
            return Err(Error::Limit {
                what: "content ids of the bucket",
                found: id.saturating_add(1),
                limit: CONTENT_MAX,
            });
        }
        Ok(id)
    }

    /// Assigns the next content id.
    pub(crate) fn take_content(&mut self) -> Result<u64> {
        let id = self.next_content()?;
        self.state.next_content = id + 1;
        Ok(id)
    }

    /// Stores the manifest of an object, after its rows in the orders of expiry and age.
    pub(crate) fn link(&mut self, info: &ObjectInfo) -> Result<()> {
        self.link_times(info)?;
        self.state.add_object(info.size);
        self.insert(Part::Objects, info.name.as_bytes(), &info.encode())
    }

    /// Removes the manifest of an object, and its rows in the orders of expiry and age. Its contents are kept.
    pub(crate) fn unlink(&mut self, info: &ObjectInfo) -> Result<()> {
        self.unlink_times(info)?;
        self.state.remove_object(info.size);
        self.remove(Part::Objects, info.name.as_bytes()).map(drop)
    }

    /// Adds the rows of an object in order of expiry and of age.
    pub(crate) fn link_times(&mut self, info: &ObjectInfo) -> Result<()> {
        let name = info.name.as_bytes();
        if let Some(time) = info.attributes.removed_at() {
            self.insert(Part::Expiry, &time_key(time, name), b"")?;
        }
        if !info.attributes.protected {
            self.insert(Part::Ages, &time_key(info.modified, name), b"")?;
        }
        Ok(())
    }

    /// Removes the rows of an object in order of expiry and of age.
    pub(crate) fn unlink_times(&mut self, info: &ObjectInfo) -> Result<()> {
        let name = info.name.as_bytes();
        if let Some(time) = info.attributes.removed_at() {
            self.remove(Part::Expiry, &time_key(time, name))?;
        }
        if !info.attributes.protected {
            self.remove(Part::Ages, &time_key(info.modified, name))?;
        }
        Ok(())
    }

    /// The manifest with a name, whether or not the object has expired.
    pub(crate) fn manifest(&self, name: &str) -> Result<Option<ObjectInfo>> {
        self.reader().manifest(name)
    }
}
