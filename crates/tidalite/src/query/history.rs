//! A series together with the stored windows that have replaced its older rows, read as one.
//!
//! ```text
//! windows of a day     w w w |
//! windows of an hour         w w w w w |      finer windows are used as far back as they are kept
//! rows                                 r r r r r r
//! ```
//!
//! Invariant: the segments do not overlap, and each begins at the beginning of a window of the coarser segment before
//! it, so that no row counts twice.

use crate::catalog::downsample::{Border, Downsample};
use crate::catalog::retention::policies;
use crate::catalog::rules::Rules;
use crate::query::combine::{Part, combined, source_among, sources};
use crate::series::aggregate::Window;
use crate::series::read::Series;
use crate::txn::read::ReadTxn;
use crate::types::column::Column;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::figure::Figure;
use crate::types::grid::{Grid, StepGrid};
use crate::types::instant::Steps;
use crate::types::interval::Interval;
use crate::types::into_column::IntoColumn;
use std::collections::BTreeMap;

/// A series together with the stored windows that have replaced its older rows by
/// [`Downsample`](crate::retention::Downsample) rules; returned by [`ReadTxn::history`].
pub struct History<'s> {
    source: Series<'s>,
    /// The finest windows first.
    levels: Vec<Level<'s>>,
}

/// Stored windows of one rule.
struct Level<'s> {
    rule: Downsample,
    grid: StepGrid,
    series: Series<'s>,
    /// The start of the first stored window, and the first time that is not replaced.
    whole: (i64, i64),
    /// The part of it in which no finer windows are stored: its first time, and the first time after it.
    segment: (i64, i64),
}

/// Figures of a part of a window: of a stored window, or of rows.
struct Piece {
    /// First and last time of the stored window; `None` for rows.
    stored: Option<(i64, i64)>,
    figures: Vec<(Figure, Option<f64>)>,
}

impl Piece {
    fn value(&self, figure: Figure) -> Option<f64> {
        let found = self.figures.iter().find(|(own, _)| *own == figure);
        found.and_then(|(_, value)| *value)
    }
}

impl ReadTxn {
    /// Opens a series with the stored windows of its older rows; `None` if the series does not exist. Without policies
    /// that downsample it, the history has rows only.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::time::Duration;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::retention::{Budget, Downsample, Retention};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let hourly = Downsample {
    ///     grid: Grid::hours(1),
    ///     figures: vec![Figure::Count, Figure::Mean, Figure::Max],
    ///     suffix: "1h".to_owned(),
    /// };
    /// let month = Duration::from_secs(30 * 86_400);
    /// let policy = Retention { keep: Some(month), downsample: Some(hourly), ..Retention::default() };
    /// tx.set_retention("hourly", &policy)?;
    /// let mut load = tx.series("load")?;
    /// for minute in 0..90 * 24 * 60_i64 {
    ///     load.insert(Timestamp(minute * 60_000_000_000), (minute % 60) as f64)?;
    /// }
    /// tx.commit()?;
    /// let now = Some(Timestamp(90 * 86_400_000_000_000));
    /// db.maintain(&Budget { now, ..Budget::default() })?;
    ///
    /// let snap = db.begin_read()?;
    /// let load = snap.history("load")?.ok_or("no such series")?;
    /// assert_eq!(load.rows().count()?, 30 * 24 * 60 + 1);
    /// let days = load.windows(.., &Grid::days(1), "value", &[Figure::Count, Figure::Mean])?;
    /// assert_eq!(days.len(), 90);
    /// assert_eq!(days[0].aggregate, [Some(1440.0), Some(29.5)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an invalid name; a damaged or unreadable page or policy.
    pub fn history(&self, name: &str) -> Result<Option<History<'_>>> {
        let Some(source) = self.series(name)? else {
            return Ok(None);
        };
        let info = source.info();
        let rules = Rules::of_policies(policies(&self.cache.roots.policies, &self.pages)?)?;
        let mut levels = Vec::new();
        for rule in rules.of(info) {
            let target = match &info.name {
                Some(name) => rule.target(name)?.to_string(),
                None => continue,
            };
            let Some(series) = self.series(&target)? else {
                continue;
            };
            let grid = rule.grid.in_unit(info.schema.unit)?;
            let Some((from, last)) = series.span() else {
                continue;
            };
            let border = Border::read(|key| series.annotation(key))?;
            let end = grid.window(last).1.saturating_add(1);
            levels.push(Level {
                rule: rule.clone(),
                whole: (from, border.map_or(end, |border| border.end)),
                grid,
                series,
                segment: (0, 0),
            });
        }
        levels.sort_by_key(|level| level.rule.grid.rough_width());
        for at in 0..levels.len() {
            levels[at].segment = levels[at].whole;
            if at == 0 {
                continue;
            }
            // A coarser level ends where the finer one begins, at the end of a window.
            let (from, coarser) = (levels[at - 1].segment.0, &mut levels[at]);
            let (start, last) = coarser.grid.window(from);
            let end = if start == from {
                start
            } else {
                last.saturating_add(1)
            };
            coarser.segment.1 = end.min(coarser.whole.1);
            let end = coarser.segment.1;
            levels[at - 1].segment.0 = end.max(from);
        }
        Ok(Some(History { source, levels }))
    }
}

