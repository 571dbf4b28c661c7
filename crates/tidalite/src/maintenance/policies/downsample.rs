//! Downsampling: before rows are removed, the figures of their windows are stored in another series.
//!
//! ```text
//! source    k   k   | r r r r | r r r ...        k: replaced rows that stay
//! windows   w w w w |         |
//!                   border    next border: the common end of windows of all rules
//! ```
//!
//! Invariants
//! 1. A commit that removes rows has stored the windows with these rows, and nothing is removed beyond the border.
//!    Every window of every rule of the series lies on one side of it.
//! 2. The source keeps the last row with a value of each column before the border. The annotation of the windows lists
//!    these rows. All other rows before the border arrived later; they are added to existing windows.
//! 3. A commit reads a bounded number of rows, but at least one window of each rule.

use super::cuts::Cuts;
use super::run::Run;
use crate::catalog::downsample::{Border, Downsample, StoredFigure};
use crate::catalog::entries::SeriesInfo;
use crate::catalog::rules::Rules;
use crate::query::combine::{combined, source_among};
use crate::series::nearest::Direction;
use crate::series::read::Series;
use crate::series::write::SeriesMut;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::column::{Column, ColumnType};
use crate::types::error::cause::Cause;
use crate::types::error::kind::ErrorKind;
use crate::types::error::{Error, Result};
use crate::types::figure::Figure;
use crate::types::grid::StepGrid;
use crate::types::instant::Steps;
use crate::types::schema::{Schema, Unit};
use crate::types::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::SeriesId;

/// Number of rows that one commit replaces, unless a window has more.
const STEP_ROWS: u64 = 1 << 20;
/// Number of windows that are tried in search of a common end.
const ENDS_TRIED: usize = 1000;

impl ReadTxn {
    pub(super) fn rules(&self) -> Result<Rules> {
        Rules::of_policies(self.retentions()?)
    }

    /// Moves the cuts of series whose rows are replaced to the last common end of windows. Drops a cut if only rows
    /// that stay are before it.
    pub(super) fn align(&self, rules: &Rules, cuts: &mut Cuts) -> Result<()> {
        if rules.is_empty() {
            return Ok(());
        }
        for (id, cut) in std::mem::take(cuts) {
            let Some(series) = self.series_by_id(id)? else {
                continue;
            };
            let info = series.info();
            let (rules, Some(name)) = (rules.of(info), &info.name) else {
                cuts.insert(id, cut);
                continue;
            };
            let (Some(first), Some((begin, _))) = (rules.first(), series.span()) else {
                cuts.insert(id, cut);
                continue;
            };
            let Some(end) = Ends::of(&rules, info)?.at_or_before(cut, begin)? else {
                continue;
            };
            let border = match self.series(&first.target(name)?.to_string())? {
                Some(windows) => Border::read(|key| windows.annotation(key))?,
                None => None,
            };
            let mut kept = 0;
            let times = border.into_iter().flat_map(|border| border.kept);
            for time in times.filter(|&time| time < end) {
                kept += series.query(Steps(time)..=Steps(time)).count()?;
            }
            if series.query(..Steps(end)).count()? > kept {
                cuts.insert(id, end);
            }
        }
        Ok(())
    }
}

/// The common ends of the windows of several rules.
struct Ends {
    grids: Vec<StepGrid>,
    series: String,
}

impl Ends {
    fn of(rules: &[&Downsample], info: &SeriesInfo) -> Result<Self> {
        let unit: Unit = info.schema.unit;
        let grids = rules.iter().map(|rule| rule.grid.in_unit(unit));
        let series = info.label();
        let grids = grids.collect::<Result<_>>().map_err(|error| {
            let problem = format!("series {series} cannot be downsampled: {error}");
            Error::from(Cause::Schema { problem })
        })?;
        Ok(Self { grids, series })
    }

    fn is_end(&self, t: i64) -> bool {
        self.grids.iter().all(|grid| grid.window(t).0 == t)
    }

    fn none(&self) -> Error {
        let problem = format!(
            "series {} cannot be downsampled: the windows of its policies have no common ends; choose widths of which each divides the next, in one time zone",
            self.series
        );
        Error::from(Cause::Schema { problem })
    }

    /// The last common end at or before `t`; `None` if it is not after `begin`.
    fn at_or_before(&self, t: i64, begin: i64) -> Result<Option<i64>> {
        let mut end = t;
        for _ in 0..ENDS_TRIED {
            if end <= begin {
                return Ok(None);
            }
            if self.is_end(end) {
                return Ok(Some(end));
            }
            let starts = self.grids.iter().map(|grid| grid.window(end).0);
            end = starts.min().unwrap_or(i64::MIN);
        }
        Err(self.none())
    }

    /// The first common end after `t`.
    fn after(&self, t: i64) -> Result<i64> {
        let mut end = t;
        for _ in 0..ENDS_TRIED {
            let open = self
                .grids
                .iter()
                .filter(|grid| grid.window(end).0 != end || end == t);
            let next = open.map(|grid| grid.window(end).1.saturating_add(1)).max();
            end = next.unwrap_or(end);
            if self.is_end(end) || end == i64::MAX {
                return Ok(end);
            }
        }
        Err(self.none())
    }
}

