//! The transaction that appenders share: they change it one at a time, and leave blocks here that wait to be flushed.
//!
//! This file maintains invariants 2, 3, 5 and 6 of `appender.rs`.

use crate::catalog::entries::SeriesInfo;
use crate::txn::flush::PANICKED;
use crate::txn::leaves::Leaves;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_base::SeriesId;
use tidalite_delta::bugs::{Bug, active};
use tidalite_delta::{Blocks, Linker, Linking, OverlapCheck};

/// The transaction, shared by its appenders.
struct Shared<'t> {
    txn: &'t mut WriteTxn,
    overlap: Option<OverlapCheck>,
    /// The message for a panic. It is swapped with the transaction's field `broken` while a change runs under the lock,
    /// so that a panic leaves the transaction broken.
    panicked: Option<String>,
    /// For each appender, the first and the last series that it has opened.
    spans: Vec<Option<(SeriesId, SeriesId)>>,
    /// Numbers of ended appenders whose blocks are not flushed yet, with their blocks.
    waiting: Vec<(usize, Vec<Blocks>)>,
}

impl Shared<'_> {
    /// Whether another appender has opened a series between the first and the last series of appender `n`.
    fn is_entered(&self, n: usize) -> bool {
        let Some((first, last)) = self.spans[n] else {
            return false;
        };
        let others = self.spans.iter().enumerate();
        let mut others = others
            .filter(|&(other, _)| other != n)
            .filter_map(|(_, span)| *span);
        others.any(|(from, to)| from <= last && first <= to)
    }

    /// Flushes all blocks that wait.
    fn add_blocks(&mut self) -> Result<()> {
        let blocks = std::mem::take(&mut self.waiting);
        let blocks: Vec<_> = blocks.into_iter().flat_map(|(_, blocks)| blocks).collect();
        if blocks.is_empty() {
            return Ok(());
        }
        self.overlap = None;
        self.txn.add_blocks(blocks)
    }
}

/// Lets one appender at a time change the transaction.
pub(super) struct Writer<'t>(Mutex<Shared<'t>>);

impl<'t> Writer<'t> {
    /// Shares the transaction among this number of appenders.
    pub(super) fn new(txn: &'t mut WriteTxn, appenders: usize) -> Self {
        Self(Mutex::new(Shared {
            txn,
            overlap: None,
            panicked: Some(PANICKED.to_owned()),
            spans: vec![None; appenders],
            waiting: Vec::new(),
        }))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Shared<'t>>> {
        let shared = self.0.lock().map_err(|_| broken(PANICKED))?;
        shared.txn.check_usable()?;
        Ok(shared)
    }

    /// Runs a change under the lock. The change may touch any part of the transaction.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut WriteTxn) -> Result<T>) -> Result<T> {
        let mut shared = self.lock()?;
        shared.overlap = None;
        change(shared.txn)
    }

    /// Opens a series for appender `n`.
    pub(super) fn open(
        &self,
        n: usize,
        find: impl FnOnce(&mut WriteTxn) -> Result<Arc<SeriesInfo>>,
    ) -> Result<Arc<SeriesInfo>> {
        let mut shared = self.lock()?;
        shared.overlap = None;
        let info = find(shared.txn)?;
        let span = &mut shared.spans[n];
        let (first, last) = span.unwrap_or((info.id, info.id));
        *span = Some((first.min(info.id), last.max(info.id)));
        let lies_in = |n: usize| {
            shared.spans[n].is_some_and(|(first, last)| first <= info.id && info.id <= last)
        };
        let is_among_waiting = shared.waiting.iter().any(|&(other, _)| lies_in(other));
        if is_among_waiting && !active(Bug::BlocksWaitOn) {
            shared.add_blocks()?;
        }
        Ok(info)
    }

    /// Whether no other appender has opened a series between the first and the last series of appender `n`.
    pub(super) fn is_apart(&self, n: usize) -> Result<bool> {
        Ok(!self.lock()?.is_entered(n))
    }

    /// Accepts the blocks of appender `n`. They are flushed at once if another appender has meanwhile opened a series
    /// in their range.
    pub(super) fn give(&self, n: usize, blocks: Vec<Blocks>) -> Result<()> {
        let mut shared = self.lock()?;
        shared.waiting.push((n, blocks));
        match shared.is_entered(n) {
            true => shared.add_blocks(),
            false => Ok(()),
        }
    }

    /// Counts an appender as ended, with its error if it failed. The last appender flushes all blocks that wait.
    pub(super) fn end(&self, failed: Option<String>) -> Result<()> {
        // A panic inside a change, even if it was caught, leaves the change half done.
        let failed = failed.or_else(|| self.0.is_poisoned().then(|| PANICKED.to_owned()));
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let txn = &mut *shared.txn;
        txn.appending = txn.appending.saturating_sub(1);
        if failed.is_some() && txn.broken.is_none() {
            txn.broken = failed;
        }
        if txn.appending > 0 || txn.broken.is_some() {
            return Ok(());
        }
        shared.add_blocks()
    }
}

impl Linker for Writer<'_> {
    type Pages = tidalite_pager::WriteTxn;
    type Sink = Leaves;
    type Error = Error;

    fn with<T>(
        &self,
        f: impl FnOnce(&mut Linking<'_, Self::Pages, Leaves>) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        let mut shared = self.lock()?;
        let Shared {
            txn,
            overlap,
            panicked,
            ..
        } = &mut *shared;
        std::mem::swap(&mut txn.broken, panicked);
        let result = f(&mut Linking::new(
            &mut txn.delta,
            &mut txn.pages,
            &mut txn.leaves,
            Some(&txn.write_buffer),
            overlap,
        ));
        std::mem::swap(&mut txn.broken, panicked);
        if let Err(error) = &result {
            txn.broken = Some(error.to_string());
        }
        Ok(result?)
    }
}

pub(super) fn broken(first: &str) -> Error {
    let first = first.to_owned();
    Error::from(Cause::TransactionBroken { first })
}
