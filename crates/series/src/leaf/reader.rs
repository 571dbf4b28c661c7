//! Reads the bytes of a leaf and decodes vectors. `open` checks the sections of the directory and the times; column
//! entries and payloads are checked one by one when they are read.

use crate::leaf::directory::{Sections, number_of};
use crate::leaf::entry::{Entry, Span};
use crate::leaf::layout::{
    BEGIN_AT, COLUMNS_AT, DATA_BYTES_AT, DIRECTORY_BYTES_AT, END_AT, MODE_COLD, ROWS_AT,
    SECTION_BYTES, SECTIONS_AT, VECTORS_AT, aligned, is_leaf, payload_checksum,
};
use crate::link::Link;
use std::fmt::Display;
use tidalite_base::limits::{COLUMNS_MAX, LEAF_VECTORS_MAX, VECTOR_ROWS};
use tidalite_base::{Corrupt, get_i64, get_u16, get_u32};
use tidalite_codec::{
    COLD, Chunk, ColumnType, Line, Rows, decode_cold, decode_column, decode_times, fill_steps,
    words_mut,
};
use tidalite_pager::{Error, Kind, PageRead, PageRef, Ptr, Result};

/// An opened leaf: its directory is verified, its payloads have not been read.
pub(crate) struct Leaf<'r> {
    pub(super) block: PageRef<'r>,
    pub(super) ptr: Ptr,
    rows: usize,
    pub(super) vectors: usize,
    begin: i64,
    pub(super) step: Option<u64>,
    data_bytes: usize,
    pub(super) sections: Sections,
    /// First timestamp, last timestamp and row count of each vector; empty if the leaf has a constant step.
    times: Vec<(i64, i64, usize)>,
    /// Constant values of the columns that were added after the leaf was written; they follow the columns in
    /// `sections`.
    added: Vec<u64>,
}

