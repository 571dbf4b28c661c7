//! Rows of the front that keep newer rows from becoming leaves: those within their span.

use crate::front::{Front, Layouts};
use crate::run::cursor::Probe;
use crate::run::tail::{self, Piece};
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::RowsRef;
use tidalite_pager::{PageRead, Ptr, Result};

/// Answers, series by series, whether anything in the front lies within a span.
#[derive(Debug)]
pub struct Obstacles {
    layouts: Layouts,
    probes: Vec<Probe>,
    tail: Ptr,
    /// Its rows, once they have been asked for: a commit of a few rows does not.
    pieces: Option<Vec<Piece>>,
}

impl Obstacles {
    /// Everything from tier `tier` on, and the tail when that is asked for.
    pub(crate) fn new(front: &Front, tier: usize, tail: bool) -> Self {
        let probes = front
            .live_runs(tier)
            .map(|(run, after)| Probe::new(run, after));
        Self {
            layouts: front.layouts.clone(),
            probes: probes.collect(),
            tail: if tail { front.tail } else { Ptr::NULL },
            pieces: None,
        }
    }

    pub(crate) fn within<R: PageRead>(
        &mut self,
        r: &R,
        place: (u32, SeriesId),
        from: i64,
        to: i64,
    ) -> Result<bool> {
        let tail = match &self.pieces {
            Some(pieces) => pieces,
            None => {
                let pieces = tail::pieces(r, &self.tail, &self.layouts)?;
                self.pieces.insert(pieces)
            }
        };
        if let Ok(i) = tail.binary_search_by_key(&place, Piece::place)
            && !tail[i].rows.view().between(from, to).is_empty()
        {
            return Ok(true);
        }
        for probe in &mut self.probes {
            if probe.has_rows(r, &self.layouts, place, from, to)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cuts the rows into parts, in order: whole vectors that may be linked, and others. Nothing in the front lies within
    /// the span of a part that may be linked, nor do the other parts, since they are before or after it.
    ///
    /// Cost: one question about all whole vectors; when the answer is bad, one a vector. So a few rows that are very late
    /// hold back the vector that they are in, not the rest.
    pub(crate) fn plan<R: PageRead>(
        &mut self,
        r: &R,
        place: (u32, SeriesId),
        rows: RowsRef<'_>,
        whole: usize,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        parts.clear();
        if whole == 0 {
            return Ok(());
        }
        let times = rows.times();
        if !self.within(r, place, times[0], times[whole - 1])? {
            parts.push(Part {
                rows: 0..whole,
                link: true,
            });
            return Ok(());
        }
        let mut to = 0;
        while to < whole {
            let from = to;
            // Rows of one time go the same way.
            to = match rows.slice(from..whole).cut(VECTOR_ROWS) {
                0 => whole.min(from + VECTOR_ROWS),
                cut => from + cut,
            };
            let link = whole > VECTOR_ROWS && !self.within(r, place, times[from], times[to - 1])?;
            match parts.last_mut() {
                Some(part) if part.link == link => part.rows.end = to,
                _ => parts.push(Part {
                    rows: from..to,
                    link,
                }),
            }
        }
        Ok(())
    }
}

/// Rows of a stretch that go the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    pub(crate) link: bool,
}
