//! One state of the database, in which a statement reads: a snapshot, or the current state of the open transaction.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::{ReadTxn, Series, SeriesInfo, TxnId, UncommittedRead};

/// A state of the database. Clones share the state; each counts its own reads.
#[derive(Clone)]
pub(crate) enum State {
    Snapshot(ReadTxn),
    #[expect(dead_code, reason = "statements in a transaction follow")]
    Uncommitted(Arc<UncommittedRead>),
}

/// Calls a method that both kinds of state have.
macro_rules! either {
    ($state:expr, $read:ident => $call:expr) => {
        match $state {
            $crate::state::State::Snapshot($read) => $call,
            $crate::state::State::Uncommitted($read) => $call,
        }
    };
}
pub(crate) use either;

impl State {
    pub(crate) fn txn(&self) -> TxnId {
        either!(self, read => read.txn())
    }

    /// The series that a pattern selects, in order of id.
    pub(crate) fn list(&self, pattern: &str) -> tidalite::Result<Vec<Arc<SeriesInfo>>> {
        either!(self, read => read.list(pattern))
    }

    /// The metrics that begin with `prefix`, ascending.
    pub(crate) fn metrics(&self, prefix: &str) -> tidalite::Result<Vec<String>> {
        let metrics = either!(self, read => read.metrics(prefix, usize::MAX))?;
        Ok(metrics.into_iter().map(|metric| metric.text).collect())
    }

    /// Opens a series of the catalog.
    pub(crate) fn open(&self, info: &SeriesInfo) -> tidalite::Result<Option<Series<'_>>> {
        either!(self, read => read.series_by_id(info.id))
    }

    /// Number of tree nodes read, and of vectors decoded, through this handle.
    pub(crate) fn reads(&self) -> Reads {
        let counters = either!(self, read => read.counters());
        Reads {
            nodes: counters.nodes_read.load(Ordering::Relaxed),
            vectors: counters.vectors_decoded.load(Ordering::Relaxed),
        }
    }

    /// Whether the list of series is the same in another state.
    pub(crate) fn has_series_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Snapshot(own), Self::Snapshot(other)) => own.has_series_of(other),
            _ => false,
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({})", self.txn())
    }
}

/// Amounts of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) nodes: u64,
    pub(crate) vectors: u64,
}

/// The place of the state in which all nodes of a plan read. A plan that is run again is given another state first.
#[derive(Clone, Debug)]
pub(crate) struct StateSlot(Arc<Mutex<State>>);

impl StateSlot {
    pub(crate) fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn state(&self) -> State {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
