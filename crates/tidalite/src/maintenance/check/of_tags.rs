//! Checks that the index of tags holds exactly the series of the catalog, each in the sets of its name.

use super::walk::Walk;
use crate::catalog::entries::SeriesInfo;
use crate::catalog::tags::{keys, update};
use crate::types::error::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;

type Series = BTreeMap<SeriesId, Arc<SeriesInfo>>;

impl Walk<'_, '_> {
    /// Every member of every set must be a series whose name belongs in the set. Sets have each member once, so nothing
    /// is missing if there are as many members as the names of all series demand.
    pub(super) fn tags(&mut self, series: &Series) -> Result<()> {
        let mut members = 0;
        let mut wrong = Vec::new();
        let is_whole = self.catalog_is_whole;
        let walked = tidalite_index::check(&self.roots.tags, self.pages, &mut |key, block, set| {
            let parsed = match keys::parse(key) {
                Ok(parsed) => parsed,
                Err(problem) => {
                    wrong.push(problem.to_string());
                    return Ok(());
                }
            };
            members += set.len();
            // One problem for each container, so that a small file cannot cause millions.
            let (mut first, mut more) = (None, 0);
            for low in set {
                let id = SeriesId(u64::from(block >> 16) << 32 | u64::from(low));
                let is_wrong = match series.get(&id) {
                    Some(info) => !update::belongs(&parsed, info.name.as_ref()),
                    None => is_whole,
                };
                if is_wrong && first.is_some() {
                    more += 1;
                } else if is_wrong {
                    first = Some(id);
                }
            }
            if let Some(id) = first {
                let label = series
                    .get(&id)
                    .map_or_else(|| id.to_string(), |info| info.label());
                wrong.push(format!(
                    "{label} is among the series of {parsed}, and {more} more wrongly"
                ));
            }
            Ok(())
        });
        for problem in wrong {
            self.problem(format!("index of tags: {problem}"));
        }
        let walked = walked.map_err(Into::into);
        if self.note("index of tags", walked)?.is_none() || !is_whole {
            return Ok(());
        }
        let mut expected = 0;
        for info in series.values() {
            update::each_key(info.name.as_ref(), &mut |_| expected += 1);
        }
        if members != expected {
            self.problem(format!(
                "index of tags: {members} entries, the names of all series have {expected}"
            ));
        }
        Ok(())
    }
}
