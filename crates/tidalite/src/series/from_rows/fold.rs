//! One pass over the rows of an interval that computes the figures of its windows.
//!
//! Invariants
//! 1. Rows arrive in ascending order of time, and each lies in one of the windows, which ascend, too.
//! 2. `before` is the last row with a value so far; its course until the next row is not yet added to any window.
//! 3. A window is delivered once: when the first row after it, or the end of the rows, determines how its course ends.

use super::change::Steps;
use super::course::{At, Course};
use super::occurrences::Occurrences;
use super::quantiles::Quantiles;
use super::{FromRows, RowNeeds};
use crate::series::aggregate::Window;
use crate::types::column::Column;
use crate::types::error::Result;
use crate::types::interpolation::Interpolation;

/// The figures of a window while its rows are read.
#[derive(Default)]
struct Open {
    quantiles: Quantiles,
    occurrences: Occurrences,
    previous: Course,
    linear: Course,
    change: Steps,
}

/// A pass over the rows of a column.
pub(crate) struct Fold<'c, R, S> {
    needs: RowNeeds,
    column: &'c Column,
    unit_seconds: f64,
    /// First and last time of the query; windows are cut there.
    interval: (i64, i64),
    windows: std::vec::IntoIter<Window>,
    current: Option<(Window, Open)>,
    before: Option<At>,
    /// Reads the text of a word.
    text: R,
    sink: S,
    times: Vec<i64>,
    values: Vec<f64>,
    words: Vec<u64>,
}

impl<'c, R, S> Fold<'c, R, S>
where
    R: Fn(u64) -> Result<Vec<u8>>,
    S: FnMut(Window),
{
    /// Begins a pass over these windows; `sink` gets each of them with its figures. `before` is the last row with a
    /// value before the interval.
    pub(crate) fn new(
        (needs, column, unit_seconds): (RowNeeds, &'c Column, f64),
        interval: (i64, i64),
        windows: Vec<Window>,
        before: Option<(i64, f64)>,
        text: R,
        sink: S,
    ) -> Self {
        let mut windows = windows.into_iter();
        Self {
            needs,
            column,
            unit_seconds,
            interval,
            current: windows.next().map(|window| (window, Open::default())),
            windows,
            before: before.map(|(time, value)| At { time, value }),
            text,
            sink,
            times: Vec::new(),
            values: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Adds rows: their times, and the words of the column.
    pub(crate) fn extend(&mut self, times: &[i64], words: &[u64]) -> Result<()> {
        self.keep_values(times, words);
        let mut begin = 0;
        while let Some(&time) = self.times.get(begin) {
            let value = self.values[begin];
            self.close_before(At { time, value })?;
            let Some((window, open)) = &mut self.current else {
                debug_assert!(false, "a row at {time} lies behind all windows");
                return Ok(());
            };
            debug_assert!(window.start <= time && time <= window.last);
            let last = window.last;
            let rows = begin..begin + self.times[begin..].partition_point(|&time| time <= last);
            begin = rows.end;
            if self.needs.quantiles {
                open.quantiles.extend(&self.values[rows.clone()]);
            }
            if self.needs.occurrences {
                let words = &self.words[rows.clone()];
                open.occurrences.extend(self.column.ty, words);
            }
            if !self.needs.looks_back() {
                continue;
            }
            let limits = limits_of(window, self.interval);
            for row in rows {
                let (time, value) = (self.times[row], self.values[row]);
                let at = At { time, value };
                if let Some(before) = self.before.replace(at) {
                    open.add_course(self.needs, (before, at), limits);
                    if self.needs.change {
                        open.change.add(before, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects the rows that have a value.
    fn keep_values(&mut self, times: &[i64], words: &[u64]) {
        self.times.clear();
        self.values.clear();
        self.words.clear();
        let is_text = self.column.ty.is_text();
        for (&time, &word) in times.iter().zip(words) {
            let value = match is_text {
                true if self.column.is_null(word) => continue,
                true => 0.0,
                false => match self.column.f64(word) {
                    Some(value) if !value.is_nan() => value,
                    _ => continue,
                },
            };
            self.times.push(time);
            self.values.push(value);
            self.words.push(word);
        }
    }

    /// Delivers the windows that end before this row.
    fn close_before(&mut self, row: At) -> Result<()> {
        while let Some((window, _)) = &self.current
            && window.last < row.time
        {
            self.close(Some(row))?;
        }
        Ok(())
    }

    /// Delivers the current window. `next` is the first row with a value after it.
    fn close(&mut self, next: Option<At>) -> Result<()> {
        let following = self.windows.next().map(|window| (window, Open::default()));
        let Some((mut window, mut open)) = std::mem::replace(&mut self.current, following) else {
            return Ok(());
        };
        if let (Some(before), Some(next)) = (self.before, next) {
            let limits = limits_of(&window, self.interval);
            open.add_course(self.needs, (before, next), limits);
        }
        if self.column.ty.is_text() {
            open.occurrences.resolve(&self.text)?;
        }
        window.aggregate.set_from_rows(FromRows {
            quantiles: open.quantiles,
            occurrences: open.occurrences,
            previous: open.previous.close(self.unit_seconds),
            linear: open.linear.close(self.unit_seconds),
            change: open.change.close(self.unit_seconds),
        });
        (self.sink)(window);
        Ok(())
    }

    /// Delivers the windows that are left. `after` is the first row with a value after the interval.
    pub(crate) fn finish(mut self, after: Option<(i64, f64)>) -> Result<()> {
        let after = after.map(|(time, value)| At { time, value });
        while self.current.is_some() {
            self.close(after)?;
        }
        Ok(())
    }
}

/// The first time of a window and the first time after it, within the interval of the query.
fn limits_of(window: &Window, (from, to): (i64, i64)) -> (i128, i128) {
    let last = i128::from(window.last.min(to));
    (window.start.max(from).into(), last + 1)
}

impl Open {
    fn add_course(&mut self, needs: RowNeeds, rows: (At, At), limits: (i128, i128)) {
        if needs.previous {
            self.previous.add(Interpolation::Previous, rows, limits);
        }
        if needs.linear {
            self.linear.add(Interpolation::Linear, rows, limits);
        }
    }
}
