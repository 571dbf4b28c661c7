//! Metadata of the delta: its root, which the caller stores, and its record, which the root points to.
//!
//! ```text
//! root (96 bytes)
//! 0      32       64          72         80     96
//! | tail | record | tail rows | run rows | zero |
//! | ptr  | ptr    | u64       | u64      |      |
//!
//! record (kind DeltaRecord, alone in an extent, at most 64 KiB)
//! 0        32         40        42      43
//! | header | next run | layouts | tiers | layouts ... | tiers ... |
//! |        | u64      | u16     | u8    |
//! layout:  | columns u8 | a type u8 a column |
//! tier:    | runs u8 | inputs u8 | output u8 | runs oldest first, 160 bytes each |
//!          and if inputs > 0: | merged bytes u64 | input bytes u64 | watermark known u8 | watermark key 20 |
//!          and the output run if output = 1
//! ```
//!
//! `inputs` is the number of oldest runs of the tier that its open compaction takes; 0 if no compaction is open. Up to
//! and including the watermark, readers use the output; above it, the inputs.

use crate::bugs::{Bug, active};
use crate::key::{KEY_BYTES, Key};
use crate::limits::{FAN_IN, LAYOUTS_MAX, TIER_RUNS_MAX, TIERS_MAX};
use crate::run::descriptor::{RUN_BYTES, Run};
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, COLUMNS_MAX};
use tidalite_base::{Corrupt, get_u16, get_u64, put_u16, put_u64};
use tidalite_codec::ColumnType;
use tidalite_pager::{
    Extent, HEADER_BYTES, Header, Kind, PTR_BYTES, PageRead, PageWrite, Ptr, Result, seal_block,
};

/// Length in bytes of an encoded [`DeltaRoot`].
pub const DELTA_ROOT_BYTES: usize = 96;

const TAIL_AT: usize = 0;
const RECORD_AT: usize = TAIL_AT + PTR_BYTES;
const TAIL_ROWS_AT: usize = RECORD_AT + PTR_BYTES;
const RUN_ROWS_AT: usize = TAIL_ROWS_AT + 8;
const _: () = assert!(RUN_ROWS_AT + 8 <= DELTA_ROOT_BYTES);

const NEXT_RUN_AT: usize = HEADER_BYTES;
const LAYOUTS_AT: usize = NEXT_RUN_AT + 8;
const TIERS_AT: usize = LAYOUTS_AT + 2;
const LIST_AT: usize = TIERS_AT + 1;

const COMPACTION_BYTES: usize = 8 + 8 + 1 + KEY_BYTES;
const RECORD_BYTES_MAX: usize = LIST_AT
    + LAYOUTS_MAX * (1 + COLUMNS_MAX)
    + TIERS_MAX * (3 + COMPACTION_BYTES + (TIER_RUNS_MAX + 1) * RUN_BYTES);
const _: () = assert!(RECORD_BYTES_MAX <= CHECKSUM_SPAN_MAX);

/// Root of the delta, which the caller stores at each commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaRoot {
    /// Pointer to the tail page; null if the tail page has no rows.
    pub tail: Ptr,
    /// Pointer to the record of the delta; null if there are no runs.
    pub record: Ptr,
    /// Number of rows in the tail page, including repeated timestamps.
    pub tail_rows: u64,
    /// Number of rows in runs, including repeated timestamps and rows that an open compaction has copied.
    pub run_rows: u64,
}

impl DeltaRoot {
    /// Encodes the root in its file format.
    #[must_use]
    pub fn encode(&self) -> [u8; DELTA_ROOT_BYTES] {
        let mut bytes = [0; DELTA_ROOT_BYTES];
        self.tail.encode(&mut bytes, TAIL_AT);
        self.record.encode(&mut bytes, RECORD_AT);
        put_u64(&mut bytes, TAIL_ROWS_AT, self.tail_rows);
        put_u64(&mut bytes, RUN_ROWS_AT, self.run_rows);
        bytes
    }

