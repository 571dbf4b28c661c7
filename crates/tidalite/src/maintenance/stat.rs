//! Statistics of a database: pages, trees, points, bytes per point.

use crate::database::handle::Database;
use crate::txn::leaves::stored_tree;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::time::Timestamp;
use tidalite_base::TxnId;

/// Statistics of a database as of one commit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stat {
    /// The newest commit.
    pub txn: TxnId,
    /// The time of the commit, by the committing process' wall clock.
    pub commit_time: Timestamp,
    /// Page size in bytes.
    pub page_size: usize,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Pages of the file, including its head.
    pub pages_total: u64,
    /// Pages that can be allocated now.
    pub pages_free: u64,
    /// Dead pages visible to a snapshot or needed by the newest durable states, in both files.
    pub pages_pending: u64,
    /// Pages of the log of small commits, which count as in use.
    pub log_pages: u64,
    /// Upper bound of the longest run of free pages.
    pub longest_free_pages: u64,
    /// Bytes of the second file, for large values; 0 without one.
    pub large_bytes: u64,
    /// Pages of the second file that can be allocated now.
    pub large_pages_free: u64,
    /// Tables of the user.
    pub tables: u64,
    /// Entries of these tables.
    pub table_entries: u64,
    /// Series.
    pub series: u64,
    /// Rows in leaves. A row that the delta overwrites is counted in both.
    pub leaf_rows: u64,
    /// Bytes of the leaves.
    pub leaf_bytes: u64,
    /// Levels of the highest series tree.
    pub series_height_max: u8,
    /// Rows in the delta: tail and runs.
    pub delta_rows: u64,
    /// Runs of the delta.
    pub runs: u64,
    /// Runs of each tier, the newest tier first.
    pub tier_runs: Vec<usize>,
}

impl Stat {
    /// Total number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.leaf_rows.saturating_add(self.delta_rows)
    }

    /// Fragmentation of free space: 0 for a single run, towards 1 for single pages all over the file. (The run is
    /// searched within regions of 128 MiB, so very much contiguous free space counts as slightly fragmented.) `None` if
    /// nothing is free.
    #[must_use]
    pub fn fragmentation(&self) -> Option<f64> {
        let free = self.pages_free;
        let scattered = free.saturating_sub(self.longest_free_pages);
        (free > 0).then(|| scattered as f64 / free as f64)
    }

    /// Bytes of the pages in use per row: everything included, also trees and head. `None` without rows.
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
    /// bytes. Does not wait for the reads. After a reboot the first queries then find most of a file that fits into
    /// memory.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if the system refuses.
    pub fn warm_up(&self, bytes_max: u64) -> Result<u64> {
        Ok(self.pager.warm_up(bytes_max)?)
    }

    /// Locks the file in memory from its beginning, up to `bytes_max` bytes of its current length, and unlocks the
    /// parts that this handle had locked beyond that: 0 ends it. Waits until the bytes are read; returns their number,
    /// 0 if the file is not mapped. Closing the database ends the lock; later growth of the file is not locked until
    /// the next call.
    ///
    /// # Errors
    /// [`Io`](crate::ErrorKind::Io) if the system refuses: beyond the limit of a process (RLIMIT_MEMLOCK). Nothing is
    /// locked then.
    pub fn lock_in_memory(&self, bytes_max: u64) -> Result<u64> {
        Ok(self.pager.lock_in_memory(bytes_max)?)
    }

    /// Statistics of the newest commit. Reads the catalog and every series' record. Never waits, so a monitoring thread
    /// may call it at any time, even with an open write transaction. While one is open, page statistics belong to the
    /// newest commit visible to all processes: they exclude commits of `Durability::None`.
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
            // Counts come from the file: in a hostile one their sum may overflow.
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
