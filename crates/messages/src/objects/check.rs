//! Checks the rules of the format for a bucket.

use crate::objects::append::tail;
use crate::objects::chunks::{ChunkHash, each_hash, shares_of};
use crate::objects::content_hash::ChunkHashes;
use crate::objects::keys::{chunk_count, chunk_len, chunk_of, id_of, name_of, time_key, time_of};
use crate::objects::links::{ObjectLink, link_id};
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::{Part, damaged, part, row_bytes};
use crate::objects::read::BucketReader;
use crate::objects::state::State;
use crate::objects::upload::{UploadId, UploadInfo, UploadMode};
use std::collections::BTreeMap;
use tidalite_index::RoaringTreemap;
use tidalite_kv::{Tree, Value};
use tidalite_pager::{Error, PageRead, Result};

/// Callback that receives a problem as text.
type OnProblem<'f> = dyn FnMut(String) + 'f;

/// Facts collected from the rows of the bucket.
#[derive(Default)]
struct Found {
    state: State,
    /// Ids of contents that belong to an object, an upload or the orphans.
    owned: RoaringTreemap,
    /// For contents shared by several objects: the number of these objects, not counting the first.
    shares: BTreeMap<u64, u64>,
    expiry: u64,
    ages: u64,
    tails: u64,
    link_expiry: u64,
}

/// Checks that the chunk hashes of some contents match a size, and returns the hash of the contents; an error if they
/// do not match.
pub(crate) fn whole_hash<R: PageRead>(
    root: &Tree,
    r: &R,
    content: u64,
    (size, chunk_bytes): (u64, u32),
) -> Result<ChunkHashes> {
    let chunks = chunk_count(size, chunk_bytes);
    let mut hashes = ChunkHashes::default();
    let mut next = 0;
    each_hash(root, r, (content, 0), &mut |index, chunk| {
        let len = chunk_len(size, chunk_bytes, next);
        if u64::from(index) != next || u64::from(chunk.len) != len {
            let found = format!("chunk {index} of {} bytes", chunk.len);
            return Err(damaged(
                "contents",
                found,
                format!("chunk {next} of {len} bytes"),
            ));
        }
        hashes.push(&chunk.hash);
        next += 1;
        Ok(true)
    })?;
    if next != chunks {
        return Err(damaged(
            "contents",
            format!("{next} chunks"),
            format!("{chunks} chunks"),
        ));
    }
    Ok(hashes)
}

