//! Leaf bytes in, vectors out. Everything here is checked once in `open`; afterwards offsets are known
//! to lie inside the directory, and payloads are verified one by one when they are read.

use super::writer::payload_checksum;
use super::{
    BEGIN_AT, COLUMN_CHECKSUM, COLUMN_CHUNK, COLUMN_ENTRY_BYTES, COLUMN_OFFSET, COLUMN_STATS,
    COLUMNS_AT, DATA_BYTES_AT, DIRECTORY_BYTES_AT, END_AT, MODE_COLD, MODE_VECTORS, MODE_WHOLE,
    MODEL_BYTES, MODEL_CHECKSUM, MODEL_ENTRY_BYTES, MODEL_OFFSET, MODES_AT, ROWS_AT, TIME_BEGIN,
    TIME_CHECKSUM, TIME_CHUNK, TIME_END, TIME_ENTRY_BYTES, TIME_MODE_AT, TIME_OFFSET, VECTORS_AT,
    is_leaf, modes_bytes,
};
use crate::link::Link;
use crate::packer::aligned;
use std::fmt::Display;
use tidalite_base::limits::{COLUMNS_MAX, LEAF_VECTORS_MAX, VECTOR_ROWS};
use tidalite_base::{Corrupt, get_i64, get_u32, get_u64};
use tidalite_codec::{
    COLD, Chunk, ColumnType, Line, Rows, Stats, decode_cold, decode_column, decode_times,
    fill_steps, words_mut,
};
use tidalite_pager::{Error, Kind, PageRead, PageRef, Ptr, Result};

/// Where statistics name the column's type.
const STATS_TYPE_AT: usize = 96;

/// An opened leaf: its directory is verified, its payloads are not read yet.
pub(crate) struct Leaf<'r> {
    block: PageRef<'r>,
    ptr: Ptr,
    rows: usize,
    vectors: usize,
    begin: i64,
    step: Option<u64>,
    data_bytes: usize,
    times_at: usize,
    /// Where each column's section begins; behind the entry of its model, if it has one.
    sections: Vec<u32>,
    /// Words of the columns that were added after it was written, behind those of `sections`.
    added: Vec<u64>,
}

impl<'r> Leaf<'r> {
    /// Reads and verifies header and directory of the leaf that `link` names.
    pub(crate) fn open<R: PageRead>(r: &'r R, link: &Link, types: &[ColumnType]) -> Result<Self> {
        if !is_leaf(link.ptr.kind) {
            let found = format!("a link to {:?}", link.ptr.kind);
            return Err(Corrupt::new("series leaf", link.ptr.addr, found, "a leaf").into());
        }
        let block = r.block(&link.ptr)?;
        let mut leaf = Self::parse(block, link.ptr)?;
        let own = leaf.sections.len();
        if own > types.len() {
            return Err(leaf.corrupt(format!("{own} columns"), types.len()));
        }
        leaf.added = types[own..].iter().map(|ty| ty.fill()).collect();
        let found = (
            leaf.begin,
            leaf.end(),
            leaf.rows as u64,
            leaf.stored_bytes(),
        );
        let expected = (link.begin, link.end, link.count, link.bytes);
        if found != expected {
            let [found, expected] = [found, expected].map(|(begin, end, rows, bytes)| {
                format!("{rows} rows from {begin} to {end} in {bytes} bytes")
            });
            return Err(leaf.corrupt(found, expected));
        }
        Ok(leaf)
    }

