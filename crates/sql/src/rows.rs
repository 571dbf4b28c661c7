//! The rows of a result, and the threads that compute them.

use crate::error::{Error, ErrorKind, Result};
use crate::plans::Plan;
use crate::slot::Running;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use futures::future::{Either, select};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Cancels the running statement of a connection from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Cancel>);

#[derive(Debug, Default)]
struct Cancel {
    is_cancelled: AtomicBool,
    notify: Notify,
}

impl CancelHandle {
    /// Ends the running statement soon, with an error of kind [`ErrorKind::Cancelled`]. Later statements are not
    /// affected.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
        self.0.notify.notify_one();
    }

    /// Returns an error if the statement was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.is_cancelled.load(Ordering::Relaxed) {
            true => Err(cancelled()),
            false => Ok(()),
        }
    }

    /// Begins a statement. Earlier calls of `cancel` do not affect it.
    pub(crate) fn begin(&self) {
        self.0.is_cancelled.store(false, Ordering::Relaxed);
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the statement was cancelled")
}

/// The threads that run queries, shared by all connections of the process.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if tokio::runtime::Handle::try_current().is_ok() {
        let problem = "this call blocks, so it must not be made in a task of an async runtime; use spawn_blocking";
        return Err(Error::new(ErrorKind::Execution, problem));
    }
    if RUNTIME.get().is_none() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("tidalite-sql")
            .build()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Execution,
                    format!("no thread can be started: {error}"),
                )
            })?;
        if let Err(surplus) = RUNTIME.set(runtime) {
            surplus.shutdown_background();
        }
    }
    RUNTIME
        .get()
        .ok_or_else(|| Error::new(ErrorKind::Execution, "there are no threads"))
}

/// The rows of a result, in batches.
pub struct Rows {
    schema: SchemaRef,
    /// `None` after the last batch or an error.
    stream: Option<SendableRecordBatchStream>,
    /// Batches that are already computed.
    ready: VecDeque<RecordBatch>,
    affected: Option<u64>,
    cancel: CancelHandle,
    /// Keeps the snapshot of the statement until its rows are dropped.
    _running: Option<Running>,
}

impl Rows {
    /// Runs a plan.
    pub(crate) fn of(plan: Plan, running: Running, cancel: &CancelHandle) -> Result<Self> {
        // Nodes start tasks when they are executed, so the runtime must be entered.
        let entered = runtime()?.enter();
        let stream = execute_stream(plan.physical, plan.context)?;
        drop(entered);
        Ok(Self {
            schema: stream.schema(),
            stream: Some(stream),
            ready: VecDeque::new(),
            affected: None,
            cancel: cancel.clone(),
            _running: Some(running),
        })
    }

    /// The result of a look-up.
    pub(crate) fn ready(batch: RecordBatch) -> Self {
        Self {
            schema: batch.schema(),
            ready: VecDeque::from([batch]),
            ..Self::none(None)
        }
    }

    /// The rows that a statement returns after it has changed rows.
    pub(crate) fn returned(schema: SchemaRef, batches: Vec<RecordBatch>, affected: u64) -> Self {
        Self {
            schema,
            ready: batches.into(),
            ..Self::none(Some(affected))
        }
    }

    /// The result of a statement that returns no rows.
    pub(crate) fn none(affected: Option<u64>) -> Self {
        Self {
            schema: Arc::new(Schema::empty()),
            stream: None,
            ready: VecDeque::new(),
            affected,
            cancel: CancelHandle::default(),
            _running: None,
        }
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Number of rows that the statement has inserted, updated, deleted or copied; `None` for other statements.
    #[must_use]
    pub fn affected_rows(&self) -> Option<u64> {
        self.affected
    }

    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        if let Some(batch) = self.ready.pop_front() {
            return Some(Ok(batch));
        }
        let stream = self.stream.as_mut()?;
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(error)),
        };
        let cancel = &self.cancel.0;
        let next = runtime.block_on(async {
            let cancelled = pin!(async {
                while !cancel.is_cancelled.load(Ordering::Relaxed) {
                    cancel.notify.notified().await;
                }
            });
            match select(cancelled, stream.next()).await {
                Either::Left(_) => None,
                Either::Right((batch, _)) => Some(batch),
            }
        });
        match next {
            None => Some(Err(cancelled())),
            Some(batch) => batch.map(|batch| batch.map_err(Error::from)),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if !matches!(batch, Some(Ok(_))) {
            self.stream = None;
        }
        batch
    }
}
