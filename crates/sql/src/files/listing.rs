//! Files as tables of SQL: `SELECT * FROM 'data.parquet'`. A path may contain `*`, or name a folder if it ends with
//! `/`.

use crate::files::format::{FileFormat, FileOptions};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::file_format::FileFormat as Format;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::context::SessionState;
use std::sync::Arc;

/// The table for a file; `None` if the name does not look like a file with rows.
pub(crate) async fn table(
    name: &str,
    session: &SessionState,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(options) = FileOptions::for_file(name) else {
        return Ok(None);
    };
    let format: Arc<dyn Format> = match options.format {
        FileFormat::Csv => Arc::new(
            CsvFormat::default()
                .with_has_header(true)
                .with_delimiter(options.delimiter),
        ),
        FileFormat::JsonLines => Arc::new(JsonFormat::default()),
        FileFormat::Parquet => Arc::new(ParquetFormat::new()),
        FileFormat::Arrow => Arc::new(ArrowFormat),
    };
    let url = ListingTableUrl::parse(name)?;
    // The name has been checked; files that match a pattern may have any extension.
    let listing = ListingOptions::new(format).with_file_extension("");
    let schema = listing.infer_schema(session, &url).await?;
    let config = ListingTableConfig::new(url)
        .with_listing_options(listing)
        .with_schema(schema);
    Ok(Some(Arc::new(ListingTable::try_new(config)?)))
}
