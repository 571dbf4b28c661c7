//! Writes a backup as a stream. A backup contains the pages of one version of the database, or only those written
//! since an older version.
//!
//! The backup is physical: it copies pages regardless of their contents. While a version is pinned or read by a
//! snapshot, none of its pages is rewritten. If two versions are pinned, the pages used only by the newer one are
//! therefore exactly the pages written since the older one, and no pointer has to be followed. The same is true of
//! the second file.

use super::format::{BackupInfo, OnMoved, PART_BYTES, file_head, head};
use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, LARGE_AT, first_page, is_large_page};
use crate::format::meta::{FreedRange, Meta};
use crate::format::ptr::Ptr;
use crate::space::large::Large;
use crate::space::load;
use crate::space::reclaim::walk;
use crate::txn::Durability;
use crate::txn::inner::Pager;
use crate::txn::snapshot::Snapshot;
use std::io::Write;
use tidalite_base::{TxnId, checksum, put_u64};

/// Maximum number of attempts to find a version of the database that is both durable and the newest.
const ATTEMPTS: u32 = 100;

/// A version of the database, with its meta record and a snapshot that retains its pages.
struct Version {
    snapshot: Snapshot,
    meta: Meta,
}

fn written(at: u64) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::of_call("writing the copy", at, source)
}

impl Pager {
    /// Returns the newest durable version of the database, or the version of a pin.
    fn version(&self, pin: Option<&str>) -> Result<Version> {
        if let Some(name) = pin {
            let snapshot = self.begin_read_at(name)?;
            let pinned = self.pins()?.into_iter().find(|pin| pin.name == name);
            let (Some(snapshot), Some(pinned)) = (snapshot, pinned) else {
                return Err(no_pin(name));
            };
            let end = snapshot
                .file_bytes()
                .max(pinned.record.addr + BLOCK_BYTES as u64);
            let block = self.inner.files.block(&pinned.record, end)?;
            let meta = Meta::decode(&block, pinned.record.addr, &self.uuid())?;
            if meta.txn != snapshot.txn().0 {
                return Err(no_pin(name));
            }
            drop(block);
            return Ok(Version { snapshot, meta });
        }
        for attempt in 0.. {
            let snapshot = self.begin_read()?;
            let meta = match &snapshot.state().found {
                Some(found) => found.meta.clone(),
                None => self.inner.pipeline.durable(),
            };
            if meta.txn == snapshot.txn().0 {
                return Ok(Version { snapshot, meta });
            }
            if attempt == ATTEMPTS {
                break;
            }
            // An empty durable commit writes a meta record if the newest commit has no meta record, and makes commits
            // of other handles visible.
            drop(snapshot);
            let txn = self.begin_write()?;
            let app = txn.app().to_vec();
            txn.commit(&app, Durability::Durable)?;
            self.checkpoint()?;
        }
        Err(Error::BackupOrder {
            found: "commits without an end".into(),
            expected: "a moment to begin; pin a version and back that up".into(),
        })
    }

    /// Returns an error if there is a second file. An image has the same identity and pins as its original. If both
    /// named the same second file, they would overwrite each other's values in it.
    fn in_one_file(&self) -> Result<()> {
        match &self.inner.files.large {
            None => Ok(()),
            Some(large) => Err(Error::LargeFile {
                path: large.path.clone(),
                problem: "an image is of one file; a backup has both, a copy brings both together"
                    .into(),
            }),
        }
    }

