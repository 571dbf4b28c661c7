//! Reads files as batches.

use crate::error::Result;
use crate::files::format::{FileFormat, FileOptions, file_error};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Number of rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The first bytes of a file in the file format of Arrow IPC; the stream format does not have them.
const ARROW_MAGIC: [u8; 6] = *b"ARROW1";

/// The first bytes of a Parquet file.
const PARQUET_MAGIC: [u8; 4] = *b"PAR1";

/// The batches of a file.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// The rows of a Parquet or Arrow file, in batches.
pub struct FileRows {
    schema: SchemaRef,
    batches: Batches,
}

impl FileRows {
    /// Opens a file. Its first bytes show whether it is Parquet, the file format of Arrow, or the stream format of
    /// Arrow.
    ///
    /// # Errors
    /// Kind [`File`](crate::ErrorKind::File): the file cannot be read, or has another format.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(|error| file_error(path, error))?;
        let mut magic = [0; PARQUET_MAGIC.len()];
        let is_parquet = file.read_exact(&mut magic).is_ok() && magic == PARQUET_MAGIC;
        file.rewind().map_err(|error| file_error(path, error))?;
        let (schema, batches) = match is_parquet {
            true => parquet(path, file)?,
            false => arrow(path, file)?,
        };
        Ok(Self { schema, batches })
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for FileRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

/// The batches of a Parquet file, and their columns.
fn parquet(path: &Path, file: File) -> Result<(SchemaRef, Batches)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let reader = builder.and_then(|builder| builder.with_batch_size(BATCH_ROWS).build());
    let reader = reader.map_err(|error| file_error(path, error))?;
    Ok((reader.schema(), batches(path, reader)))
}

/// The batches of a file or a stream of Arrow IPC, and their columns.
fn arrow(path: &Path, mut file: File) -> Result<(SchemaRef, Batches)> {
    let problem = |error: ArrowError| file_error(path, error);
    let mut magic = [0; ARROW_MAGIC.len()];
    let is_file = file.read_exact(&mut magic).is_ok() && magic == ARROW_MAGIC;
    file.rewind().map_err(|error| file_error(path, error))?;
    if is_file {
        let reader = FileReader::try_new_buffered(file, None).map_err(problem)?;
        return Ok((reader.schema(), batches(path, reader)));
    }
    let reader = StreamReader::try_new_buffered(file, None).map_err(problem)?;
    Ok((reader.schema(), batches(path, reader)))
}

/// Reads a file whose rows are to be stored in a table with these columns. Fields of CSV are read as texts and
/// converted to the types of the table later, which preserves leading zeros of texts.
pub(crate) fn read(path: &Path, options: &FileOptions, table: &SchemaRef) -> Result<Batches> {
    let problem = |error: ArrowError| file_error(path, error);
    let open = || File::open(path).map_err(|error| file_error(path, error));
    match options.format {
        FileFormat::Csv => {
            let format = csv_format(options).map_err(problem)?;
            let (found, _) = format
                .infer_schema(BufReader::new(open()?), Some(1))
                .map_err(problem)?;
            let names = found.fields().iter().map(|field| field.name().clone());
            let names: Vec<String> = match options.header {
                true => names.collect(),
                // Without a header, the fields are the columns of the table in order.
                false => {
                    let columns = table.fields().iter().take(found.fields().len());
                    columns.map(|column| column.name().clone()).collect()
                }
            };
            let texts = names
                .into_iter()
                .map(|name| Field::new(name, DataType::Utf8, true));
            let schema = Arc::new(Schema::new(texts.collect::<Vec<_>>()));
            let reader = arrow::csv::ReaderBuilder::new(schema)
                .with_format(format)
                .with_batch_size(BATCH_ROWS);
            let reader = reader.build(open()?).map_err(problem)?;
            Ok(batches(path, reader))
        }
        FileFormat::JsonLines => {
            let fields = table.fields().iter();
            let fields: Vec<Field> = fields.map(|field| plain(field)).collect();
            let reader = arrow::json::ReaderBuilder::new(Arc::new(Schema::new(fields)))
                .with_strict_mode(true)
                .with_batch_size(BATCH_ROWS);
            let reader = reader.build(BufReader::new(open()?)).map_err(problem)?;
            Ok(batches(path, reader))
        }
        FileFormat::Parquet => Ok(parquet(path, open()?)?.1),
        FileFormat::Arrow => Ok(arrow(path, open()?)?.1),
    }
}

/// The CSV format for readers.
fn csv_format(options: &FileOptions) -> std::result::Result<Format, ArrowError> {
    let mut format = Format::default()
        .with_header(options.header)
        .with_delimiter(options.delimiter)
        .with_quote(options.quote);
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if !options.null.is_empty() {
        let exactly = format!("^{}$", regex::escape(&options.null));
        let exactly = regex::Regex::new(&exactly)
            .map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?;
        format = format.with_null_regex(exactly);
    }
    Ok(format)
}

/// A column with the same name and with a type that JSON readers support.
fn plain(field: &Field) -> Field {
    let ty = match field.data_type() {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        ty => ty.clone(),
    };
    Field::new(field.name(), ty, true)
}

fn batches(
    path: &Path,
    reader: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send + 'static,
) -> Batches {
    let path = path.to_owned();
    Box::new(reader.map(move |batch| batch.map_err(|error| file_error(&path, error))))
}
