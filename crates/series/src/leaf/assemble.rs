//! Assembles the bytes of a closed leaf: fixed fields, sections, payloads. An open leaf stores the payloads vector by
//! vector, in the order of encoding; here they are reordered by section (times, then column by column).

use crate::leaf::directory::number_of;
use crate::leaf::entry::{Span, put_column, put_times};
use crate::leaf::layout::{
    BEGIN_AT, COLUMNS_AT, DATA_BYTES_AT, DIRECTORY_BYTES_AT, END_AT, ENTRY_LENGTH_AT,
    LENGTHS_BYTES, MODE_COLD, MODE_VECTORS, MODE_WHOLE, MODEL_BYTES, MODEL_CHECKSUM,
    MODEL_ENTRY_BYTES, PAYLOAD_LENGTH_AT, ROWS_AT, SECTION_BYTES, SECTION_ENTRIES, SECTION_MODE,
    SECTION_PAYLOADS, SECTION_TYPE, SECTIONS_AT, VECTORS_AT, aligned,
};
use crate::leaf::open_vector::{Model, OpenVector};
use crate::leaf::writer::{OpenLeaf, time_of};
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, VECTOR_ROWS};
use tidalite_base::{put_i64, put_u16, put_u32, put_u64};

fn put_model(out: &mut Vec<u8>, model: &Model) {
    let mut entry = [0; MODEL_ENTRY_BYTES];
    put_u64(&mut entry, MODEL_CHECKSUM, model.checksum);
    put_u32(&mut entry, MODEL_BYTES, model.bytes);
    out.extend_from_slice(&entry);
}

/// Appends the lengths of the entries and of the payloads, then the entries; returns the total length of the payloads
/// in bytes.
fn put_entries<T>(
    out: &mut Vec<u8>,
    vectors: &[OpenVector<T>],
    mut put: impl FnMut(&mut Vec<u8>, usize, &OpenVector<T>),
) -> usize {
    let mut lengths_at = out.len();
    let mut bytes = 0;
    out.resize(lengths_at + vectors.len() * LENGTHS_BYTES, 0);
    for (v, vector) in vectors.iter().enumerate() {
        let at = out.len();
        put(out, v, vector);
        let entry = out.len() - at;
        debug_assert!(
            entry <= usize::from(u8::MAX) && vector.chunk.len() <= usize::from(u16::MAX),
            "an entry of {entry} bytes, a payload of {}",
            vector.chunk.len()
        );
        out[lengths_at + ENTRY_LENGTH_AT] = entry as u8;
        put_u16(
            out,
            lengths_at + PAYLOAD_LENGTH_AT,
            vector.chunk.len() as u16,
        );
        lengths_at += LENGTHS_BYTES;
        bytes += vector.chunk.len();
    }
    bytes
}

/// Properties of a section (the times, or one column, of a leaf) besides its vectors.
struct Section<'m> {
    number: usize,
    /// Type of the section's values; 0 for times.
    ty: u8,
    /// The constant step (of times) or the constant value (of a column) in the whole leaf, if there is one.
    whole: Option<u64>,
    model: Option<&'m Model>,
}

impl Section<'_> {
    /// Appends the section to a directory: an entry that `put` writes for each vector, and the lengths in the section's
    /// fixed fields.
    fn put<T>(
        &self,
        out: &mut Vec<u8>,
        vectors: &[OpenVector<T>],
        put: impl FnMut(&mut Vec<u8>, usize, &OpenVector<T>),
    ) {
        let at = out.len();
        let mut bytes = self.model.map_or(0, |model| model.bytes as usize);
        let mode = match (self.whole, self.model) {
            (Some(_), _) => MODE_WHOLE,
            (None, Some(_)) => MODE_COLD,
            (None, None) => MODE_VECTORS,
        };
        if let Some(whole) = self.whole {
            out.extend_from_slice(&whole.to_le_bytes());
        } else {
            self.model.inspect(|model| put_model(out, model));
            bytes += put_entries(out, vectors, put);
        }
        let entries = out.len() - at;
        assert!(
            entries <= usize::from(u16::MAX),
            "{entries} bytes of section {} fit its field",
            self.number
        );
        let fields = SECTIONS_AT + self.number * SECTION_BYTES;
        out[fields + SECTION_MODE] = mode;
        out[fields + SECTION_TYPE] = self.ty;
        put_u16(out, fields + SECTION_ENTRIES, entries as u16);
        put_u32(out, fields + SECTION_PAYLOADS, bytes as u32);
    }
}

