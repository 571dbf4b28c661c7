//! The table `tidalite_series`: a row for each series, with its name, tags, number of rows, span and size.

use crate::catalog::computed::ComputedTable;
use crate::error::Result;
use crate::metric::chunk;
use crate::slot::Slot;
use crate::types::{Clock, time_type};
use arrow::array::{
    ArrayRef, Int64Builder, MapBuilder, RecordBatch, StringArray, StringBuilder, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;
use tidalite::AnyRead;

/// Name of the table.
pub(crate) const SERIES: &str = "tidalite_series";

/// The table.
pub(crate) fn table(slot: Slot) -> ComputedTable {
    ComputedTable::new(schema(), move || Ok(vec![rows(&slot.snapshot()?)?]))
}

/// The columns of the table.
fn schema() -> SchemaRef {
    let entries = Field::new(
        "entries",
        DataType::Struct(
            vec![
                Field::new("keys", DataType::Utf8, false),
                Field::new("values", DataType::Utf8, true),
            ]
            .into(),
        ),
        false,
    );
    let time = time_type(TimeUnit::Nanosecond);
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::UInt64, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, true),
        Field::new("tags", DataType::Map(Arc::new(entries), false), false),
        Field::new("columns", DataType::Utf8, false),
        Field::new("unit", DataType::Utf8, false),
        Field::new("rows", DataType::UInt64, false),
        Field::new("first_time", time.clone(), true),
        Field::new("last_time", time, true),
        Field::new("bytes", DataType::UInt64, false),
    ]))
}

/// The rows of the table. Times beyond the range of nanoseconds are null.
fn rows(snapshot: &AnyRead) -> Result<RecordBatch> {
    let infos = snapshot.list("")?;
    let mut tags = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    let (mut rows, mut bytes) = (Vec::new(), Vec::new());
    let (mut first, mut last) = (Int64Builder::new(), Int64Builder::new());
    for info in &infos {
        for (key, value) in info.name.iter().flat_map(|name| name.tags()) {
            tags.keys().append_value(key);
            tags.values().append_value(value);
        }
        tags.append(true)?;
        let series = chunk::open(snapshot, info)?;
        rows.push(series.query(..).count()?);
        bytes.push(series.stored_bytes());
        let clock = Clock::new(info.schema.unit, TimeUnit::Nanosecond);
        let span = series.span();
        first.append_option(span.and_then(|(first, _)| clock.time(first)));
        last.append_option(span.and_then(|(_, last)| clock.time(last)));
    }
    let texts = |text: &dyn Fn(&tidalite::SeriesInfo) -> Option<String>| -> ArrayRef {
        Arc::new(infos.iter().map(|info| text(info)).collect::<StringArray>())
    };
    let columns = |info: &tidalite::SeriesInfo| {
        let columns = info.schema.columns.iter();
        let columns = columns.map(|column| {
            let null = if column.nullable { "?" } else { "" };
            format!("{}:{}{null}", column.name, column.ty.name())
        });
        columns.collect::<Vec<_>>().join(" ")
    };
    let time = |array: arrow::array::Int64Array| {
        arrow::compute::cast(&array, &time_type(TimeUnit::Nanosecond))
    };
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(infos.iter().map(|info| info.id.0).collect::<UInt64Array>()),
        texts(&|info| Some(info.label())),
        texts(&|info| Some(info.name.as_ref()?.metric().to_owned())),
        Arc::new(tags.finish()),
        texts(&|info| Some(columns(info))),
        texts(&|info| Some(info.schema.unit.to_string())),
        Arc::new(UInt64Array::from(rows)),
        time(first.finish())?,
        time(last.finish())?,
        Arc::new(UInt64Array::from(bytes)),
    ];
    Ok(RecordBatch::try_new(schema(), arrays)?)
}
