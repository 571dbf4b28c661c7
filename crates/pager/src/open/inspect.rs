//! What a file says of itself, before anybody opens it: nothing is locked, written or healed, and a damaged file is no error but an
//! answer.

use crate::commit::redo::area::Area;
use crate::error::{Error, Result};
use crate::format::layout::meta_at;
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock;
use crate::storage::{FileStorage, Storage};
use std::fs::File;
use std::path::Path;
use tidalite_base::TxnId;

/// What the head of a file holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Look {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a page.
    pub page_size: usize,
    /// The file's identity.
    pub uuid: [u8; 16],
    /// What is wrong with either copy of the superblock.
    pub superblocks: [Option<String>; 2],
    /// The four places of commit records: two pairs of two copies.
    pub records: Vec<Place>,
}

/// A place where a commit record stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Place {
    /// Its byte in the file.
    pub at: u64,
    /// The record, or what is wrong with it.
    pub record: std::result::Result<Record, String>,
}

/// A commit record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its transaction.
    pub txn: TxnId,
    /// When it was made, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Pages of the file as it counts them.
    pub pages: u64,
    /// Where the log is that stands on it, if it has one: byte and bytes. What is committed there is newer than the record.
    pub log: Option<(u64, u64)>,
    /// What the user stored with it.
    pub user: Vec<u8>,
}

impl Look {
    /// The transactions of the records that can be read, the newest first: opening takes the first one, and
    /// [`older_record`](crate::Options::older_record) the second.
    #[must_use]
    pub fn txns(&self) -> Vec<TxnId> {
        let readable = self
            .records
            .iter()
            .filter_map(|place| place.record.as_ref().ok());
        let mut txns: Vec<TxnId> = readable.map(|record| record.txn).collect();
        txns.sort_unstable();
        txns.dedup();
        txns.reverse();
        txns
    }
}

/// Looks at the head of a file. Another process may be writing: then what is seen may be of two moments.
///
/// # Errors
/// `Open`, `Io`; `NotADatabase`, `Unsupported` or `Corrupt` when neither copy of the superblock says what the file is.
pub fn look(path: impl AsRef<Path>) -> Result<Look> {
    let path = path.as_ref();
    let failed = |source| Error::Open {
        path: path.to_owned(),
        source,
    };
    let storage = FileStorage::new(File::open(path).map_err(failed)?, false).map_err(failed)?;
    let (superblock, damaged) = superblock::load(&storage)?;
    let blocks = MetaBlocks::load(&storage, &superblock.uuid);
    let mut records = Vec::new();
    for (pair, copies) in blocks.copies.iter().enumerate() {
        for (copy, found) in copies.iter().enumerate() {
            let record = found.as_ref().map(|meta| Record {
                txn: TxnId(meta.txn),
                time_ns: meta.time_ns,
                pages: meta.pages,
                log: Area::of(meta, superblock.page_size).map(|log| (log.at, log.bytes)),
                user: meta.user.to_vec(),
            });
            records.push(Place {
                at: meta_at(pair, copy),
                record: record.map_err(ToString::to_string),
            });
        }
    }
    Ok(Look {
        bytes: storage.len().map_err(failed)?,
        page_size: superblock.page_size,
        uuid: superblock.uuid,
        superblocks: damaged.map(|error| error.map(|error| error.to_string())),
        records,
    })
}
