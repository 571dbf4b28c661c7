//! Commit metrics: lock-free counters, and histograms of the duration of each phase of a commit.
//!
//! A histogram has four buckets for each power of two of nanoseconds, so a percentile read from a histogram is at
//! most a quarter too high. All counters are relaxed atomics: while other threads count, a reading may be slightly
//! out of date.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of histogram buckets for each power of two of nanoseconds.
const PARTS: usize = 4;
/// Number of histogram buckets. They cover durations up to 2^42 ns, more than an hour.
const BUCKETS: usize = 42 * PARTS;

/// Phase of a commit whose duration is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for the writer lock while earlier writers hold it.
    WaitForWriter,
    /// Building the meta record and the lists of free space.
    Seal,
    /// Writing the pages of the commit.
    Write,
    /// Syncing the data, before the meta record is written.
    SyncData,
    /// Writing the meta record: to both meta blocks of a pair, or as an unsynced meta record to the lock file.
    MetaWrite,
    /// Syncing the meta record.
    SyncMeta,
    /// Writing blocks of the redo log and syncing them, in place of the data sync, the meta record and its sync.
    Log,
    /// Publishing the commit to readers.
    Publish,
    /// The whole durable commit, from the call to its return.
    Commit,
}

/// All phases, in the order of a commit.
pub const PHASES: [Phase; 9] = [
    Phase::WaitForWriter,
    Phase::Seal,
    Phase::Write,
    Phase::SyncData,
    Phase::MetaWrite,
    Phase::SyncMeta,
    Phase::Log,
    Phase::Publish,
    Phase::Commit,
];

impl Phase {
    /// Returns the name of the phase, which texts and JSON output use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitForWriter => "wait_for_writer",
            Self::Seal => "seal",
            Self::Write => "write",
            Self::SyncData => "sync_data",
            Self::MetaWrite => "meta_write",
            Self::SyncMeta => "sync_meta",
            Self::Log => "log",
            Self::Publish => "publish",
            Self::Commit => "commit",
        }
    }
}

#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    total_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Histogram {
    const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            total_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }

    fn record(&self, ns: u64) {
        self.buckets[bucket(ns)].fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.fetch_max(ns, Ordering::Relaxed);
        }
    }
}

/// Returns the histogram bucket for a duration in nanoseconds. The highest set bit selects the power of two, and the
/// two bits below it select one of the four buckets.
fn bucket(ns: u64) -> usize {
    if ns < PARTS as u64 {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros() as usize;
    let part = (ns >> (exponent - 2) & 3) as usize;
    ((exponent - 1) * PARTS + part).min(BUCKETS - 1)
}

/// Returns the exclusive upper bound of a bucket in nanoseconds.
fn bucket_end(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64 + 1;
    }
    let (exponent, part) = (bucket / PARTS + 1, bucket % PARTS);
    (PARTS as u64 + part as u64 + 1) << (exponent - 2)
}

/// Durations of one phase, as counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// Number of times that the phase was executed.
    pub count: u64,
    /// Total duration of all executions, in nanoseconds.
    pub total_ns: u64,
    /// Duration of the longest execution, in nanoseconds.
    pub max_ns: u64,
    /// Counts by histogram bucket: exclusive upper bound in nanoseconds, number of executions. Empty buckets are left
    /// out.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// Returns the duration in nanoseconds that the given share (0 to 1) of the executions did not exceed; at most a
    /// quarter too high.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0);
        let mut seen = 0;
        for &(end, count) in &self.buckets {
            seen += count;
            if seen as f64 >= wanted {
                return end.min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns the mean duration in nanoseconds; 0 if the phase was not executed.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }
}

