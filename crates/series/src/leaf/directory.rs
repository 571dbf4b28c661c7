//! The sections of a leaf's directory, one for the times and one for each column: their entries and the positions of
//! payloads.
//!
//! ```text
//! section of mode 0   | entry bytes u8, payload bytes u16: for each vector | entries |
//! section of mode 2   | checksum u64, bytes u32: of the model              | then as mode 0
//! section of mode 1   | step or word u64 |
//! ```
//!
//! The position of an entry is the sum of the lengths stored before the entries: adding them up is faster than a
//! mispredicted branch.

use crate::leaf::layout::{
    ENTRY_LENGTH_AT, LENGTHS_BYTES, MODE_COLD, MODE_VECTORS, MODE_WHOLE, MODEL_BYTES,
    MODEL_CHECKSUM, MODEL_ENTRY_BYTES, PAYLOAD_LENGTH_AT, SECTION_BYTES, SECTION_ENTRIES,
    SECTION_MODE, SECTION_PAYLOADS, SECTION_TYPE, SECTIONS_AT, WHOLE_BYTES,
};
use tidalite_base::{Corrupt, get_u16, get_u32, get_u64};
use tidalite_codec::ColumnType;

/// Position of a model, which all vectors of a section share, among the payloads of the section.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredModel {
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) checksum: u64,
}

/// Position of a vector's entry in the directory, and of the vector's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPosition {
    /// Offset of the entry in the directory.
    pub(super) at: usize,
    pub(super) end: usize,
    /// Offset of the payload from the end of the directory.
    pub(super) offset: usize,
    pub(super) payload_bytes: usize,
}

/// Start of each section, in the directory and among the payloads, and the end of the last section; all offsets are
/// within bounds. Section 0 holds the times; the sections of the columns follow.
#[derive(Debug)]
pub(super) struct Sections {
    begins: Vec<(u32, u32)>,
}

/// The number of the section that holds a column.
#[inline]
pub(super) fn number_of(column: usize) -> usize {
    1 + column
}

/// The fixed fields of a section, at the beginning of the directory.
#[inline]
fn fields(block: &[u8], number: usize) -> &[u8] {
    &block[SECTIONS_AT + number * SECTION_BYTES..][..SECTION_BYTES]
}

impl Sections {
    /// Parses the sections of a directory that has room for their fixed fields; returns a description of the damage if
    /// the sections are invalid.
    pub(super) fn parse(
        block: &[u8],
        columns: usize,
        vectors: usize,
        is_cold: bool,
    ) -> Result<Self, String> {
        let mut begins = Vec::with_capacity(columns + 2);
        let mut at = SECTIONS_AT + (1 + columns) * SECTION_BYTES;
        let mut payload = 0u64;
        for number in 0..=columns {
            begins.push((at as u32, payload as u32));
            let own = fields(block, number);
            let (mode, code) = (own[SECTION_MODE], own[SECTION_TYPE]);
            let entries = usize::from(get_u16(own, SECTION_ENTRIES));
            let payload_bytes = get_u32(own, SECTION_PAYLOADS);
            at += entries;
            payload += u64::from(payload_bytes);
            let sound = match mode {
                MODE_VECTORS => entries >= vectors * LENGTHS_BYTES,
                MODE_WHOLE => entries == WHOLE_BYTES && payload_bytes == 0,
                MODE_COLD => is_cold && entries >= MODEL_ENTRY_BYTES + vectors * LENGTHS_BYTES,
                _ => false,
            };
            let of_type = match number {
                0 => code == 0,
                _ => ColumnType::from_code(code).is_ok(),
            };
            if !sound || !of_type || at > block.len() || payload > u64::from(u32::MAX) {
                return Err(format!(
                    "section {number}: mode {mode}, type {code}, {entries} bytes, {payload_bytes} of payloads"
                ));
            }
        }
        begins.push((at as u32, payload as u32));
        debug_assert!(
            at <= block.len() && begins.is_sorted(),
            "sections follow each other inside the directory"
        );
        Ok(Self { begins })
    }

    /// Number of columns that the leaf was written with.
    #[inline]
    pub(super) fn columns(&self) -> usize {
        self.begins.len() - 2
    }

    /// Length in bytes of the directory, and of all payloads.
    pub(super) fn behind(&self) -> (usize, usize) {
        let (at, payload) = self.begins[self.begins.len() - 1];
        (at as usize, payload as usize)
    }

    #[inline]
    pub(super) fn mode(block: &[u8], number: usize) -> u8 {
        fields(block, number)[SECTION_MODE]
    }

    /// The type of a section's values; times count as signed integers.
    #[inline]
    pub(super) fn column_type(block: &[u8], number: usize) -> ColumnType {
        let code = fields(block, number)[SECTION_TYPE];
        ColumnType::from_code(code).unwrap_or(ColumnType::I64)
    }

    /// The constant step or the constant value of the whole leaf, if the section stores one.
    #[inline]
    pub(super) fn whole(&self, block: &[u8], number: usize) -> Option<u64> {
        let is_whole = Self::mode(block, number) == MODE_WHOLE;
        is_whole.then(|| get_u64(block, self.begins[number].0 as usize))
    }

    /// The position of the model that the section's vectors share; `None` if there is no model, or no room for one.
    pub(super) fn model(&self, block: &[u8], number: usize) -> Option<StoredModel> {
        if Self::mode(block, number) != MODE_COLD {
            return None;
        }
        let (at, offset) = self.begins[number];
        let entry = &block[at as usize..][..MODEL_ENTRY_BYTES];
        let bytes = get_u32(entry, MODEL_BYTES);
        let room = self.begins[number + 1].1 - offset;
        (bytes <= room).then(|| StoredModel {
            offset: offset as usize,
            bytes: bytes as usize,
            checksum: get_u64(entry, MODEL_CHECKSUM),
        })
    }

