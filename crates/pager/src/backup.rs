//! Backups: the pages of one version, or those written since an older one, as a stream; and the file made of them.
//!
//! ```text
//! head   0         16        20          24     40    48         56      64            4160
//!        | magic   | version | page size | uuid | txn | base txn | pages | meta record | checksum |
//!        | 16 B    | u32     | u32       | 16 B | u64 | u64      | u64   | 4096 B      | u64      |
//! part   | address u64 | bytes u64 | checksum u64 | bytes, at most 1 MiB                 |   any number, ascending
//! end    | 0           | 0         | checksum u64: of the checksums of all parts, in order |
//! ```
//!
//! The backup is physical: what it copies are pages, whatever they hold, so it knows nothing of the structures above.
//! While a version is pinned or held none of its pages is written again; so of two pinned versions the pages that the
//! newer uses and the older does not are exactly those written since, and no pointer has to be followed.

use crate::error::{Error, Result};
use crate::layout::{BLOCK_BYTES, HEAD_BYTES, first_page, meta_at, page_size_ok, superblock_at};
use crate::meta::{Dead, Meta};
use crate::open::new_uuid;
use crate::pager::Pager;
use crate::ptr::Ptr;
use crate::snapshot::Snapshot;
use crate::space::base;
use crate::space::reclaim::walk;
use crate::superblock::Superblock;
use crate::txn::Durability;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tidalite_base::{Corrupt, TxnId, checksum, get_u32, get_u64, put_u32, put_u64};

const MAGIC: [u8; 16] = *b"Tidalite backup\n";
const VERSION: u32 = 1;
const RECORD_AT: usize = 64;
const SUM_AT: usize = RECORD_AT + BLOCK_BYTES;
const HEAD_LEN: usize = SUM_AT + 8;
/// How often a version that is durable and the newest is looked for.
const ATTEMPTS: u32 = 100;
/// Bytes of a part at most.
const PART_BYTES: u64 = 1 << 20;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// The version.
    pub txn: TxnId,
    /// The version it builds on; `None` for a full backup.
    pub base: Option<TxnId>,
    /// Bytes of pages in it.
    pub bytes: u64,
}

/// Called with the bytes moved last, those moved in all, and those that will be; an error ends the operation.
pub type OnMoved<'f> = dyn FnMut(u64, u64, u64) -> Result<()> + 'f;

/// A version that is held, with its record.
struct Version {
    snapshot: Snapshot,
    meta: Meta,
}

fn written(at: u64) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Io {
        what: "writing the copy".into(),
        at,
        source,
    }
}

