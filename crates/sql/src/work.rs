//! The work of a node of a plan, as `EXPLAIN ANALYZE` shows it.

use crate::state::{Reads, State};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};

/// Counters of one partition.
pub(crate) struct Work {
    rows: Count,
    series: Count,
    nodes: Count,
    vectors: Count,
    /// Reads of the state that are counted already.
    counted: Reads,
}

impl Work {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            rows: MetricBuilder::new(metrics).output_rows(partition),
            series: counter("series_opened"),
            nodes: counter("nodes_read"),
            vectors: counter("vectors_decoded"),
            counted: Reads::default(),
        }
    }

    pub(crate) fn rows(&self, rows: usize) {
        self.rows.add(rows);
    }

    pub(crate) fn series(&self, series: usize) {
        self.series.add(series);
    }

    /// Adds the reads through this handle of the state since the last call.
    pub(crate) fn add(&mut self, state: &State) {
        let reads = state.reads();
        self.nodes.add((reads.nodes - self.counted.nodes) as usize);
        self.vectors
            .add((reads.vectors - self.counted.vectors) as usize);
        self.counted = reads;
    }
}
