//! Statistics of a database: pages, trees, points, bytes per point.

use crate::database::handle::Database;
use crate::txn::leaves::stored_tree;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use tidalite_base::TxnId;
use tidalite_time::Timestamp;

/// Statistics of a database as of one commit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stat {
    /// The newest commit, which the statistics describe.
    pub txn: TxnId,
    /// Time of that commit, by the wall clock of the committing process.
    pub commit_time: Timestamp,
    /// Page size in bytes.
    pub page_size: usize,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Number of pages in the file, including its head.
    pub pages_total: u64,
    /// Number of pages that can be allocated now.
    pub pages_free: u64,
    /// Number of pages in both files that the newest version does not use, but that a snapshot can still see or that
    /// the newest durable states need.
    pub pages_pending: u64,
    /// Number of pages of the log of small commits, which count as in use.
    pub log_pages: u64,
    /// Upper bound of the number of pages in the longest contiguous free range.
    pub longest_free_pages: u64,
    /// Size in bytes of the second file, for large values; 0 if there is no second file.
    pub large_bytes: u64,
    /// Number of pages of the second file that can be allocated now.
    pub large_pages_free: u64,
    /// Number of user tables.
    pub tables: u64,
    /// Total number of entries in user tables.
    pub table_entries: u64,
    /// Number of series.
    pub series: u64,
    /// Number of rows in leaves. A row that the delta replaces is counted here and in `delta_rows`.
    pub leaf_rows: u64,
    /// Total size in bytes of the leaves.
    pub leaf_bytes: u64,
    /// Number of levels of the highest series tree.
    pub series_height_max: u8,
    /// Number of rows in the delta, in its tail page and its runs.
    pub delta_rows: u64,
    /// Number of sorted runs in the delta.
    pub runs: u64,
    /// Number of runs in each tier of the delta, the newest tier first.
    pub tier_runs: Vec<usize>,
}

impl Stat {
    /// Total number of rows in leaves and in the delta.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.leaf_rows.saturating_add(self.delta_rows)
    }

    /// Fragmentation of free space: 0 if it is one contiguous range, towards 1 for single pages all over the file. (The
    /// longest range is searched within regions of 128 MiB, so very much contiguous free space counts as slightly
    /// fragmented.) `None` if nothing is free.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let free = self.pages_free;
        let scattered = free.saturating_sub(self.longest_free_pages);
        (free > 0).then(|| scattered as f64 / free as f64)
    }

    /// Bytes of all pages in use per row, including trees and the head of the file. `None` if there are no rows.
    #[must_use]
    pub fn bytes_per_row(&self) -> Option<f64> {
        let used = self
            .pages_total
            .saturating_sub(self.pages_free)
            .saturating_sub(self.pages_pending);
        (self.rows() > 0).then(|| used as f64 * self.page_size as f64 / self.rows() as f64)
    }
}

impl Database {
    /// Asks the system to read the file into memory, from its beginning, up to `bytes_max` bytes; returns the number of
    /// bytes requested. Does not wait for the reads. After a reboot the first queries then find most of a file that
    /// fits into memory.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if the system refuses.
    pub fn warm_up(&self, bytes_max: u64) -> Result<u64> {
        Ok(self.pager.warm_up(bytes_max)?)
    }

    /// Locks the file in memory from its beginning, up to `bytes_max` bytes of its current length, and unlocks the
    /// parts beyond that which this handle had locked: 0 unlocks everything. Waits until the bytes are read; returns
    /// the number of bytes locked, or 0 if the file is not mapped. Closing the database ends the lock; later growth of
    /// the file is not locked until the next call.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if the system refuses, as it does beyond the limit of a process (RLIMIT_MEMLOCK).
    /// Nothing is locked then.
    pub fn lock_in_memory(&self, bytes_max: u64) -> Result<u64> {
        Ok(self.pager.lock_in_memory(bytes_max)?)
    }

    /// Statistics of the newest commit. Reads the catalog and every series' record. Never waits, so a monitoring thread
    /// may call it at any time, even with an open write transaction. While a write transaction is open, page statistics
    /// belong to the newest commit visible to all processes: they exclude commits of `Durability::None`.
    ///
    /// # Errors
    /// A damaged or unreadable page; as for [`begin_read`](Self::begin_read).
    pub fn stat(&self) -> Result<Stat> {
        let pages = self.pager.stat()?;
        let mut stat = Stat {
            txn: pages.txn,
            commit_time: Timestamp(pages.commit_time_ns),
            page_size: pages.page_size,
            file_bytes: pages.file_bytes,
            pages_total: pages.pages_total,
            pages_free: pages.pages_free,
            pages_pending: pages.pages_pending,
            log_pages: pages.log_pages,
            longest_free_pages: pages.longest_free_pages,
            large_bytes: pages.large_bytes,
            large_pages_free: pages.large_pages_free,
            ..Stat::default()
        };
        self.begin_read()?.fill(&mut stat)?;
        Ok(stat)
    }
}

impl ReadTxn {
    fn fill(&self, stat: &mut Stat) -> Result<()> {
        for name in self.tables()? {
            stat.tables += 1;
            // Counts are read from the file. In a hostile file their sum may overflow, so the addition saturates.
            let found =
                crate::catalog::table_roots::find_table(&self.cache.roots, &self.pages, &name)?;
            let entries = found.map_or(0, |entry| entry.tree.len());
            stat.table_entries = stat.table_entries.saturating_add(entries);
        }
        for info in self.list("")? {
            let types = info.schema.word_types();
            let tree = stored_tree(&self.cache.roots.records, &self.pages, info.id, &types)?;
            stat.series += 1;
            stat.leaf_rows = stat.leaf_rows.saturating_add(tree.count());
            stat.leaf_bytes = stat.leaf_bytes.saturating_add(tree.stored_bytes());
            stat.series_height_max = stat.series_height_max.max(tree.height());
        }
        stat.delta_rows = self
            .cache
            .delta
            .run_rows()
            .saturating_add(self.cache.delta.tail_rows());
        stat.runs = self.cache.delta.run_count() as u64;
        stat.tier_runs = self.cache.delta.tier_runs();
        Ok(())
    }
}