    /// Reads a directory; `ptr` says where it is. It has the columns that the directory says.
    pub(crate) fn parse(block: PageRef<'r>, ptr: Ptr) -> Result<Self> {
        let bad = |found: String, expected: &str| {
            Err(Corrupt::new("series leaf directory", ptr.addr, found, expected).into())
        };
        if block.len() < MODES_AT {
            return bad(
                format!("{} bytes", block.len()),
                "at least the fixed fields",
            );
        }
        let rows = get_u32(&block, ROWS_AT) as usize;
        let vectors = usize::from(block[VECTORS_AT]);
        let columns = usize::from(block[COLUMNS_AT]);
        if vectors == 0 || vectors > LEAF_VECTORS_MAX || columns > COLUMNS_MAX {
            let found = format!("{vectors} vectors, {columns} columns");
            return bad(found, "1 to 16 vectors, up to 64 columns");
        }
        if rows < vectors || rows > vectors * VECTOR_ROWS {
            return bad(
                format!("{rows} rows in {vectors} vectors"),
                "1 to 1024 a vector",
            );
        }
        let times_at = MODES_AT + modes_bytes(columns);
        if block.len() < times_at + 8 {
            return bad(
                format!("{} bytes", block.len()),
                "room for the column modes",
            );
        }
        let is_cold = ptr.kind == Kind::SeriesCold;
        let (stepped, times_at) = match block[TIME_MODE_AT] {
            MODE_VECTORS => (false, times_at),
            MODE_WHOLE => (true, times_at),
            MODE_COLD if is_cold => (false, times_at + MODEL_ENTRY_BYTES),
            other => return bad(format!("time mode {other}"), "0 or 1, 2 in a cold leaf"),
        };
        let mut at = times_at
            + if stepped {
                8
            } else {
                vectors * TIME_ENTRY_BYTES
            };
        let mut sections = Vec::with_capacity(columns);
        for c in 0..columns {
            let mode = block[MODES_AT + c];
            if mode == MODE_COLD && is_cold {
                at += MODEL_ENTRY_BYTES;
            }
            sections.push(at as u32);
            at += match mode {
                MODE_VECTORS => vectors * COLUMN_ENTRY_BYTES,
                MODE_WHOLE => 8,
                MODE_COLD if is_cold => vectors * COLUMN_ENTRY_BYTES,
                other => {
                    let found = format!("mode {other} of column {c}");
                    return bad(found, "0 or 1, 2 in a cold leaf");
                }
            };
        }
        let own = get_u32(&block, DIRECTORY_BYTES_AT) as usize;
        if at != block.len() || own != at {
            return bad(
                format!("{} bytes, {own} by its field", block.len()),
                &format!("{at}"),
            );
        }
        let leaf = Self {
            ptr,
            rows,
            vectors,
            begin: get_i64(&block, BEGIN_AT),
            step: stepped.then(|| get_u64(&block, times_at)),
            data_bytes: get_u32(&block, DATA_BYTES_AT) as usize,
            times_at,
            sections,
            added: Vec::new(),
            block,
        };
        leaf.check_spans()?;
        Ok(leaf)
    }

    /// Rows and spans of the vectors must add up to those of the leaf.
    fn check_spans(&self) -> Result<()> {
        if let Some(step) = self.step {
            let last = i128::from(self.begin) + i128::from(step) * (self.rows as i128 - 1);
            if (step == 0 && self.vectors > 1)
                || last != i128::from(self.end())
                || self.rows.div_ceil(VECTOR_ROWS) != self.vectors
            {
                let found = format!("{} rows from {} every {step}", self.rows, self.begin);
                return Err(self.corrupt(found, format!("up to {}", self.end())));
            }
            return Ok(());
        }
        let mut rows = 0;
        let mut before = None;
        for v in 0..self.vectors {
            let (begin, end) = self.span(v);
            let n = self.time_rows(v);
            let room = i128::from(end) - i128::from(begin) + 1;
            if before.is_some_and(|before| begin <= before)
                || n == 0
                || n > VECTOR_ROWS
                || (n == 1 && room != 1)
            {
                let found = format!("vector {v}: {n} rows from {begin} to {end}");
                return Err(self.corrupt(found, "ascending spans, 1 to 1024 rows each"));
            }
            rows += n;
            before = Some(end);
        }
        let (first, last) = (self.span(0).0, self.span(self.vectors - 1).1);
        if rows != self.rows || first != self.begin || last != self.end() {
            let found = format!("{rows} rows from {first} to {last} in its vectors");
            let expected = format!("{} rows from {} to {}", self.rows, self.begin, self.end());
            return Err(self.corrupt(found, expected));
        }
        Ok(())
    }

    fn corrupt(&self, found: impl Display, expected: impl Display) -> tidalite_pager::Error {
        Corrupt::new("series leaf", self.ptr.addr, found, expected).into()
    }

    /// Bytes that tell how long a leaf is.
    pub(crate) const HEAD_BYTES: usize = MODES_AT;

    /// Directory and payload bytes of the leaf that begins with `head`.
    pub(crate) fn lengths(head: &[u8]) -> (usize, usize) {
        let field = |at| get_u32(head, at) as usize;
        (field(DIRECTORY_BYTES_AT), field(DATA_BYTES_AT))
    }

    /// Columns of the leaf that begins with `head`.
    pub(crate) fn columns(head: &[u8]) -> usize {
        usize::from(head[COLUMNS_AT])
    }

    /// Columns that it was written with.
    pub(crate) fn own_columns(&self) -> usize {
        self.sections.len()
    }

