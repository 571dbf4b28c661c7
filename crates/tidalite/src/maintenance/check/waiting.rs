//! Finds the names of the series whose rows are affected by damage of the delta. The delta identifies series by id and
//! column layout, users by name.

use super::finding::{HitSeries, Place};
use crate::catalog::entries::SeriesInfo;
use std::borrow::Borrow;
use tidalite_base::SeriesId;
use tidalite_delta::{Delta, Hit};

/// Maximum number of series named by one finding: the number of series that can have rows in one block.
const SERIES_NAMED: usize = 1024;
/// Maximum number of series named by all findings of a report together.
const NAMED_IN_ALL: usize = 1 << 16;

/// The series whose rows may be in the delta.
pub(crate) struct Waiting<'i> {
    /// The series in the order of the delta: by the number of their column layout, then by id.
    series: Vec<((u32, SeriesId), &'i SeriesInfo)>,
    /// Whether `series` lists all series of the catalog.
    is_whole: bool,
    may_name: usize,
}

impl<'i> Waiting<'i> {
    /// Creates the list from `known`, the readable series of the catalog. `is_whole` says whether these are all series.
    pub(crate) fn new<I: Borrow<SeriesInfo> + 'i>(
        delta: &Delta,
        known: impl Iterator<Item = &'i I>,
        is_whole: bool,
    ) -> Self {
        let place = |info: &'i I| {
            let info = info.borrow();
            let class = delta.class_of(&info.schema.word_types())?;
            Some(((class, info.id), info))
        };
        let mut series: Vec<_> = known.filter_map(place).collect();
        series.sort_unstable_by_key(|(place, _)| *place);
        Self {
            series,
            is_whole,
            may_name: NAMED_IN_ALL,
        }
    }

    /// The affected data, with the names of the series. Damage within a single series is reported as rows of that
    /// series.
    pub(crate) fn place(&mut self, hit: Hit) -> Place {
        let rows = match hit {
            Hit::All => return Place::whole_delta(),
            Hit::Nothing => return Place::File,
            Hit::Rows(rows) => rows,
        };
        let places = rows.places();
        let begin = self.series.partition_point(|(at, _)| at < places.start());
        let end = self.series.partition_point(|(at, _)| at <= places.end());
        let found = self.series.get(begin..end).unwrap_or_default();
        let spanned = found.iter().filter_map(|((class, id), info)| {
            let span = rows.times_of(*class, *id)?;
            Some((span, *info))
        });
        if let ([_], true) = (found, self.is_whole)
            && let Some((span, info)) = spanned.clone().next()
        {
            return Place::series(info, None, Some(span));
        }
        let named = spanned.map(|(span, info)| HitSeries {
            id: info.id,
            name: info.label(),
            span,
            unit: info.schema.unit,
        });
        let series: Vec<_> = named.take(SERIES_NAMED.min(self.may_name)).collect();
        self.may_name -= series.len();
        let more = found.len() - series.len();
        Place::Delta {
            from: Some(rows.from()),
            to: Some(rows.to()),
            more_series: self.is_whole.then_some(more as u64),
            series,
        }
    }
}
