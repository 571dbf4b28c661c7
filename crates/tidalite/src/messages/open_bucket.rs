//! Opening buckets, in a snapshot or in a write transaction.

use crate::messages::bucket::Bucket;
use crate::messages::bucket_mut::BucketMut;
use crate::messages::open::other_options;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_messages::{BucketOptions, BucketWriter, check_options};

const LAYOUT: TableLayout = TableLayout::Bucket;

impl<S: ReadSource> Reading<S> {
    /// Opens the bucket with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged or unreadable page.
    pub fn bucket(&self, name: &str) -> Result<Option<Bucket<'_>>> {
        let Some(found) = self.find_untyped(name, LAYOUT)? else {
            return Ok(None);
        };
        Bucket::of(self.pages.view(), found, self.clock().now().0).map(Some)
    }
}

impl WriteTxn {
    /// Opens a bucket of objects; creates it with the default options if it does not exist.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use std::io::{Read, Seek, SeekFrom};
    /// use tidalite::objects::{ObjectAttributes, ObjectCondition};
    ///
    /// let mut tx = db.begin_write()?;
    /// let attributes = ObjectAttributes { content_type: "text/plain".into(), ..Default::default() };
    /// let mut bucket = tx.bucket("files")?;
    /// // Any reader: a file, a socket. The bytes are never in memory as a whole.
    /// bucket.put_from("notes/today", &mut &b"tide at noon"[..], attributes, ObjectCondition::Always)?;
    /// tx.commit()?;
    ///
    /// let snap = db.begin_read()?;
    /// let bucket = snap.bucket("files")?.ok_or("no bucket")?;
    /// let info = bucket.info("notes/today")?.ok_or("no object")?;
    /// assert_eq!((info.size, &*info.attributes.content_type), (12, "text/plain"));
    /// let mut bytes = bucket.cursor(&info)?;
    /// bytes.seek(8);
    /// let mut end = String::new();
    /// bytes.read_to_string(&mut end)?;
    /// assert_eq!(end, "noon");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table; `Broken`; errors of the
    /// file.
    pub fn bucket(&mut self, name: &str) -> Result<BucketMut<'_>> {
        self.open_bucket(name, None)
    }

    /// Opens a bucket; creates it with these options if it does not exist.
    ///
    /// # Errors
    /// As for [`bucket`](Self::bucket); `InvalidInput` for options that cannot be used; `WrongType` if the bucket
    /// exists and has other options.
    pub fn bucket_with(&mut self, name: &str, options: &BucketOptions) -> Result<BucketMut<'_>> {
        self.open_bucket(name, Some(options))
    }

    /// Opens an existing bucket for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for [`bucket`](Self::bucket).
    pub fn bucket_if_exists(&mut self, name: &str) -> Result<Option<BucketMut<'_>>> {
        let index = self.open_untyped(name, LAYOUT)?;
        Ok(index.map(|index| BucketMut::new(self, index)))
    }

    fn open_bucket(&mut self, name: &str, asked: Option<&BucketOptions>) -> Result<BucketMut<'_>> {
        let Some(index) = self.open_untyped(name, LAYOUT)? else {
            let options = asked.copied().unwrap_or_default();
            check_options(options.problem())?;
            let index = self.create_untyped(name, LAYOUT, |tree, pages| {
                BucketWriter::create(tree, pages, options).map(drop)
            })?;
            return Ok(BucketMut::new(self, index));
        };
        let bucket = BucketMut::new(self, index);
        if let Some(asked) = asked {
            let stored = bucket.options()?;
            if stored != *asked {
                return Err(other_options(name, &stored, asked));
            }
        }
        Ok(bucket)
    }
}