    /// Bytes without the alignment.
    pub(crate) fn used_bytes(&self) -> usize {
        self.block.len() + self.data_bytes
    }

    /// Bytes of the alignment.
    pub(crate) fn padding(&self) -> usize {
        aligned(self.used_bytes()) - self.used_bytes()
    }

    /// Verifies every payload without decoding it, and that they fill their room.
    pub(crate) fn verify_payloads<R: PageRead>(&self, r: &'r R) -> Result<()> {
        let mut bytes = 0;
        if self.block[TIME_MODE_AT] == MODE_COLD {
            bytes += self.model(r, self.times_at)?.len();
        }
        for c in 0..self.sections.len() {
            if self.block[MODES_AT + c] == MODE_COLD {
                bytes += self.model(r, self.sections[c] as usize)?.len();
            }
        }
        for v in 0..self.vectors {
            if self.step.is_none() {
                bytes += self.time_payload(r, v)?.1.len();
            }
            for c in 0..self.sections.len() {
                if self.constant(c).is_none() {
                    bytes += self.column_payload(r, v, c)?.1.len();
                }
            }
        }
        if bytes != self.data_bytes {
            return Err(self.corrupt(format!("payloads of {bytes} bytes"), self.data_bytes));
        }
        Ok(())
    }

    /// Vectors in it.
    pub(crate) fn vectors(&self) -> usize {
        self.vectors
    }

    pub(crate) fn end(&self) -> i64 {
        get_i64(&self.block, END_AT)
    }

    pub(crate) fn count(&self) -> usize {
        self.rows
    }

    /// What it takes in its extent, alignment included.
    pub(crate) fn stored_bytes(&self) -> u64 {
        aligned(self.block.len() + self.data_bytes) as u64
    }

    fn time_chunk(&self, v: usize) -> Chunk {
        Chunk::decode_at(
            &self.block,
            self.times_at + v * TIME_ENTRY_BYTES + TIME_CHUNK,
        )
    }

    /// Rows of vector `v`, where its times have an entry.
    fn time_rows(&self, v: usize) -> usize {
        let entry = self.times_at + v * TIME_ENTRY_BYTES;
        Chunk::rows_at(&self.block, entry + TIME_CHUNK)
    }

    /// First and last timestamp of vector `v`.
    pub(crate) fn span(&self, v: usize) -> (i64, i64) {
        match self.step {
            Some(step) => {
                let time = |row: usize| {
                    self.begin
                        .wrapping_add((row as u64).wrapping_mul(step) as i64)
                };
                let first = v * VECTOR_ROWS;
                (time(first), time(first + self.rows_of(v) - 1))
            }
            None => {
                let entry = self.times_at + v * TIME_ENTRY_BYTES;
                let field = |at| get_i64(&self.block, entry + at);
                (field(TIME_BEGIN), field(TIME_END))
            }
        }
    }