    /// Decodes a root from its file format.
    #[must_use]
    pub fn decode(bytes: &[u8; DELTA_ROOT_BYTES]) -> Self {
        Self {
            tail: Ptr::decode(bytes, TAIL_AT),
            record: Ptr::decode(bytes, RECORD_AT),
            tail_rows: get_u64(bytes, TAIL_ROWS_AT),
            run_rows: get_u64(bytes, RUN_ROWS_AT),
        }
    }
}

/// An open compaction of the oldest runs of a tier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compaction {
    /// Number of input runs, which are the oldest runs of the tier.
    pub(crate) inputs: usize,
    /// The output run so far; `None` while all merged rows became leaves.
    pub(crate) output: Option<Run>,
    /// The watermark: key of the last row that was merged; `None` at the beginning.
    pub(crate) watermark: Option<Key>,
    /// Size in bytes, without compression, of the input rows merged so far.
    pub(crate) compacted_bytes: u64,
    /// Size in bytes, without compression, of the input runs when the compaction began.
    pub(crate) input_bytes: u64,
}

/// The runs of one tier, which have a similar age and size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tier {
    /// The runs of the tier, the oldest first.
    pub(crate) runs: Vec<Run>,
    pub(crate) compaction: Option<Compaction>,
}

impl Tier {
    /// All runs of the tier, the oldest first, then the output of the open compaction.
    pub(crate) fn runs_and_output_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        let output = self.compaction.as_mut();
        let output = output.and_then(|compaction| compaction.output.as_mut());
        self.runs.iter_mut().chain(output)
    }
}

/// The runs, compactions and layouts of the delta. The head of `record.rs` shows the file format.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) next_run: u64,
    pub(crate) layouts: Vec<Box<[ColumnType]>>,
    /// The tiers of runs, the tier with the newest rows first.
    pub(crate) tiers: Vec<Tier>,
}

impl Record {
    /// Writes the record into a new extent; returns the pointer to the record.
    pub(crate) fn write<W: PageWrite>(&self, w: &mut W) -> Result<(Ptr, u64)> {
        assert!(self.layouts.len() <= LAYOUTS_MAX, "layouts are bounded");
        assert!(self.tiers.len() <= TIERS_MAX, "tiers are bounded");
        let mut bytes = vec![0; LIST_AT];
        put_u64(&mut bytes, NEXT_RUN_AT, self.next_run);
        put_u16(&mut bytes, LAYOUTS_AT, self.layouts.len() as u16);
        bytes[TIERS_AT] = self.tiers.len() as u8;
        for types in &self.layouts {
            bytes.push(types.len() as u8);
            bytes.extend(types.iter().map(|ty| ty.code()));
        }
        for tier in &self.tiers {
            let compaction = tier.compaction.as_ref();
            let output = compaction.and_then(|compaction| compaction.output);
            assert!(
                tier.runs.len() <= TIER_RUNS_MAX,
                "runs of a tier are bounded"
            );
            bytes.push(tier.runs.len() as u8);
            bytes.push(compaction.map_or(0, |compaction| compaction.inputs as u8));
            bytes.push(u8::from(output.is_some()));
            let put = |run: &Run, bytes: &mut Vec<u8>| {
                let at = bytes.len();
                bytes.resize(at + RUN_BYTES, 0);
                run.encode(&mut bytes[at..]);
            };
            for run in &tier.runs {
                put(run, &mut bytes);
            }
            if let Some(compaction) = compaction {
                let watermark = compaction
                    .watermark
                    .filter(|_| !active(Bug::CompactionForgetsWatermark));
                bytes.extend(compaction.compacted_bytes.to_le_bytes());
                bytes.extend(compaction.input_bytes.to_le_bytes());
                bytes.push(u8::from(watermark.is_some()));
                bytes.extend(watermark.unwrap_or(Key::MIN).encode());
            }
            if let Some(run) = &output {
                put(run, &mut bytes);
            }
        }
        let len = bytes.len();
        assert!(len <= RECORD_BYTES_MAX, "a record fits in a block");
        let pages = len.div_ceil(w.page_size()) as u64;
        let extent = w.alloc_extent(pages)?;
        let header = Header {
            kind: Kind::DeltaRecord,
            flags: 0,
            owner: 0,
            address: extent.addr,
            birth: w.txn(),
        };
        let ptr = seal_block(&mut bytes, &header);
        bytes.resize(pages as usize * w.page_size(), 0);
        w.write_extent(extent.addr, &bytes)?;
        Ok((ptr, pages))
    }

