//! A salvage in progress: the damaged file, the new one, and the mapping between them.

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

/// The state of a salvage while it runs.
pub(super) struct Rescue<'r, 'a> {
    pub(super) raw: &'r RawFile,
    /// The roots of the newest commit, if they could be read.
    pub(super) roots: Option<Roots>,
    pub(super) tx: WriteTxn,
    pub(super) found: Collected,
    /// Maps each series id of the damaged file to the id in the new file and the index in the report.
    pub(super) ids: HashMap<SeriesId, (SeriesId, usize)>,
    /// Catalog entries of the series, by their ids in the damaged file.
    pub(super) infos: HashMap<SeriesId, SeriesInfo>,
    /// Whether `infos` has all series of the damaged file.
    pub(super) infos_are_whole: bool,
    /// Number of columns of each series, by its id in the damaged file.
    pub(super) columns: HashMap<SeriesId, usize>,
    pub(super) text_cache: TextCache,
    /// Series ids of the new file, each with the merge policy to set once all rows are written.
    pub(super) merges: Vec<(SeriesId, MergePolicy)>,
    /// For each series, the first and last time and the birth of each of its leaves; filled only if headers are the
    /// only source.
    pub(super) spans: HashMap<SeriesId, Vec<(i64, i64, u64)>>,
    pub(super) report: SalvageReport,
    pub(super) running: Running<'a>,
}

impl Rescue<'_, '_> {
    pub(super) fn lose_file(&mut self, problem: impl ToString) {
        self.report.lose(Finding::new(Place::File, problem));
    }
}
