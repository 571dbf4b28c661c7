//! A plan node that computes states of aggregate functions from the statistics in the trees.

use crate::aggregate::bins::{Bins, Outermost, whole};
use crate::aggregate::keys::{Bin, GroupKey};
use crate::aggregate::request::{Function, Request};
use crate::aggregate::states::{Figures, States};
use crate::error::{Error, ErrorKind, Result};
use crate::leaf::leaf_methods;
use crate::metric::chunk;
use crate::metric::layout::{Layout, Member, Part};
use crate::metric::scan::{self, SeriesScan, divided};
use crate::pieces;
use crate::types::{self, nanos_of};
use crate::work::Work;
use arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as PlanResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::{Aggregate, Column};

/// With fewer members than this, one thread reads the statistics of all of them.
const MEMBERS_OF_ONE_THREAD: usize = 32;

/// Reads the statistics of members, by group.
#[derive(Clone, Debug)]
pub(crate) struct TreeAggregate {
    scan: SeriesScan,
    groups: Arc<[GroupKey]>,
    functions: Arc<[(Function, Arc<AggregateFunctionExpr>)]>,
    partitions: Arc<[Vec<usize>]>,
    /// The number of bins of each series that are needed, if not all are.
    outermost: Option<Outermost>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TreeAggregate {
    /// Creates the node for a request, with this schema; `None` if a function has another state than expected.
    pub(crate) fn new(
        request: Request,
        functions: &[Arc<AggregateFunctionExpr>],
        schema: SchemaRef,
        threads: usize,
    ) -> Option<Self> {
        for (function, own) in request.functions.iter().zip(functions) {
            States::new(*function, own.state_fields().ok()?)?;
        }
        let members = &request.scan.wanted.members;
        let threads = if members.len() < MEMBERS_OF_ONE_THREAD {
            1
        } else {
            threads
        };
        let partitions = divided(members, threads);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let functions = request.functions.into_iter().zip(functions.iter().cloned());
        Some(Self {
            scan: request.scan,
            groups: request.groups.into(),
            functions: functions.collect(),
            partitions: partitions.into(),
            outermost: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same node for a query that needs only groups of the outermost bins. The result need not include rows of a
    /// series beyond this number of its bins.
    pub(crate) fn only(&self, outermost: Outermost) -> Self {
        Self {
            outermost: Some(outermost),
            ..self.clone()
        }
    }

    /// The keys of the groups.
    pub(crate) fn groups(&self) -> &[GroupKey] {
        &self.groups
    }

    fn bin(&self) -> Option<&Bin> {
        self.groups.iter().find_map(GroupKey::bin)
    }

    fn schema_ref(&self) -> SchemaRef {
        Arc::clone(self.properties.equivalence_properties().schema())
    }
}

impl DisplayAs for TreeAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "TreeAggregate: series={}, ",
            self.scan.wanted.members.len()
        )?;
        scan::write_interval(
            f,
            &self.scan.layout,
            (self.scan.wanted.from, self.scan.wanted.to),
        )?;
        f.write_str("gby=[")?;
        for (at, key) in self.groups.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match key {
                GroupKey::Tag(tag) => write!(
                    f,
                    "{comma}{}",
                    self.scan.layout.schema.field(1 + tag).name()
                )?,
                GroupKey::Bin(bin) | GroupKey::BinSeconds(bin) | GroupKey::BinWholeSeconds(bin) => {
                    write!(f, "{comma}{bin}")?
                }
            }
        }
        f.write_str("], aggr=[")?;
        for (at, (_, function)) in self.functions.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", function.name())?;
        }
        f.write_str("]")?;
        match self.outermost {
            Some(Outermost {
                bins,
                are_last: true,
            }) => write!(f, ", last {bins} bins"),
            Some(Outermost {
                bins,
                are_last: false,
            }) => write!(f, ", first {bins} bins"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TreeAggregate {
    leaf_methods!("TreeAggregate");

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let batches = Batches {
            snapshot: self.scan.slot.snapshot()?,
            batch_rows: context.session_config().batch_size(),
            members: self.partitions[partition].clone().into(),
            work: Work::new(&self.metrics, partition),
            node: self.clone(),
        };
        let batches = batches.map(|batch| batch.map_err(DataFusionError::from));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema_ref(),
            futures::stream::iter(batches),
        )))
    }
}

struct Batches {
    node: TreeAggregate,
    snapshot: AnyRead,
    batch_rows: usize,
    members: VecDeque<usize>,
    work: Work,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.members.is_empty() {
            return None;
        }
        let batch = self.next_batch();
        if batch.is_err() {
            self.members.clear();
        }
        self.work.add(&self.snapshot);
        Some(batch)
    }
}

impl Batches {
    /// Reads members until their groups fill a batch.
    fn next_batch(&mut self) -> Result<RecordBatch> {
        let node = &self.node;
        let layout = &node.scan.layout;
        let mut groups = Groups::new(node)?;
        while groups.rows() < self.batch_rows
            && let Some(number) = self.members.pop_front()
        {
            let member = &layout.members[number];
            for part in 0..member.parts.len() {
                self.work.series(1);
                groups.read(&self.snapshot, member, part)?;
            }
        }
        self.work.rows(groups.rows());
        groups.finish(node)
    }
}

