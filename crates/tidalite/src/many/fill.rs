//! One value a window, also where no row is: gap filling.

use super::windows::{Grid, GroupWindow};
use crate::figures::Figure;
use crate::time::Timestamp;
use std::ops::{Bound, RangeBounds};

/// What a window without a value gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// It is left out.
    None,
    /// It is told, without a value.
    Null,
    /// The value of the last window that had one; nothing before the first.
    Previous,
    /// What lies on the straight line between the windows with values at either side; nothing outside of these.
    Linear,
    /// This value.
    Value(f64),
}

/// Windows in a row with one figure each; see [`GroupWindow::filled`].
pub struct Filled<'w> {
    windows: &'w [GroupWindow],
    grid: Grid,
    figure: Figure,
    fill: Fill,
    /// The next window, and the one behind the last.
    next: i128,
    end: i128,
    /// The last window with a value.
    before: Option<(i128, f64)>,
}

impl GroupWindow {
    /// One figure a window, ascending, gaps filled: over `times`, or from the first window to the last where that is
    /// not bounded. `windows` are those of [`Group::windows`](super::Group::windows) with the same `grid`.
    pub fn filled<'w>(
        windows: &'w [Self],
        times: &impl RangeBounds<Timestamp>,
        grid: &Grid,
        figure: Figure,
        fill: Fill,
    ) -> Filled<'w> {
        let index = |window: Option<&Self>| window.map(|window| grid.index(window.start.0));
        let start = match times.start_bound() {
            Bound::Included(t) => Some(grid.index(t.0)),
            Bound::Excluded(t) => Some(grid.index(t.0.saturating_add(1))),
            Bound::Unbounded => index(windows.first()),
        };
        let last = match times.end_bound() {
            Bound::Included(t) => Some(grid.index(t.0)),
            Bound::Excluded(t) => Some(grid.index(t.0.saturating_sub(1))),
            Bound::Unbounded => index(windows.last()),
        };
        let (next, end) = match (start, last) {
            (Some(start), Some(last)) => (start, last + 1),
            _ => (0, 0),
        };
        Filled {
            windows,
            grid: *grid,
            figure,
            fill,
            next,
            end,
            before: None,
        }
    }
}

impl Filled<'_> {
    /// The value of the gap at `index`; the outer `None` leaves it out.
    fn gap(&self, index: i128) -> Option<Option<f64>> {
        match self.fill {
            Fill::None => None,
            Fill::Null => Some(None),
            Fill::Previous => Some(self.before.map(|(_, value)| value)),
            Fill::Value(value) => Some(Some(value)),
            Fill::Linear => Some(self.before.and_then(|(i, a)| {
                let next = |window: &GroupWindow| {
                    let value = self.figure.of(&window.aggregate)?;
                    Some((self.grid.index(window.start.0), value))
                };
                let (j, b) = self.windows.iter().find_map(next)?;
                Some(a + (b - a) * ((index - i) as f64 / (j - i) as f64))
            })),
        }
    }
}

impl Iterator for Filled<'_> {
    /// Where the window begins, and its value.
    type Item = (Timestamp, Option<f64>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            let mut index = self.next;
            let found = self.windows.split_first().filter(|(window, _)| {
                let own = self.grid.index(window.start.0);
                if self.fill == Fill::None {
                    index = own.max(index);
                }
                own <= index
            });
            self.next = index + 1;
            let value = found.and_then(|(window, rest)| {
                self.windows = rest;
                self.figure.of(&window.aggregate)
            });
            if value.is_none() && self.fill == Fill::None && self.windows.is_empty() {
                self.next = self.end;
            }
            if let Some(value) = value {
                self.before = Some((index, value));
                return Some((self.grid.start(index), Some(value)));
            }
            if let Some(filled) = self.gap(index) {
                return Some((self.grid.start(index), filled));
            }
        }
        None
    }
}
