//! Overlap check: newer rows may not become leaves while the delta has older rows of their series within their time
//! span.

use crate::delta::{Delta, Layouts};
use crate::run::cursor::Probe;
use crate::run::tail::{self, Piece};
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::RowsRef;
use tidalite_pager::{PageRead, Ptr, Result};

/// Tests, series by series, whether the delta has rows within a time span.
#[derive(Debug)]
pub struct OverlapCheck {
    layouts: Layouts,
    probes: Vec<Probe>,
    tail: Ptr,
    /// Rows of the tail page. They are loaded on first use, because a commit of a few rows does not need them.
    pieces: Option<Vec<Piece>>,
}

impl OverlapCheck {
    /// Creates a check against all runs from tier `tier` on, and against the tail page if `tail` is set.
    pub(crate) fn new(delta: &Delta, tier: usize, tail: bool) -> Self {
        let probes = delta
            .live_runs(tier)
            .map(|(run, after)| Probe::new(run, after));
        Self {
            layouts: delta.layouts.clone(),
            probes: probes.collect(),
            tail: if tail { delta.tail } else { Ptr::NULL },
            pieces: None,
        }
    }

    pub(crate) fn overlaps<R: PageRead>(
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

    /// Splits the rows into parts, in order: parts that may become leaves (whole vectors), and parts that may not.
    /// Within the span of a part that may become leaves, neither the delta nor another part has rows.
    ///
    /// Cost: one test for all whole vectors together; if it finds an overlap, one test per vector. A few very late
    /// rows therefore keep only their own vector from becoming a leaf.
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
        if !self.overlaps(r, place, times[0], times[whole - 1])? {
            parts.push(Part {
                rows: 0..whole,
                link: true,
            });
            return Ok(());
        }
        let mut to = 0;
        while to < whole {
            let from = to;
            // Rows with equal times stay in the same part.
            to = match rows.slice(from..whole).cut(VECTOR_ROWS) {
                0 => whole.min(from + VECTOR_ROWS),
                cut => from + cut,
            };
            let link =
                whole > VECTOR_ROWS && !self.overlaps(r, place, times[from], times[to - 1])?;
            match parts.last_mut() {
                Some(part) if part.link == link => part.rows.end = to,
                _ => parts.push(Part {
                    rows: from..to,
                    link,
                }),
            }
        }
        debug_assert!(
            parts
                .windows(2)
                .all(|two| two[0].rows.end == two[1].rows.start),
            "parts follow each other"
        );
        debug_assert_eq!(to, whole, "parts cover all whole vectors");
        Ok(())
    }
}

/// Rows that either all become leaves (`link`) or all stay in the delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    pub(crate) link: bool,
}
