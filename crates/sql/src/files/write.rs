//! Writes batches to a file. The file gets its final name only when it is complete.

use crate::error::Result;
use crate::files::format::{FileFormat, FileOptions, file_error};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::writer::FileWriter;
use arrow::json::LineDelimitedWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is being written. Dropping it removes the file.
pub struct FileSink {
    /// The path as shown in errors.
    path: PathBuf,
    /// The temporary file; `None` if the bytes go to another writer.
    part: Option<Part>,
    writer: Option<Writer>,
    rows: u64,
}

/// A file with its temporary name.
struct Part {
    path: PathBuf,
    file: File,
}

type Out = BufWriter<Box<dyn Write + Send>>;

enum Writer {
    Csv(Box<arrow::csv::Writer<Out>>),
    JsonLines(LineDelimitedWriter<Out>),
    Parquet(Box<ArrowWriter<Out>>),
    /// The writer, and the columns without dictionaries. An Arrow file has one dictionary for all batches of a column,
    /// but each batch of a result may have its own.
    Arrow(Box<FileWriter<Out>>, SchemaRef),
}

impl FileSink {
    /// Creates a file for rows with these columns. An existing file with this name is replaced when
    /// [`finish`](Self::finish) is called.
    ///
    /// # Errors
    /// Kind [`File`](crate::ErrorKind::File): the file cannot be written, or a column has a type that the format lacks.
    pub fn create(path: &Path, schema: &SchemaRef, options: &FileOptions) -> Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // Removes a file that another process has left. If it is a symbolic link, the link itself is removed.
        drop(std::fs::remove_file(&part));
        let created = File::create_new(&part).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, file) = created.map_err(|error| file_error(&part, error))?;
        let part = Part { path: part, file };
        Self::new(path, Some(part), Box::new(out), schema, options)
    }

    /// Writes a file's bytes to a writer. `name` is shown in errors.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn over(
        name: &str,
        writer: impl Write + Send + 'static,
        schema: &SchemaRef,
        options: &FileOptions,
    ) -> Result<Self> {
        Self::new(Path::new(name), None, Box::new(writer), schema, options)
    }

    fn new(
        path: &Path,
        part: Option<Part>,
        out: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &FileOptions,
    ) -> Result<Self> {
        let file = BufWriter::new(out);
        let mut sink = Self {
            path: path.to_owned(),
            part,
            writer: None,
            rows: 0,
        };
        sink.writer = Some(match options.format {
            FileFormat::Csv => {
                let mut builder = arrow::csv::WriterBuilder::new()
                    .with_header(options.header)
                    .with_delimiter(options.delimiter)
                    .with_quote(options.quote)
                    .with_null(options.null.clone());
                if let Some(escape) = options.escape {
                    builder = builder.with_escape(escape).with_double_quote(false);
                }
                let mut writer = builder.build(file);
                // Even an empty result has a header.
                let empty = RecordBatch::new_empty(schema.clone());
                writer
                    .write(&empty)
                    .map_err(|error| file_error(path, error))?;
                Writer::Csv(Box::new(writer))
            }
            FileFormat::JsonLines => Writer::JsonLines(LineDelimitedWriter::new(file)),
            FileFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
                Writer::Parquet(Box::new(writer.map_err(|error| file_error(path, error))?))
            }
            FileFormat::Arrow => {
                let schema = without_dictionaries(schema);
                let writer = FileWriter::try_new(file, &schema);
                let writer = writer.map_err(|error| file_error(path, error))?;
                Writer::Arrow(Box::new(writer), schema)
            }
        });
        Ok(sink)
    }

    /// Appends rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let path = &self.path;
        match &mut self.writer {
            Some(Writer::Csv(writer)) => writer.write(batch).map_err(|e| file_error(path, e))?,
            Some(Writer::JsonLines(writer)) => {
                writer.write(batch).map_err(|e| file_error(path, e))?;
            }
            Some(Writer::Parquet(writer)) => {
                writer.write(batch).map_err(|e| file_error(path, e))?;
            }
            Some(Writer::Arrow(writer, schema)) => {
                let columns = batch.columns().iter().zip(schema.fields());
                let columns = columns.map(|(column, field)| match column.data_type() {
                    DataType::Dictionary(..) => cast(column, field.data_type()),
                    _ => Ok(Arc::clone(column)),
                });
                let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let written = columns
                    .collect::<std::result::Result<Vec<_>, _>>()
                    .and_then(|columns| {
                        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &count)
                    })
                    .and_then(|batch| writer.write(&batch));
                written.map_err(|e| file_error(path, e))?;
            }
            None => {}
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Completes the file, which now gets its final name; returns the number of rows.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        let path = self.path.clone();
        let file = match self.writer.take() {
            Some(Writer::Csv(writer)) => writer.into_inner(),
            Some(Writer::JsonLines(mut writer)) => {
                writer.finish().map_err(|error| file_error(&path, error))?;
                writer.into_inner()
            }
            Some(Writer::Parquet(writer)) => writer
                .into_inner()
                .map_err(|error| file_error(&path, error))?,
            Some(Writer::Arrow(mut writer, _)) => {
                writer.finish().map_err(|error| file_error(&path, error))?;
                writer
                    .into_inner()
                    .map_err(|error| file_error(&path, error))?
            }
            None => return Ok(self.rows),
        };
        let done = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|mut out| out.flush())
            .and_then(|()| match &self.part {
                Some(part) => {
                    part.file.sync_all()?;
                    std::fs::rename(&part.path, &path)
                }
                None => Ok(()),
            });
        done.map_err(|error| file_error(&path, error))?;
        Ok(self.rows)
    }
}

/// The columns, with each dictionary type replaced by the type of its values.
fn without_dictionaries(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, values) => Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(values.as_ref().clone()),
        ),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // After `finish` the temporary file no longer exists.
        if let Some(part) = &self.part {
            drop(std::fs::remove_file(&part.path));
        }
    }
}
