//! Restores a file, and its second file if any, from a full backup and the incremental backups that follow it.
//!
//! 1. The first file has a temporary name until everything is written and synced; then it gets its final name. After an
//!    error both files are removed. A killed process leaves the temporary file, and a second file that belongs to no
//!    database.
//! 2. Both files get new identities: the second file belongs to the new first one, and to no other.

use super::format::{
    BackupInfo, HEAD_LEN, LARGE_PAGES_AT, MAGIC, OnMoved, PART_BYTES, RECORD_AT, SUM_AT, VERSION,
    file_head,
};
use crate::commit::second_file;
use crate::error::{Error, Result};
use crate::format::layout::{LARGE_AT, first_page, meta_at, page_size_ok};
use crate::format::meta::Meta;
use crate::format::pages::PageRef;
use crate::format::ptr::Ptr;
use crate::space::large::read_id;
use crate::txn::Durability;
use crate::txn::inner::Pager;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tidalite_base::{Corrupt, TxnId, checksum, get_u32, get_u64};
use tidalite_disk::storage::{give_name, sync_directory, sync_name};
use tidalite_disk::system::{new_uuid, uuid_text};

/// Decoded head of a backup.
struct Container {
    page_size: u64,
    txn: u64,
    base: u64,
    /// Number of pages of the second file; 0 if there is no second file.
    second_pages: u64,
    meta: Meta,
}

/// One backup of the chain, and the byte position up to which it has been read.
struct Source<'s> {
    from: &'s mut dyn Read,
    /// Name of the backup in error texts.
    what: String,
    at: u64,
}

impl Source<'_> {
    /// Creates the error for damage at byte `at` of this backup.
    fn damaged(&self, at: u64, found: impl Display, expected: impl Display) -> Error {
        Corrupt::new(self.what.clone(), at, found, expected).into()
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.from.read(&mut bytes[filled..]) {
                Ok(0) => {
                    let expected = format!("{} more bytes: it is cut off", bytes.len() - filled);
                    return Err(self.damaged(self.at, "its end", expected));
                }
                Ok(read) => {
                    filled += read;
                    self.at += read as u64;
                }
                Err(source) if source.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::of_call(
                        format!("reading the {}", self.what),
                        self.at,
                        source,
                    ));
                }
            }
        }
        Ok(())
    }
}

fn read_head(from: &mut Source<'_>) -> Result<Container> {
    let mut head = vec![0u8; HEAD_LEN];
    // The magic number is read and checked first, since a file that is not a backup may be shorter than the head of
    // one.
    let (magic, rest) = head.split_at_mut(MAGIC.len());
    from.read_exact(magic)?;
    if magic[..] != MAGIC {
        let found = format!("`{}`", magic.escape_ascii());
        let expected = format!("`{}`, with which a backup begins", MAGIC.escape_ascii());
        return Err(from.damaged(0, found, expected));
    }
    from.read_exact(rest)?;
    let (sum, stored) = (checksum(&head[..SUM_AT]), get_u64(&head, SUM_AT));
    if sum != stored {
        let expected = format!("{sum:016x}, that of the {SUM_AT} bytes before");
        return Err(from.damaged(SUM_AT as u64, format!("checksum {stored:016x}"), expected));
    }
    if get_u32(&head, 16) != VERSION {
        return Err(Error::Unsupported {
            found: format!("a backup of version {}", get_u32(&head, 16)),
            expected: format!(
                "version {VERSION}: restore it with the version of this library that wrote it"
            ),
        });
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&head[24..40]);
    let meta = Meta::decode(&head[RECORD_AT..SUM_AT], meta_at(0, 0), &uuid);
    let meta = meta.map_err(|error| match error {
        Error::Corrupt(corrupt) => from.damaged(
            RECORD_AT as u64,
            format!("a {} with {}", corrupt.what, corrupt.found),
            corrupt.expected,
        ),
        error => error,
    })?;
    let page_size = u64::from(get_u32(&head, 20));
    if !page_size_ok(page_size as usize) {
        return Err(from.damaged(20, format!("pages of {page_size}"), "a size of pages"));
    }
    let (txn, pages) = (get_u64(&head, 40), get_u64(&head, 56));
    let second_pages = get_u64(&head, LARGE_PAGES_AT);
    if txn != meta.txn {
        return Err(from.damaged(
            40,
            TxnId(txn),
            format!("{}, as its record says", TxnId(meta.txn)),
        ));
    }
    let most = (1 << 48).min(LARGE_AT / page_size);
    if pages != meta.pages || pages >= most || pages < first_page(page_size as usize) {
        let expected = format!("{}, as its record says, and below {most}", meta.pages);
        return Err(from.damaged(56, format!("{pages} pages"), expected));
    }
    if (second_pages == 0) != meta.large.is_null() || second_pages >= most {
        let expected = match meta.large.is_null() {
            true => "none, as its record says".to_owned(),
            false => format!("some, as its record says, and below {most}"),
        };
        let found = format!("{second_pages} pages of a second file");
        return Err(from.damaged(LARGE_PAGES_AT as u64, found, expected));
    }
    Ok(Container {
        page_size,
        txn,
        base: get_u64(&head, 48),
        second_pages,
        meta,
    })
}