impl<'r> Leaf<'r> {
    /// Reads and verifies the header and the directory of the leaf to which `link` points.
    pub(crate) fn open<R: PageRead>(r: &'r R, link: &Link, types: &[ColumnType]) -> Result<Self> {
        if !is_leaf(link.ptr.kind) {
            let found = format!("a link to {:?}", link.ptr.kind);
            return Err(Corrupt::new("series leaf", link.ptr.addr, found, "a leaf").into());
        }
        let block = r.block(&link.ptr)?;
        let mut leaf = Self::parse(block, link.ptr)?;
        let own = leaf.own_columns();
        let same = |c: usize| leaf.column_type(c) == types.get(c).copied();
        if own > types.len() || !(0..own).all(same) {
            let found: Vec<_> = (0..own).map(|c| leaf.column_type(c)).collect();
            return Err(leaf.corrupt(format!("columns of {found:?}"), format!("{types:?}")));
        }
        leaf.added = types[own..].iter().map(|ty| ty.fill()).collect();
        debug_assert_eq!(own + leaf.added.len(), types.len(), "every column");
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

    /// Parses the directory at `ptr`, with the columns that the directory lists.
    pub(crate) fn parse(block: PageRef<'r>, ptr: Ptr) -> Result<Self> {
        let bad = |found: String, expected: &str| {
            Err(Corrupt::new("series leaf directory", ptr.addr, found, expected).into())
        };
        if block.len() < SECTIONS_AT {
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
        let sections_end = SECTIONS_AT + (1 + columns) * SECTION_BYTES;
        let own = get_u32(&block, DIRECTORY_BYTES_AT) as usize;
        if block.len() < sections_end || own != block.len() {
            return bad(
                format!("{} bytes, {own} by its field", block.len()),
                "room for the sections",
            );
        }
        let is_cold = ptr.kind == Kind::SeriesCold;
        let sections = match Sections::parse(&block, columns, vectors, is_cold) {
            Ok(sections) => sections,
            Err(found) => return bad(found, "a section inside the directory"),
        };
        let data_bytes = get_u32(&block, DATA_BYTES_AT) as usize;
        if sections.behind() != (block.len(), data_bytes) {
            let found = format!("sections up to {:?}", sections.behind());
            return bad(found, &format!("{} and {data_bytes}", block.len()));
        }
        let mut leaf = Self {
            ptr,
            rows,
            vectors,
            begin: get_i64(&block, BEGIN_AT),
            step: sections.whole(&block, 0),
            data_bytes,
            sections,
            times: Vec::new(),
            added: Vec::new(),
            block,
        };
        leaf.open_times()?;
        Ok(leaf)
    }

    /// Checks that the row counts and spans of the vectors add up to the row count and span of the leaf.
    fn open_times(&mut self) -> Result<()> {
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
        let mut times = Vec::with_capacity(self.vectors);
        let mut rows = 0;
        let mut before = self.begin;
        let mut positions = self.sections.each(&self.block, 0, self.vectors)?;
        while let Some(position) = positions.next()? {
            let own = Entry::at(&self.block, position).span(before)?;
            let (begin, end, v) = (own.begin, own.end, times.len());
            if (begin == before) != (v == 0) || (own.rows == 1 && begin != end) {
                let found = format!("vector {v}: {} rows from {begin} to {end}", own.rows);
                return Err(self.corrupt(found, "ascending spans, 1 to 1024 rows each"));
            }
            rows += own.rows;
            before = end;
            times.push((begin, end, own.rows));
        }
        debug_assert_eq!(times.len(), self.vectors, "a span for each vector");
        self.times = times;
        if rows != self.rows || before != self.end() {
            let found = format!("{rows} rows up to {before} in its vectors");
            let expected = format!("{} rows up to {}", self.rows, self.end());
            return Err(self.corrupt(found, expected));
        }
        Ok(())
    }

    fn corrupt(&self, found: impl Display, expected: impl Display) -> tidalite_pager::Error {
        Corrupt::new("series leaf", self.ptr.addr, found, expected).into()
    }

    /// Number of bytes needed to determine the length of a leaf.
    pub(crate) const HEAD_BYTES: usize = SECTIONS_AT;

    /// Length in bytes of the directory and of the payloads of the leaf that begins with `head`.
    pub(crate) fn lengths(head: &[u8]) -> (usize, usize) {
        assert!(head.len() >= Self::HEAD_BYTES, "the fixed fields");
        let field = |at| get_u32(head, at) as usize;
        (field(DIRECTORY_BYTES_AT), field(DATA_BYTES_AT))
    }

    /// Number of columns of the leaf that begins with `head`.
    pub(crate) fn columns(head: &[u8]) -> usize {
        usize::from(head[COLUMNS_AT])
    }

    /// Number of columns with which the leaf was written; columns may have been added to the series since.
    pub(crate) fn own_columns(&self) -> usize {
        self.sections.columns()
    }

    /// Size of the leaf in bytes, without the padding to the alignment.
    pub(crate) fn used_bytes(&self) -> usize {
        self.block.len() + self.data_bytes
    }

    /// Size in bytes of the padding after the leaf, up to the alignment.
    pub(crate) fn padding(&self) -> usize {
        aligned(self.used_bytes()) - self.used_bytes()
    }

    /// Verifies every payload by its checksum, without decoding it, and verifies every entry of the directory.
    pub(crate) fn verify_payloads<R: PageRead>(&self, r: &'r R) -> Result<()> {
        self.verify_directory()?;
        for number in 0..=self.own_columns() {
            self.model(r, number)?;
        }
        for v in 0..self.vectors {
            if self.step.is_none() {
                self.time_payload(r, v)?;
            }
            for c in 0..self.own_columns() {
                if self.constant(c).is_none() {
                    self.column_payload(r, v, c)?;
                }
            }
        }
        Ok(())
    }

    /// Verifies that the whole directory has the canonical form that a writer produces.
    pub(crate) fn verify_directory(&self) -> Result<()> {
        if get_u16(&self.block, COLUMNS_AT + 1) != 0 {
            return Err(self.corrupt("a field that is not 0", 0));
        }
        let differs = |v: usize, of: String| {
            let expected = format!("{of} in the form that a writer gives them");
            Err(self.corrupt(format!("vector {v}"), expected))
        };
        if self.step.is_none() {
            let mut before = self.begin;
            for v in 0..self.vectors {
                let span = self.full_span(v);
                if !self.time_entry(v)?.is_time_form(&span, before)? {
                    return differs(v, "times".to_owned());
                }
                before = span.end;
            }
            self.expect_filled(0)?;
        }
        for c in 0..self.own_columns() {
            if self.constant(c).is_some() {
                continue;
            }
            let ty = Sections::column_type(&self.block, number_of(c));
            for v in 0..self.vectors {
                let entry = self.column_entry(v, c)?;
                if !entry.is_column_form(ty, &self.full_span(v))? {
                    return differs(v, format!("words of column {c}"));
                }
            }
            self.expect_filled(number_of(c))?;
        }
        Ok(())
    }

    /// Checks that the entries and payloads of a section fill it completely.
    fn expect_filled(&self, number: usize) -> Result<()> {
        if self.sections.is_filled(&self.block, number, self.vectors)? {
            return Ok(());
        }
        Err(self.corrupt(
            format!("gaps in section {number}"),
            "entries and payloads up to its end",
        ))
    }

    /// Number of vectors in the leaf.
    pub(crate) fn vectors(&self) -> usize {
        self.vectors
    }

    pub(crate) fn end(&self) -> i64 {
        get_i64(&self.block, END_AT)
    }

    pub(crate) fn count(&self) -> usize {
        self.rows
    }

    /// Size of the leaf in its extent in bytes, including the padding to the alignment.
    pub(crate) fn stored_bytes(&self) -> u64 {
        aligned(self.block.len() + self.data_bytes) as u64
    }

    /// The directory entry of column `c` of vector `v`.
    #[inline]
    pub(super) fn column_entry(&self, v: usize, c: usize) -> Result<Entry<'_>> {
        let number = number_of(c);
        let position = self.sections.find(&self.block, number, v, self.vectors)?;
        Ok(Entry::at(&self.block, position))
    }

    /// The directory entry of the times of vector `v`. Must not be called for a leaf with one constant step, which
    /// stores no times.
    fn time_entry(&self, v: usize) -> Result<Entry<'_>> {
        let position = self.sections.find(&self.block, 0, v, self.vectors)?;
        Ok(Entry::at(&self.block, position))
    }

