//! Layout of the lock area, in the lock file or in the memory of the process.
//!
//! ```text
//! byte     bytes
//! 0        64       magic 16, version u64, boot id 16, file uuid 16, 0
//! 64        8       published: the newest commit, from which readers begin
//! 72        8       durable: the newest commit known to be on the medium
//! 80      2 x 8     the data file: st_dev and st_ino; st_rdev and 0 for a block device; zeros if it is not a file
//! 128       8       poison: 0, or the process whose sync failed (process id << 1 | 1)
//! 192       8 x 4   writer: generation of the handle that wrote last, owner word of the current one or 0,
//!                   its thread, since when (ns)
//! 256     3 x 8     next ticket of the writers' queue; tickets drawn and not returned; owner word of the handle that
//!                   holds the writer lock without a ticket, or 0
//! 320       4       wake-up counter (u32): incremented when a writer finishes
//! 384       8 x 3   generations assigned; slots ever used; pages freed by all commits
//! 4096   2 x 4096   two unsynced meta records (docs/durability.md)
//! 12288  1024 x 64  handles: generation u64 or 0, process id, opened at (ns since 1970), kind, 0 ..
//! 77824  4096 x 64  reader slots: state, owner, thread, since when (ns), pages freed before, pages retained, 0 ..
//! 339968            end
//! ```
//!
//! Words of 8 bytes in native byte order, because the file never leaves the machine. A slot's state is 0 (idle), a
//! transaction with the flags of `protocol`, or all ones (evicted). Its owner is `generation << 16 | handle + 1`.

pub(super) const MAGIC: [u8; 16] = *b"Tidalite lock\r\n\0";
pub(super) const VERSION: u64 = 5;

/// Maximum number of open handles on one file, in all processes together.
pub const HANDLES_MAX: usize = 1024;
/// Maximum number of snapshots of one file, in all processes together.
pub const READERS_MAX: usize = 4096;
/// Length in bytes of the slot for an unsynced meta record.
pub(super) const UNSYNCED_META_BYTES: usize = 4096;

pub(super) const PUBLISHED_AT: usize = 64;
pub(super) const DURABLE_AT: usize = 72;
pub(super) const FILE_AT: usize = 80;
pub(super) const POISON_AT: usize = 128;
pub(super) const WRITER_AT: usize = 192;
pub(super) const TICKET_AT: usize = 256;
pub(super) const WAKE_COUNTER_AT: usize = 320;
pub(super) const COUNTERS_AT: usize = 384;
pub(super) const UNSYNCED_META_AT: usize = 4096;
pub(super) const HANDLES_AT: usize = UNSYNCED_META_AT + 2 * UNSYNCED_META_BYTES;
/// Number of bytes before the table of handles: the part of the area that outlives the handles.
pub(super) const RECORDS_BYTES: usize = HANDLES_AT;
pub(super) const LINE: usize = 64;
pub(super) const READERS_AT: usize = HANDLES_AT + HANDLES_MAX * LINE;
/// Length in bytes of the lock area.
pub(super) const AREA_BYTES: usize = READERS_AT + READERS_MAX * LINE;
const _: () = assert!(AREA_BYTES == 339_968);
const _: () = assert!(HANDLES_AT.is_multiple_of(LINE) && READERS_AT.is_multiple_of(LINE));
const _: () = assert!(COUNTERS_AT + 24 <= UNSYNCED_META_AT && WAKE_COUNTER_AT + 4 <= COUNTERS_AT);
