//! Files of Parquet and Arrow as an input: their batches become records of texts, with the types of the columns beside
//! them.
//!
//! ```text
//! batches of arrays --> records of CSV --> the same readers as for CSV, on several threads
//! ```
//!
//! Every value has all its digits as text, and null is a mark of its own ([`NULL_MARK`]), so nothing is lost on the
//! way.

use crate::exit::{Failure, Outcome};
use crate::import::field::NULL_MARK;
use crate::import::given::Given;
use crate::import::source::{BytesRead, Source};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use tidalite_shell::sql::FileRows;
use tidalite_shell::sql::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use tidalite_shell::sql::arrow::compute::cast;
use tidalite_shell::sql::arrow::csv::WriterBuilder;
use tidalite_shell::sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tidalite_shell::sql::arrow::error::ArrowError;

/// The name with which pandas stores an index that has none.
const PANDAS_INDEX: &str = "__index_level_";

/// Opens a file.
pub(crate) fn open(path: &Path) -> Outcome<Source> {
    if path.as_os_str() == "-" {
        return Err(Failure::usage(
            "Parquet and Arrow are read from files, not from standard input",
        )
        .hint("store it in a file first: cat > data.parquet"));
    }
    if let Err(error) = std::fs::File::open(path) {
        return Err(Failure::file("cannot read", path, &error));
    }
    let rows = FileRows::open(path).map_err(|error| {
        Failure::bad_input(format!("cannot read Parquet or Arrow: {error}"))
            .hint("the file is damaged or incomplete: fetch it again; a compressed file must be decompressed first")
    })?;
    let schema = rows.schema();
    let fields = schema.fields().iter();
    let given = fields.map(|field| given(field)).collect();
    Ok(Source {
        reader: Box::new(Records::new(rows)),
        bytes_read: BytesRead::default(),
        bytes_total: None,
        is_packed: false,
        given,
    })
}

/// The use of a column, derived from its type.
fn given(field: &Field) -> Given {
    match plain(field.data_type()) {
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Given::Time,
        _ if field.name().starts_with(PANDAS_INDEX) => Given::Unused,
        DataType::UInt64 => Given::Unsigned,
        ty if ty.is_integer() => Given::Whole,
        ty if ty.is_floating() || ty.is_decimal() => Given::Number,
        DataType::Boolean => Given::Bool,
        ty if ty.is_nested() || *ty == DataType::Null => Given::Unused,
        _ => Given::Text,
    }
}

/// The type of the values of a dictionary or of runs; any other type itself.
fn plain(ty: &DataType) -> &DataType {
    match ty {
        DataType::Dictionary(_, value) => plain(value),
        DataType::RunEndEncoded(_, value) => plain(value.data_type()),
        ty => ty,
    }
}

/// The type in which a column becomes text: times in UTC, texts for types that have no value of a series.
fn text_type(ty: &DataType) -> DataType {
    match plain(ty) {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        ty if ty.is_nested() => DataType::Null,
        ty => ty.clone(),
    }
}

fn text_array(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let ty = text_type(array.data_type());
    match ty {
        DataType::Null => Ok(new_null_array(&ty, array.len())),
        ty if ty == *array.data_type() => Ok(Arc::clone(array)),
        ty => cast(array, &ty),
    }
}

/// The records of a file, as the bytes of CSV.
struct Records {
    rows: FileRows,
    /// The columns in the types in which they become text.
    schema: SchemaRef,
    ready: io::Cursor<Vec<u8>>,
    has_begun: bool,
}

impl Records {
    fn new(rows: FileRows) -> Self {
        let schema = rows.schema();
        let fields = schema.fields().iter();
        let fields =
            fields.map(|field| Field::new(field.name(), text_type(field.data_type()), true));
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            rows,
            ready: io::Cursor::default(),
            has_begun: false,
        }
    }

    /// Converts the next batch; the names of the columns come first. Returns false after the last batch.
    fn convert(&mut self) -> io::Result<bool> {
        let mut bytes = std::mem::take(&mut self.ready).into_inner();
        bytes.clear();
        let batch = match (self.rows.next(), self.has_begun) {
            (Some(batch), _) => batch.map_err(io::Error::other)?,
            (None, true) => return Ok(false),
            (None, false) => RecordBatch::new_empty(self.rows.schema()),
        };
        let columns = batch.columns().iter().map(text_array);
        let columns = columns
            .collect::<Result<Vec<_>, _>>()
            .map_err(io::Error::other)?;
        let batch =
            RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(io::Error::other)?;
        let mut writer = WriterBuilder::new()
            .with_header(!self.has_begun)
            .with_null(NULL_MARK.to_owned())
            .build(&mut bytes);
        writer.write(&batch).map_err(io::Error::other)?;
        drop(writer);
        self.has_begun = true;
        self.ready = io::Cursor::new(bytes);
        Ok(true)
    }
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.ready.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.convert()? {
                return Ok(read);
            }
        }
    }
}
