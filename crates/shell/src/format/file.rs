//! The modes `parquet` and `arrow`: the bytes of a file.

use super::writer::Format;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::SchemaRef;
use tidalite_sql::{FileFormat, FileOptions, FileSink};

/// The writer. The bytes that the writer of the file format has written wait in `ready`, because that writer cannot borrow the
/// stream of the session.
pub(super) struct Binary {
    format: FileFormat,
    schema: SchemaRef,
    sink: Option<FileSink>,
    ready: Ready,
}

/// Bytes that are shared with the writer of the file format.
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

impl Binary {
    pub(super) fn new(format: FileFormat, schema: &SchemaRef) -> Self {
        Self {
            format,
            schema: Arc::clone(schema),
            sink: None,
            ready: Ready::default(),
        }
    }

    /// The sink, which is created with the first batch.
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
}

impl Format for Binary {
    fn batch(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> io::Result<()> {
        self.sink()?.write(batch).map_err(io::Error::other)?;
        out.write_all(&self.ready.take())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.sink()?;
        if let Some(sink) = self.sink.take() {
            sink.finish().map_err(io::Error::other)?;
        }
        out.write_all(&self.ready.take())
    }
}
