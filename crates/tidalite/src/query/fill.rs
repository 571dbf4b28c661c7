//! Gap filling: one value per window, also for windows without rows.

use crate::query::windows::GroupWindow;
use crate::series::aggregate::Aggregate;
use crate::types::error::Result;
use crate::types::figure::Figure;
use crate::types::grid::{Grid, StepGrid};
use crate::types::interval::Interval;
use crate::types::schema::Unit;
use std::ops::Bound;
use tidalite_time::Timestamp;

/// The value that a window without a value gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// The window is skipped.
    None,
    /// The window is reported without a value.
    Null,
    /// The value of the last window that had one; none before the first.
    Previous,
    /// Linear interpolation between the windows with values on either side; none outside of these.
    Linear,
    /// This value.
    Value(f64),
}

/// Function that derives the value of a window from its statistics.
type Value<'w, A> = Box<dyn Fn(&A) -> Option<f64> + 'w>;

/// Consecutive windows with one figure each; see [`GroupWindow::filled`].
pub struct Filled<'w, A = Aggregate> {
    windows: &'w [GroupWindow<A>],
    grid: StepGrid,
    value: Value<'w, A>,
    fill: Fill,
    /// The next window to report, and the first one that is not reported.
    next: i128,
    end: i128,
    /// The last window with a value.
    before: Option<(i128, f64)>,
    /// The next window with a value, if it was searched: there may be many windows without one.
    after: Option<Option<(i128, f64)>>,
}

impl GroupWindow {
    /// One figure per window, ascending, with gaps filled: over `times` (gaps are filled from windows before and after,
    /// too), or from the first window to the last if `times` is unbounded. `windows` come from
    /// [`SelectionQuery::windows`](crate::query::SelectionQuery::windows) with the same `grid`.
    ///
    /// # Errors
    /// `InvalidInput` if a bound of `times` is a text that is no time; `Schema` for a width below 1.
    pub fn filled<'w>(
        windows: &'w [Self],
        times: impl Interval,
        grid: &Grid,
        figure: Figure,
        fill: Fill,
    ) -> Result<Filled<'w>> {
        Self::filled_by(windows, times, grid, fill, move |all| figure.of(all))
    }
}

impl<A> GroupWindow<A> {
    /// Like `filled`, for windows with selected [figures](crate::Figures); `value` extracts the wanted one.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::query::{Fill, GroupWindow};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (time, load) in [(0, 1.0), (2, 3.0)] {
    ///     tx.series("load")?.insert(Timestamp(time * 60_000_000_000), load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let (all, grid) = (snap.select("load")?, Grid::minutes(1));
    /// let windows = all.query(..).figures([Figure::Min, Figure::Max]).windows(&grid, "value")?;
    /// let highest = GroupWindow::filled_by(&windows, .., &grid, Fill::Linear, |[_, most]| *most)?;
    /// let values: Vec<_> = highest.map(|(_, value)| value).collect();
    /// assert_eq!(values, [Some(1.0), Some(2.0), Some(3.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `filled`.
    pub fn filled_by<'w>(
        windows: &'w [Self],
        times: impl Interval,
        grid: &Grid,
        fill: Fill,
        value: impl Fn(&A) -> Option<f64> + 'w,
    ) -> Result<Filled<'w, A>> {
        let times = times.ends()?;
        let value: Value<'w, A> = Box::new(value);
        let grid = grid.on_clock()?;
        let index = |window: Option<&Self>| window.map(|window| grid.index(window.start.0));
        let (from, to) = times.in_unit(Unit::Nanos);
        let start = match times.start() {
            Bound::Unbounded => index(windows.first()),
            _ => Some(grid.index(from)),
        };
        let last = match times.end() {
            Bound::Unbounded => index(windows.last()),
            _ => Some(grid.index(to)),
        };
        // If the end is before the beginning, there is no window.
        let (next, end) = match (start, last) {
            _ if from > to => (0, 0),
            (Some(start), Some(last)) => (start, last + 1),
            _ => (0, 0),
        };
        Ok(Filled {
            windows,
            grid,
            value,
            fill,
            next,
            end,
            before: None,
            after: None,
        })
    }
}

impl<A> Filled<'_, A> {
    /// The value of the window at `index`, which has none of its own. An outer `None` skips the window.
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

    /// Skips the windows before the first reported one; they only give the previous value for a gap.
    fn pass_by(&mut self) {
        while let Some((window, rest)) = self.windows.split_first() {
            let own = self.grid.index(window.start.0);
            if own >= self.next {
                break;
            }
            self.windows = rest;
            if let Some(value) = (self.value)(&window.aggregate) {
                self.before = Some((own, value));
            }
        }
    }

    fn next_value(&self) -> Option<(i128, f64)> {
        self.windows.iter().find_map(|window| {
            let value = (self.value)(&window.aggregate)?;
            Some((self.grid.index(window.start.0), value))
        })
    }
}

impl<A> Iterator for Filled<'_, A> {
    /// The start of the window, and its value.
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
                (self.value)(&window.aggregate)
            });
            if value.is_none() && self.fill == Fill::None && self.windows.is_empty() {
                self.next = self.end;
            }
            if let Some(value) = value {
                self.before = Some((index, value));
                self.after = None;
                return Some((Timestamp(self.grid.start(index)), Some(value)));
            }
            if let Some(filled) = self.gap(index) {
                return Some((Timestamp(self.grid.start(index)), filled));
            }
        }
        None
    }
}