impl Pager {
    /// The newest durable version, or a pinned one.
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
            let block = self.inner.block(&pinned.record, end)?;
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
            // What was committed without being durable becomes so first; and what others committed is seen.
            drop(snapshot);
            let txn = self.begin_write()?;
            let app = txn.app().to_vec();
            txn.commit(&app, Durability::Durable)?;
        }
        Err(Error::BackupOrder {
            found: "commits without an end".into(),
            expected: "a moment to begin; pin a version and back that up".into(),
        })
    }

    /// Pages as they are, in a stream, are those of one file.
    fn in_one_file(&self) -> Result<()> {
        match &self.inner.large {
            None => Ok(()),
            Some(large) => Err(Error::LargeFile {
                path: large.path.clone(),
                problem: "backups and images hold one file; a copy brings both together".into(),
            }),
        }
    }

    /// One flag a page: whether the version uses it. `held`: count what only older versions use, too.
    fn pages_of(&self, version: &Version, held: bool) -> Result<Vec<bool>> {
        let meta = &version.meta;
        let page_size = self.page_size();
        let end = meta.pages * page_size as u64;
        let read = |ptr: &Ptr| self.inner.page(ptr, end);
        let mut space = base::load(page_size, meta, meta.txn.saturating_sub(1), &read)?;
        let mut used = vec![true; meta.pages as usize];
        used[..(first_page(page_size) as usize).min(meta.pages as usize)].fill(false);
        space.for_each_free(|page| {
            if let Some(used) = used.get_mut(page as usize) {
                *used = false;
            }
        });
        if held {
            return Ok(used);
        }
        let mut clear = |range: &Dead| {
            let to = range.page.saturating_add(range.pages).min(meta.pages);
            used[(range.page.min(to)) as usize..to as usize].fill(false);
        };
        space.held().for_each(&mut clear);
        for stack in space.stacks() {
            walk(stack, &read, &mut |_, list| {
                list.ranges.iter().for_each(&mut clear);
                true
            })?;
        }
        Ok(used)
    }

    /// Writes a backup of a version to a stream: the newest one, or a pin; whole, or what was written since another
    /// pin. Writers go on meanwhile.
    ///
    /// # Errors
    /// `NoPin`, `Io`; what `moved` returns; damage in the free-space structure. The pages themselves are not looked
    /// at: check the file first, or what was restored.
    pub fn backup(
        &self,
        pin: Option<&str>,
        base: Option<&str>,
        out: &mut dyn Write,
        moved: &mut OnMoved<'_>,
    ) -> Result<BackupInfo> {
        self.in_one_file()?;
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
            for (wanted, known) in wanted.iter_mut().zip(self.pages_of(base, false)?) {
                *wanted &= !known;
            }
        }
        let base_txn = base.as_ref().map_or(0, |base| base.meta.txn);
        let page_size = self.page_size() as u64;
        let total = wanted.iter().filter(|wanted| **wanted).count() as u64 * page_size;
        out.write_all(&head(&version.meta, base_txn, page_size as u32))
            .map_err(written(0))?;
        let (mut at, mut done, mut rolling) = (0, 0, Vec::new());
        while let Some((from, pages)) = next_run(&wanted, at, PART_BYTES / page_size) {
            let (addr, len) = (from as u64 * page_size, pages as u64 * page_size);
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
            moved(len, done, total)?;
            at = from + pages;
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

    /// Writes the file as it is, front to back, to a stream: a database with the same pages at the same places and the
    /// same pins and the same identity; free pages become zeros. Writers go on meanwhile.
    ///
    /// # Errors
    /// As for `backup`.
    pub fn copy_image(&self, out: &mut dyn Write, moved: &mut OnMoved<'_>) -> Result<u64> {
        self.in_one_file()?;
        let version = self.version(None)?;
        // What pins hold must stay until it is copied.
        let mut held = Vec::new();
        for pin in version.snapshot.pins()? {
            held.extend(self.begin_read_at(&pin.name)?);
        }
        let wanted = self.pages_of(&version, true)?;
        let page_size = self.page_size();
        let total = wanted.len() as u64 * page_size as u64;
        // Pinned records carry the file's identity, so the copy has the same.
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
        drop(held);
        Ok(total)
    }

    /// Bytes of the file as they stand, not verified; `None` when they do not all lie in it.
    ///
    /// # Errors
    /// `Io`.
    pub fn raw_bytes(&self, addr: u64, len: usize) -> Result<Option<Vec<u8>>> {
        let all = self.inner.storage.len();
        let all = all.map_err(|error| crate::superblock::read_failed(0, error))?;
        let inside = addr.checked_add(len as u64).is_some_and(|end| end <= all);
        inside.then(|| self.raw(addr, len)).transpose()
    }

    fn raw(&self, addr: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; len];
        let read = self.inner.storage.read_at(addr, &mut bytes);
        read.map_err(|source| Error::Io {
            what: format!("read of {len} bytes"),
            at: addr,
            source,
        })?;
        Ok(bytes)
    }
}

fn no_pin(name: &str) -> Error {
    Error::NoPin {
        name: name.to_owned(),
    }
}

/// The next stretch of wanted pages from `at` on.
fn next_run(wanted: &[bool], at: usize, most: u64) -> Option<(usize, usize)> {
    let from = at + wanted[at..].iter().position(|wanted| *wanted)?;
    let most = most.max(1) as usize;
    let pages = wanted[from..]
        .iter()
        .take(most)
        .take_while(|wanted| **wanted);
    Some((from, pages.count()))
}

fn head(meta: &Meta, base_txn: u64, page_size: u32) -> Vec<u8> {
    let mut head = vec![0u8; HEAD_LEN];
    head[..16].copy_from_slice(&MAGIC);
    put_u32(&mut head, 16, VERSION);
    put_u32(&mut head, 20, page_size);
    head[24..40].copy_from_slice(&meta.uuid);
    put_u64(&mut head, 40, meta.txn);
    put_u64(&mut head, 48, base_txn);
    put_u64(&mut head, 56, meta.pages);
    head[RECORD_AT..SUM_AT].copy_from_slice(&meta.encode(meta_at(0, 0)));
    let sum = checksum(&head[..SUM_AT]);
    put_u64(&mut head, SUM_AT, sum);
    head
}