/// The groups of a batch: their keys and the states of the functions.
struct Groups<'n> {
    node: &'n TreeAggregate,
    layout: &'n Layout,
    tags: Vec<Vec<Option<i32>>>,
    bins: Vec<i64>,
    states: Vec<States>,
    rows: usize,
}

impl<'n> Groups<'n> {
    fn new(node: &'n TreeAggregate) -> Result<Self> {
        let states = node.functions.iter().map(|(function, own)| {
            let states = States::new(*function, own.state_fields()?);
            states.ok_or_else(|| {
                Error::new(ErrorKind::Execution, "a state of an aggregate has changed")
            })
        });
        Ok(Self {
            node,
            layout: &node.scan.layout,
            tags: vec![Vec::new(); node.groups.len()],
            bins: Vec::new(),
            states: states.collect::<Result<_>>()?,
            rows: 0,
        })
    }

    fn rows(&self) -> usize {
        self.rows
    }

    /// Adds the groups of one series.
    fn read(&mut self, snapshot: &AnyRead, member: &Member, part: usize) -> Result<()> {
        let own = &member.parts[part];
        let (from, to) = (self.node.scan.wanted.from, self.node.scan.wanted.to);
        let (from, to) = (own.clock.steps(from).0, own.clock.steps(to).1);
        if from > to {
            return Ok(());
        }
        let series = chunk::open(snapshot, &own.info)?;
        // The columns of the series that functions need, without duplicates. If no function needs a column, the first
        // column is read to get the number of rows.
        let mut numbers: Vec<usize> = Vec::new();
        let columns = self
            .node
            .functions
            .iter()
            .filter_map(|(function, _)| function.column());
        for column in columns {
            if let Some((of, number)) = member.columns[column]
                && of == part
                && !numbers.contains(&number)
            {
                numbers.push(number);
            }
        }
        if numbers.is_empty() {
            numbers.push(0);
        }
        let found = match self.node.bin() {
            None => whole(&series, &numbers, (from, to))?,
            Some(bin) => {
                let bins = Bins::of(own, bin);
                match self.node.outermost {
                    None => bins.read(&series, &numbers, (from, to))?,
                    Some(outermost) => bins.outermost(&series, &numbers, (from, to), outermost)?,
                }
            }
        };
        for (start, aggregates) in &found {
            self.push(member, (part, own), *start, (&numbers, aggregates))?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        member: &Member,
        (part, own): (usize, &Part),
        start: i64,
        (numbers, aggregates): (&[usize], &[Aggregate]),
    ) -> Result<()> {
        let Some(times) = aggregates[0].times() else {
            return Ok(());
        };
        let of = |column: usize| -> Option<(&Aggregate, &Column)> {
            let (of, number) = member.columns[column].filter(|(of, _)| *of == part)?;
            debug_assert_eq!(of, part, "a column of this series");
            let place = numbers.iter().position(|&own| own == number)?;
            Some((&aggregates[place], &own.info.schema.columns[number]))
        };
        let figures = Figures {
            part: own,
            rows: aggregates[0].stats().count(),
            times,
            tags: &member.tags,
            of: &of,
        };
        for states in &mut self.states {
            states.push(&figures)?;
        }
        if self.node.bin().is_some() {
            self.bins.push(bin_time(own, self.layout, start)?);
        }
        for (at, key) in self.node.groups.iter().enumerate() {
            if let GroupKey::Tag(tag) = key {
                self.tags[at].push(member.tags[*tag]);
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(mut self, node: &TreeAggregate) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        let schema = node.schema_ref();
        let units_of_second = 1_000_000_000 / nanos_of(self.layout.unit);
        for (at, key) in node.groups.iter().enumerate() {
            columns.push(match key {
                GroupKey::Tag(tag) => {
                    let numbers = Int32Array::from(std::mem::take(&mut self.tags[at]));
                    self.layout.tags[*tag].array(numbers)?
                }
                GroupKey::Bin(_) => {
                    let times = pieces::times(self.layout.unit, self.bins.clone());
                    // The times are wanted in another zone.
                    types::cast(&times, schema.field(at).data_type())?
                }
                GroupKey::BinSeconds(_) => {
                    let second = units_of_second as f64;
                    let seconds = self.bins.iter().map(|&time| time as f64 / second);
                    Arc::new(Float64Array::from_iter_values(seconds))
                }
                GroupKey::BinWholeSeconds(_) => {
                    let seconds = self.bins.iter().map(|&time| time / units_of_second);
                    Arc::new(Int64Array::from_iter_values(seconds))
                }
            });
        }
        for states in &mut self.states {
            columns.extend(states.finish()?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// The time of the table at which a bin begins.
fn bin_time(part: &Part, layout: &Layout, step: i64) -> Result<i64> {
    part.clock.time(step).ok_or_else(|| {
        let (label, unit) = (part.info.label(), nanos_of(layout.unit));
        let problem =
            format!("a bin of {label} begins beyond the range of timestamps of {unit} ns");
        Error::new(ErrorKind::Execution, problem)
    })
}
