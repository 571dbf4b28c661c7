//! Salvage of the delta (rows not yet in leaves): from the delta's record, or block by block.

use super::rescue::Rescue;
use crate::maintenance::check::{Finding, Place, Waiting};
use crate::types::error::Result;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows, RowsRef};
use tidalite_delta::Delta;

/// A block or tail page of the delta, in which rows were found.
enum Piece {
    Block(tidalite_delta::LoneBlock),
    Tail(tidalite_pager::Ptr),
}

impl Rescue<'_, '_> {
    pub(super) fn delta(&mut self) -> Result<()> {
        self.running.at("rows not yet in leaves");
        let loaded = self
            .roots
            .as_ref()
            .map(|roots| Delta::load(self.raw, &roots.delta));
        match loaded {
            Some(Ok(delta)) => self.delta_by_record(&delta),
            Some(Err(tidalite_pager::Error::Corrupt(corrupt))) => {
                self.report
                    .lose(Finding::new(Place::whole_delta(), corrupt));
                self.delta_by_headers()
            }
            Some(Err(error)) => Err(error.into()),
            None => self.delta_by_headers(),
        }
    }

    fn delta_by_record(&mut self, delta: &Delta) -> Result<()> {
        let blocks = std::mem::take(&mut self.found.blocks);
        let mut damages = Vec::new();
        let mut pieces: Vec<(SeriesId, Rows)> = Vec::new();
        let raw = self.raw;
        let mut failed = None;
        delta.salvage(
            raw,
            &blocks,
            &mut |id, rows| {
                pieces.push((id, rows.to_rows()));
                if pieces.len() >= BATCH && failed.is_none() {
                    failed = self.put_all(&mut pieces, false).err();
                }
                Ok(())
            },
            &mut |damage| damages.push(damage),
        )?;
        if let Some(error) = failed {
            return Err(error);
        }
        self.put_all(&mut pieces, false)?;
        let mut waiting = Waiting::new(delta, self.infos.values(), self.infos_are_whole);
        for damage in damages {
            self.report
                .lose_with(|| Finding::new(waiting.place(damage.hit), damage.corrupt));
        }
        Ok(())
    }

    fn put_all(&mut self, pieces: &mut Vec<(SeriesId, Rows)>, by_header: bool) -> Result<()> {
        for (id, rows) in pieces.drain(..) {
            self.known(id, rows.columns.len())?;
            self.put(id, rows.view(), by_header)?;
        }
        Ok(())
    }

    /// Saves the rows of all blocks and tail pages found, oldest first, so that the newest row of each time remains.
    /// Rows in the span of a newer leaf are skipped: they were moved into that leaf, or replaced.
    fn delta_by_headers(&mut self) -> Result<()> {
        let mut pieces: Vec<(u64, Piece)> = Vec::new();
        for block in std::mem::take(&mut self.found.blocks) {
            pieces.push((block.ptr.birth.0, Piece::Block(block)));
        }
        for tail in std::mem::take(&mut self.found.tails) {
            pieces.push((tail.birth.0, Piece::Tail(tail)));
        }
        pieces.sort_by_key(|(birth, _)| *birth);
        let layouts = self.layouts();
        for (birth, piece) in pieces {
            let mut rows: Vec<(SeriesId, Rows)> = Vec::new();
            let mut take = |id: SeriesId, found: RowsRef<'_>| {
                rows.push((id, found.to_rows()));
                Ok(())
            };
            let read = match &piece {
                Piece::Block(block) => tidalite_delta::block_rows(self.raw, block, &mut take),
                Piece::Tail(tail) => tidalite_delta::tail_rows(self.raw, tail, &layouts, &mut take),
            };
            match read {
                Ok(()) => {}
                Err(tidalite_pager::Error::Corrupt(corrupt)) => {
                    self.report
                        .lose(Finding::new(Place::whole_delta(), corrupt));
                }
                Err(error) => return Err(error.into()),
            }
            for (id, rows) in rows {
                self.known(id, rows.columns.len())?;
                self.put_unspoken(id, &rows, birth)?;
            }
        }
        Ok(())
    }

    fn put_unspoken(&mut self, id: SeriesId, rows: &Rows, birth: u64) -> Result<()> {
        let spans = self.spans.get(&id).cloned().unwrap_or_default();
        let spoken = |t: i64| {
            spans
                .iter()
                .any(|&(begin, end, leaf)| leaf > birth && begin <= t && t <= end)
        };
        let mut from = 0;
        while from < rows.len() {
            let hit = spoken(rows.times[from]);
            let end = rows.times[from..].iter().position(|&t| spoken(t) != hit);
            let end = end.map_or(rows.len(), |ahead| from + ahead);
            if !hit {
                self.put(id, rows.slice(from..end), true)?;
            }
            from = end;
        }
        Ok(())
    }

    /// The column layouts by number, from the newest readable record of the delta; without a record, a single assumed
    /// layout.
    fn layouts(&self) -> Vec<Box<[ColumnType]>> {
        let mut records = self.found.records.clone();
        records.sort_by_key(|record| std::cmp::Reverse(record.birth));
        let read = |record| tidalite_delta::layouts_of(self.raw, record).ok();
        let mut layouts = records.iter().find_map(read).unwrap_or_default();
        if layouts.is_empty() {
            // Without a record or a run there is one layout, usually the layout of the default point: time, flags and
            // value.
            let columns = self.columns.values().copied().max().unwrap_or(2);
            layouts.push(vec![ColumnType::U64; columns].into());
        }
        layouts
    }

    /// Creates a series with a generated name for an id that only rows in the delta mention.
    fn known(&mut self, id: SeriesId, columns: usize) -> Result<()> {
        if self.ids.contains_key(&id) {
            return Ok(());
        }
        let schema = super::series::made_up_schema(columns);
        if let Some((new, place)) = self.create(id, None, &schema)? {
            self.ids.insert(id, (new, place));
            self.columns.insert(id, columns);
        }
        Ok(())
    }
}

/// Number of pieces collected before their rows are written.
const BATCH: usize = 256;