/// Declares the counters: as atomics in `Metrics`, and as numbers in `MetricsReport`.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts and durations of the work that a handle has done since it was opened.
        #[derive(Clone, Debug, Default)]
        #[non_exhaustive]
        pub struct MetricsReport {
            $($(#[$doc])* pub $name: u64,)*
            /// Durations of each phase, in the order of `PHASES`.
            pub phases: Vec<(Phase, Times)>,
        }

        #[derive(Debug)]
        pub(crate) struct Metrics {
            phases: [Histogram; PHASES.len()],
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Metrics {
            pub(crate) fn new() -> Self {
                Self {
                    phases: [const { Histogram::new() }; PHASES.len()],
                    $($name: AtomicU64::new(0),)*
                }
            }

            fn report_with(&self, phases: Vec<(Phase, Times)>) -> MetricsReport {
                MetricsReport {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    phases,
                }
            }
        }
    };
}

counters! {
    /// Number of commits of any durability.
    commits,
    /// Number of commits that were requested as durable, with one sync or two.
    commits_durable,
    /// Number of lazy commits.
    commits_lazy,
    /// Number of durable meta records written. Commits that share a meta record count once.
    records,
    /// Number of syncs.
    syncs,
    /// Number of data syncs saved because the sync of the previous meta record began after the data was written.
    syncs_saved,
    /// Number of flushes led by the leader thread, which leads while many threads wait.
    flushes_by_leader,
    /// Number of flushes that went to the redo log, each with one sync.
    appends,
    /// Number of bytes written to the redo log.
    bytes_log,
    /// Number of bytes of pages and extents written.
    bytes_data,
    /// Number of system calls that wrote pages; neighbouring pages are written by one call.
    writes,
    /// Number of bytes of meta records written.
    bytes_meta,
    /// Number of pages that commits allocated.
    pages_allocated,
    /// Number of pages that commits freed.
    pages_freed,
    /// Number of pages that were copied before they were changed, because older commits or a savepoint needed their
    /// old contents.
    pages_copied,
    /// Number of splits of full table pages, including the pages of the catalog.
    pages_split,
    /// Number of times that a sparse table page was merged with a neighbour.
    pages_merged,
    /// Number of pages written before their commit because the transaction exceeded its memory
    /// (`Options::dirty_bytes_max`).
    pages_spilled,
    /// Number of pages written early that were read back because the transaction changed them again.
    pages_read_back,
}

impl MetricsReport {
    /// Returns the durations of a phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> &Times {
        let found = self.phases.iter().find(|(of, _)| *of == phase);
        match found {
            Some((_, times)) => times,
            None => unreachable!("every phase is reported"),
        }
    }
}

impl Metrics {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn record(&self, phase: Phase, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.phases[phase as usize].record(ns);
    }

    /// Executes a phase by calling `run`, and records its duration.
    pub(crate) fn time<T>(&self, phase: Phase, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let value = run();
        self.record(phase, begun.elapsed());
        value
    }

    /// Records the duration of a phase that began at `begun` and ends now. Returns the current time, at which the
    /// next phase begins.
    pub(crate) fn lap(&self, phase: Phase, begun: Instant) -> Instant {
        let now = Instant::now();
        self.record(phase, now.saturating_duration_since(begun));
        now
    }

    pub(crate) fn report(&self) -> MetricsReport {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let times = |phase: Phase| {
            let histogram = &self.phases[phase as usize];
            let each = histogram.buckets.iter().map(load).enumerate();
            let buckets: Vec<_> = each
                .filter(|&(_, count)| count > 0)
                .map(|(bucket, count)| (bucket_end(bucket), count))
                .collect();
            Times {
                count: buckets.iter().map(|&(_, count)| count).sum(),
                total_ns: load(&histogram.total_ns),
                max_ns: load(&histogram.max_ns),
                buckets,
            }
        };
        self.report_with(PHASES.map(|phase| (phase, times(phase))).into())
    }
}

#[cfg(test)]
mod tests {
    use crate::commit::metrics::{BUCKETS, Metrics, PHASES, Phase, bucket, bucket_end};
    use std::time::Duration;

    #[test]
    fn a_bucket_holds_what_is_below_its_end() {
        let mut last = 0;
        for ns in (0..5000).chain((12..42).flat_map(|i| [(1u64 << i) - 1, 1 << i, (1 << i) + 77])) {
            let at = bucket(ns);
            assert!(ns < bucket_end(at), "{ns} in {at}");
            assert!(at == 0 || bucket_end(at - 1) <= ns, "{ns} in {at}");
            last = last.max(at);
        }
        assert!(last < BUCKETS);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_a_fifth_too_high_at_most() {
        let metrics = Metrics::new();
        for us in 1..=1000 {
            metrics.record(Phase::Commit, Duration::from_micros(us));
        }
        let report = metrics.report();
        let times = report.phase(Phase::Commit);
        assert_eq!((times.count, times.max_ns), (1000, 1_000_000));
        assert_eq!(times.mean_ns(), 500_500);
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1e6)] {
            let found = times.quantile_ns(share) as f64;
            assert!(found >= exact && found <= exact * 1.25, "{share}: {found}");
        }
        assert!(report.phase(Phase::Seal).buckets.is_empty());
        for (i, phase) in PHASES.into_iter().enumerate() {
            assert_eq!(phase as usize, i);
        }
    }
}