/// The figures of windows, by the start of the window: a value for each column of the rule.
type Windows = BTreeMap<i64, Vec<Option<f64>>>;

/// One step: the rows removed, the windows stored, and whether rows before the cut are left.
struct Step {
    rows: u64,
    windows: u64,
    more: bool,
}

impl Run<'_> {
    /// Replaces the rows before these cuts by windows, a bounded number of rows per commit. Returns false if the call
    /// of `maintain` must end here.
    pub(super) fn replace(&mut self, cuts: Cuts, rules: &Rules) -> Result<bool> {
        let mut cuts = cuts.into_iter();
        let mut next = cuts.next();
        while next.is_some() {
            let Some(mut txn) = self.begin()? else {
                return Ok(false);
            };
            let (mut rows, mut windows, mut series) = (0, 0, 0);
            while let Some((id, cut)) = next {
                if rows >= STEP_ROWS || series >= self.budget.series.max(1) {
                    break;
                }
                let step = txn.replace_rows(id, cut, rules)?;
                series += 1;
                let more = step.as_ref().is_some_and(|step| step.more);
                if let Some(step) = step {
                    self.cut.insert(id);
                    rows += step.rows;
                    windows += step.windows;
                }
                if more {
                    break;
                }
                next = cuts.next();
            }
            if rows + windows > 0 {
                txn.commit()?;
                self.done.rows += rows;
                self.done.windows += windows;
                self.done.commits += 1;
            }
        }
        Ok(true)
    }
}

impl WriteTxn {
    /// Replaces the oldest rows of a series before `cut`, a common end of windows; `None` if the series is gone.
    fn replace_rows(&mut self, id: SeriesId, cut: i64, rules: &Rules) -> Result<Option<Step>> {
        let info = match self.series_by_id(id) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            series => series?.info().clone(),
        };
        let (rules, Some(name)) = (rules.of(&info), info.name.as_ref()) else {
            return Ok(None);
        };
        let ends = Ends::of(&rules, &info)?;
        let mut borders = Vec::with_capacity(rules.len());
        for rule in &rules {
            borders.push(self.border(&rule.target(name)?.to_string())?);
        }
        let mut source = self.series_by_id(id)?;
        let source = source.view()?;
        let Some((begin, _)) = source.span() else {
            return Ok(None);
        };
        // A border never moves back: rows before it are replaced already, or late.
        let border = borders.iter().flatten().map(|border| border.end).max();
        let cut = border.map_or(cut, |border| cut.max(border));
        let mut end = cut;
        if source.query(..Steps(cut)).count()? > STEP_ROWS
            && let Some(row) = source.cursor().nth(STEP_ROWS)?
        {
            let done = border.map_or(begin, |border| border.max(begin));
            let step = match ends.at_or_before(row.time, done)? {
                Some(step) => step,
                // The rest of the step lies in one window, or before the border.
                None => ends.after(row.time.max(done))?,
            };
            end = end.min(step);
        }
        let mut stored = Vec::with_capacity(rules.len());
        for (rule, border) in rules.iter().zip(borders) {
            let columns = rule.columns(&info.schema);
            let mut late = Windows::new();
            let mut from = i64::MIN;
            if let Some(border) = border {
                // Rows between the rows that stay.
                for time in border.kept.into_iter().chain([border.end]) {
                    let interval = (from, time.saturating_sub(1));
                    add_late(
                        &mut late,
                        windows_of(&source, rule, &columns, interval)?,
                        &columns,
                    );
                    from = time.saturating_add(1);
                }
                from = border.end;
            }
            let new = windows_of(&source, rule, &columns, (from, end - 1))?;
            stored.push((columns, late, new));
        }
        let border = Border {
            end,
            kept: kept_rows(&source, &stored, end)?,
        };
        let mut windows = 0;
        for (rule, (columns, late, new)) in rules.iter().zip(stored) {
            windows += (late.len() + new.len()) as u64;
            let target = rule.target(name)?.to_string();
            let schema = target_schema(info.schema.unit, &columns);
            let mut target = self.open_target(&target, &schema)?;
            store(&mut target, &columns, late, true)?;
            store(&mut target, &columns, new, false)?;
            let (key, text) = border.annotation();
            target.annotate(key, &text)?;
        }
        let mut rows = 0;
        let mut from = i64::MIN;
        let mut source = self.series_by_id(id)?;
        for time in border.kept.into_iter().chain([end]) {
            rows += source.delete(Steps(from)..Steps(time))?;
            from = time.saturating_add(1);
        }
        Ok(Some(Step {
            rows,
            windows,
            more: end < cut,
        }))
    }

    fn border(&mut self, target: &str) -> Result<Option<Border>> {
        match self.open_series(target).must_exist().open() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            target => {
                let target = target?;
                Border::read(|key| target.annotation(key))
            }
        }
    }

    /// Opens the series of windows with at least the columns of this schema.
    fn open_target(&mut self, name: &str, schema: &Schema) -> Result<SeriesMut<'_>> {
        let existing = match self.open_series(name).must_exist().open() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            target => Some(target?.info().schema.clone()),
        };
        let Some(own) = existing else {
            return self.series_with(name, schema);
        };
        let missing = |column: &&Column| own.column(&column.name).is_none();
        let missing: Vec<Column> = schema.columns.iter().filter(missing).cloned().collect();
        let mut target = self.series(name)?;
        if !missing.is_empty() {
            target.add_columns(&missing)?;
        }
        Ok(target)
    }
}