    /// Reads the record from the file; a null pointer stands for an empty record.
    pub(crate) fn read<R: PageRead>(r: &R, ptr: &Ptr) -> Result<Self> {
        if ptr.is_null() {
            return Ok(Self::default());
        }
        let block = r.block(ptr)?;
        let mut fields = Fields {
            bytes: &block,
            at: HEADER_BYTES,
            addr: ptr.addr,
        };
        let next_run = get_u64(fields.take(8)?, 0);
        let layouts = usize::from(get_u16(fields.take(2)?, 0));
        let tiers = usize::from(fields.byte()?);
        if layouts > LAYOUTS_MAX || tiers > TIERS_MAX {
            let found = format!("{layouts} layouts, {tiers} tiers");
            return Err(fields.damaged(found, "fewer of both").into());
        }
        let mut record = Self {
            next_run,
            ..Self::default()
        };
        for _ in 0..layouts {
            let columns = usize::from(fields.byte()?);
            if columns > COLUMNS_MAX {
                let found = format!("{columns} columns");
                return Err(fields.damaged(found, "at most 64").into());
            }
            let codes = fields.take(columns)?.iter();
            let types: Result<Vec<_>, Corrupt> =
                codes.map(|&code| ColumnType::from_code(code)).collect();
            record.layouts.push(types?.into());
        }
        for _ in 0..tiers {
            record.tiers.push(fields.tier()?);
        }
        if fields.at != block.len() {
            let found = format!("{} bytes", block.len());
            return Err(fields
                .damaged(found, &format!("{} bytes", fields.at))
                .into());
        }
        Ok(record)
    }
}

/// The extent of a record. A record occupies whole pages on its own.
pub(crate) fn record_extent(ptr: &Ptr, page_size: usize) -> Extent {
    Extent {
        addr: ptr.addr,
        pages: (ptr.len as usize).div_ceil(page_size) as u64,
        birth: ptr.birth,
    }
}

/// Decodes the fields of a record one by one, and checks that they end within the record.
struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    addr: u64,
}

impl<'b> Fields<'b> {
    fn damaged(&self, found: String, expected: &str) -> Corrupt {
        Corrupt::new("the delta's record", self.addr, found, expected)
    }

    fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        let Some(field) = self.bytes.get(self.at..self.at + len) else {
            let found = format!("{} bytes", self.bytes.len());
            return Err(self
                .damaged(found, &format!("{} and more", self.at + len))
                .into());
        };
        self.at += len;
        Ok(field)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn run(&mut self) -> Result<Run> {
        Run::decode(self.take(RUN_BYTES)?, self.addr)
    }

    fn tier(&mut self) -> Result<Tier> {
        let (runs, inputs) = (usize::from(self.byte()?), usize::from(self.byte()?));
        let output = self.byte()?;
        if runs > TIER_RUNS_MAX || inputs > runs.min(FAN_IN) || output > u8::from(inputs > 0) {
            let found = format!("{runs} runs, a compaction of {inputs} with {output} outputs");
            return Err(self
                .damaged(found, "at most 31 runs, a compaction of at most 16")
                .into());
        }
        let mut tier = Tier::default();
        for _ in 0..runs {
            tier.runs.push(self.run()?);
        }
        if inputs > 0 {
            let compacted_bytes = get_u64(self.take(8)?, 0);
            let input_bytes = get_u64(self.take(8)?, 0);
            let known = self.byte()? != 0;
            let key = Key::decode(self.take(KEY_BYTES)?);
            tier.compaction = Some(Compaction {
                inputs,
                output: if output == 1 { Some(self.run()?) } else { None },
                watermark: key.filter(|_| known),
                compacted_bytes,
                input_bytes,
            });
        }
        Ok(tier)
    }
}