/// The head of a database file whose newest record is `meta`.
fn file_head(meta: &Meta, uuid: [u8; 16], page_size: usize) -> Vec<u8> {
    let superblock = Superblock::new(page_size, uuid);
    let meta = Meta {
        uuid,
        confirmations: 0,
        // Everything that it was written with is there.
        flushed: None,
        ..meta.clone()
    };
    let mut bytes = vec![0u8; HEAD_BYTES as usize];
    for copy in [0, 1] {
        let at = superblock_at(copy) as usize;
        bytes[at..at + BLOCK_BYTES].copy_from_slice(&superblock.encode(copy));
        for pair in [0, 1] {
            let at = meta_at(pair, copy);
            bytes[at as usize..at as usize + BLOCK_BYTES].copy_from_slice(&meta.encode(at));
        }
    }
    bytes
}

/// A backup's head, read.
struct Container {
    page_size: u64,
    txn: u64,
    base: u64,
    meta: Meta,
}

fn damaged(found: impl ToString, expected: &str) -> Error {
    Corrupt::new("backup", 0, found.to_string(), expected).into()
}

fn read_exact(from: &mut dyn Read, bytes: &mut [u8]) -> Result<()> {
    from.read_exact(bytes)
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged("the end of it", "more: it is cut off"),
            _ => Error::Io {
                what: "reading the backup".into(),
                at: 0,
                source,
            },
        })
}

fn read_head(from: &mut dyn Read) -> Result<Container> {
    let mut head = vec![0u8; HEAD_LEN];
    read_exact(from, &mut head)?;
    if head[..16] != MAGIC {
        return Err(damaged(
            format!("`{}`", head[..16].escape_ascii()),
            "a Tidalite backup",
        ));
    }
    let sum = checksum(&head[..SUM_AT]);
    if sum != get_u64(&head, SUM_AT) {
        return Err(damaged(
            format!("checksum {sum:016x} of its head"),
            "that in the head",
        ));
    }
    if get_u32(&head, 16) != VERSION {
        return Err(Error::Unsupported {
            found: format!("a backup of version {}", get_u32(&head, 16)),
            expected: format!("version {VERSION}"),
        });
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&head[24..40]);
    let meta = Meta::decode(&head[RECORD_AT..SUM_AT], meta_at(0, 0), &uuid)?;
    let page_size = u64::from(get_u32(&head, 20));
    let txn = get_u64(&head, 40);
    let fits = meta.txn == txn && meta.pages == get_u64(&head, 56) && meta.pages < 1 << 48;
    if !page_size_ok(page_size as usize) || !fits || meta.pages < first_page(page_size as usize) {
        return Err(damaged(
            format!("{txn} of {} pages", meta.pages),
            "what its record says",
        ));
    }
    Ok(Container {
        page_size,
        txn,
        base: get_u64(&head, 48),
        meta,
    })
}

/// Makes a file of a full backup and the increments that follow it, in order. The file has an identity of its own and
/// no pins. It must not exist; when anything is wrong it is removed.
///
/// # Errors
/// `BackupOrder` when one does not build on the one before; `Corrupt` when one is damaged or cut off; `Open`, `Io`,
/// `DiskFull` from the new file.
pub fn restore(
    chain: &mut dyn Iterator<Item = Result<Box<dyn Read + '_>>>,
    path: &Path,
    moved: &mut OnMoved<'_>,
) -> Result<BackupInfo> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path);
    let file = opened.map_err(|source| Error::Open {
        path: path.to_owned(),
        source,
    })?;
    let restored = fill(chain, &file, moved).and_then(|(info, uuid)| {
        drop(file);
        drop_pins(path, uuid)?;
        Ok(info)
    });
    if restored.is_err() {
        drop(std::fs::remove_file(path));
        let mut lock = path.as_os_str().to_owned();
        lock.push("-lock");
        drop(std::fs::remove_file(lock));
    }
    restored
}

