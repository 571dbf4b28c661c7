//! Writes a run: encodes sorted rows as blocks, and writes several blocks at a time as an extent.

use crate::bugs::{Bug, active};
use crate::counters::Work;
use crate::key::Key;
use crate::limits::BLOCK_BYTES_MAX;
use crate::run::block::{BLOCK_ALIGN, block_rows_max, encode_block};
use crate::run::descriptor::Run;
use crate::run::directory::{self, Entry};
use crate::step_sizes::extent_bytes;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, EncoderState, Rows, RowsRef, time_span};
use tidalite_pager::{Error, Extent, Header, Kind, PageWrite, Result, seal_block};

/// Collects encoded blocks and writes them as extents of a run.
#[derive(Debug, Default)]
pub(crate) struct BlockStore {
    buffer: Vec<u8>,
    /// Start and length of each block in the buffer, and its directory entry, whose pointer is null until the extent
    /// is written.
    blocks: Vec<(usize, usize, Entry)>,
}

impl BlockStore {
    pub(crate) fn add<W: PageWrite>(
        &mut self,
        run: &mut Run,
        w: &mut W,
        work: &mut Work,
        entry: Entry,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let start = self.buffer.len().next_multiple_of(BLOCK_ALIGN);
        self.buffer.resize(start, 0);
        encode(&mut self.buffer);
        debug_assert!(
            self.buffer.len() > start && entry.rows > 0,
            "a block has rows"
        );
        self.blocks.push((start, self.buffer.len() - start, entry));
        if self.buffer.len() + BLOCK_BYTES_MAX > extent_bytes() {
            self.flush(run, w, work)?;
        }
        Ok(())
    }

    /// Writes the collected blocks as one extent and adds them to the directory of the run.
    pub(crate) fn flush<W: PageWrite>(
        &mut self,
        run: &mut Run,
        w: &mut W,
        work: &mut Work,
    ) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let pages = self.buffer.len().div_ceil(w.page_size()) as u64;
        self.buffer.resize(pages as usize * w.page_size(), 0);
        let extent: Extent = w.alloc_extent(pages)?;
        debug_assert!(extent.pages == pages, "an extent of the requested length");
        for (start, len, entry) in &mut self.blocks {
            let header = Header {
                kind: Kind::RunBlock,
                flags: 0,
                owner: run.directory.id(),
                address: extent.addr + *start as u64,
                birth: w.txn(),
            };
            entry.ptr = seal_block(&mut self.buffer[*start..*start + *len], &header);
        }
        w.write_extent(extent.addr, &self.buffer)?;
        for (_, _, entry) in &self.blocks {
            directory::put_entry(&mut run.directory, w, entry)?;
        }
        directory::put_extent(&mut run.directory, w, &extent, self.blocks.len() as u64)?;
        work.extent_pages_written += pages;
        self.blocks.clear();
        self.buffer.clear();
        Ok(())
    }
}

/// Memory and encoder states of a run writer, reused by the next writer of similar rows.
#[derive(Debug, Default)]
pub(crate) struct WriterScratch {
    store: BlockStore,
    /// Layout of `rows`, to which `encoder_states` apply.
    types: Box<[ColumnType]>,
    series: Vec<u64>,
    rows: Rows,
    encoder_states: Vec<EncoderState>,
}

impl WriterScratch {
    /// Returns the encoder states of the previous rows if these had the layout `types`; otherwise an empty list.
    pub(crate) fn encoder_states_of(&self, types: &[ColumnType]) -> &[EncoderState] {
        match *self.types == *types {
            true => &self.encoder_states,
            false => &[],
        }
    }

    /// Stores the encoder states for rows of the layout `types`.
    pub(crate) fn set_encoder_states(
        &mut self,
        types: &[ColumnType],
        encoder_states: Vec<EncoderState>,
    ) {
        self.set_layout(types);
        self.encoder_states = encoder_states;
    }

    /// Copies the encoder states from the memory of another run writer.
    pub(crate) fn copy_encoder_states_from(&mut self, other: &Self) {
        self.set_encoder_states(&other.types, other.encoder_states.clone());
    }

    fn set_layout(&mut self, types: &[ColumnType]) {
        if *self.types != *types {
            self.types = types.into();
            self.rows = Rows::new(types.len());
            self.encoder_states.clear();
        }
    }
}

/// Appends rows, which must arrive in key order, to a run.
#[derive(Debug)]
pub(crate) struct RunWriter<'l> {
    run: Run,
    layouts: &'l [Box<[ColumnType]>],
    class: u32,
    scratch: WriterScratch,
}

impl<'l> RunWriter<'l> {
    /// Creates a writer that appends rows to `run`, which may be new and empty.
    pub(crate) fn new(run: Run, layouts: &'l [Box<[ColumnType]>], scratch: WriterScratch) -> Self {
        debug_assert!(scratch.rows.is_empty(), "its last rows were written");
        Self {
            run,
            layouts,
            class: u32::MAX,
            scratch,
        }
    }