/// The times of the last rows before `end` with a value, of each column.
fn kept_rows(
    source: &Series<'_>,
    stored: &[(Vec<StoredFigure>, Windows, Windows)],
    end: i64,
) -> Result<Vec<i64>> {
    let columns = stored.iter().flat_map(|(columns, ..)| columns);
    let columns: BTreeSet<usize> = columns.map(|column| column.source).collect();
    let mut kept = BTreeSet::new();
    let all = source.query(..);
    for column in columns {
        let last = all.value_beyond(column, (i64::MIN, end - 1), Direction::Backward)?;
        kept.extend(last.map(|(time, _)| time));
    }
    Ok(kept.into_iter().collect())
}

fn target_schema(unit: Unit, columns: &[StoredFigure]) -> Schema {
    let mut schema = Schema::new(unit, []);
    for column in columns {
        let ty = match column.figure {
            Figure::Count | Figure::Distinct => ColumnType::U64,
            _ => ColumnType::F64,
        };
        schema = schema.with(Column::nullable(column.name.as_str(), ty));
    }
    schema
}

/// The windows of a rule over the rows of an interval, both ends included.
fn windows_of(
    source: &Series<'_>,
    rule: &Downsample,
    columns: &[StoredFigure],
    (from, to): (i64, i64),
) -> Result<Windows> {
    let mut windows = Windows::new();
    if from > to {
        return Ok(windows);
    }
    let query = source.query(Steps(from)..=Steps(to));
    for own in columns.chunk_by(|a, b| a.source == b.source) {
        let figures: Vec<Figure> = own.iter().map(|column| column.figure).collect();
        let of_column = query.clone().figures(&figures[..]);
        for window in of_column.windows(&rule.grid, own[0].source)? {
            windows
                .entry(window.start)
                .or_default()
                .extend(window.aggregate);
        }
    }
    Ok(windows)
}

/// Adds windows of other rows to windows.
fn add_late(all: &mut Windows, more: Windows, columns: &[StoredFigure]) {
    for (start, values) in more {
        match all.get_mut(&start) {
            Some(there) => *there = with_late(columns, there, &values),
            None => {
                all.insert(start, values);
            }
        }
    }
}

/// The figures of a window after rows have been added to it: number, sum, extremes, spread, mean and deviation are
/// computed again if the figures that they derive from are stored; the others stay unchanged.
fn with_late(
    columns: &[StoredFigure],
    there: &[Option<f64>],
    late: &[Option<f64>],
) -> Vec<Option<f64>> {
    let value = |values: &[Option<f64>], source: usize, figure: Figure| {
        let is_it = |column: &StoredFigure| (column.source, column.figure) == (source, figure);
        let place = columns.iter().position(is_it)?;
        values.get(place).copied().flatten()
    };
    let add = |(column, there_value): (&StoredFigure, &Option<f64>)| {
        let follows = matches!(
            column.figure,
            Figure::Count
                | Figure::Sum
                | Figure::Mean
                | Figure::Stddev
                | Figure::Min
                | Figure::Max
                | Figure::Spread
        );
        let own = columns.iter().filter(|other| other.source == column.source);
        let stored: Vec<Figure> = own.map(|column| column.figure).collect();
        match source_among(column.figure, &stored).filter(|_| follows) {
            Some(from) => combined(
                column.figure,
                from,
                &[&|figure| value(there, column.source, figure), &|figure| {
                    value(late, column.source, figure)
                }],
            ),
            None => *there_value,
        }
    };
    columns.iter().zip(there).map(add).collect()
}

/// Stores windows; with `late` they are added to existing windows.
fn store(
    target: &mut SeriesMut<'_>,
    columns: &[StoredFigure],
    windows: Windows,
    late: bool,
) -> Result<()> {
    let schema = target.info().schema.clone();
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    for (start, mut values) in windows {
        if late && let Some(row) = target.at(Steps(start))? {
            let stored = |name: &str| {
                let column = schema.column(name)?;
                schema.columns[column].f64(row.words[column])
            };
            let there: Vec<_> = columns.iter().map(|column| stored(&column.name)).collect();
            values = with_late(columns, &there, &values);
        }
        let value = |column: &Column| match place(&column.name).and_then(|place| values[place]) {
            None => Value::Null,
            Some(value) if column.ty == ColumnType::U64 => Value::from(value as u64),
            Some(value) => Value::from(value),
        };
        let row: Vec<Value> = schema.columns.iter().map(value).collect();
        target.insert_values(Steps(start), &row)?;
    }
    Ok(())
}
