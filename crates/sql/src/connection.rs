//! A connection: runs statements.

use crate::error::{Error, ErrorKind, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite::Database;
use tokio::runtime::Runtime;

/// Options of a [`Connection`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Maximum number of bytes that the operators of one connection may hold: sorts, hash tables, joins.
    pub memory_bytes: usize,
    /// Number of threads for one query.
    pub threads: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Runs statements on a database. A connection has at most one open transaction.
pub struct Connection {
    context: SessionContext,
    runtime: Arc<Runtime>,
    cancelled: CancelHandle,
}

/// Cancels the running statement of a connection from another thread.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<AtomicBool>);

impl CancelHandle {
    /// Ends the running statement soon, with an error of kind [`ErrorKind::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// The series of a metric.
    Metric,
    /// An ordered table.
    Table,
    /// A view of the system: `information_schema`, `tidalite_series`.
    System,
}

/// The name of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema; `public` if the name has none.
    pub schema: String,
    /// The name in the schema.
    pub name: String,
    /// What the table shows.
    pub kind: TableKind,
}

impl Connection {
    /// Creates a connection to a database.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(_database: &Database) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .build()
            .map_err(|error| Error::new(ErrorKind::Execution, error))?;
        Ok(Self {
            context: SessionContext::new(),
            runtime: Arc::new(runtime),
            cancelled: CancelHandle::default(),
        })
    }

    /// Runs one statement. Its rows are computed as they are read.
    ///
    /// # Errors
    /// [`ErrorKind`] lists them. The statement has changed nothing then.
    pub fn query(&mut self, sql: &str) -> Result<Rows> {
        self.cancelled.0.store(false, Ordering::Relaxed);
        let stream = self.runtime.block_on(async {
            let frame = self.context.sql(sql).await?;
            frame.execute_stream().await
        })?;
        Ok(Rows {
            stream,
            runtime: Arc::clone(&self.runtime),
            cancelled: self.cancelled.clone(),
        })
    }

    /// A handle that cancels statements of this connection from another thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancelled.clone()
    }

    /// The tables, in order of schema and name.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<TableName>> {
        Ok(Vec::new())
    }

    /// The columns of a table; `None` if there is no such table.
    ///
    /// # Errors
    /// A damaged or unreadable page; a clash of names in the table.
    pub fn columns(&self, _table: &TableName) -> Result<Option<SchemaRef>> {
        Ok(None)
    }
}

/// The rows of a result, in batches.
pub struct Rows {
    stream: SendableRecordBatchStream,
    runtime: Arc<Runtime>,
    cancelled: CancelHandle,
}

impl Rows {
    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cancelled.0.load(Ordering::Relaxed) {
            return Some(Err(Error::new(ErrorKind::Cancelled, "cancelled")));
        }
        let next = self.runtime.block_on(self.stream.next());
        next.map(|batch| batch.map_err(Error::from))
    }
}