/// Returns the figure under which a figure is stored: figures with the same meaning share one.
fn normal(figure: Figure) -> Figure {
    match figure {
        Figure::Percentile(50.0) => Figure::Median,
        figure => figure,
    }
}

impl<'s> History<'s> {
    /// The series of the rows that are not replaced, and of the last replaced row of each column.
    #[must_use]
    pub fn rows(&self) -> &Series<'s> {
        &self.source
    }

    /// The first time from which rows are read, in the series' unit; `None` if no rows have been replaced.
    #[must_use]
    pub fn border(&self) -> Option<i64> {
        self.levels.first().map(|level| level.whole.1)
    }

    /// The first time of a stored window or row, and the time of the last row; `None` if there are none.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let (first, last) = self.source.span()?;
        let oldest = self.levels.iter().map(|level| level.whole.0).min();
        Some((oldest.unwrap_or(first).min(first), last))
    }

    /// The windows that contain rows or stored windows, ascending, with figures of a column. A window that contains
    /// several stored windows, or stored windows and rows, is combined from them: number, sum, extremes, first, last,
    /// delta, increase and integral from themselves, mean from number and mean or sum, spread from the extremes,
    /// deviation from number, mean and deviation. An integral is `None` where windows between stored ones are missing,
    /// because they had no rows. Where windows of the requested width are stored with all figures, only these are read,
    /// so that a median of days comes from stored days, even if hours are stored, too. Rows that arrived late, before
    /// the [`border`](Self::border), count once maintenance has added them to their windows.
    ///
    /// # Errors
    /// `Schema` if the column does not exist, if a figure does not follow from the stored ones (a percentile of a day
    /// from percentiles of its hours), if a stored window lies in two of the windows, or if `times` cuts one
    /// ([`uncut`](Self::uncut) gives ends that do not); a damaged or unreadable block.
    ///
    /// # Cost
    /// Reads the stored windows of the interval; the rows as [`Query::windows`](crate::Query::windows).
    pub fn windows(
        &self,
        times: impl Interval,
        grid: &Grid,
        column: impl IntoColumn,
        figures: &[Figure],
    ) -> Result<Vec<Window<Vec<Option<f64>>>>> {
        let info = self.source.info();
        let column = self.source.column(column)?;
        let own = grid.in_unit(info.schema.unit)?;
        let (from, to) = times.ends()?.in_unit(info.schema.unit);
        let figures: Vec<Figure> = figures.iter().copied().map(normal).collect();
        let figures = &figures[..];
        let name = info.schema.columns[column].name.as_str();
        let mut pieces: BTreeMap<i64, Vec<Piece>> = BTreeMap::new();
        for (level, segment) in self.levels_for(grid, name, figures) {
            for at in [from, to.saturating_add(1)] {
                if level.is_cut(at, segment)? {
                    let at = info.schema.unit.text(at);
                    let problem = format!(
                        "{} cannot be cut at {at}: rows there are replaced by windows of {}; choose the ends of such windows",
                        info.label(),
                        level.rule.grid
                    );
                    return Err(Error::from(Cause::Schema { problem }));
                }
            }
            level.read((from, to), segment, name, |start, piece| {
                pieces.entry(own.window(start).0).or_default().push(piece);
            })?;
        }
        // In the window at the border, the rows need the figures from which stored windows are combined.
        let mut asked: Vec<Figure> = figures.to_vec();
        if !pieces.is_empty() {
            for from in figures.iter().flat_map(|figure| sources(*figure)) {
                for figure in *from {
                    if !asked.contains(figure) {
                        asked.push(*figure);
                    }
                }
            }
        }
        let from = from.max(self.border().unwrap_or(i64::MIN));
        if from <= to {
            let rows = self.source.query(Steps(from)..=Steps(to));
            for window in rows.figures(&asked[..]).windows(grid, column)? {
                let start = own.window(window.start.max(from)).0;
                let figures = asked.iter().copied().zip(window.aggregate);
                pieces.entry(start).or_default().push(Piece {
                    stored: None,
                    figures: figures.collect(),
                });
            }
        }
        let mut windows = Vec::with_capacity(pieces.len());
        let whole = match (pieces.first_key_value(), pieces.last_key_value()) {
            (Some((&first, _)), Some((&last, _))) => (first, last),
            _ => return Ok(windows),
        };
        for (start, pieces) in pieces {
            let window = own.window(start);
            let values = figures.iter().map(|&figure| {
                if matches!(figure, Figure::Integral(_)) && !self.covers(window, &pieces, whole) {
                    return Ok(None);
                }
                self.value(figure, window, &pieces)
            });
            windows.push(Window {
                start,
                last: window.1,
                aggregate: values.collect::<Result<_>>()?,
            });
        }
        Ok(windows)
    }

    /// The levels to read, coarsest first, each with the time range for which it is used. This is a single level if
    /// that level stores exactly these windows with all figures and reaches as far back as every other level; otherwise
    /// all levels are used.
    fn levels_for(
        &self,
        grid: &Grid,
        column: &str,
        figures: &[Figure],
    ) -> Vec<(&Level<'s>, (i64, i64))> {
        let oldest = self.levels.iter().map(|level| level.whole.0).min();
        let has_all = |level: &&Level<'_>| {
            let stored = level.figures_of(column);
            let has = |figure: &Figure| stored.iter().any(|(own, _)| own == figure);
            level.rule.grid == *grid
                && Some(level.whole.1) == self.border()
                && oldest.is_some_and(|oldest| level.whole.0 <= oldest)
                && figures.iter().all(has)
        };
        match self.levels.iter().find(has_all) {
            Some(level) => vec![(level, level.whole)],
            None => {
                let each = self.levels.iter().rev();
                each.map(|level| (level, level.segment)).collect()
            }
        }
    }

    /// The largest interval within `from ..= to`, both ends included, that cuts no stored window.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn uncut(&self, (mut from, mut to): (i64, i64)) -> Result<(i64, i64)> {
        for level in self.levels.iter().rev() {
            if level.is_cut(from, level.segment)? {
                from = level.grid.window(from).1.saturating_add(1);
            }
            if level.is_cut(to.saturating_add(1), level.segment)? {
                to = level.grid.window(to).0.saturating_sub(1);
            }
        }
        Ok((from, to))
    }

    /// Whether the pieces of a window follow each other without a gap. The first and the last of all windows, which
    /// begin at `whole`, may begin late and end early.
    fn covers(&self, (start, last): (i64, i64), pieces: &[Piece], whole: (i64, i64)) -> bool {
        let from_border = || start.max(self.border().unwrap_or(start));
        let spans = pieces
            .iter()
            .map(|piece| piece.stored.unwrap_or((from_border(), last)));
        let mut next = (start != whole.0).then_some(start);
        for (begin, end) in spans {
            if next.is_some_and(|next| next != begin) {
                return false;
            }
            next = Some(end.saturating_add(1));
        }
        start == whole.1 || next == Some(last.saturating_add(1))
    }

    /// A figure of a window from its pieces.
    fn value(
        &self,
        figure: Figure,
        (start, last): (i64, i64),
        pieces: &[Piece],
    ) -> Result<Option<f64>> {
        let unit = self.source.info().schema.unit;
        let problem = |problem: String| {
            let label = self.source.info().label();
            let begin = unit.text(start);
            let problem = format!("{label} in the window from {begin}: {problem}");
            Error::from(Cause::Schema { problem })
        };
        if let [only] = pieces
            && only.stored.is_none_or(|stored| stored == (start, last))
            && only.figures.iter().any(|(own, _)| *own == figure)
        {
            return Ok(only.value(figure));
        }
        for (_, end) in pieces.iter().filter_map(|piece| piece.stored) {
            if end > last {
                return Err(problem(format!(
                    "rows are replaced by windows that end at {}, which cannot be divided; ask for windows of the stored width",
                    unit.text(end)
                )));
            }
        }
        // Figures that all pieces have.
        let mut stored: Vec<Figure> = pieces
            .first()
            .map(|piece| piece.figures.iter().map(|(figure, _)| *figure).collect())
            .unwrap_or_default();
        stored.retain(|figure| {
            pieces
                .iter()
                .all(|piece| piece.figures.iter().any(|(own, _)| own == figure))
        });
        let Some(from) = source_among(figure, &stored) else {
            let names: Vec<String> = stored.iter().map(ToString::to_string).collect();
            return Err(problem(format!(
                "{figure} does not follow from the stored figures ({}) of narrower windows; ask for windows of the stored width, or for other figures",
                names.join(", ")
            )));
        };
        let parts: Vec<_> = pieces
            .iter()
            .map(|piece| move |figure| piece.value(figure))
            .collect();
        let parts: Vec<Part<'_>> = parts.iter().map(|part| part as Part<'_>).collect();
        Ok(combined(figure, from, &parts))
    }
}

