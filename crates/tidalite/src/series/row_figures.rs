//! Queries of figures that are computed from rows (`from_rows`): the windows come from the tree, then one scan reads
//! the rows, with the nearest row before and after the interval.

use crate::series::aggregate::{Aggregate, Window};
use crate::series::figures::{Figures, Needs};
use crate::series::from_rows::RowNeeds;
use crate::series::from_rows::fold::Fold;
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::row_walk::RowWalk;
use crate::types::error::{Error, Result};
use crate::types::grid::StepGrid;

impl<F: Figures> Query<'_, F> {
    /// Calls `f` with each window of a column, with figures from rows.
    pub(crate) fn each_with_row_figures(
        &self,
        grid: &StepGrid,
        (column, needs): (usize, Needs),
        f: impl FnMut(Window),
    ) -> Result<()> {
        let mut windows = Vec::new();
        self.each_window(grid, (&[column], needs.parts), |_, window| {
            windows.push(window);
        })?;
        self.fold_rows(windows, (column, needs.rows), f)
    }

    /// Adds figures from rows to the aggregate of the interval.
    pub(crate) fn with_row_figures(
        &self,
        aggregate: Aggregate,
        asked: (usize, RowNeeds),
    ) -> Result<Aggregate> {
        let (start, last) = self.ends()?;
        let mut whole = aggregate.clone();
        if start <= last {
            let window = Window {
                start,
                last,
                aggregate,
            };
            self.fold_rows(vec![window], asked, |window| whole = window.aggregate)?;
        }
        Ok(whole)
    }

    fn fold_rows(
        &self,
        windows: Vec<Window>,
        (column, needs): (usize, RowNeeds),
        sink: impl FnMut(Window),
    ) -> Result<()> {
        let own = &self.series.info().schema.columns[column];
        if needs.numbers() && own.ty.is_text() {
            return Err(own.problem("texts have no such figure; their number and the number of distinct texts can be counted"));
        }
        let (from, to) = self.ends()?;
        if from > to || windows.is_empty() {
            return Ok(());
        }
        let before = match needs.looks_back().then(|| from.checked_sub(1)).flatten() {
            Some(last) => self.value_beyond(column, (i64::MIN, last), Direction::Backward)?,
            None => None,
        };
        let seconds = self.series.info().schema.unit.nanos() as f64 / 1e9;
        let text = |word| self.series.text(column, word);
        let asked = (needs, own, seconds);
        let mut fold = Fold::new(asked, (from, to), windows, before, text, sink);
        let mut rows = self.part(self.series, (from, to));
        rows.columns = Some(vec![column]);
        rows.direction = Direction::Forward;
        let mut failed: Option<Error> = None;
        rows.for_each_vector(|vector| {
            if failed.is_none() {
                failed = fold.extend(vector.times(), vector.words(column)).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let after = match needs.looks_ahead().then(|| to.checked_add(1)).flatten() {
            Some(first) => self.value_beyond(column, (first, i64::MAX), Direction::Forward)?,
            None => None,
        };
        fold.finish(after)
    }

    /// The nearest row with a value in another interval of the series, in one direction.
    pub(crate) fn value_beyond(
        &self,
        column: usize,
        interval: (i64, i64),
        direction: Direction,
    ) -> Result<Option<(i64, f64)>> {
        let own = &self.series.info().schema.columns[column];
        let mut rows = RowWalk::new(self.series, interval, self.filters.clone(), direction);
        while let Some((time, words)) = rows.next_row()? {
            if let Some(value) = own.f64(words[column]).filter(|value| !value.is_nan()) {
                return Ok(Some((time, value)));
            }
        }
        Ok(None)
    }
}
