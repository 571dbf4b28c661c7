//! Measures the costs of a piece of work: time, the distribution of the times of single operations, processor time,
//! bytes and calls written, waits for the disk.
//!
//! ```text
//! Meter::start(dir), of(engine, dir)  ...work...  finish(operations) -> Sample
//! Latencies       times of all operations, or of every n-th if reading the clock would be too expensive
//! side_by_side    the same work on several threads at once
//! MemoryPeak      the largest anonymous memory of the process
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Engine, Result};
use crate::{os, syncs};

/// Runs work on numbered threads at the same time; returns the times of all operations, and the sum of the threads'
/// answers.
pub(crate) fn side_by_side(
    threads: u64,
    work: impl Fn(u64) -> Result<(Latencies, u64)> + Sync,
) -> Result<(Latencies, u64)> {
    let work = &work;
    let done: Vec<Result<_>> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|result| result.unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect()
    });
    let (mut latencies, mut answer) = (Latencies::default(), 0u64);
    for of_thread in done {
        let (times, sum) = of_thread?;
        latencies.join(times);
        answer = answer.wrapping_add(sum);
    }
    Ok((latencies, answer))
}

/// The times of single operations.
#[derive(Default)]
pub(crate) struct Latencies {
    nanos: Vec<u32>,
}

impl Latencies {
    /// Runs an operation and records the time that it takes.
    #[inline]
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.keep(start.elapsed());
        result
    }

    /// Records a time that was measured elsewhere.
    pub(crate) fn keep(&mut self, time: Duration) {
        self.nanos
            .push(u32::try_from(time.as_nanos()).unwrap_or(u32::MAX));
    }

    /// Like `time` for one in 32 operations; the others run without being measured.
    #[inline]
    pub(crate) fn time_some<T>(&mut self, n: u64, work: impl FnOnce() -> T) -> T {
        if n.is_multiple_of(32) {
            self.time(work)
        } else {
            work()
        }
    }

    /// Adds the times that another thread has recorded.
    pub(crate) fn join(&mut self, other: Self) {
        self.nanos.extend(other.nanos);
    }

    /// The distribution of the recorded times.
    pub(crate) fn spread(mut self) -> Spread {
        self.nanos.sort_unstable();
        let last = self.nanos.len().saturating_sub(1);
        let at = |share: f64| {
            let nanos = self.nanos.get((last as f64 * share).round() as usize);
            nanos.map_or(0.0, |nanos| f64::from(*nanos) / 1000.0)
        };
        Spread {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

/// The distribution of the times of operations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// The costs of one engine in one round of one case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// The measured quantity, in the unit of the case.
    pub(crate) value: f64,
    pub(crate) latency: Spread,
    /// Processor time of all threads in seconds, including time in the kernel.
    pub(crate) cpu_seconds: f64,
    pub(crate) written: os::Written,
    pub(crate) syncs: u64,
    /// Disk space in bytes that the files take afterwards; 0 if it was not measured.
    pub(crate) file_bytes: u64,
}

impl Sample {
    /// Creates a sample that has only the measured quantity.
    pub(crate) fn of(value: f64) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }
}

/// Watches the anonymous memory of this process from a thread of its own.
pub(crate) struct MemoryPeak {
    stop: Arc<AtomicBool>,
    watching: thread::JoinHandle<u64>,
}

impl MemoryPeak {
    /// Time between two readings of the memory. It is short compared with a transaction; a reading takes about 20 us.
    const EVERY: Duration = Duration::from_millis(10);

    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watching = thread::spawn(move || {
            let mut most = 0;
            loop {
                let is_last = stopped.load(Ordering::Relaxed);
                most = os::memory_anonymous().max(most);
                if is_last {
                    return most;
                }
                thread::sleep(Self::EVERY);
            }
        });
        Self { stop, watching }
    }

    /// The largest number of bytes that was read.
    pub(crate) fn finish(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let most = self.watching.join();
        most.map_err(|_| "the thread that watches the memory panicked".into())
    }
}

/// A measurement that is running.
pub(crate) struct Meter<'d> {
    dir: &'d Path,
    start: Instant,
    cpu: f64,
    written: os::Written,
    syncs: u64,
}

impl<'d> Meter<'d> {
    /// Starts a measurement; `dir` is the directory of the engine's files.
    pub(crate) fn start(dir: &'d Path) -> Self {
        Self {
            dir,
            cpu: os::cpu_seconds(),
            written: os::written(dir),
            syncs: syncs::count(),
            start: Instant::now(),
        }
    }

    /// Like `start`, for an engine that itself reports waits for the disk that are not counted otherwise: waits before
    /// the measurement are excluded.
    pub(crate) fn of(engine: &dyn Engine, dir: &'d Path) -> Self {
        engine.silent_syncs(0);
        Self::start(dir)
    }

    /// Ends the measurement: returns operations per second and the costs. `silent_syncs` is the number of waits for the
    /// disk that are not counted otherwise.
    pub(crate) fn finish(self, operations: u64, silent_syncs: u64, latencies: Latencies) -> Sample {
        let seconds = self.start.elapsed().as_secs_f64();
        let (now, then) = (os::written(self.dir), self.written);
        Sample {
            value: operations as f64 / seconds,
            cpu_seconds: os::cpu_seconds() - self.cpu,
            written: os::Written {
                handed: now.handed - then.handed,
                calls: now.calls - then.calls,
                dirtied: now.dirtied - then.dirtied,
                disk: now.disk - then.disk,
            },
            syncs: syncs::count() - self.syncs + silent_syncs,
            latency: latencies.spread(),
            file_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let latencies = Latencies {
            nanos: (1..=101).rev().map(|n| n * 1000).collect(),
        };
        let expected = Spread {
            p50: 51.0,
            p99: 100.0,
            p999: 101.0,
            max: 101.0,
        };
        assert_eq!(latencies.spread(), expected);
        assert_eq!(Latencies::default().spread(), Spread::default());
    }
}
