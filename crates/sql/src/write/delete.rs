//! The rows of series that a DELETE statement removes.
//!
//! A time interval combined with conditions on tags is removed without reading rows. For all other conditions, the rows
//! for which the condition is true are read first; then the intervals that contain exactly these rows are removed. The
//! engine removes all rows of a time, so a condition must not select only some of several rows that a series has at the
//! same time.

use crate::error::{Error, ErrorKind, Result};
use crate::metric::chunk;
use crate::metric::filters::Wanted;
use crate::metric::layout::{Layout, Part};
use crate::types::cast;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use arrow::util::display::array_value_to_string;
use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{LogicalPlan, TableProviderFilterPushDown};
use std::collections::HashMap;
use tidalite::{AnyRead, Series, SeriesId, Steps, WriteTxn};

/// The rows that a DELETE selects.
pub(crate) enum Selected {
    Nothing,
    /// An interval of time, for some members.
    Interval(Wanted),
    /// The rows of the plan.
    Rows,
}

/// The rows that the plan of a DELETE selects.
pub(crate) fn selected(
    layout: &Layout,
    plan: &LogicalPlan,
    session: &dyn Session,
) -> Result<Selected> {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::EmptyRelation(_) => return Ok(Selected::Nothing),
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                let is_exact = |filter| {
                    let pushdown = layout.pushdown(filter);
                    matches!(pushdown, TableProviderFilterPushDown::Exact)
                };
                if !scan.filters.iter().all(is_exact) {
                    return by_rows(layout);
                }
                let filters = unnormalize_cols(scan.filters.iter().cloned());
                return layout.wanted(session, &filters).map(Selected::Interval);
            }
            _ => return by_rows(layout),
        };
    }
}

fn by_rows(layout: &Layout) -> Result<Selected> {
    if !layout.is_joined() {
        return Ok(Selected::Rows);
    }
    let metrics: Vec<&str> = layout
        .sources
        .iter()
        .map(|source| &*source.metric)
        .collect();
    let problem = format!(
        "DELETE from a table of several metrics takes one interval of time and conditions on tags, joined by AND; for other conditions delete from each of {}",
        metrics.join(", ")
    );
    Err(Error::new(ErrorKind::Plan, problem))
}

/// Removes the rows of an interval; returns their number.
pub(crate) fn interval(txn: &mut WriteTxn, layout: &Layout, wanted: &Wanted) -> Result<u64> {
    let mut removed = 0;
    for &member in &wanted.members {
        for part in &layout.members[member].parts {
            let (from, to) = (
                part.clock.steps(wanted.from).0,
                part.clock.steps(wanted.to).1,
            );
            if from <= to {
                let mut series = txn.series_by_id(part.info.id)?;
                removed += series.delete(Steps(from)..=Steps(to))?;
            }
        }
    }
    Ok(removed)
}

/// The rows for which a condition is true.
pub(crate) struct FoundRows<'l> {
    layout: &'l Layout,
    /// The indexes of the members, by the numbers of their tag values.
    members: HashMap<&'l [Option<i32>], usize>,
    /// The times of the rows of each member, in steps of its series. A time is repeated for each row that has it.
    steps: Vec<Vec<i64>>,
}

/// All rows of a series from one step to another.
pub(crate) type Range = (SeriesId, i64, i64);

impl<'l> FoundRows<'l> {
    /// An empty set of rows, for a table whose members have one series each.
    pub(crate) fn new(layout: &'l Layout) -> Self {
        let members = layout.members.iter().enumerate();
        let members = members.map(|(number, member)| (&*member.tags, number));
        Self {
            layout,
            members: members.collect(),
            steps: vec![Vec::new(); layout.members.len()],
        }
    }

    /// Adds the rows with these times and tags.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let lost = || Error::new(ErrorKind::Execution, "the series of a row is lost");
        let times = cast(batch.column(0), &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        let tags = batch.columns()[1..].iter();
        let tags: Vec<_> = tags
            .map(|tag| cast(tag, &DataType::Utf8))
            .collect::<Result<_>>()?;
        let tags: Vec<_> = tags.iter().map(|tag| tag.as_string::<i32>()).collect();
        let mut key = vec![None; tags.len()];
        for (row, &time) in times.values().iter().enumerate() {
            for ((number, tag), values) in key.iter_mut().zip(&self.layout.tags).zip(&tags) {
                *number = match values.is_valid(row) {
                    true => Some(tag.number(values.value(row)).ok_or_else(lost)?),
                    false => None,
                };
            }
            let member = *self.members.get(&*key).ok_or_else(lost)?;
            let part = self.layout.members[member].parts.first().ok_or_else(lost)?;
            self.steps[member].push(part.clock.steps(time).0);
        }
        Ok(())
    }

    /// The ranges that contain exactly these rows, in the state in which the rows were found.
    pub(crate) fn ranges(mut self, state: &AnyRead) -> Result<Vec<Range>> {
        let mut ranges = Vec::new();
        for (member, steps) in self.layout.members.iter().zip(&mut self.steps) {
            let ([part], false) = (&member.parts[..], steps.is_empty()) else {
                continue;
            };
            steps.sort_unstable();
            let series = chunk::open(state, &part.info)?;
            self.layout.cover(part, &series, steps, &mut ranges)?;
        }
        Ok(ranges)
    }
}

impl Layout {
    /// Adds the ranges that contain exactly the rows with these ascending times: a single range if no other row lies
    /// between them, otherwise the ranges of the two halves. The number of rows in a range is known without reading
    /// them.
    fn cover(
        &self,
        part: &Part,
        series: &Series<'_>,
        steps: &[i64],
        ranges: &mut Vec<Range>,
    ) -> Result<()> {
        let (Some(&first), Some(&last)) = (steps.first(), steps.last()) else {
            return Ok(());
        };
        let rows = series.query(Steps(first)..=Steps(last)).count()?;
        if rows == steps.len() as u64 {
            ranges.push((part.info.id, first, last));
            return Ok(());
        }
        if first == last {
            let time = ScalarValue::Int64(part.clock.time(first));
            let time = time.cast_to(self.schema.field(0).data_type())?.to_array()?;
            let problem = format!(
                "series {} has {rows} rows at {}, and the condition holds for {} of them: DELETE removes all rows of a time or none",
                part.info.label(),
                array_value_to_string(&time, 0)?,
                steps.len()
            );
            return Err(Error::new(ErrorKind::Execution, problem));
        }
        // Rows with the same time are not separated.
        let middle = steps[steps.len() / 2];
        let at = match steps.partition_point(|&step| step < middle) {
            0 => steps.partition_point(|&step| step <= middle),
            at => at,
        };
        self.cover(part, series, &steps[..at], ranges)?;
        self.cover(part, series, &steps[at..], ranges)
    }
}

/// Removes the rows of these ranges; returns their number.
pub(crate) fn ranges(txn: &mut WriteTxn, ranges: &[Range]) -> Result<u64> {
    let mut removed = 0;
    for &(id, from, to) in ranges {
        removed += txn.series_by_id(id)?.delete(Steps(from)..=Steps(to))?;
    }
    Ok(removed)
}