impl Level<'_> {
    /// The stored figures of a column of the source, with their columns; also figures that the rule no longer has.
    fn figures_of(&self, column: &str) -> Vec<(Figure, usize)> {
        let columns = self.series.info().schema.columns.iter().enumerate();
        let figure = |(place, own): (usize, &Column)| {
            let figure = match column {
                "value" => Figure::named(&own.name),
                _ => own
                    .name
                    .strip_suffix(&format!("({column})"))
                    .and_then(Figure::named),
            };
            figure.map(|figure| (normal(figure), place))
        };
        columns.filter_map(figure).collect()
    }

    /// Whether there is a stored window that contains times on both sides of `at`: before it, and from it on.
    fn is_cut(&self, at: i64, (from, end): (i64, i64)) -> Result<bool> {
        if at <= from || at >= end {
            return Ok(false);
        }
        let (start, _) = self.grid.window(at);
        Ok(start < at && self.series.query(Steps(start)..=Steps(start)).count()? > 0)
    }

    /// Reads the stored windows that begin in an interval.
    fn read(
        &self,
        (from, to): (i64, i64),
        segment: (i64, i64),
        column: &str,
        mut f: impl FnMut(i64, Piece),
    ) -> Result<()> {
        let (from, to) = (from.max(segment.0), to.min(segment.1.saturating_sub(1)));
        if from > to {
            return Ok(());
        }
        let schema = &self.series.info().schema;
        let columns = self.figures_of(column);
        self.series
            .query(Steps(from)..=Steps(to))
            .for_each(|start, words| {
                let value = |&(figure, column): &(Figure, usize)| {
                    (figure, schema.columns[column].f64(words[column]))
                };
                let piece = Piece {
                    stored: Some(self.grid.window(start)),
                    figures: columns.iter().map(value).collect(),
                };
                f(start, piece);
            })?;
        Ok(())
    }
}
