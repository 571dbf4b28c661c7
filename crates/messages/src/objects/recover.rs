//! Rebuilds a bucket that has lost rows or parts.
//!
//! The primary rows are manifests, chunks, uploads with their tails, links and options. Everything else is derived from
//! them: hashes, orders of time, shares, orphans and counters.

use crate::objects::append::tail;
use crate::objects::bucket::BucketWriter;
use crate::objects::check::{stored_bytes, whole_hash};
use crate::objects::chunks::ChunkHash;
use crate::objects::keys::{CHUNK_BYTES_MAX, chunk_key, chunk_of, id_of, time_key};
use crate::objects::links::{ObjectLink, link_id};
use crate::objects::manifest::ObjectInfo;
use crate::objects::options::BucketOptions;
use crate::objects::parts::{Part, damaged, part, row, row_bytes};
use crate::objects::state::State;
use crate::objects::upload::{UploadInfo, UploadMode};
use crate::objects::verify::hash_value;
use tidalite_index::RoaringTreemap;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageWrite, Result};

/// Number of rows that are read before any of them is changed, because a table cannot be changed while it is read.
const BATCH_ROWS: usize = 256;

/// Parts that are rebuilt from other rows.
const DERIVED: [Part; 6] = [
    Part::Expiry,
    Part::Ages,
    Part::Shares,
    Part::Orphans,
    Part::UploadExpiry,
    Part::LinkExpiry,
];

impl<'b, W: PageWrite> BucketWriter<'b, W> {
    /// Rebuilds a bucket that has lost rows or whole parts. Objects and uploads with missing chunks are dropped; chunks
    /// without an object or upload become orphans, which `maintain` frees. Passes a description of each loss to
    /// `report`. `options` are used if the bucket has lost its own.
    ///
    /// # Errors
    /// A damaged or unreadable page, a full disk.
    ///
    /// # Cost
    /// Reads all rows except chunks that are stored in extents of their own; also reads the chunks whose hashes are
    /// lost.
    pub fn recover(
        root: &'b mut Tree,
        w: &'b mut W,
        options: BucketOptions,
        report: &mut dyn FnMut(String),
    ) -> Result<Self> {
        let stored = row(root, w, Part::Options).and_then(|row| BucketOptions::decode(&row));
        let options = match stored {
            Ok(stored) => stored,
            Err(Error::Corrupt(corrupt)) => {
                report(format!("options: {corrupt}"));
                options.checked()?
            }
            Err(error) => return Err(error),
        };
        let old = row(root, w, Part::State).and_then(|row| State::decode(&row));
        let next_content = match old {
            Ok(old) => old.next_content,
            Err(Error::Corrupt(_)) => 0,
            Err(error) => return Err(error),
        };
        let mut bucket = Self {
            root,
            w,
            options,
            state: State {
                next_content,
                ..State::default()
            },
        };
        bucket.set_options(options)?;
        for table in DERIVED {
            bucket.change(table, &mut |w, rows| rows.clear(w))?;
        }
        bucket.recover_hashes(report)?;
        let mut owned = RoaringTreemap::new();
        bucket.recover_objects(&mut owned, report)?;
        bucket.recover_uploads(&mut owned, report)?;
        bucket.recover_links(report)?;
        bucket.find_orphans(&owned)?;
        let next = owned.max().map_or(0, |most| most + 1);
        bucket.state.next_content = bucket.state.next_content.max(next);
        bucket.save()?;
        Ok(bucket)
    }

    /// Computes the hashes of chunks that have none, and removes hashes without a chunk.
    fn recover_hashes(&mut self, report: &mut dyn FnMut(String)) -> Result<()> {
        self.each_batch(
            Part::Chunks,
            &mut |bucket, key| {
                let hash = {
                    let chunks = part(bucket.root, bucket.w, Part::Chunks)?;
                    let Some(value) = chunks.get(bucket.w, key)? else {
                        return Ok(());
                    };
                    chunk_of(key)?;
                    if !(1..=u64::from(CHUNK_BYTES_MAX)).contains(&value.len()) {
                        return Err(damaged(
                            "chunk",
                            format!("{} bytes", value.len()),
                            CHUNK_BYTES_MAX,
                        ));
                    }
                    let len = value.len() as u32;
                    let stored = hash_row(bucket.root, bucket.w, key)?;
                    if stored.is_some_and(|stored| stored.len == len) {
                        return Ok(());
                    }
                    let hash = hash_value(&value)?;
                    ChunkHash { hash, len }
                };
                bucket.insert(Part::Hashes, key, &hash.encode())
            },
            report,
        )?;
        self.each_batch(
            Part::Hashes,
            &mut |bucket, key| {
                let chunks = part(bucket.root, bucket.w, Part::Chunks)?;
                let is_there = chunks.contains(bucket.w, key)?;
                match hash_row(bucket.root, bucket.w, key)? {
                    Some(hash) if is_there => bucket.state.add_chunk(u64::from(hash.len)),
                    _ => {
                        bucket.remove(Part::Hashes, key)?;
                    }
                }
                Ok(())
            },
            report,
        )
    }