    /// Offset of a section's entry table, and offset of its first payload.
    #[inline(always)]
    fn table(&self, block: &[u8], number: usize) -> Result<(usize, usize), Corrupt> {
        let (begin, payloads) = self.begins[number];
        let (table_at, offset) = (begin as usize, payloads as usize);
        if Self::mode(block, number) != MODE_COLD {
            return Ok((table_at, offset));
        }
        let model = self
            .model(block, number)
            .ok_or_else(|| malformed(number, 0))?;
        Ok((table_at + MODEL_ENTRY_BYTES, offset + model.bytes))
    }

    /// Iterates over the positions of the entries of a section that has an entry for each vector.
    #[inline(always)]
    pub(super) fn each<'b>(
        &self,
        block: &'b [u8],
        number: usize,
        vectors: usize,
    ) -> Result<EntryPositions<'b>, Corrupt> {
        let (end, payloads_end) = self.begins[number + 1];
        let (table_at, offset) = self.table(block, number)?;
        let (table, _) = block[table_at..][..vectors * LENGTHS_BYTES].as_chunks::<LENGTHS_BYTES>();
        Ok(EntryPositions {
            table,
            number,
            v: 0,
            at: table_at + table.len() * LENGTHS_BYTES,
            offset,
            end: end as usize,
            payloads_end: payloads_end as usize,
        })
    }

    /// The position of the entry of vector `v`, in a section that has an entry for each of `vectors` vectors.
    #[inline]
    pub(super) fn find(
        &self,
        block: &[u8],
        number: usize,
        v: usize,
        vectors: usize,
    ) -> Result<EntryPosition, Corrupt> {
        debug_assert!(v < vectors, "a vector of the leaf");
        let mut positions = self.each(block, number, vectors)?;
        positions.skip_to(v);
        positions.advance().ok_or_else(|| malformed(number, v))
    }

    /// Like [`find`](Self::find), for sequential access: `reached` holds the position after the previous call for this
    /// section, or the default value before the first call.
    #[inline(always)]
    pub(super) fn find_on(
        &self,
        block: &[u8],
        (number, vectors): (usize, usize),
        v: usize,
        reached: &mut SectionPosition,
    ) -> Result<EntryPosition, Corrupt> {
        debug_assert!(v < vectors && reached.v <= vectors, "vectors of the leaf");
        let mut positions = self.each(block, number, vectors)?;
        if 0 < reached.v && reached.v <= v {
            (positions.v, positions.at, positions.offset) = (reached.v, reached.at, reached.offset);
        }
        positions.skip_to(v);
        let Some(position) = positions.advance() else {
            return Err(malformed(number, v));
        };
        *reached = SectionPosition {
            v: positions.v,
            at: positions.at,
            offset: positions.offset,
        };
        Ok(position)
    }

    /// True if the last vector's entry and payload end exactly at the end of their section.
    pub(super) fn is_filled(
        &self,
        block: &[u8],
        number: usize,
        vectors: usize,
    ) -> Result<bool, Corrupt> {
        let (end, payloads_end) = self.begins[number + 1];
        let last = self.find(block, number, vectors - 1, vectors)?;
        let behind = last.offset + last.payload_bytes;
        Ok(last.end == end as usize && behind == payloads_end as usize)
    }
}

/// Position of a sequential reader in a section: the next vector, its entry and its payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SectionPosition {
    v: usize,
    at: usize,
    offset: usize,
}

/// Iterator over the positions of the entries and payloads of a section's vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPositions<'b> {
    table: &'b [[u8; LENGTHS_BYTES]],
    number: usize,
    /// Number of the next vector.
    v: usize,
    at: usize,
    offset: usize,
    /// Offset of the end of the section's entries, and below, of the end of its payloads.
    end: usize,
    payloads_end: usize,
}

impl EntryPositions<'_> {
    /// Skips the vectors before `v` without checking that they lie within the section.
    #[inline(always)]
    fn skip_to(&mut self, v: usize) {
        debug_assert!(self.v <= v, "entries are read in ascending order");
        for before in &self.table[self.v..v] {
            self.at += usize::from(before[ENTRY_LENGTH_AT]);
            self.offset += usize::from(get_u16(before, PAYLOAD_LENGTH_AT));
        }
        self.v = v;
    }

    /// The position of the next vector, which must exist; `None` if it extends beyond the section, so that the leaf is
    /// damaged.
    #[inline(always)]
    fn advance(&mut self) -> Option<EntryPosition> {
        let entry = &self.table[self.v];
        let position = EntryPosition {
            at: self.at,
            end: self.at + usize::from(entry[ENTRY_LENGTH_AT]),
            offset: self.offset,
            payload_bytes: usize::from(get_u16(entry, PAYLOAD_LENGTH_AT)),
        };
        (self.at, self.offset) = (position.end, position.offset + position.payload_bytes);
        if self.at > self.end || self.offset > self.payloads_end {
            return None;
        }
        self.v += 1;
        debug_assert!(
            position.at <= position.end && position.end <= self.end,
            "inside"
        );
        Some(position)
    }

    /// The position of the next vector; `None` after the last vector.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<EntryPosition>, Corrupt> {
        if self.v == self.table.len() {
            return Ok(None);
        }
        match self.advance() {
            Some(position) => Ok(Some(position)),
            None => Err(malformed(self.number, self.v)),
        }
    }
}

#[cold]
#[inline(never)]
fn malformed(number: usize, v: usize) -> Corrupt {
    let found = format!("vector {v} of section {number}");
    let expected = "an entry and a payload inside their section";
    Corrupt::new("series leaf directory", 0, found, expected)
}
