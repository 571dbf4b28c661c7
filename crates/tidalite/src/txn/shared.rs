//! State shared by the transactions of an open database: reusable memory, and the result of the last commit.

use crate::catalog::roots::Roots;
use crate::txn::compaction_pass::Pass;
use crate::txn::open_table::OpenTable;
use crate::txn::read::NewestCommit;
use crate::types::error::Result;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use tidalite_delta::WriteBuffer;
use tidalite_pager::Clocks;

/// Maximum number of appender buffers kept for reuse.
const APPENDING_KEPT_MAX: usize = 64;

/// The result of a committed write transaction.
struct Left {
    bytes: Vec<u8>,
    /// The decoded `bytes`.
    roots: Box<Roots>,
    /// The tables that it had open.
    tables: Vec<OpenTable>,
}

/// State shared by the transactions of an open database.
pub(crate) struct Shared {
    /// The last transaction's write buffer, reused: fresh memory costs more than everything else.
    write_buffer: Mutex<Option<Box<WriteBuffer>>>,
    write_buffer_bytes: usize,
    pub(crate) leaf_vectors: usize,
    pub(crate) flush_threads: usize,
    pub(crate) scan_threads: usize,
    /// Write buffers of appenders, reused for the same reason.
    appending: Mutex<Vec<WriteBuffer>>,
    /// The result of the last write transaction.
    left: Mutex<Option<Left>>,
    /// The position of compaction.
    pub(crate) pass: Mutex<Option<Pass>>,
    /// The newest commit at the end of the last compaction through this handle; 0 if there was none.
    pub(crate) compacted: AtomicU64,
    pub(crate) newest: NewestCommit,
    /// The clocks when the file was opened.
    pub(crate) opened: Clocks,
}

impl Shared {
    /// Creates the state of a database opened at `opened`. Its transactions buffer up to `write_buffer_bytes` and write
    /// leaves of up to `leaf_vectors` vectors.
    pub(crate) fn new(
        (write_buffer_bytes, leaf_vectors): (usize, usize),
        (flush_threads, scan_threads): (usize, usize),
        opened: Clocks,
    ) -> Self {
        Self {
            write_buffer: Mutex::new(None),
            write_buffer_bytes,
            leaf_vectors,
            flush_threads,
            appending: Mutex::default(),
            left: Mutex::new(None),
            pass: Mutex::new(None),
            compacted: AtomicU64::new(0),
            scan_threads,
            newest: NewestCommit::default(),
            opened,
        }
    }

    pub(crate) fn take_write_buffer(&self) -> Box<WriteBuffer> {
        let kept = self
            .write_buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        kept.unwrap_or_else(|| Box::new(WriteBuffer::new(self.write_buffer_bytes)))
    }

    /// The decoded roots, with the tables kept if the last transaction left exactly these roots.
    pub(crate) fn take_roots(&self, bytes: &[u8]) -> Result<(Box<Roots>, Vec<OpenTable>)> {
        let left = self
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match left {
            Some(left) if left.bytes == bytes => Ok((left.roots, left.tables)),
            _ => Ok((Box::new(Roots::decode(bytes)?), Vec::new())),
        }
    }

    pub(crate) fn give_roots(&self, bytes: Vec<u8>, roots: Box<Roots>, tables: Vec<OpenTable>) {
        debug_assert!(
            Roots::decode(&bytes).is_ok_and(|decoded| decoded == *roots),
            "the roots are what was committed"
        );
        let left = Left {
            bytes,
            roots,
            tables,
        };
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Takes a write buffer of this size for an appender.
    pub(crate) fn take_appending(&self, bytes: usize) -> WriteBuffer {
        let mut kept = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Buffers of another size belonged to another number of appenders and are dropped.
        kept.retain(|write_buffer| write_buffer.budget_bytes() == bytes);
        kept.pop().unwrap_or_else(|| WriteBuffer::new(bytes))
    }

    pub(crate) fn give_appending(&self, mut write_buffer: WriteBuffer) {
        write_buffer.reset();
        let mut kept = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.len() < APPENDING_KEPT_MAX {
            kept.push(write_buffer);
        }
    }

    /// Keeps the buffer for the next transaction and returns its epoch. `used` is the number of slots that the
    /// transaction used.
    pub(crate) fn give_write_buffer(&self, mut write_buffer: Box<WriteBuffer>, used: usize) -> u64 {
        // The cost of each use of the buffer grows with its slots.
        if used >= write_buffer.slots() / 2 {
            write_buffer.forget_rows();
        } else if used > 0 || !write_buffer.is_empty() {
            write_buffer.reset();
        }
        let epoch = write_buffer.epoch();
        *self
            .write_buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(write_buffer);
        epoch
    }
}