    fn column_chunk(&self, v: usize, c: usize) -> Result<Chunk> {
        Ok(self.column_entry(v, c)?.column_chunk(self.rows_of(v))?.0)
    }

    fn time_chunk(&self, v: usize) -> Result<Chunk> {
        Ok(self.time_entry(v)?.time_chunk(self.rows_of(v))?.0)
    }

    /// First and last timestamp of vector `v`.
    pub(crate) fn span(&self, v: usize) -> (i64, i64) {
        debug_assert!(v < self.vectors, "a vector of the leaf");
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
                let (begin, end, _) = self.times[v];
                (begin, end)
            }
        }
    }

    pub(super) fn full_span(&self, v: usize) -> Span {
        let (begin, end) = self.span(v);
        Span {
            begin,
            end,
            rows: self.rows_of(v),
            step: self.step,
        }
    }

    /// Number of rows of vector `v`.
    pub(crate) fn rows_of(&self, v: usize) -> usize {
        debug_assert!(v < self.vectors, "a vector of the leaf");
        match self.step {
            Some(_) => VECTOR_ROWS.min(self.rows - v * VECTOR_ROWS),
            None => self.times[v].2,
        }
    }

    /// The last vector that begins at or before time `t`, or the first vector if all begin later.
    pub(crate) fn vector_at(&self, t: i64) -> usize {
        let mut v = 0;
        while v + 1 < self.vectors && self.span(v + 1).0 <= t {
            v += 1;
        }
        v
    }

    /// The value that all rows of column `c` share, if the directory stores one.
    pub(crate) fn constant(&self, c: usize) -> Option<u64> {
        match c.checked_sub(self.own_columns()) {
            None => self.sections.whole(&self.block, number_of(c)),
            Some(added) => self.added.get(added).copied(),
        }
    }

    fn payload<R: PageRead>(
        &self,
        r: &'r R,
        offset: usize,
        len: usize,
        sum: u64,
    ) -> Result<PageRef<'r>> {
        debug_assert!(offset + len <= self.data_bytes, "inside its section");
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

    /// The bytes of the model that the vectors of a section share; empty if the section has no model.
    fn model<R: PageRead>(&self, r: &'r R, number: usize) -> Result<PageRef<'r>> {
        match self.sections.model(&self.block, number) {
            Some(model) => self.payload(r, model.offset, model.bytes, model.checksum),
            None => Ok(PageRef::Borrowed(&[])),
        }
    }

    /// Decodes a vector in cold form.
    #[cold]
    #[inline(never)]
    fn decode_cold<R: PageRead>(
        &self,
        r: &'r R,
        number: usize,
        chunk: &Chunk,
        bytes: &[u8],
        out: &mut [u64],
    ) -> Result<()> {
        if Sections::mode(&self.block, number) != MODE_COLD {
            return Err(self.corrupt("a cold vector without a model", "a model"));
        }
        if !COLD {
            return Err(Error::Unsupported {
                found: "a leaf in cold form".to_owned(),
                expected: "a build with the feature `cold`: turn it on and build again".to_owned(),
            });
        }
        let model = self.model(r, number)?;
        decode_cold(&model, chunk, bytes, out)?;
        Ok(())
    }

    fn time_payload<R: PageRead>(&self, r: &'r R, v: usize) -> Result<(Chunk, PageRef<'r>)> {
        let entry = self.time_entry(v)?;
        let (chunk, checksum) = entry.time_chunk(self.rows_of(v))?;
        let bytes = self.payload(r, entry.position().offset, chunk.len(), checksum)?;
        Ok((chunk, bytes))
    }

    fn column_payload<R: PageRead>(
        &self,
        r: &'r R,
        v: usize,
        c: usize,
    ) -> Result<(Chunk, PageRef<'r>)> {
        let entry = self.column_entry(v, c)?;
        let (chunk, checksum) = entry.column_chunk(self.rows_of(v))?;
        let bytes = self.payload(r, entry.position().offset, chunk.len(), checksum)?;
        Ok((chunk, bytes))
    }

    /// Decodes the times of vector `v`.
    ///
    /// # Panics
    /// If `out` does not have `rows_of(v)` elements.
    pub(crate) fn times<R: PageRead>(&self, r: &'r R, v: usize, out: &mut [i64]) -> Result<()> {
        assert_eq!(out.len(), self.rows_of(v), "room for each row");
        if let Some(step) = self.step {
            fill_steps(self.span(v).0, step, out);
            return Ok(());
        }
        let (chunk, bytes) = self.time_payload(r, v)?;
        if chunk.is_cold() {
            self.decode_cold(r, 0, &chunk, &bytes, words_mut(out))?;
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
    /// If `out` does not have `rows_of(v)` elements.
    pub(crate) fn column<R: PageRead>(
        &self,
        r: &'r R,
        v: usize,
        c: usize,
        out: &mut [u64],
    ) -> Result<()> {
        assert_eq!(out.len(), self.rows_of(v), "room for each row");
        if let Some(word) = self.constant(c) {
            out.fill(word);
            return Ok(());
        }
        let (chunk, bytes) = self.column_payload(r, v, c)?;
        if chunk.is_cold() {
            return self.decode_cold(r, number_of(c), &chunk, &bytes, out);
        }
        decode_column(&chunk, &bytes, out)?;
        Ok(())
    }

    /// The type of column `c`; `None` if the column was added after the leaf was written.
    pub(crate) fn column_type(&self, c: usize) -> Option<ColumnType> {
        (c < self.own_columns()).then(|| Sections::column_type(&self.block, number_of(c)))
    }

    /// The times of vector `v` as a line (start and constant step); `None` if they are not linear.
    pub(crate) fn time_line<R: PageRead>(&self, r: &'r R, v: usize) -> Result<Option<Line>> {
        let (begin, end) = self.span(v);
        if let Some(step) = self.step {
            return Ok(Some(Line::integers(begin as u64, step)));
        }
        // Times with a payload are not linear.
        if self.time_entry(v)?.position().payload_bytes != 0 {
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

    /// Column `c` of vector `v` as a line (start and constant step); `None` if its values are not linear.
    pub(crate) fn line<R: PageRead>(&self, r: &'r R, v: usize, c: usize) -> Result<Option<Line>> {
        if let Some(word) = self.constant(c) {
            return Ok(Some(Line::integers(word, 0)));
        }
        if self.column_entry(v, c)?.position().payload_bytes != 0 {
            return Ok(None);
        }
        let (chunk, bytes) = self.column_payload(r, v, c)?;
        Ok(Line::of(&chunk, &bytes, self.rows_of(v))?)
    }

    /// True if vector `v` continues the lines of the vector before it, whose times and columns must all be lines.
    pub(crate) fn lines_continue(&self, v: usize) -> bool {
        debug_assert!(0 < v && v < self.vectors, "a vector has a previous one");
        // A damaged entry counts as not continuing the line; a later read of the vector reports the damage.
        let continues = |chunk: &dyn Fn(usize) -> Result<Chunk>| {
            let (Ok(before), Ok(own)) = (chunk(v - 1), chunk(v)) else {
                return false;
            };
            Line::goes_on(&before, &own)
        };
        // In a leaf with a constant step, the last vector may be short.
        let times = match self.step {
            Some(_) => self.rows_of(v) == self.rows_of(v - 1),
            None => continues(&|v| self.time_chunk(v)),
        };
        times
            && (0..self.own_columns())
                .all(|c| self.constant(c).is_some() || continues(&|v| self.column_chunk(v, c)))
    }

    /// True if each vector stores its times, because the leaf has no constant step.
    pub(crate) fn has_times(&self) -> bool {
        self.step.is_none()
    }

    /// Appends all rows of the leaf to `rows`.
    pub(crate) fn read_all<R: PageRead>(&self, r: &'r R, rows: &mut Rows) -> Result<()> {
        assert_eq!(
            rows.columns.len(),
            self.own_columns() + self.added.len(),
            "the columns of the leaf"
        );
        let before = rows.len();
        for v in 0..self.vectors {
            let at = rows.grow(self.rows_of(v));
            self.times(r, v, &mut rows.times[at.clone()])?;
            for c in 0..self.own_columns() + self.added.len() {
                self.column(r, v, c, &mut rows.columns[c][at.clone()])?;
            }
        }
        debug_assert_eq!(rows.len() - before, self.rows, "rows of all vectors");
        if !rows.view().is_sorted() {
            return Err(self.corrupt("times out of order", "times that do not descend"));
        }
        Ok(())
    }
}