    /// Appends rows of one series. They must sort after all rows appended before.
    pub(crate) fn push<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        place: (u32, SeriesId),
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let (Some(&least), Some(&greatest)) = (rows.times().first(), rows.times().last()) else {
            return Ok(());
        };
        let (class, series) = place;
        let first = Key::new(class, series, least);
        self.begin(w, work, class, first)?;
        let columns = self.scratch.rows.columns.len();
        let max = block_rows_max(columns);
        let mut from = 0;
        while from < rows.len() {
            // Rows with equal times must be in one block, because readers search for the first of them by its key.
            let rest = rows.slice(from..rows.len());
            let taken = rest.cut(max - self.scratch.rows.len());
            if taken == 0 && self.scratch.rows.is_empty() {
                return Err(Error::Limit {
                    what: "rows of one time",
                    found: rest.between(rest.times()[0], rest.times()[0]).len() as u64,
                    limit: max as u64,
                });
            }
            self.scratch.rows.extend(rest.slice(0..taken));
            self.scratch
                .series
                .resize(self.scratch.rows.len(), series.0);
            from += taken;
            if self.scratch.rows.len() == max || taken < rest.len() {
                self.cut(w, work)?;
            }
        }
        let last = Key::new(class, series, greatest);
        self.count(rows.len(), (first, last), (least, greatest));
        Ok(())
    }

    /// Appends rows of many series, in key order. They must sort after all rows appended before; `series` has the
    /// series of each row.
    pub(crate) fn push_many<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        class: u32,
        series: &[u64],
        rows: RowsRef<'_>,
    ) -> Result<()> {
        debug_assert_eq!(series.len(), rows.len(), "a series a row");
        let times = rows.times();
        let Some(last) = rows.len().checked_sub(1) else {
            return Ok(());
        };
        let key = |row: usize| Key::new(class, SeriesId(series[row]), times[row]);
        self.begin(w, work, class, key(0))?;
        let max = block_rows_max(self.scratch.rows.columns.len());
        let joins = |row: usize| series[row - 1] == series[row] && times[row - 1] == times[row];
        let mut from = 0;
        while from < rows.len() {
            // Rows with equal times must be in one block, because readers search for the first of them by its key.
            let mut to = rows.len().min(from + max - self.scratch.rows.len());
            while from < to && to < rows.len() && joins(to) {
                to -= 1;
            }
            if to == from && self.scratch.rows.is_empty() {
                return Err(Error::Limit {
                    what: "rows of one time",
                    found: max as u64 + 1,
                    limit: max as u64,
                });
            }
            let is_whole = self.scratch.rows.is_empty() && (to - from == max || to < rows.len());
            if is_whole {
                self.write_block(w, work, &series[from..to], rows.slice(from..to))?;
                from = to;
                continue;
            }
            self.scratch.rows.extend(rows.slice(from..to));
            self.scratch.series.extend_from_slice(&series[from..to]);
            debug_assert_eq!(
                self.scratch.series.len(),
                self.scratch.rows.len(),
                "a series a row"
            );
            from = to;
            if self.scratch.rows.len() == max || from < rows.len() {
                self.cut(w, work)?;
            }
        }
        self.count(rows.len(), (key(0), key(last)), time_span(times));
        Ok(())
    }

    /// Checks that the rows sort after all previous rows of the run, and starts a new block if their layout differs.
    fn begin<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        class: u32,
        first: Key,
    ) -> Result<()> {
        // Rows can be out of order only if the runs from which they were read are damaged.
        if self.run.rows > 0 && first <= self.run.last && !active(Bug::CompactionForgetsWatermark) {
            let (found, expected) = (format!("{first:?}"), format!("after {:?}", self.run.last));
            return Err(Corrupt::new("rows for a run", 0, found, expected).into());
        }
        if class != self.class {
            self.cut(w, work)?;
            self.class = class;
            self.scratch.set_layout(&self.layouts[class as usize]);
        }
        Ok(())
    }

    /// Adds appended rows to the counts and bounds of the run.
    fn count(&mut self, rows: usize, span: (Key, Key), times: (i64, i64)) {
        let columns = self.scratch.rows.columns.len();
        self.run.count((rows as u64, columns), span, times);
    }

    /// Encodes the collected rows as a block.
    fn cut<W: PageWrite>(&mut self, w: &mut W, work: &mut Work) -> Result<()> {
        let (series, rows) = (
            std::mem::take(&mut self.scratch.series),
            std::mem::take(&mut self.scratch.rows),
        );
        let written = self.write_block(w, work, &series, rows.view());
        (self.scratch.series, self.scratch.rows) = (series, rows);
        self.scratch.series.clear();
        self.scratch.rows.clear();
        written
    }

    fn write_block<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        series: &[u64],
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let Some(last) = rows.len().checked_sub(1) else {
            return Ok(());
        };
        let key = |row: usize| Key::new(self.class, SeriesId(series[row]), rows.times()[row]);
        let entry = Entry {
            first: key(0),
            last: key(last),
            ptr: tidalite_pager::Ptr::NULL,
            rows: rows.len() as u32,
        };
        debug_assert_eq!(series.len(), rows.len(), "a series a row");
        let types = &self.layouts[self.class as usize];
        let encoder_states = &mut self.scratch.encoder_states;
        self.scratch
            .store
            .add(&mut self.run, w, work, entry, |out| {
                encode_block(self.class, types, series, rows, encoder_states, out);
            })
    }

    /// Writes the remaining rows; returns the finished run and the memory of the writer.
    pub(crate) fn finish<W: PageWrite>(
        mut self,
        w: &mut W,
        work: &mut Work,
    ) -> Result<(Run, WriterScratch)> {
        self.cut(w, work)?;
        self.scratch.store.flush(&mut self.run, w, work)?;
        debug_assert!(self.scratch.rows.is_empty(), "the last rows are in a block");
        Ok((self.run, self.scratch))
    }
}