    /// Returns the pages that the version uses. With `retained`, includes pages that only older versions use.
    fn pages_of(&self, version: &Version, retained: bool) -> Result<Used> {
        let meta = &version.meta;
        let page_size = self.page_size();
        let end = meta.pages * page_size as u64;
        let read = |ptr: &Ptr| self.inner.files.page(ptr, end);
        let mut space = load::load(page_size, meta, meta.txn.saturating_sub(1), &read)?;
        let mut used = vec![true; meta.pages as usize];
        used[..(first_page(page_size) as usize).min(meta.pages as usize)].fill(false);
        space.for_each_free(|page| {
            if let Some(used) = used.get_mut(page as usize) {
                *used = false;
            }
        });
        if let Some(redo) = meta.redo {
            // The pages of the redo log are left out, since the log contains only newer versions.
            let to = redo.page.saturating_add(redo.pages).min(meta.pages);
            used[redo.page.min(to) as usize..to as usize].fill(false);
        }
        let mut used = Used {
            first: used,
            second: second_used(space.large.as_deref()),
        };
        if retained {
            return Ok(used);
        }
        let number = Large::first_number(page_size);
        let mut clear = |range: &FreedRange| {
            if is_large_page(range.page) {
                let pages = used.second.len() as u64;
                let from = range.page.saturating_sub(number).min(pages);
                let to = from.saturating_add(range.pages).min(pages);
                return used.second[from as usize..to as usize].fill(false);
            }
            let used = &mut used.first;
            let to = range.page.saturating_add(range.pages).min(meta.pages);
            used[(range.page.min(to)) as usize..to as usize].fill(false);
        };
        space.retained().for_each(&mut clear);
        for stack in space.stacks() {
            walk(stack, &read, &mut |_, list| {
                list.ranges.iter().for_each(&mut clear);
                true
            })?;
        }
        Ok(used)
    }

    /// Writes a backup of the pinned version `pin`, or of the newest version if `pin` is `None`, to a stream. With
    /// `base`, the name of an older pin, only pages written since that pin are backed up; otherwise all pages.
    /// Writers continue meanwhile.
    ///
    /// # Errors
    /// `NoPin`, `Io`; errors of `moved`; `Corrupt` if the free-space structure is damaged. Other pages are not
    /// verified: check the file before the backup, or check the restored file.
    pub fn backup(
        &self,
        pin: Option<&str>,
        base: Option<&str>,
        out: &mut dyn Write,
        moved: &mut OnMoved<'_>,
    ) -> Result<BackupInfo> {
        let version = self.version(pin)?;
        let mut wanted = self.pages_of(&version, false)?;
        let base = base.map(|name| self.version(Some(name))).transpose()?;
        if let Some(base) = &base {
            if base.meta.txn > version.meta.txn {
                return Err(Error::BackupOrder {
                    found: format!("a base of {}", TxnId(base.meta.txn)),
                    expected: format!("one older than {}", TxnId(version.meta.txn)),
                });
            }
            wanted.without(&self.pages_of(base, false)?);
        }
        let base_txn = base.as_ref().map_or(0, |base| base.meta.txn);
        let page_size = self.page_size() as u64;
        let total = wanted.count() * page_size;
        let second_pages = wanted.second.len() as u64;
        out.write_all(&head(
            &version.meta,
            base_txn,
            page_size as u32,
            second_pages,
        ))
        .map_err(written(0))?;
        let (mut done, mut rolling) = (0, Vec::new());
        for (flags, start) in [(&wanted.first, 0), (&wanted.second, LARGE_AT)] {
            let mut at = 0;
            while let Some((from, pages)) = next_run(flags, at, PART_BYTES / page_size) {
                let (addr, len) = (start + from as u64 * page_size, pages as u64 * page_size);
                let bytes = self.raw(addr, len as usize)?;
                let sum = checksum(&bytes);
                rolling.extend_from_slice(&sum.to_le_bytes());
                let mut part = [0u8; 24];
                put_u64(&mut part, 0, addr);
                put_u64(&mut part, 8, len);
                put_u64(&mut part, 16, sum);
                out.write_all(&part).map_err(written(addr))?;
                out.write_all(&bytes).map_err(written(addr))?;
                done += len;
                debug_assert!(done <= total, "more bytes than were announced");
                debug_assert!(pages > 0, "a part has pages");
                moved(len, done, total)?;
                at = from + pages;
            }
        }
        let mut end = [0u8; 24];
        put_u64(&mut end, 16, checksum(&rolling));
        out.write_all(&end).map_err(written(0))?;
        out.flush().map_err(written(0))?;
        drop(version.snapshot);
        Ok(BackupInfo {
            txn: TxnId(version.meta.txn),
            base: base.map(|base| TxnId(base.meta.txn)),
            bytes: done,
        })
    }

