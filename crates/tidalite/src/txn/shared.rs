//! State shared by the transactions of an open database: reusable memory, and the result of the last commit.

use crate::catalog::roots::Roots;
use crate::txn::compaction_pass::Pass;
use crate::txn::open_table::OpenTable;
use crate::txn::read::NewestCommit;
use crate::types::error::Result;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use tidalite_delta::WriteBuffer;
use tidalite_series::KeptHot;

/// Maximum number of appenders' write buffers that are kept for reuse.
const APPENDING_KEPT_MAX: usize = 64;

/// The state that a committed write transaction leaves for the next one.
struct Left {
    bytes: Vec<u8>,
    /// The roots decoded from `bytes`.
    roots: Box<Roots>,
    /// The tables that the transaction had open.
    tables: Vec<OpenTable>,
}

/// State that the transactions of an open database share.
pub(crate) struct Shared {
    /// Write buffer of the last transaction, kept for reuse, because fresh memory costs more than everything else.
    write_buffer: Mutex<Option<Box<WriteBuffer>>>,
    write_buffer_bytes: usize,
    pub(crate) leaf_vectors: usize,
    pub(crate) run_bytes: u64,
    pub(crate) flush_threads: usize,
    pub(crate) scan_threads: usize,
    /// Write buffers of appenders, kept for reuse, because fresh memory is expensive.
    appending: Mutex<Vec<WriteBuffer>>,
    /// The state that the last write transaction left for the next one.
    left: Mutex<Option<Left>>,
    /// The compaction pass in progress, if there is one.
    pub(crate) pass: Mutex<Option<Pass>>,
    /// Old leaves that maintenance has read and that would not become much smaller in cold form.
    pub(crate) kept_hot: Mutex<KeptHot>,
    /// Id of the series at which the next search for old leaves continues.
    pub(crate) cold_from: AtomicU64,
    /// Name of the table of messages after which the next round of their maintenance begins.
    pub(crate) messages_after: Mutex<String>,
    /// Number of the newest commit at the end of the last completed compaction through this handle; 0 if there was
    /// none, or if a reader or a pin retained pages then.
    pub(crate) compacted: AtomicU64,
    pub(crate) newest: NewestCommit,
}

impl Shared {
    /// Creates the state of a database that was just opened. Its transactions buffer up to `write_buffer_bytes` bytes
    /// of rows, write leaves of up to `leaf_vectors` vectors, and merge runs of hash tables and buffered tables from
    /// `run_bytes` on.
    pub(crate) fn new(
        (write_buffer_bytes, leaf_vectors, run_bytes): (usize, usize, u64),
        (flush_threads, scan_threads): (usize, usize),
    ) -> Self {
        Self {
            write_buffer: Mutex::new(None),
            write_buffer_bytes,
            leaf_vectors,
            run_bytes,
            flush_threads,
            appending: Mutex::default(),
            left: Mutex::new(None),
            pass: Mutex::new(None),
            kept_hot: Mutex::default(),
            cold_from: AtomicU64::new(0),
            messages_after: Mutex::default(),
            compacted: AtomicU64::new(0),
            scan_threads,
            newest: NewestCommit::default(),
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

    /// Returns the decoded roots for the encoded roots in `bytes`. If the last transaction left exactly these roots,
    /// nothing is decoded, and the tables that it knew are returned, too.
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

    /// Takes a write buffer of this size in bytes for an appender, if possible one that is kept for reuse.
    pub(crate) fn take_appending(&self, bytes: usize) -> WriteBuffer {
        let mut kept = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Buffers of another size were made for another number of appenders and are dropped.
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

    /// Keeps a write buffer for the next transaction and returns the buffer's epoch. `used` is the number of slots that
    /// the last transaction used.
    pub(crate) fn give_write_buffer(&self, mut write_buffer: Box<WriteBuffer>, used: usize) -> u64 {
        // Each use of the buffer costs time for each of its slots, so the slots are kept only if at least half of them
        // were used.
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