fn fill(
    chain: &mut dyn Iterator<Item = Result<Box<dyn Read + '_>>>,
    file: &File,
    moved: &mut OnMoved<'_>,
) -> Result<(BackupInfo, [u8; 16])> {
    let mut last: Option<Container> = None;
    let mut done = 0;
    for from in chain {
        let mut from = from?;
        let next = read_head(&mut *from)?;
        let order = |found: String, expected: String| Err(Error::BackupOrder { found, expected });
        match &last {
            None if next.base != 0 => {
                return order(
                    format!("an increment on {}", TxnId(next.base)),
                    "a full backup first".into(),
                );
            }
            Some(before) if next.base != before.txn || next.meta.uuid != before.meta.uuid => {
                let found = match next.base {
                    0 => "a full backup".to_owned(),
                    base => format!(
                        "an increment on {}, of file {:02x?}",
                        TxnId(base),
                        next.meta.uuid
                    ),
                };
                let uuid = before.meta.uuid;
                return order(
                    found,
                    format!("one on {}, of file {uuid:02x?}", TxnId(before.txn)),
                );
            }
            Some(before) if next.page_size != before.page_size => {
                return order(
                    format!("pages of {}", next.page_size),
                    format!("{}", before.page_size),
                );
            }
            _ => {}
        }
        read_parts(&mut *from, &next, file, &mut done, moved)?;
        last = Some(next);
    }
    let Some(last) = last else {
        return Err(damaged("no backup", "a full one at least"));
    };
    let uuid = new_uuid()?;
    let page_size = last.page_size as usize;
    let failed = |source| Error::of_write("restoring", 0, done, source);
    file.set_len(last.meta.pages * last.page_size)
        .map_err(failed)?;
    let meta = placed(file, &last.meta)?;
    file.write_all_at(&file_head(&meta, uuid, page_size), 0)
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let info = BackupInfo {
        txn: TxnId(last.txn),
        base: (last.base != 0).then_some(TxnId(last.base)),
        bytes: done,
    };
    Ok((info, uuid))
}

fn read_parts(
    from: &mut dyn Read,
    container: &Container,
    file: &File,
    done: &mut u64,
    moved: &mut OnMoved<'_>,
) -> Result<()> {
    let end = container.meta.pages * container.page_size;
    let first = first_page(container.page_size as usize) * container.page_size;
    let mut bytes = Vec::new();
    let (mut after, mut rolling) = (first, Vec::new());
    loop {
        let mut part = [0u8; 24];
        read_exact(from, &mut part)?;
        let (addr, len, sum) = (get_u64(&part, 0), get_u64(&part, 8), get_u64(&part, 16));
        if addr == 0 && len == 0 {
            if sum != checksum(&rolling) {
                return Err(damaged(
                    "another checksum at its end",
                    "that of all its parts",
                ));
            }
            return Ok(());
        }
        let most = PART_BYTES.max(container.page_size);
        let whole =
            addr.is_multiple_of(container.page_size) && len.is_multiple_of(container.page_size);
        let inside = addr.checked_add(len).is_some_and(|to| to <= end);
        if !whole || !inside || addr < after || len == 0 || len > most {
            return Err(damaged(
                format!("a part of {len} bytes at {addr}"),
                "parts that ascend in the file",
            ));
        }
        bytes.resize(len as usize, 0);
        read_exact(from, &mut bytes)?;
        if checksum(&bytes) != sum {
            return Err(damaged(
                format!("a part at {addr} with another checksum"),
                "its own",
            ));
        }
        rolling.extend_from_slice(&sum.to_le_bytes());
        file.write_all_at(&bytes, addr)
            .map_err(|source| Error::of_write("restoring", addr, len, source))?;
        after = addr + len;
        *done += len;
        moved(len, *done, *done)?;
    }
}

/// The record with true pointers to its pins and clock: a pinned record knows only their places.
fn placed(file: &File, meta: &Meta) -> Result<Meta> {
    let mut meta = meta.clone();
    for ptr in [&mut meta.pins, &mut meta.clock] {
        if ptr.is_null() || ptr.checksum != 0 {
            continue;
        }
        let most = tidalite_base::limits::CHECKSUM_SPAN_MAX;
        let mut block = vec![0u8; (ptr.len as usize).min(most)];
        let read = file.read_exact_at(&mut block, ptr.addr);
        read.map_err(|error| damaged(error, "the pages of its pins"))?;
        if block.len() >= 8 {
            ptr.checksum = get_u64(&block, 0);
        }
        crate::verify_block(&block, ptr)?;
    }
    Ok(meta)
}

/// A restored file has no old versions: its pins lead nowhere.
fn drop_pins(path: &Path, uuid: [u8; 16]) -> Result<()> {
    let options = crate::Options {
        mode: crate::OpenMode::Open,
        ..Default::default()
    };
    let pager = Pager::open(path, &options)?;
    debug_assert_eq!(pager.uuid(), uuid);
    let mut txn = pager.begin_write()?;
    let names = txn.pin_names();
    for name in &names {
        txn.unpin(name)?;
    }
    let app = txn.app().to_vec();
    txn.commit(&app, Durability::Durable)?;
    Ok(())
}
