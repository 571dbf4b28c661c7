//! A leaf: up to 16 vectors of rows, column after column, under one directory.
//!
//! ```text
//! 0         32                    directory bytes        + data bytes   up to 64-byte alignment
//! | header  | fixed | modes | times | columns | payloads ..............| zeros |
//! |<-------- one block, under the link's checksum --->|<- each under a checksum of the directory
//!
//! fixed:    32     36        37        38          39  40                44           48
//!           | rows | vectors | columns | time mode | 0 | directory bytes | data bytes |
//!           | u32  |   u8    |   u8    |    u8     |   |       u32       |    u32     |
//!           48      56    64  72
//!           | begin | end | 0 |
//!           |  i64  | i64 |u64|
//! modes:    one u8 a column, zeros up to a multiple of 8
//! times:    mode 1, stepped: row i is at begin + i * step; every vector but the last has 1024 rows
//!           | step u64 |
//!           mode 0, for each vector:
//!           | begin | end | offset | 0   | checksum | chunk |
//!           |  i64  | i64 |  u32   | u32 |   u64    | 32 B  |
//! columns:  mode 1, constant: every word of the leaf is the same
//!           | word u64 |
//!           mode 0, for each vector:
//!           | offset | 0   | checksum | chunk | statistics |
//!           |  u32   | u32 |   u64    | 32 B  |   104 B    |
//! ```
//!
//! A leaf in cold form has the kind of its own, so that a link tells it; its times and columns may be in mode 2: what the
//! vectors of one share lies in front of their entries, which are those of mode 0 (decision 0414).
//! ```text
//!           | offset | bytes | checksum |  of the model, a payload of its own
//!           |  u32   |  u32  |   u64    |
//! ```
//! A leaf with fewer columns than its series was written before the others were added (decision 0410).
//! Offsets count from the end of the directory. A payload's checksum is 0 when it has no bytes. The
//! statistics of a vector of a constant column are those of its rows; they follow from the word.

mod cold;
mod reader;
mod writer;

pub(crate) use reader::Leaf;
pub(crate) use writer::{OpenLeaf, payload_checksum};

use tidalite_base::limits::{CHECKSUM_SPAN_MAX, LEAF_VECTORS_MAX};
use tidalite_codec::{CHUNK_BYTES, STATS_BYTES};
use tidalite_pager::{HEADER_BYTES, Kind};

const ROWS_AT: usize = HEADER_BYTES;
const VECTORS_AT: usize = ROWS_AT + 4;
const COLUMNS_AT: usize = VECTORS_AT + 1;
const TIME_MODE_AT: usize = COLUMNS_AT + 1;
const DIRECTORY_BYTES_AT: usize = TIME_MODE_AT + 2;
const DATA_BYTES_AT: usize = DIRECTORY_BYTES_AT + 4;
const BEGIN_AT: usize = DATA_BYTES_AT + 4;
const END_AT: usize = BEGIN_AT + 8;
const MODES_AT: usize = END_AT + 16;
const _: () = assert!(MODES_AT == 72);

/// Each vector has an entry of its own.
const MODE_VECTORS: u8 = 0;
/// Times: one step for the whole leaf. Columns: one word for the whole leaf.
const MODE_WHOLE: u8 = 1;

/// As 0; the entries follow that of a model, which vectors in cold form need.
const MODE_COLD: u8 = 2;

const MODEL_OFFSET: usize = 0;
const MODEL_BYTES: usize = MODEL_OFFSET + 4;
const MODEL_CHECKSUM: usize = MODEL_BYTES + 4;
const MODEL_ENTRY_BYTES: usize = MODEL_CHECKSUM + 8;

const TIME_BEGIN: usize = 0;
const TIME_END: usize = TIME_BEGIN + 8;
const TIME_OFFSET: usize = TIME_END + 8;
const TIME_CHECKSUM: usize = TIME_OFFSET + 8;
const TIME_CHUNK: usize = TIME_CHECKSUM + 8;
const TIME_ENTRY_BYTES: usize = TIME_CHUNK + CHUNK_BYTES;

const COLUMN_OFFSET: usize = 0;
const COLUMN_CHECKSUM: usize = COLUMN_OFFSET + 8;
const COLUMN_CHUNK: usize = COLUMN_CHECKSUM + 8;
const COLUMN_STATS: usize = COLUMN_CHUNK + CHUNK_BYTES;
const COLUMN_ENTRY_BYTES: usize = COLUMN_STATS + STATS_BYTES;

/// Payload bytes after which a leaf takes no further vector: rewriting one then stays cheap.
const DATA_BYTES_SOFT: usize = 64 * 1024;

/// Whether a pointer of this kind leads to a leaf.
pub(crate) fn is_leaf(kind: Kind) -> bool {
    matches!(kind, Kind::SeriesLeaf | Kind::SeriesCold)
}

fn modes_bytes(columns: usize) -> usize {
    columns.next_multiple_of(8)
}

/// Vectors that fit one leaf: 16, or fewer when many columns would stretch the directory over 64 KiB.
pub(crate) fn vectors_max(columns: usize) -> usize {
    let fixed = MODES_AT + modes_bytes(columns);
    let entry = TIME_ENTRY_BYTES + columns * COLUMN_ENTRY_BYTES;
    ((CHECKSUM_SPAN_MAX - fixed) / entry).clamp(1, LEAF_VECTORS_MAX)
}
