//! Opening series in a write transaction, and creating missing series.

use crate::catalog::entries::{self, SeriesKey};
use crate::series::record::Record;
use crate::series::write::SeriesMut;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::name::SeriesName;
use crate::types::schema::Schema;
use tidalite_base::SeriesId;

impl WriteTxn {
    /// Opens the series with this name; creates it with the default point (`flags`, `value`, ns) if it does not exist.
    ///
    /// # Errors
    /// `InvalidName` for an invalid name; errors of the file.
    pub fn series(&mut self, name: &str) -> Result<SeriesMut<'_>> {
        if let Some(index) = self.open.named(name) {
            self.open.turn_to(index, &mut self.write_buffer);
            return Ok(SeriesMut::new(self, index));
        }
        let parsed = SeriesName::parse(name)?;
        let index = self.open_or_create(SeriesKey::Name(&parsed), None)?;
        self.open.name(name, index);
        Ok(SeriesMut::new(self, index))
    }

    /// Opens the series with this name and schema; creates it if it does not exist.
    ///
    /// # Errors
    /// `Schema` if the series exists with another schema; else as for `series`.
    pub fn series_with(&mut self, name: &str, schema: &Schema) -> Result<SeriesMut<'_>> {
        let parsed = SeriesName::parse(name)?;
        let index = self.open_or_create(SeriesKey::Name(&parsed), Some(schema))?;
        Ok(SeriesMut::new(self, index))
    }

    /// Opens the series with this name and the schema of a record type; creates it if it does not exist.
    ///
    /// # Errors
    /// As for `series_with`.
    pub fn series_of<R: Record>(&mut self, name: &str) -> Result<SeriesMut<'_>> {
        self.series_with(name, &R::schema())
    }

    /// Opens the series that has this GUID; creates it with this schema if it does not exist.
    ///
    /// # Errors
    /// As for `series_with`.
    pub fn series_of_guid(&mut self, guid: [u8; 16], schema: &Schema) -> Result<SeriesMut<'_>> {
        let index = self.open_or_create(SeriesKey::Guid(&guid), Some(schema))?;
        Ok(SeriesMut::new(self, index))
    }

    /// Opens a series by its id: an array access once it was opened in this transaction.
    ///
    /// # Errors
    /// `NotFound` if there is no series with this id; errors of the file.
    // Always inlined: the call writes the result field by field and the caller copies it in larger pieces. Without
    // inlining, that copy had to wait for the stores of the fields, which took a third of the time per row of
    // alternating series.
    #[inline(always)]
    pub fn series_by_id(&mut self, id: SeriesId) -> Result<SeriesMut<'_>> {
        let index = match self.open.index(id) {
            Some(index) => index,
            None => self.open_by_id(id)?,
        };
        Ok(SeriesMut::new(self, index))
    }

    fn open_or_create(&mut self, key: SeriesKey<'_>, schema: Option<&Schema>) -> Result<usize> {
        self.check_usable()?;
        if let Some(id) = entries::find(&self.roots, &self.pages, key)? {
            let index = match self.open.index(id) {
                Some(index) => index,
                None => self.open_by_id(id)?,
            };
            if let Some(schema) = schema {
                entries::expect_schema(&self.open[index].info, schema)?;
            }
            return Ok(index);
        }
        self.create_series(key, schema)
    }

    /// Creates a series and opens it. The caller has checked that it does not exist.
    pub(super) fn create_series(
        &mut self,
        key: SeriesKey<'_>,
        schema: Option<&Schema>,
    ) -> Result<usize> {
        let default = Schema::point();
        let schema = schema.unwrap_or(&default);
        entries::expect_room(&self.roots, schema)?;
        if let SeriesKey::Name(name) = key {
            self.check_name_fits(name)?;
            self.expect_no_container(Some(name))?;
        }
        let info = self.changing(|txn| {
            let (roots, pages, tags) = (&mut txn.roots, &mut txn.pages, &mut txn.tags);
            entries::create(roots, pages, tags, key, schema)
        })?;
        Ok(self.open.enter(info, &mut self.write_buffer))
    }

    /// Checks that a series name fits as a key of the catalog: small pages have room only for short keys.
    pub(crate) fn check_name_fits(&self, name: &SeriesName) -> Result<()> {
        let (name, most) = (name.to_string(), self.key_bytes_max());
        if name.len() <= most {
            return Ok(());
        }
        let problem = format!(
            "{} bytes are beyond the {most} that fit the file's small pages",
            name.len()
        );
        Err(Error::from(Cause::Name { name, problem }))
    }

    #[cold]
    #[inline(never)]
    fn open_by_id(&mut self, id: SeriesId) -> Result<usize> {
        self.check_usable()?;
        if let Some(index) = self.open.known(id) {
            self.open.turn_to(index, &mut self.write_buffer);
            return Ok(index);
        }
        let info = entries::info(&self.roots, &self.pages, id)?;
        let info = info.ok_or_else(|| {
            Error::from(Cause::NoSuchSeries {
                wanted: format!("number {}", id.0),
            })
        })?;
        Ok(self.open.enter(info, &mut self.write_buffer))
    }
}