/// Creates a database file from a full backup and the incremental backups that follow it, in order. The file gets a
/// new identity and no pins. The file must not exist; after an error it is removed. If the backup has large values in
/// a second file, that file is created too, with the given name, or with `-large` appended to the name of the first.
///
/// # Errors
/// `BackupOrder` if a backup does not build on the previous one; `Corrupt` if a backup is damaged or truncated;
/// `Open`, `Io`, `DiskFull` if the new file cannot be written.
pub fn restore(
    chain: &mut dyn Iterator<Item = Result<Box<dyn Read + '_>>>,
    path: &Path,
    second: Option<&Path>,
    moved: &mut OnMoved<'_>,
) -> Result<BackupInfo> {
    let failed = |source| Error::of_open(path, source);
    if path.try_exists().map_err(failed)? {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    let temporary = path_next_to(path, &format!(".new-{}", std::process::id()));
    drop(std::fs::remove_file(&temporary));
    let mut files = Files {
        first: create(&temporary, path)?,
        second: None,
        second_path: second.map_or_else(|| path_next_to(path, "-large"), Path::to_owned),
    };
    let restored = fill(chain, &mut files, moved);
    let second = files.second.is_some().then_some(files.second_path);
    drop((files.first, files.second));
    let restored = restored.and_then(|(info, uuid)| {
        drop_pins(&temporary, second.as_deref(), uuid)?;
        if let Some(second) = &second {
            sync_directory(second).map_err(failed)?;
        }
        give_name(&temporary, path).map_err(failed)?;
        if let Err(error) = sync_name(path) {
            // The first file is removed as well: after this error the second file is removed, and the first file
            // alone is useless.
            drop(std::fs::remove_file(path));
            return Err(failed(error));
        }
        Ok(info)
    });
    drop(std::fs::remove_file(&temporary));
    drop(std::fs::remove_file(path_next_to(&temporary, "-lock")));
    if restored.is_err()
        && let Some(second) = second
    {
        drop(std::fs::remove_file(second));
    }
    restored
}

/// The files that the restore is creating.
struct Files {
    first: File,
    /// The second file, which is created when the first bytes for it arrive.
    second: Option<File>,
    second_path: PathBuf,
}

impl Files {
    fn second(&mut self) -> Result<&File> {
        if self.second.is_none() {
            self.second = Some(create(&self.second_path, &self.second_path)?);
        }
        match &self.second {
            Some(second) => Ok(second),
            None => unreachable!("it was made a moment ago"),
        }
    }
}

fn path_next_to(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Creates a file; `named` is its final path, which error texts show.
fn create(path: &Path, named: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path);
    opened.map_err(|source| Error::of_open(named, source))
}

fn fill(
    chain: &mut dyn Iterator<Item = Result<Box<dyn Read + '_>>>,
    files: &mut Files,
    moved: &mut OnMoved<'_>,
) -> Result<(BackupInfo, [u8; 16])> {
    let mut last: Option<Container> = None;
    let mut done = 0;
    for (number, from) in chain.enumerate() {
        let mut from = from?;
        let mut from = Source {
            from: &mut *from,
            what: match number {
                0 => "backup".to_owned(),
                _ => format!("increment {number}"),
            },
            at: 0,
        };
        let next = read_head(&mut from)?;
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
                    base => {
                        let file = uuid_text(&next.meta.uuid);
                        format!("an increment on {}, of file {file}", TxnId(base))
                    }
                };
                let file = uuid_text(&before.meta.uuid);
                let expected = format!("one on {}, of file {file}", TxnId(before.txn));
                return order(found, expected);
            }
            Some(before) if next.page_size != before.page_size => {
                return order(
                    format!("pages of {}", next.page_size),
                    format!("{}", before.page_size),
                );
            }
            _ => {}
        }
        read_parts(&mut from, &next, files, &mut done, moved)?;
        last = Some(next);
    }
    let Some(last) = last else {
        let expected = "a full one at least";
        return Err(Corrupt::new("backup", 0, "none", expected).into());
    };
    let uuid = new_uuid()?;
    let page_size = last.page_size as usize;
    let failed = |source| Error::of_write("restoring", 0, done, source);
    let file = &files.first;
    file.set_len(last.meta.pages * last.page_size)
        .map_err(failed)?;
    let meta = placed(file, &last.meta)?;
    if last.second_pages > 0 {
        let id = read_id(&meta.large, &|ptr| page_of(file, page_size, ptr))?;
        let expected = "the one that its pages are of";
        let id = id.ok_or_else(|| restored(&meta.large, "no second file", expected))?;
        let second = files.second()?;
        let image = second_file::image(page_size, &uuid, &id.uuid);
        second.write_all_at(&image, 0).map_err(failed)?;
        second
            .set_len(last.second_pages * last.page_size)
            .map_err(failed)?;
        second.sync_all().map_err(failed)?;
    }
    let file = &files.first;
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