impl<R: PageRead> BucketReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`; the bytes of the chunks are compared with their hashes by [`verify`](Self::verify).
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads the whole bucket except chunks that are stored in extents of their own. Needs a few bits of memory for
    /// each object.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut found = Found::default();
        self.check_objects(&mut found, problem)?;
        self.check_shares(&found, problem)?;
        self.check_uploads(&mut found, problem)?;
        self.check_orphans(&mut found, problem)?;
        self.check_chunks(&mut found, problem)?;
        self.check_links(&mut found, problem)?;
        let lengths = [
            (Part::Expiry, found.expiry),
            (Part::Ages, found.ages),
            (Part::UploadExpiry, found.state.uploads),
            (Part::Tails, found.tails),
            (Part::LinkExpiry, found.link_expiry),
            (Part::Chunks, found.state.chunks),
        ];
        for (table, expected) in lengths {
            let rows = self.rows_in(table)?;
            if rows != expected {
                problem(format!("{table:?}: {rows} rows, {expected} belong there"));
            }
        }
        found.state.next_content = self.state.next_content;
        if found.state != self.state {
            problem(format!(
                "state: {:?} is noted, found {:?}",
                self.state, found.state
            ));
        }
        let next = self.state.next_content;
        if let Some(most) = found.owned.max().filter(|most| *most >= next) {
            problem(format!("contents {most}, the next ones are {next}"));
        }
        Ok(())
    }

    fn check_objects(&self, found: &mut Found, problem: &mut OnProblem<'_>) -> Result<()> {
        self.each_row(
            Part::Objects,
            &mut |key, value| {
                let name = name_of(key)?;
                let info = ObjectInfo::decode(key, &row_bytes(value)?)?;
                found.state.add_object(info.size);
                if !found.owned.insert(info.content) {
                    *found.shares.entry(info.content).or_default() += 1;
                }
                let division = (info.size, info.chunk_bytes);
                let hash = whole_hash(&self.root, &self.r, info.content, division)?.finish();
                if hash != info.hash {
                    let noted = info.hash;
                    return Err(damaged(
                        "contents",
                        format!("chunks with the hash {hash}"),
                        noted,
                    ));
                }
                if let Some(time) = info.attributes.removed_at() {
                    found.expiry += 1;
                    self.expect_row(Part::Expiry, &time_key(time, name.as_bytes()))?;
                }
                if !info.attributes.protected {
                    found.ages += 1;
                    self.expect_row(Part::Ages, &time_key(info.modified, name.as_bytes()))?;
                }
                Ok(())
            },
            problem,
        )
    }

    fn check_shares(&self, found: &Found, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut noted = BTreeMap::new();
        self.each_row(
            Part::Shares,
            &mut |key, value| {
                noted.insert(id_of(key)?, shares_of(&row_bytes(value)?)?);
                Ok(())
            },
            problem,
        )?;
        if noted != found.shares {
            problem(format!(
                "shares: {noted:?} are noted, found {:?}",
                found.shares
            ));
        }
        Ok(())
    }

    fn check_uploads(&self, found: &mut Found, problem: &mut OnProblem<'_>) -> Result<()> {
        self.each_row(
            Part::Uploads,
            &mut |key, value| {
                let upload = UploadInfo::decode(id_of(key)?, &row_bytes(value)?)?;
                found.state.uploads += 1;
                found.state.upload_bytes = found.state.upload_bytes.saturating_add(upload.len);
                if !found.owned.insert(upload.id.0) {
                    return Err(damaged(
                        "upload",
                        "contents of an object",
                        "contents of its own",
                    ));
                }
                self.expect_row(Part::UploadExpiry, &time_key(upload.expires, key))?;
                let stored = stored_bytes(&self.root, &self.r, &upload)?;
                if upload.mode == UploadMode::Append {
                    found.tails += self.count_tails(upload.id)?;
                    tail(&self.root, &self.r, &upload)?;
                }
                if stored != upload.len {
                    return Err(damaged("upload", format!("{stored} bytes"), upload.len));
                }
                Ok(())
            },
            problem,
        )
    }

    fn count_tails(&self, id: UploadId) -> Result<u64> {
        let table = part(&self.root, &self.r, Part::Tails)?;
        let below = |id: u64| table.rank(&self.r, &id.to_be_bytes());
        Ok(below(id.0.saturating_add(1))?.saturating_sub(below(id.0)?))
    }

    fn check_orphans(&self, found: &mut Found, problem: &mut OnProblem<'_>) -> Result<()> {
        self.each_row(
            Part::Orphans,
            &mut |key, _| match found.owned.insert(id_of(key)?) {
                true => Ok(()),
                false => Err(damaged(
                    "orphan",
                    "contents of an object or upload",
                    "other contents",
                )),
            },
            problem,
        )
    }

    fn check_chunks(&self, found: &mut Found, problem: &mut OnProblem<'_>) -> Result<()> {
        let chunks = part(&self.root, &self.r, Part::Chunks)?;
        self.each_row(
            Part::Hashes,
            &mut |key, value| {
                let (content, _) = chunk_of(key)?;
                let hash = ChunkHash::decode(&row_bytes(value)?)?;
                found.state.add_chunk(u64::from(hash.len));
                if !found.owned.contains(content) {
                    return Err(damaged(
                        "chunk",
                        format!("contents {content}"),
                        "an owner of them",
                    ));
                }
                match chunks.get(&self.r, key)?.map(|chunk| chunk.len()) {
                    Some(len) if len == u64::from(hash.len) => Ok(()),
                    len => Err(damaged("chunk", format!("{len:?} bytes"), hash.len)),
                }
            },
            problem,
        )
    }

    fn check_links(&self, found: &mut Found, problem: &mut OnProblem<'_>) -> Result<()> {
        self.each_row(
            Part::Links,
            &mut |key, value| {
                let link = ObjectLink::decode(&row_bytes(value)?)?;
                if let Some(time) = link.expires {
                    found.link_expiry += 1;
                    self.expect_row(Part::LinkExpiry, &time_key(time, &link_id(key)?.0))?;
                }
                Ok(())
            },
            problem,
        )?;
        self.each_row(
            Part::LinkExpiry,
            &mut |key, _| link_id(time_of(key)?.1).map(drop),
            problem,
        )
    }

    fn rows_in(&self, table: Part) -> Result<u64> {
        Ok(part(&self.root, &self.r, table)?.len())
    }

    fn expect_row(&self, table: Part, key: &[u8]) -> Result<()> {
        match part(&self.root, &self.r, table)?.contains(&self.r, key)? {
            true => Ok(()),
            false => Err(damaged(
                &format!("{table:?}"),
                "no such row",
                key.escape_ascii(),
            )),
        }
    }

    /// Passes the rows of a part to `check`. An error that `check` returns is reported as a problem.
    fn each_row(
        &self,
        table: Part,
        check: &mut dyn FnMut(&[u8], &Value<'_>) -> Result<()>,
        problem: &mut OnProblem<'_>,
    ) -> Result<()> {
        let rows = part(&self.root, &self.r, table)?;
        let mut rows = rows.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            match check(rows.key(), &rows.value()?) {
                Ok(()) => {}
                Err(Error::Corrupt(corrupt)) => {
                    problem(format!(
                        "{table:?} {}: {corrupt}",
                        rows.key().escape_ascii()
                    ));
                }
                Err(error) => return Err(error),
            }
            there = rows.next()?;
        }
        Ok(())
    }
}

/// Number of bytes that an upload has stored; an error if its chunks do not match its mode.
pub(crate) fn stored_bytes<R: PageRead>(root: &Tree, r: &R, upload: &UploadInfo) -> Result<u64> {
    let chunk = u64::from(upload.chunk_bytes);
    if upload.mode == UploadMode::Append {
        let whole = upload.len / chunk * chunk;
        whole_hash(root, r, upload.id.0, (whole, upload.chunk_bytes))?;
        return Ok(upload.len);
    }
    let mut bytes = 0;
    each_hash(root, r, (upload.id.0, 0), &mut |index, hash| {
        if !(1..=chunk).contains(&u64::from(hash.len)) {
            return Err(damaged(
                "upload",
                format!("chunk {index} of {} bytes", hash.len),
                chunk,
            ));
        }
        bytes += u64::from(hash.len);
        Ok(true)
    })?;
    Ok(bytes)
}
