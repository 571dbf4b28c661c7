//! Inspects a file without opening it as a database: no locks are taken, nothing is written or repaired, and damage
//! is part of the result instead of an error.

use crate::commit::redo::area::Area;
use crate::error::{Error, Result};
use crate::format::layout::meta_at;
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock;
use std::fs::File;
use std::path::Path;
use tidalite_base::TxnId;
use tidalite_disk::storage::{FileStorage, Storage};

/// Contents of the head of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Page size in bytes.
    pub page_size: usize,
    /// UUID of the file.
    pub uuid: [u8; 16],
    /// Description of the damage of each copy of the superblock; `None` if the copy is intact.
    pub superblocks: [Option<String>; 2],
    /// The four meta blocks, which are two pairs of two copies.
    pub records: Vec<MetaBlock>,
}

/// A meta block in the head of the file, which stores one copy of a meta record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MetaBlock {
    /// Address of the block in the file.
    pub at: u64,
    /// The meta record in the block, or a description of its damage.
    pub record: std::result::Result<MetaRecord, String>,
}

/// A meta record, which describes the database after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaRecord {
    /// Transaction number of the commit that the meta record publishes.
    pub txn: TxnId,
    /// Time of the commit, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Length of the file in pages, according to the meta record.
    pub pages: u64,
    /// Address and length in bytes of the redo log that builds on the meta record, if any. Commits in the redo log
    /// are newer than the meta record.
    pub log: Option<(u64, u64)>,
    /// User data that were stored with the commit.
    pub user: Vec<u8>,
}

impl Inspection {
    /// The transactions of the readable meta records, the newest first. Opening the file uses the first of these
    /// transactions, and opening it with [`older_record`](crate::Options::older_record) the second.
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

/// Reads the head of a file. If another process is writing, the result may be a mixture of old and new blocks.
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