/// Creates the error for damage in the restored file at the address of a pointer.
fn restored(ptr: &Ptr, found: impl Display, expected: &str) -> Error {
    Corrupt::new("restored file", ptr.addr, found, expected).into()
}

fn read_parts(
    from: &mut Source<'_>,
    container: &Container,
    files: &mut Files,
    done: &mut u64,
    moved: &mut OnMoved<'_>,
) -> Result<()> {
    let head = first_page(container.page_size as usize) * container.page_size;
    let end = container.meta.pages * container.page_size;
    let second_end = LARGE_AT + container.second_pages * container.page_size;
    let mut bytes = Vec::new();
    let (mut after, mut rolling) = (head, Vec::new());
    loop {
        let mut part = [0u8; 24];
        let begin = from.at;
        from.read_exact(&mut part)?;
        let (addr, len, sum) = (get_u64(&part, 0), get_u64(&part, 8), get_u64(&part, 16));
        if addr == 0 && len == 0 {
            let whole = checksum(&rolling);
            if sum != whole {
                let found = format!("checksum {sum:016x} of all parts");
                return Err(from.damaged(begin + 16, found, format!("{whole:016x}")));
            }
            return Ok(());
        }
        let most = PART_BYTES.max(container.page_size);
        let whole =
            addr.is_multiple_of(container.page_size) && len.is_multiple_of(container.page_size);
        let in_second = addr >= LARGE_AT;
        let end = if in_second { second_end } else { end };
        let inside = addr.checked_add(len).is_some_and(|to| to <= end);
        if in_second {
            after = after.max(LARGE_AT + head);
        }
        if !whole || !inside || addr < after || len == 0 || len > most {
            let found = format!("a part of {len} bytes for address {addr}");
            let expected = format!(
                "at most {most} bytes in pages of {}, from address {after} on and up to {end}",
                container.page_size
            );
            return Err(from.damaged(begin, found, expected));
        }
        bytes.resize(len as usize, 0);
        let at = from.at;
        from.read_exact(&mut bytes)?;
        let own = checksum(&bytes);
        if own != sum {
            let found = format!("{len} bytes for address {addr} with checksum {own:016x}");
            return Err(from.damaged(at, found, format!("{sum:016x}, as their part says")));
        }
        rolling.extend_from_slice(&sum.to_le_bytes());
        let written = match addr.checked_sub(LARGE_AT) {
            Some(at) => files.second()?.write_all_at(&bytes, at),
            None => files.first.write_all_at(&bytes, addr),
        };
        written.map_err(|source| Error::of_write("restoring", addr, len, source))?;
        after = addr + len;
        *done += len;
        moved(len, *done, *done)?;
    }
}

fn page_of(file: &File, page_size: usize, ptr: &Ptr) -> Result<PageRef<'static>> {
    if ptr.len as usize != page_size {
        return Err(restored(ptr, format!("{} bytes", ptr.len), "a page"));
    }
    let mut bytes = vec![0; page_size];
    let read = file.read_exact_at(&mut bytes, ptr.addr);
    read.map_err(|error| restored(ptr, error, "what names its second file"))?;
    crate::format::header::verify_block(&bytes, ptr)?;
    Ok(PageRef::Owned(bytes.into()))
}

/// Completes the pointers of a meta record to its pins and clock. If the record is pinned, these pointers contain
/// only addresses, without checksums.
fn placed(file: &File, meta: &Meta) -> Result<Meta> {
    let mut meta = meta.clone();
    for ptr in [&mut meta.pins, &mut meta.clock] {
        if ptr.is_null() || ptr.checksum != 0 {
            continue;
        }
        let most = tidalite_base::limits::CHECKSUM_SPAN_MAX;
        let mut block = vec![0u8; (ptr.len as usize).min(most)];
        let read = file.read_exact_at(&mut block, ptr.addr);
        read.map_err(|error| restored(ptr, error, "the pages of its pins"))?;
        if block.len() >= 8 {
            ptr.checksum = get_u64(&block, 0);
        }
        crate::format::header::verify_block(&block, ptr)?;
    }
    Ok(meta)
}

/// Removes all pins from the restored file, since it contains no old versions.
fn drop_pins(path: &Path, second: Option<&Path>, uuid: [u8; 16]) -> Result<()> {
    let options = crate::Options {
        mode: crate::OpenMode::Open,
        // A database on a network file system can be opened only exclusively.
        exclusive: true,
        large_values_path: second.map(Path::to_owned),
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
