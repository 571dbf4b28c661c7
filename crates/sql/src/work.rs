//! The work of a plan node, as shown by `EXPLAIN ANALYZE`.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use std::sync::atomic::Ordering;
use tidalite::AnyRead;

/// Counters of one partition.
pub(crate) struct Work {
    rows: Count,
    series: Count,
    nodes: Count,
    vectors: Count,
    /// Numbers of nodes and vectors that are already counted.
    counted: (u64, u64),
}

impl Work {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            rows: MetricBuilder::new(metrics).output_rows(partition),
            series: counter("series_opened"),
            nodes: counter("nodes_read"),
            vectors: counter("vectors_decoded"),
            counted: (0, 0),
        }
    }

    pub(crate) fn rows(&self, rows: usize) {
        self.rows.add(rows);
    }

    pub(crate) fn series(&self, series: usize) {
        self.series.add(series);
    }

    /// Adds the reads made through this handle of the snapshot since the last call.
    pub(crate) fn add(&mut self, snapshot: &AnyRead) {
        let counters = snapshot.counters();
        let nodes = counters.nodes_read.load(Ordering::Relaxed);
        let vectors = counters.vectors_decoded.load(Ordering::Relaxed);
        let (nodes_before, vectors_before) = std::mem::replace(&mut self.counted, (nodes, vectors));
        self.nodes.add((nodes - nodes_before) as usize);
        self.vectors.add((vectors - vectors_before) as usize);
    }
}
