//! Inspection of a file without opening it: nothing is locked, written or healed, and damage is part of the
//! result instead of an error.

use crate::commit::redo::area::Area;
use crate::error::{Error, Result};
use crate::format::layout::meta_at;
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock;
use std::fs::File;
use std::path::Path;
use tidalite_base::TxnId;
use tidalite_disk::storage::{FileStorage, Storage};

/// Content of the head of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a page.
    pub page_size: usize,
    /// The file's identity.
    pub uuid: [u8; 16],
    /// Damage of either copy of the superblock.
    pub superblocks: [Option<String>; 2],
    /// The four places of commit records: two pairs of two copies.
    pub records: Vec<MetaBlock>,
}

/// A place in the head that holds a commit record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MetaBlock {
    /// Address of the block in the file.
    pub at: u64,
    /// The record, or a description of its damage.
    pub record: std::result::Result<MetaRecord, String>,
}

/// A commit record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaRecord {
    /// The transaction that the record publishes.
    pub txn: TxnId,
    /// Time of the commit, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Length of the file in pages, according to the record.
    pub pages: u64,
    /// Address and length in bytes of the redo log that builds on the record, if any. Commits in the log are newer than
    /// the record.
    pub log: Option<(u64, u64)>,
    /// User data of the commit.
    pub user: Vec<u8>,
}

impl Inspection {
    /// The transactions of the readable records, the newest first. Opening takes the first of them, and opening with
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

/// Reads the head of a file. If another process is writing, the result may mix the states of two moments.
///
/// # Errors
/// `Open`, `Io`; `NotADatabase`, `Unsupported` or `Corrupt` if neither copy of the superblock identifies the file.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let path = path.as_ref();
    let failed = |source| Error::of_open(path, source);
    let storage = FileStorage::new(File::open(path).map_err(failed)?, false).map_err(failed)?;
    let (superblock, damaged) = superblock::load(&storage)?;
    let blocks = MetaBlocks::load(&storage, &superblock.uuid);
    let mut records = Vec::new();
    for (pair, copies) in blocks.copies.iter().enumerate() {
        for (copy, found) in copies.iter().enumerate() {
            let record = found.as_ref().map(|meta| MetaRecord {
                txn: TxnId(meta.txn),
                time_ns: meta.time_ns,
                pages: meta.pages,
                log: Area::of(meta, superblock.page_size).map(|log| (log.at, log.bytes)),
                user: meta.user.to_vec(),
            });
            records.push(MetaBlock {
                at: meta_at(pair, copy),
                record: record.map_err(ToString::to_string),
            });
        }
    }
    Ok(Inspection {
        bytes: storage.len().map_err(failed)?,
        page_size: superblock.page_size,
        uuid: superblock.uuid,
        superblocks: damaged.map(|error| error.map(|error| error.to_string())),
        records,
    })
}