    /// Rows of vector `v`.
    pub(crate) fn rows_of(&self, v: usize) -> usize {
        match self.step {
            Some(_) => VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS),
            None => self.time_rows(v),
        }
    }

    /// The last vector that begins at or before `t`; the first when there is none.
    pub(crate) fn vector_at(&self, t: i64) -> usize {
        let mut v = 0;
        while v + 1 < self.vectors && self.span(v + 1).0 <= t {
            v += 1;
        }
        v
    }

    /// The word that every row of column `c` has, when the leaf says so.
    pub(crate) fn constant(&self, c: usize) -> Option<u64> {
        if c >= self.sections.len() {
            return self.added.get(c - self.sections.len()).copied();
        }
        let whole = self.block[MODES_AT + c] == MODE_WHOLE;
        whole.then(|| get_u64(&self.block, self.sections[c] as usize))
    }

    fn payload<R: PageRead>(
        &self,
        r: &'r R,
        offset: u32,
        len: usize,
        sum: u64,
    ) -> Result<PageRef<'r>> {
        let offset = offset as usize;
        if offset + len > self.data_bytes {
            let found = format!("a payload of {len} bytes at {offset}");
            return Err(self.corrupt(found, format!("inside {} bytes", self.data_bytes)));
        }
        let bytes = if len == 0 {
            PageRef::Borrowed(&[])
        } else {
            r.bytes(self.ptr.addr + (self.block.len() + offset) as u64, len)?
        };
        let own = payload_checksum(&bytes);
        if own != sum {
            let found = format!("payload checksum {own:016x} at offset {offset}");
            return Err(self.corrupt(found, format!("{sum:016x}")));
        }
        Ok(bytes)
    }

    /// The model whose entry ends at byte `at` of the directory.
    fn model<R: PageRead>(&self, r: &'r R, at: usize) -> Result<PageRef<'r>> {
        let entry = &self.block[at - MODEL_ENTRY_BYTES..at];
        let len = get_u32(entry, MODEL_BYTES) as usize;
        let sum = get_u64(entry, MODEL_CHECKSUM);
        self.payload(r, get_u32(entry, MODEL_OFFSET), len, sum)
    }

    /// Decodes a vector in cold form, whose entries begin at byte `at` of the directory; `mode` is that of its times or its
    /// column.
    #[cold]
    #[inline(never)]
    fn decode_cold<R: PageRead>(
        &self,
        r: &'r R,
        (mode, at): (u8, usize),
        chunk: &Chunk,
        bytes: &[u8],
        out: &mut [u64],
    ) -> Result<()> {
        if mode != MODE_COLD {
            return Err(self.corrupt("a cold vector without a model", "a model"));
        }
        if !COLD {
            return Err(Error::Unsupported {
                found: "a leaf in cold form".to_owned(),
                expected: "a build with the feature `cold`: turn it on and build again".to_owned(),
            });
        }
        let model = self.model(r, at)?;
        decode_cold(&model, chunk, bytes, out)?;
        Ok(())
    }

    fn time_payload<R: PageRead>(&self, r: &'r R, v: usize) -> Result<(Chunk, PageRef<'r>)> {
        let entry = self.times_at + v * TIME_ENTRY_BYTES;
        let chunk = self.time_chunk(v);
        let offset = get_u32(&self.block, entry + TIME_OFFSET);
        let sum = get_u64(&self.block, entry + TIME_CHECKSUM);
        Ok((chunk, self.payload(r, offset, chunk.len(), sum)?))
    }

    fn column_payload<R: PageRead>(
        &self,
        r: &'r R,
        v: usize,
        c: usize,
    ) -> Result<(Chunk, PageRef<'r>)> {
        let entry = self.sections[c] as usize + v * COLUMN_ENTRY_BYTES;
        let chunk = Chunk::decode_at(&self.block, entry + COLUMN_CHUNK);
        let offset = get_u32(&self.block, entry + COLUMN_OFFSET);
        let sum = get_u64(&self.block, entry + COLUMN_CHECKSUM);
        Ok((chunk, self.payload(r, offset, chunk.len(), sum)?))
    }

    /// Decodes the times of vector `v`.
    ///
    /// # Panics
    /// When `out` has not `rows_of(v)` places.
    pub(crate) fn times<R: PageRead>(&self, r: &'r R, v: usize, out: &mut [i64]) -> Result<()> {
        assert_eq!(out.len(), self.rows_of(v), "a place for each row");
        if let Some(step) = self.step {
            fill_steps(self.span(v).0, step, out);
            return Ok(());
        }
        let (chunk, bytes) = self.time_payload(r, v)?;
        if chunk.is_cold() {
            let of = (self.block[TIME_MODE_AT], self.times_at);
            self.decode_cold(r, of, &chunk, &bytes, words_mut(out))?;
        } else {
            decode_times(&chunk, &bytes, out)?;
        }
        let (begin, end) = self.span(v);
        if out.first() != Some(&begin) || out.last() != Some(&end) {
            return Err(self.corrupt(format!("vector {v} decodes to other times"), begin));
        }
        Ok(())
    }

    /// Decodes column `c` of vector `v`.
    ///
    /// # Panics
    /// When `out` has not `rows_of(v)` places.
    pub(crate) fn column<R: PageRead>(
        &self,
        r: &'r R,
        v: usize,
        c: usize,
        out: &mut [u64],
    ) -> Result<()> {
        assert_eq!(out.len(), self.rows_of(v), "a place for each row");
        if let Some(word) = self.constant(c) {
            out.fill(word);
            return Ok(());
        }
        let (chunk, bytes) = self.column_payload(r, v, c)?;
        if chunk.rows() != out.len() {
            let found = format!("{} rows in vector {v} of column {c}", chunk.rows());
            return Err(self.corrupt(found, out.len()));
        }
        if chunk.is_cold() {
            let of = (self.block[MODES_AT + c], self.sections[c] as usize);
            return self.decode_cold(r, of, &chunk, &bytes, out);
        }
        decode_column(&chunk, &bytes, out)?;
        Ok(())
    }

    /// The type of column `c`, where statistics tell it.
    pub(crate) fn column_type(&self, c: usize) -> Option<ColumnType> {
        if self.constant(c).is_some() {
            return None;
        }
        let code_at = self.sections[c] as usize + COLUMN_STATS + STATS_TYPE_AT;
        ColumnType::from_code(*self.block.get(code_at)?).ok()
    }

    /// The times of vector `v` as a line, if they are one.
    pub(crate) fn time_line<R: PageRead>(&self, r: &'r R, v: usize) -> Result<Option<Line>> {
        let (begin, end) = self.span(v);
        if let Some(step) = self.step {
            return Ok(Some(Line::integers(begin as u64, step)));
        }
        // Those with a payload are none.
        if !self.time_chunk(v).is_empty() {
            return Ok(None);
        }
        let (chunk, bytes) = self.time_payload(r, v)?;
        let line = Line::of(&chunk, &bytes, chunk.rows())?;
        let last = chunk.rows() - 1;
        if line.is_some_and(|l| l.word(0) != begin as u64 || l.word(last) != end as u64) {
            return Err(self.corrupt(format!("vector {v} decodes to other times"), begin));
        }
        Ok(line)
    }

    /// Column `c` of vector `v` as a line, if it is one.
    pub(crate) fn line<R: PageRead>(&self, r: &'r R, v: usize, c: usize) -> Result<Option<Line>> {
        if let Some(word) = self.constant(c) {
            return Ok(Some(Line::integers(word, 0)));
        }
        let entry = self.sections[c] as usize + v * COLUMN_ENTRY_BYTES;
        if !Chunk::decode_at(&self.block, entry + COLUMN_CHUNK).is_empty() {
            return Ok(None);
        }
        let (chunk, bytes) = self.column_payload(r, v, c)?;
        Ok(Line::of(&chunk, &bytes, self.rows_of(v))?)
    }

    /// Whether vector `v` goes on with the lines of the vector before it, which it has in its times and all columns.
    pub(crate) fn lines_go_on(&self, v: usize) -> bool {
        let same = |at: usize, stride: usize, checksum: usize, chunk: usize| {
            let (before, entry) = (at + (v - 1) * stride, at + v * stride);
            let [before, own] = [before, entry].map(|at| Chunk::decode_at(&self.block, at + chunk));
            Line::goes_on(&before, &own) && get_u64(&self.block, entry + checksum) == 0
        };
        // Within a leaf of constant steps, the last vector may be short.
        let times = match self.step {
            Some(_) => self.rows_of(v) == self.rows_of(v - 1),
            None => same(self.times_at, TIME_ENTRY_BYTES, TIME_CHECKSUM, TIME_CHUNK),
        };
        times
            && (0..self.sections.len()).all(|c| {
                let at = self.sections[c] as usize;
                self.constant(c).is_some()
                    || same(at, COLUMN_ENTRY_BYTES, COLUMN_CHECKSUM, COLUMN_CHUNK)
            })
    }

    /// Statistics of column `c` in vector `v`, from the directory.
    pub(crate) fn stats(&self, v: usize, c: usize, ty: ColumnType) -> Result<Stats> {
        if let Some(word) = self.constant(c) {
            // The extremes of equal words are at the first row, whatever the other times are.
            let n = self.rows_of(v);
            let times = [self.span(v).0; VECTOR_ROWS];
            let words = [word; VECTOR_ROWS];
            return Ok(Stats::of(ty, &times[..n], &words[..n]));
        }
        let entry = self.sections[c] as usize + v * COLUMN_ENTRY_BYTES;
        let stats = Stats::decode(
            ty,
            &self.block[entry + COLUMN_STATS..entry + COLUMN_ENTRY_BYTES],
        )?;
        if stats.count() != self.rows_of(v) as u64 {
            let found = format!(
                "statistics of {} rows in vector {v} of column {c}",
                stats.count()
            );
            return Err(self.corrupt(found, self.rows_of(v)));
        }
        Ok(stats)
    }

    /// Appends all rows to `rows`.
    pub(crate) fn read_all<R: PageRead>(&self, r: &'r R, rows: &mut Rows) -> Result<()> {
        for v in 0..self.vectors {
            let at = rows.grow(self.rows_of(v));
            self.times(r, v, &mut rows.times[at.clone()])?;
            for c in 0..self.sections.len() + self.added.len() {
                self.column(r, v, c, &mut rows.columns[c][at.clone()])?;
            }
        }
        if !rows.view().is_sorted() {
            return Err(self.corrupt("times out of order", "times that do not descend"));
        }
        Ok(())
    }
}
