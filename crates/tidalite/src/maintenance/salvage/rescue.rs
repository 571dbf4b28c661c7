//! A rescue under way: the damaged file, the new one, and what is known of either.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::roots::Roots;
use crate::catalog::texts::TextCache;
use crate::maintenance::check::{Finding, Place};
use crate::maintenance::salvage::collect::Collected;
use crate::maintenance::salvage::report::SalvageReport;
use crate::maintenance::watch::Running;
use crate::txn::write::WriteTxn;
use crate::types::merge_policy::MergePolicy;
use std::collections::HashMap;
use tidalite_base::SeriesId;
use tidalite_pager::RawFile;

/// A rescue under way.
pub(super) struct Rescue<'r, 'a> {
    pub(super) raw: &'r RawFile,
    /// The roots of the newest record, where there is one.
    pub(super) roots: Option<Roots>,
    pub(super) tx: WriteTxn,
    pub(super) found: Collected,
    /// The damaged file's numbers of series and the new one's, with the place in the report.
    pub(super) ids: HashMap<SeriesId, (SeriesId, usize)>,
    /// What the damaged file says of its series, by its numbers.
    pub(super) infos: HashMap<SeriesId, SeriesInfo>,
    /// Of all its series.
    pub(super) infos_are_whole: bool,
    /// Columns of each series, by the damaged file's number.
    pub(super) columns: HashMap<SeriesId, usize>,
    pub(super) text_cache: TextCache,
    /// The new file's numbers of series, with the policy that each is to have in the end.
    pub(super) merges: Vec<(SeriesId, MergePolicy)>,
    /// Times for which a leaf spoke, and its birth; kept where headers are all there is.
    pub(super) spans: HashMap<SeriesId, Vec<(i64, i64, u64)>>,
    pub(super) report: SalvageReport,
    pub(super) running: Running<'a>,
}

impl Rescue<'_, '_> {
    pub(super) fn lose_file(&mut self, problem: impl ToString) {
        self.report.lose(Finding::new(Place::File, problem));
    }
}
