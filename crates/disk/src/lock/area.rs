//! The lock area: atomic words that all handles of a file share, in the lock file or in the memory of the process.

use super::layout::{
    AREA_BYTES, COUNTERS_AT, DURABLE_AT, FILE_AT, HANDLES_AT, LINE, MAGIC, POISON_AT, PUBLISHED_AT,
    READERS_AT, TICKET_AT, UNSYNCED_META_AT, UNSYNCED_META_BYTES, VERSION, WAKE_COUNTER_AT,
    WRITER_AT,
};
use super::map::SharedMap;
use super::sync::AtomicU64;
use crate::storage::FileId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Identity in the header of the lock area. A handle can use the area only if its own identity is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the current boot of the operating system; zeros if it is unknown.
    pub boot: [u8; 16],
    /// UUID of the database file.
    pub uuid: [u8; 16],
    /// Device and inode of the data file, which distinguish a file from a copy of it with the same UUID.
    pub file: FileId,
}

/// A lock area in the memory of this process, for a database that is not a file.
#[derive(Debug)]
pub struct MemoryWords {
    pub(super) words: Box<[AtomicU64]>,
    pub(super) wake_counter: AtomicU32,
    /// True until the words are written for the first time.
    pub(super) empty: AtomicBool,
}

impl MemoryWords {
    pub(super) fn new() -> Self {
        Self {
            words: (0..AREA_BYTES / 8).map(|_| AtomicU64::new(0)).collect(),
            wake_counter: AtomicU32::new(0),
            empty: AtomicBool::new(true),
        }
    }
}

/// The lock area as atomic words that all handles share.
#[derive(Clone, Debug)]
pub enum Area {
    /// The area is in a lock file, which is mapped into memory.
    Mapped(Arc<SharedMap>),
    /// The area is in the memory of this process.
    Memory(Arc<MemoryWords>),
}

