//! The name of the series that holds the numbers of a container.

use crate::types::error::Result;
use crate::types::name::{CONTAINER_TAG, SeriesName};

/// The series of a container: its metric is the name of the table, and the tag `container` is the name of the
/// container.
///
/// # Errors
/// `InvalidName` if the two names are too long together.
pub(crate) fn series_of(table: &str, container: &str) -> Result<SeriesName> {
    SeriesName::new(table, [(CONTAINER_TAG.to_owned(), container.to_owned())])
}
