//! Opening or creating a series in a write transaction, with requirements for its columns and its merge policy.

use crate::catalog::entries::{self, SeriesKey};
use crate::series::record::Record;
use crate::series::write::SeriesMut;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesName;
use crate::types::schema::Schema;
use std::borrow::Cow;

/// Requirements for a series that is to be opened, or created if it does not exist; returned by
/// [`WriteTxn::open_series`].
#[must_use = "nothing is opened before `open`"]
pub struct SeriesOpener<'t, 'n> {
    txn: &'t mut WriteTxn,
    name: &'n str,
    schema: Option<Cow<'n, Schema>>,
    merge: Option<MergePolicy>,
    adds_columns: bool,
    creates: bool,
}

impl WriteTxn {
    /// Opens the series with this name, or creates it, step by step. Without further steps, `open` does the same as
    /// [`series`](Self::series).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{MergePolicy, Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.open_series("first").merge(MergePolicy::KeepFirst).open()?;
    /// series.insert(Steps(1), 0.5)?;
    /// series.insert(Steps(1), 0.75)?;
    /// assert_eq!(series.view()?.latest()?.ok_or("no row")?.f64(1), 0.5);
    /// let mut series = tx.open_series("once").merge(MergePolicy::Error).open()?;
    /// series.insert(Steps(1), 0.5)?;
    /// assert_eq!(series.insert(Steps(1), 0.75).map_err(|error| error.time()), Err(Some(1)));
    /// assert!(tx.open_series("absent").must_exist().open().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_series<'n>(&mut self, name: &'n str) -> SeriesOpener<'_, 'n> {
        SeriesOpener {
            txn: self,
            name,
            schema: None,
            merge: None,
            adds_columns: false,
            creates: true,
        }
    }
}

impl<'t, 'n> SeriesOpener<'t, 'n> {
    /// Requires this unit of time and these columns. Without this step, an existing series may have any schema, and a
    /// new one gets the schema that [`WriteTxn::series`] gives it.
    pub fn schema(mut self, schema: &'n Schema) -> Self {
        self.schema = Some(Cow::Borrowed(schema));
        self
    }

    /// Requires the schema of a record type.
    pub fn record<R: Record>(mut self) -> Self {
        self.schema = Some(Cow::Owned(R::schema()));
        self
    }

    /// Requires this merge policy. Without this step, an existing series may have any policy, and a new one replaces
    /// rows.
    pub fn merge(mut self, merge: MergePolicy) -> Self {
        self.merge = Some(merge);
        self
    }

    /// Allows that an existing series lacks the last columns of the schema, and adds these columns. A program whose
    /// records got further fields at the end can thus continue with its series.
    pub fn add_columns(mut self) -> Self {
        self.adds_columns = true;
        self
    }

    /// Requires that the series exists.
    pub fn must_exist(mut self) -> Self {
        self.creates = false;
        self
    }

    /// Opens the series with these requirements, or creates it.
    ///
    /// # Errors
    /// `InvalidName` for an invalid name; `Schema` if the series exists with another schema or another merge policy
    /// ([`SeriesMut::set_merge`] changes the policy), with `add_columns` if the series' columns are not the first ones
    /// of the schema; `NotFound` if the series had to exist; errors of the file.
    pub fn open(self) -> Result<SeriesMut<'t>> {
        let parsed = SeriesName::parse(self.name)?;
        let txn = self.txn;
        let Some(id) = entries::find(&txn.roots, &txn.pages, SeriesKey::Name(&parsed))? else {
            if !self.creates {
                let wanted = parsed.to_string();
                return Err(Error::from(Cause::NoSuchSeries { wanted }));
            }
            let key = SeriesKey::Name(&parsed);
            let index = txn.create_series(key, self.schema.as_deref())?;
            let mut series = SeriesMut::new(txn, index);
            if let Some(merge) = self.merge {
                series.set_merge(merge)?;
            }
            return Ok(series);
        };
        let mut series = txn.series_by_id(id)?;
        let own = series.info();
        if let Some(merge) = self.merge.filter(|merge| *merge != own.merge) {
            let (own, requested) = (own.merge.name(), merge.name());
            let problem =
                format!("series {parsed} has the merge policy {own}, {requested} was requested");
            return Err(Error::from(Cause::Schema { problem }));
        }
        let Some(schema) = self.schema else {
            return Ok(series);
        };
        let added = schema.columns.strip_prefix(&own.schema.columns[..]);
        match added.filter(|_| self.adds_columns && own.schema.unit == schema.unit) {
            Some([]) => {}
            Some(added) => series.add_columns(added)?,
            None => entries::expect_schema(own, &schema)?,
        }
        Ok(series)
    }
}