    /// Writes an image of the file to a stream, from front to back. The image is a database with the same pages at
    /// the same addresses, the same pins and the same identity; free pages become zeros. Writers continue meanwhile.
    ///
    /// # Errors
    /// As for `backup`.
    pub fn copy_image(&self, out: &mut dyn Write, moved: &mut OnMoved<'_>) -> Result<u64> {
        self.in_one_file()?;
        let version = self.version(None)?;
        // Snapshots of all pins are kept until the end, so that the pages of the pins stay until they are copied.
        let mut retained = Vec::new();
        for pin in version.snapshot.pins()? {
            retained.extend(self.begin_read_at(&pin.name)?);
        }
        let wanted = self.pages_of(&version, true)?.first;
        let page_size = self.page_size();
        let total = wanted.len() as u64 * page_size as u64;
        // The meta records of pins contain the identity of the file, so the image must have the same identity.
        let mut first = file_head(&version.meta, self.uuid(), page_size);
        first.resize(first_page(page_size) as usize * page_size, 0);
        out.write_all(&first).map_err(written(0))?;
        let mut page = first_page(page_size) as usize;
        let most = (PART_BYTES as usize / page_size).max(1);
        while page < wanted.len() {
            let same = wanted[page..]
                .iter()
                .take(most)
                .take_while(|w| **w == wanted[page]);
            let pages = same.count();
            let (addr, len) = (page as u64 * page_size as u64, pages * page_size);
            if wanted[page] {
                out.write_all(&self.raw(addr, len)?)
                    .map_err(written(addr))?;
            } else {
                out.write_all(&vec![0; len]).map_err(written(addr))?;
            }
            page += pages;
            moved(len as u64, addr + len as u64, total)?;
        }
        out.flush().map_err(written(0))?;
        drop(retained);
        Ok(total)
    }

    /// Returns bytes of the file, which are not verified; `None` if part of the range lies outside the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn raw_bytes(&self, addr: u64, len: usize) -> Result<Option<Vec<u8>>> {
        let all = self.inner.files.storage.len();
        let all = all.map_err(|error| crate::format::superblock::read_failed(0, error))?;
        let inside = addr.checked_add(len as u64).is_some_and(|end| end <= all);
        inside.then(|| self.raw(addr, len)).transpose()
    }

    fn raw(&self, addr: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; len];
        let read = match (addr.checked_sub(LARGE_AT), &self.inner.files.large) {
            (None, _) => self.inner.files.storage.read_at(addr, &mut bytes),
            (Some(at), Some(large)) => large.storage.read_at(at, &mut bytes),
            (Some(_), None) => Err(std::io::ErrorKind::NotFound.into()),
        };
        read.map_err(|source| Error::of_call(format!("read of {len} bytes"), addr, source))?;
        Ok(bytes)
    }
}

/// Pages that a version uses: one flag for each page of the first and of the second file.
struct Used {
    first: Vec<bool>,
    second: Vec<bool>,
}

impl Used {
    fn without(&mut self, other: &Self) {
        let files = [
            (&mut self.first, &other.first),
            (&mut self.second, &other.second),
        ];
        for (own, other) in files {
            for (own, other) in own.iter_mut().zip(other) {
                *own &= !other;
            }
        }
    }

    fn count(&self) -> u64 {
        let all = self.first.iter().chain(&self.second);
        all.filter(|used| **used).count() as u64
    }
}

fn second_used(large: Option<&Large>) -> Vec<bool> {
    let Some(large) = large else {
        return Vec::new();
    };
    let used = |place| large.map.in_file(place, 1) && !large.map.is_free(place);
    (0..large.pages()).map(used).collect()
}

fn no_pin(name: &str) -> Error {
    Error::NoPin {
        name: name.to_owned(),
    }
}

/// Finds the next run of wanted pages from index `at` on; returns its first page and its length, at most `most`
/// pages.
fn next_run(wanted: &[bool], at: usize, most: u64) -> Option<(usize, usize)> {
    let from = at + wanted[at..].iter().position(|wanted| *wanted)?;
    let most = most.max(1) as usize;
    let pages = wanted[from..]
        .iter()
        .take(most)
        .take_while(|wanted| **wanted);
    Some((from, pages.count()))
}