impl Area {
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Mapped(map) => map.words(),
            Self::Memory(memory) => &memory.words,
        }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words()[at / 8]
    }

    pub(super) fn wake_counter(&self) -> &AtomicU32 {
        match self {
            Self::Mapped(map) => map.wake_counter(),
            Self::Memory(memory) => &memory.wake_counter,
        }
    }

    /// The transaction number of the newest commit, from which new readers begin.
    #[inline]
    pub fn published(&self) -> &AtomicU64 {
        self.word(PUBLISHED_AT)
    }
    /// The transaction number of the newest commit known to be on the medium.
    pub fn durable(&self) -> &AtomicU64 {
        self.word(DURABLE_AT)
    }
    pub(super) fn poison(&self) -> &AtomicU64 {
        self.word(POISON_AT)
    }
    /// Returns a word about writers. Field 0 is the generation of the handle that wrote last, field 1 the owner word
    /// of the handle that writes now, field 2 its thread, and field 3 the time at which it began.
    pub(super) fn writer(&self, field: usize) -> &AtomicU64 {
        self.word(WRITER_AT + field * 8)
    }
    pub(super) fn next_ticket(&self) -> &AtomicU64 {
        self.word(TICKET_AT)
    }
    /// Number of tickets in the writer queue that were drawn and not returned. After a process was killed, the number
    /// may be too high, never too low.
    pub(super) fn waiting(&self) -> &AtomicU64 {
        self.word(TICKET_AT + 8)
    }
    /// Owner word of the handle that holds the writer lock without a ticket, or 0. The process of the handle may be
    /// dead.
    pub(super) fn lock_word(&self) -> &AtomicU64 {
        self.word(TICKET_AT + 16)
    }
    pub(super) fn generations(&self) -> &AtomicU64 {
        self.word(COUNTERS_AT)
    }
    /// The highest reader slot that was ever used, plus one.
    pub(super) fn slots_used(&self) -> &AtomicU64 {
        self.word(COUNTERS_AT + 8)
    }
    /// Total number of pages that all commits have freed.
    pub fn freed_pages(&self) -> &AtomicU64 {
        self.word(COUNTERS_AT + 16)
    }
    /// Returns the cache line of a handle: its generation, process id, time of opening and kind.
    pub(super) fn handle(&self, index: usize) -> &[AtomicU64] {
        let at = (HANDLES_AT + index * LINE) / 8;
        &self.words()[at..at + LINE / 8]
    }
    /// Returns the cache line of a reader slot.
    #[inline]
    pub(super) fn slot(&self, index: usize) -> &[AtomicU64] {
        let at = (READERS_AT + index * LINE) / 8;
        &self.words()[at..at + LINE / 8]
    }

    fn bytes16(&self, at: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        for half in [0, 8] {
            let word = self.word(at + half).load(Ordering::Relaxed);
            bytes[half..half + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn set_bytes(&self, at: usize, bytes: &[u8]) {
        for (i, part) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.word(at + i * 8)
                .store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.bytes16(0) == MAGIC
    }

    pub(super) fn version(&self) -> u64 {
        self.word(16).load(Ordering::Relaxed)
    }

    fn file(&self) -> FileId {
        let word = |at| self.word(at).load(Ordering::Relaxed);
        FileId {
            device: word(FILE_AT),
            inode: word(FILE_AT + 8),
        }
    }

    /// Returns the identity with which the area was last reset.
    pub fn identity(&self) -> Identity {
        Identity {
            boot: self.bytes16(24),
            uuid: self.bytes16(40),
            file: self.file(),
        }
    }

    /// Empties the lock area, except for the unsynced meta records if `keep_unsynced_meta` is set. The caller must be
    /// the only user of the area.
    pub(super) fn reset(&self, identity: &Identity, keep_unsynced_meta: bool) {
        // The magic number is written last: if the reset is interrupted, the next handle finds no magic number and
        // resets the area again.
        self.word(0).store(0, Ordering::SeqCst);
        let generations = self.generations().load(Ordering::Relaxed);
        let unsynced_meta = if keep_unsynced_meta {
            UNSYNCED_META_AT
        } else {
            HANDLES_AT
        };
        let empty = match self {
            Self::Memory(memory) => memory.empty.swap(false, Ordering::Relaxed),
            Self::Mapped(_) => false,
        };
        for emptied in [
            0..WAKE_COUNTER_AT,
            WAKE_COUNTER_AT + 8..unsynced_meta,
            HANDLES_AT..AREA_BYTES,
        ] {
            if !empty {
                self.zero(emptied);
            }
        }
        if keep_unsynced_meta {
            self.generations().store(generations, Ordering::Relaxed);
        }
        self.word(16).store(VERSION, Ordering::Relaxed);
        self.set_bytes(24, &identity.boot);
        self.set_bytes(40, &identity.uuid);
        for (at, number) in [(0, identity.file.device), (8, identity.file.inode)] {
            self.word(FILE_AT + at).store(number, Ordering::Relaxed);
        }
        self.set_bytes(8, &MAGIC[8..]);
        let mut first = [0; 8];
        first.copy_from_slice(&MAGIC[..8]);
        self.word(0)
            .store(u64::from_ne_bytes(first), Ordering::SeqCst);
    }

    /// Zeroes a range of whole words. Writes only to words that are not zero yet, since most of the area is zero and
    /// its pages should not become dirty.
    fn zero(&self, bytes: std::ops::Range<usize>) {
        for line in self.words()[bytes.start / 8..bytes.end / 8].chunks(LINE / 8) {
            let load = |bits, word: &AtomicU64| bits | word.load(Ordering::Relaxed);
            if line.iter().fold(0, load) != 0 {
                for word in line {
                    word.store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// Zeroes the two slots for unsynced meta records except slot `kept`. The caller must hold the setup lock and be
    /// the only handle.
    pub fn clear_unsynced_meta(&self, kept: Option<usize>) {
        for slot in [0, 1] {
            if kept != Some(slot) {
                let at = UNSYNCED_META_AT + slot * UNSYNCED_META_BYTES;
                self.zero(at..at + UNSYNCED_META_BYTES);
            }
        }
    }

    /// Copies an unsynced meta record from slot 0 or 1. The record has its own checksum, because it may be
    /// half-written.
    pub fn unsynced_meta(&self, slot: usize) -> Vec<u8> {
        assert!(slot < 2, "there are two unsynced meta records");
        let at = UNSYNCED_META_AT + slot * UNSYNCED_META_BYTES;
        let words = &self.words()[at / 8..(at + UNSYNCED_META_BYTES) / 8];
        let load = |word: &AtomicU64| word.load(Ordering::Acquire).to_ne_bytes();
        words.iter().flat_map(load).collect()
    }

    /// Writes an unsynced meta record of at most 4096 bytes to slot 0 or 1; the rest of the slot is zero. The caller
    /// must hold the pipeline lock of the handle that has the writer lock.
    pub fn set_unsynced_meta(&self, slot: usize, record: &[u8]) {
        assert!(
            slot < 2 && record.len() <= UNSYNCED_META_BYTES,
            "an unsynced meta record has its slot"
        );
        let at = (UNSYNCED_META_AT + slot * UNSYNCED_META_BYTES) / 8;
        let words = &self.words()[at..at + UNSYNCED_META_BYTES / 8];
        let (whole, rest) = record.as_chunks::<8>();
        let (full, behind) = words.split_at(whole.len());
        for (word, bytes) in full.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for (number, word) in behind.iter().enumerate() {
            let bytes = if number == 0 { last } else { [0; 8] };
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        super::sync::fence(Ordering::SeqCst);
    }
}