impl OpenLeaf {
    /// Number of bytes that the leaf would take in its extent, including the padding to the alignment.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let mut bytes = Vec::new();
        let directory = self.put_directory(&mut bytes);
        aligned(directory + self.payloads.len()) as u64
    }

    /// The time span of vector `v`, in the form that statistics use.
    fn vector_span(&self, v: usize) -> Span {
        debug_assert!(v < self.vectors, "a vector of the leaf");
        match self.step {
            Some(step) => {
                let begin = time_of(self.begin, step, v);
                let rows = VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS);
                let over = step.wrapping_mul(rows as u64 - 1) as i64;
                Span {
                    begin,
                    end: begin.wrapping_add(over),
                    rows,
                    step: self.step,
                }
            }
            None => {
                let (begin, end) = self.times[v].summary;
                Span {
                    begin,
                    end,
                    rows: self.times[v].chunk.rows(),
                    step: None,
                }
            }
        }
    }

    /// Fills `out` with the leaf's directory, without the page header; returns the length of the directory in bytes.
    fn put_directory(&self, out: &mut Vec<u8>) -> usize {
        self.assert_invariants();
        out.clear();
        out.resize(SECTIONS_AT + (1 + self.columns.len()) * SECTION_BYTES, 0);
        put_u32(out, ROWS_AT, self.rows as u32);
        out[VECTORS_AT] = self.vectors as u8;
        out[COLUMNS_AT] = self.columns.len() as u8;
        put_u32(out, DATA_BYTES_AT, self.payloads.len() as u32);
        put_i64(out, BEGIN_AT, self.begin);
        put_i64(out, END_AT, self.end);
        let times = Section {
            number: 0,
            ty: 0,
            whole: self.step,
            model: self.times_model.as_ref(),
        };
        let mut before = self.begin;
        times.put(out, &self.times, |out, _, vector| {
            put_times(out, vector, before);
            before = vector.summary.1;
        });
        for (c, column) in self.columns.iter().enumerate() {
            let section = Section {
                number: number_of(c),
                ty: column.stats.column_type().code(),
                whole: column.word,
                model: column.model.as_ref(),
            };
            section.put(out, &column.vectors, |out, v, vector| {
                put_column(out, vector, &self.vector_span(v));
            });
        }
        let directory = out.len();
        assert!(
            directory <= CHECKSUM_SPAN_MAX,
            "a directory of {directory} bytes is one block"
        );
        put_u32(out, DIRECTORY_BYTES_AT, directory as u32);
        directory
    }

    /// Fills `out` with the whole leaf, without the page header; returns the length of the directory in bytes.
    pub(crate) fn assemble(&self, out: &mut Vec<u8>) -> usize {
        let directory = self.put_directory(out);
        out.reserve(self.payloads.len());
        let mut copy = |from: u32, bytes: usize| {
            let from = from as usize;
            out.extend_from_slice(&self.payloads[from..from + bytes]);
        };
        if let Some(model) = &self.times_model {
            copy(model.offset, model.bytes as usize);
        }
        for OpenVector { chunk, offset, .. } in &self.times {
            copy(*offset, chunk.len());
        }
        for column in &self.columns {
            if let Some(model) = &column.model {
                copy(model.offset, model.bytes as usize);
            }
            for OpenVector { chunk, offset, .. } in &column.vectors {
                copy(*offset, chunk.len());
            }
        }
        debug_assert_eq!(
            out.len(),
            directory + self.payloads.len(),
            "every payload is some vector's"
        );
        directory
    }
}
