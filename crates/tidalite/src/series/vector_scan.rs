//! Vectors that the caller requests one after the other, so that it can stop between two of them.

use crate::series::figures::Figures;
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::vectors::Vector;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use crate::types::schema::Schema;
use tidalite_series::{ReverseScan, Scan};

/// A scan of the rows of a [`Query`], up to 1024 at a time; returned by [`Query::vectors`].
pub struct VectorScan<'s> {
    steps: Steps<'s>,
    schema: &'s Schema,
}

enum Steps<'s> {
    Forward(Scan<'s, Pages<'s>>),
    Backward(ReverseScan<'s, Pages<'s>>),
}

impl<'s, F: Figures> Query<'s, F> {
    /// Creates a scan that returns the vectors of the requested [columns](Self::columns) one by one, while
    /// [`for_each_vector`](Self::for_each_vector) delivers all of them. With [filters](Self::filter), a forward scan
    /// skips vectors in which no row can match; the delivered vectors may contain rows that do not match.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut load = tx.series("load")?;
    /// for time in 0..5000 {
    ///     load.insert(Steps(time), time as f64)?;
    /// }
    /// let load = load.view()?;
    /// let mut newest = load.query(..).reverse().columns(["value"]).vectors()?;
    /// let vector = newest.next()?.ok_or("no rows")?;
    /// assert_eq!(vector.times().last(), Some(&4999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the steps that built the query.
    pub fn vectors(&self) -> Result<VectorScan<'s>> {
        let (from, to) = self.ends()?;
        let columns = self.wanted_columns();
        let view = self.series.view();
        let steps = match (self.direction, self.filters.is_empty()) {
            (Direction::Forward, true) => Steps::Forward(view.scan(from, to, &columns)),
            (Direction::Forward, false) => {
                let matching = view.matching(self.filters.clone());
                Steps::Forward(matching.scan(from, to, &columns))
            }
            (Direction::Backward, _) => Steps::Backward(view.scan_reverse(from, to, &columns)),
        };
        Ok(VectorScan {
            steps,
            schema: &self.series.info().schema,
        })
    }
}

impl VectorScan<'_> {
    /// The next rows in the direction of the query, ascending within the vector; `None` after the last.
    ///
    /// # Errors
    /// A damaged or unreadable block; the scan returns no more rows then.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step that lends, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Vector<'_>>> {
        let schema = self.schema;
        let inner = match &mut self.steps {
            Steps::Forward(scan) => scan.next()?,
            Steps::Backward(scan) => scan.next()?,
        };
        Ok(inner.map(|inner| Vector { inner, schema }))
    }
}
