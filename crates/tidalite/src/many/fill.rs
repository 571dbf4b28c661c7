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
    /// The next one, if it was looked for: windows without a value may be many.
    after: Option<Option<(i128, f64)>>,
}

impl GroupWindow {
    /// One figure a window, ascending, gaps filled: over `times` (gaps are filled from windows before and behind, too), or from the first window to the last where that is
    /// not bounded. `windows` are those of [`Group::windows`](super::Group::windows) with the same `grid`; a grid without a width, of which
    /// there are none, gives nothing.
    pub fn filled<'w>(
        windows: &'w [Self],
        times: &impl RangeBounds<Timestamp>,
        grid: &Grid,
        figure: Figure,
        fill: Fill,
    ) -> Filled<'w> {
        if grid.width < 1 {
            return Filled {
                windows: &[],
                grid: *grid,
                figure,
                fill,
                next: 0,
                end: 0,
                before: None,
                after: None,
            };
        }
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
        // Before the first and behind the last nanosecond there is nothing, nor is between two times the wrong way round.
        let from = match times.start_bound() {
            Bound::Included(t) => i128::from(t.0),
            Bound::Excluded(t) => i128::from(t.0) + 1,
            Bound::Unbounded => i64::MIN.into(),
        };
        let to = match times.end_bound() {
            Bound::Included(t) => i128::from(t.0),
            Bound::Excluded(t) => i128::from(t.0) - 1,
            Bound::Unbounded => i64::MAX.into(),
        };
        let (next, end) = match (start, last) {
            _ if from > to => (0, 0),
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
            after: None,
        }
    }
}

impl Filled<'_> {
    /// The value of the gap at `index`; the outer `None` leaves it out.
    fn gap(&mut self, index: i128) -> Option<Option<f64>> {
        match self.fill {
            Fill::None => None,
            Fill::Null => Some(None),
            Fill::Previous => Some(self.before.map(|(_, value)| value)),
            Fill::Value(value) => Some(Some(value)),
            Fill::Linear => {
                let after = match self.after {
                    Some(after) => after,
                    None => self.next_value(),
                };
                self.after = Some(after);
                let (before, after) = (self.before, after);
                Some(
                    before.zip(after).map(|((i, a), (j, b))| {
                        a + (b - a) * ((index - i) as f64 / (j - i) as f64)
                    }),
                )
            }
        }
    }

    /// Windows before the first that is told are no more than what came before it.
    fn pass_by(&mut self) {
        while let Some((window, rest)) = self.windows.split_first() {
            let own = self.grid.index(window.start.0);
            if own >= self.next {
                break;
            }
            self.windows = rest;
            if let Some(value) = self.figure.of(&window.aggregate) {
                self.before = Some((own, value));
            }
        }
    }

    fn next_value(&self) -> Option<(i128, f64)> {
        self.windows.iter().find_map(|window| {
            let value = self.figure.of(&window.aggregate)?;
            Some((self.grid.index(window.start.0), value))
        })
    }
}

impl Iterator for Filled<'_> {
    /// Where the window begins, and its value.
    type Item = (Timestamp, Option<f64>);

    fn next(&mut self) -> Option<Self::Item> {
        self.pass_by();
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
                self.after = None;
                return Some((self.grid.start(index), Some(value)));
            }
            if let Some(filled) = self.gap(index) {
                return Some((self.grid.start(index), filled));
            }
        }
        None
    }
}
