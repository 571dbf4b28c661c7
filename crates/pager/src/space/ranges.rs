//! Sorted sets and maps of page ranges.

use crate::format::meta::Change;
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of pages as disjoint ranges; adjacent ranges are joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Asserts that no range is empty, and that the ranges neither overlap nor are adjacent.
    pub(super) fn check(&self) {
        debug_assert!(
            self.ranges.values().all(|&pages| pages > 0),
            "an empty range"
        );
        debug_assert!(
            self.ranges
                .iter()
                .is_sorted_by(|(page, pages), (next, _)| *page + *pages < **next),
            "ranges overlap or touch"
        );
    }

    /// Adds a range of pages. If part of the range is in the set already, returns false and changes nothing.
    pub(crate) fn insert(&mut self, page: u64, pages: u64) -> bool {
        assert!(pages > 0, "a range has pages");
        if self.overlaps(page, pages) {
            return false;
        }
        let (mut start, mut len) = (page, pages);
        if let Some((&before, &count)) = self.ranges.range(..page).next_back()
            && before + count == page
        {
            (start, len) = (before, count + len);
        }
        if let Some(after) = self.ranges.remove(&(page + pages)) {
            len += after;
        }
        self.ranges.insert(start, len);
        debug_assert!(self.contains(page, pages), "an added range is there");
        true
    }

    /// Removes a range of pages. If part of the range is not in the set, returns false and changes nothing.
    pub(crate) fn remove(&mut self, page: u64, pages: u64) -> bool {
        if !self.contains(page, pages) {
            return false;
        }
        let Some((&start, &len)) = self.ranges.range(..=page).next_back() else {
            return false;
        };
        self.ranges.remove(&start);
        if start < page {
            self.ranges.insert(start, page - start);
        }
        if page + pages < start + len {
            self.ranges.insert(page + pages, start + len - page - pages);
        }
        debug_assert!(!self.overlaps(page, pages), "a removed range is there");
        true
    }

    pub(crate) fn contains(&self, page: u64, pages: u64) -> bool {
        let before = self.ranges.range(..=page).next_back();
        before.is_some_and(|(&start, &len)| page + pages <= start + len)
    }

    /// Returns the end of the range that contains a page, if there is one.
    pub(crate) fn end_of(&self, page: u64) -> Option<u64> {
        let (&start, &len) = self.ranges.range(..=page).next_back()?;
        (start + len > page).then_some(start + len)
    }

    /// Removes the pages of a range that are in the set; returns their number.
    pub(crate) fn cut_out(&mut self, page: u64, pages: u64) -> u64 {
        let (end, mut taken) = (page + pages, 0);
        while let Some((&start, &len)) = self.ranges.range(..end).next_back()
            && start + len > page
        {
            let (from, to) = (start.max(page), (start + len).min(end));
            taken += to - from;
            let removed = self.remove(from, to - from);
            debug_assert!(removed, "what was found is there");
        }
        assert!(taken <= pages, "more pages are removed than the range has");
        taken
    }

    pub(crate) fn overlaps(&self, page: u64, pages: u64) -> bool {
        let before = self.ranges.range(..page + pages).next_back();
        before.is_some_and(|(&start, &len)| start + len > page)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&page, &pages)| (page, pages))
    }
}

/// Page ranges that were allocated or freed since the free-space structure was last written to the file, with their
/// new use (used or free).
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Changes in ascending order; adjacent ranges of the same use are joined. There are a few hundred at most, and
    /// every commit copies them; copying an array costs a fifth of copying a tree.
    ranges: Vec<Change>,
}

impl Changes {
    pub(crate) fn set(&mut self, page: u64, pages: u64, used: bool) {
        assert!(pages > 0, "a change has pages");
        let (mut start, mut end) = (page, page + pages);
        // Finds the known ranges that overlap the new range or are adjacent to it.
        let first = self.ranges.partition_point(|r| r.page + r.pages < page);
        let touching = self.ranges[first..].iter();
        let last = first + touching.take_while(|r| r.page <= end).count();
        let (mut before, mut behind) = (None, None);
        if let Some(range) = self.ranges[first..last].first().filter(|r| r.page < page) {
            if range.used == used {
                start = range.page;
            } else {
                let pages = page - range.page;
                before = Some(Change { pages, ..*range });
            }
        }
        if let Some(range) = self.ranges[first..last].last() {
            let to = range.page + range.pages;
            if to > end && range.used == used {
                end = to;
            } else if to > end {
                let (page, pages) = (end, to - end);
                behind = Some(Change {
                    page,
                    pages,
                    ..*range
                });
            }
        }
        let range = Change {
            page: start,
            pages: end - start,
            used,
        };
        let mut new = [range; 3];
        let mut count = 0;
        for range in before.into_iter().chain([range]).chain(behind) {
            new[count] = range;
            count += 1;
        }
        self.put(first..last, &new[..count]);
    }

    /// Replaces the ranges at `place` by up to three others. (`Vec::splice` takes several times as long for so few.)
    fn put(&mut self, place: Range<usize>, new: &[Change]) {
        let ranges = &mut self.ranges;
        let (old, count) = (place.len(), new.len());
        assert!(
            matches!(count, 1..=3),
            "a change splits a range into three at most"
        );
        debug_assert!(
            new.is_sorted_by(|a, b| a.page + a.pages == b.page),
            "the parts of a change are not adjacent"
        );
        if count > old
            && let Some(&filler) = new.first()
        {
            let len = ranges.len();
            ranges.resize(len + count - old, filler);
            ranges.copy_within(place.end..len, place.start + count);
        } else if count < old {
            ranges.drain(place.start + count..place.end);
        }
        ranges[place.start..place.start + count].copy_from_slice(new);
        let around = place.start.saturating_sub(1)..(place.start + count + 1).min(ranges.len());
        debug_assert!(
            ranges[around].is_sorted_by(|a, b| a.page + a.pages <= b.page),
            "changes overlap"
        );
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(crate) fn into_vec(self) -> Vec<Change> {
        self.ranges
    }
}
