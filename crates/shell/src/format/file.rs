//! The modes `parquet` and `arrow`: write a result as the bytes of a file.

use super::writer::Format;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::SchemaRef;
use tidalite_sql::{FileFormat, FileOptions, FileSink};

/// Writes batches in a Parquet or Arrow file format to any stream.
pub struct FileBytes {
    format: FileFormat,
    schema: SchemaRef,
    sink: Option<FileSink>,
    /// Bytes that are ready to be written to the stream, which the sink cannot borrow.
    ready: Ready,
}

/// A buffer that is shared with the writer of the file format.
#[derive(Clone, Default)]
struct Ready(Arc<Mutex<Vec<u8>>>);

impl Ready {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Ready {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ready.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileBytes {
    /// Creates a writer of batches with these columns.
    #[must_use]
    pub fn new(format: FileFormat, schema: &SchemaRef) -> Self {
        Self {
            format,
            schema: Arc::clone(schema),
            sink: None,
            ready: Ready::default(),
        }
    }

    /// The sink. It is created for the first batch.
    fn sink(&mut self) -> io::Result<&mut FileSink> {
        let sink = match self.sink.take() {
            Some(sink) => sink,
            None => {
                let options = FileOptions::new(self.format);
                let (ready, schema) = (self.ready.clone(), &self.schema);
                FileSink::over("the result", ready, schema, &options).map_err(io::Error::other)?
            }
        };
        Ok(self.sink.insert(sink))
    }

    /// Writes a batch, or buffers it.
    ///
    /// # Errors
    /// The stream cannot be written; or the format does not support the type of a column, which is an inner error of
    /// [`tidalite_sql`].
    pub fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.sink()?.write(batch).map_err(io::Error::other)?;
        out.write_all(&self.ready.take())
    }

    /// Writes the buffered batches and the end of the file.
    ///
    /// # Errors
    /// As for [`batch`](Self::batch).
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.sink()?;
        if let Some(sink) = self.sink.take() {
            sink.finish().map_err(io::Error::other)?;
        }
        out.write_all(&self.ready.take())
    }
}

impl Format for FileBytes {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        Self::batch(self, batch, out)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        Self::finish(self, out)
    }
}