    fn recover_objects(
        &mut self,
        owned: &mut RoaringTreemap,
        report: &mut dyn FnMut(String),
    ) -> Result<()> {
        self.each_batch(
            Part::Objects,
            &mut |bucket, key| {
                let info = {
                    let table = part(bucket.root, bucket.w, Part::Objects)?;
                    let Some(value) = table.get(bucket.w, key)? else {
                        return Ok(());
                    };
                    ObjectInfo::decode(key, &row_bytes(&value)?)?
                };
                let hash = whole_hash(
                    bucket.root,
                    bucket.w,
                    info.content,
                    (info.size, info.chunk_bytes),
                )?;
                if hash.finish() != info.hash {
                    return Err(damaged("contents", "another hash", info.hash));
                }
                if !owned.insert(info.content) {
                    bucket.share(info.content)?;
                }
                bucket.state.add_object(info.size);
                bucket.link_times(&info)
            },
            report,
        )
    }

    fn recover_uploads(
        &mut self,
        owned: &mut RoaringTreemap,
        report: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut with_tails = RoaringTreemap::new();
        self.each_batch(
            Part::Uploads,
            &mut |bucket, key| {
                let id = id_of(key)?;
                let mut upload = {
                    let table = part(bucket.root, bucket.w, Part::Uploads)?;
                    let Some(value) = table.get(bucket.w, key)? else {
                        return Ok(());
                    };
                    UploadInfo::decode(id, &row_bytes(&value)?)?
                };
                if owned.contains(id) {
                    return Err(damaged(
                        "upload",
                        "contents of an object",
                        "contents of its own",
                    ));
                }
                upload.len = stored_bytes(bucket.root, bucket.w, &upload)?;
                if upload.mode == UploadMode::Append {
                    tail(bucket.root, bucket.w, &upload)?;
                    with_tails.insert(id);
                }
                owned.insert(id);
                bucket.state.uploads += 1;
                bucket.state.upload_bytes = bucket.state.upload_bytes.saturating_add(upload.len);
                bucket.insert(Part::UploadExpiry, &time_key(upload.expires, key), b"")?;
                bucket.save_upload(&upload)
            },
            report,
        )?;
        self.each_batch(
            Part::Tails,
            &mut |bucket, key| {
                let id = id_of(key.get(..size_of::<u64>()).unwrap_or(key))?;
                if !with_tails.contains(id) {
                    bucket.remove(Part::Tails, key)?;
                }
                Ok(())
            },
            report,
        )
    }

    fn recover_links(&mut self, report: &mut dyn FnMut(String)) -> Result<()> {
        self.each_batch(
            Part::Links,
            &mut |bucket, key| {
                let link = {
                    let table = part(bucket.root, bucket.w, Part::Links)?;
                    let Some(value) = table.get(bucket.w, key)? else {
                        return Ok(());
                    };
                    ObjectLink::decode(&row_bytes(&value)?)?
                };
                let id = link_id(key)?;
                match link.expires {
                    Some(time) => bucket.insert(Part::LinkExpiry, &time_key(time, &id.0), b""),
                    None => Ok(()),
                }
            },
            report,
        )
    }

    /// Turns contents without an owner into orphans.
    fn find_orphans(&mut self, owned: &RoaringTreemap) -> Result<()> {
        let mut from = 0;
        loop {
            let content = {
                let table = part(self.root, self.w, Part::Hashes)?;
                let mut rows = table.cursor(self.w)?;
                if !rows.seek_ge(&chunk_key(from, 0))? {
                    return Ok(());
                }
                chunk_of(rows.key())?.0
            };
            if !owned.contains(content) {
                self.insert(Part::Orphans, &content.to_be_bytes(), b"")?;
            }
            let Some(next) = content.checked_add(1) else {
                return Ok(());
            };
            self.state.next_content = self.state.next_content.max(next);
            from = next;
        }
    }

    /// Passes the key of each row of a part to `each`, which may change the row. If `each` returns `Corrupt`, the row
    /// is removed and reported.
    fn each_batch(
        &mut self,
        table: Part,
        each: &mut dyn FnMut(&mut Self, &[u8]) -> Result<()>,
        report: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let mut keys = Vec::new();
            {
                let rows = part(self.root, self.w, table)?;
                let mut rows = rows.cursor(self.w)?;
                let mut there = match &last {
                    Some(last) => rows.seek_gt(last)?,
                    None => rows.first()?,
                };
                while there && keys.len() < BATCH_ROWS {
                    keys.push(rows.key().to_vec());
                    there = rows.next()?;
                }
            }
            for key in &keys {
                match each(self, key) {
                    Ok(()) => {}
                    Err(Error::Corrupt(corrupt)) => {
                        report(format!("{table:?} {}: {corrupt}", key.escape_ascii()));
                        self.remove(table, key)?;
                    }
                    Err(error) => return Err(error),
                }
            }
            match keys.pop() {
                Some(key) => last = Some(key),
                None => return Ok(()),
            }
        }
    }
}

/// The stored hash of a chunk; `None` if it is lost or damaged.
fn hash_row<W: PageWrite>(root: &Tree, w: &W, key: &[u8]) -> Result<Option<ChunkHash>> {
    let hashes = part(root, w, Part::Hashes)?;
    let row = hashes.get(w, key)?;
    Ok(row.and_then(|row| ChunkHash::decode(&row_bytes(&row).ok()?).ok()))
}
