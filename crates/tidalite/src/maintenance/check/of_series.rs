//! Check of tables whose keys begin with a series id: texts of rows, and annotations. The check skips damaged pages of
//! such a table, and reports each damage with the series whose keys are affected.

use super::finding::{Finding, Place};
use super::walk::Walk;
use crate::catalog::annotations;
use crate::catalog::entries::SeriesInfo;
use crate::types::error::Result;
use crate::types::interval::EVER;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_kv::Damage;

type Series = BTreeMap<SeriesId, Arc<SeriesInfo>>;

impl Walk<'_, '_> {
    /// Reads a table by repeated calls of `read`, which reads from the given key on and moves the key forward. After
    /// damage it continues after the damaged page. Returns false if the table was not read completely.
    pub(super) fn around(
        &mut self,
        what: &str,
        broken: &[Damage],
        read: &mut dyn FnMut(&mut Self, &mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        let mut at = Vec::new();
        loop {
            match read(self, &mut at) {
                // This damage was already reported together with the keys that it affects.
                Err(error) if error.corrupt().is_some() && !broken.is_empty() => {}
                read => return Ok(self.note(what, read)?.is_some() && broken.is_empty()),
            }
            let ends = broken.iter().filter_map(|damage| damage.to.as_ref());
            let Some(end) = ends.filter(|end| **end > at).min() else {
                return Ok(false);
            };
            at.clone_from(end);
        }
    }

    /// Checks the texts of rows: each must be readable, must be found by its lookup, and must belong to a text column.
    pub(super) fn texts(&mut self, series: &Series, broken: &[Damage]) -> Result<()> {
        self.tell_of_series("its texts", series, broken, Some(EVER));
        let is_text = |(id, column): (SeriesId, usize)| {
            let info = series.get(&id);
            let column = info.and_then(|info| info.schema.columns.get(column));
            column.is_some_and(|column| column.ty.is_text())
        };
        let is_whole = self.catalog_is_whole;
        self.around("texts", broken, &mut |walk, at| {
            let (pages, tree) = (walk.pages, &walk.roots.texts);
            crate::catalog::texts::check(pages, tree, at, &is_text, &mut |(id, column), problem| {
                match series.get(&id) {
                    Some(info) => {
                        let place = Place::series(info, Some(column), Some(EVER));
                        walk.find(Finding::new(place, problem));
                    }
                    None if is_whole => walk.problem(problem),
                    None => {}
                }
            })
        })?;
        Ok(())
    }

    /// Checks that each annotation is readable and belongs to an existing series.
    pub(super) fn annotations(&mut self, series: &Series, broken: &[Damage]) -> Result<()> {
        self.tell_of_series("its annotations", series, broken, None);
        let is_whole = self.catalog_is_whole;
        self.around("annotations", broken, &mut |walk, at| {
            let (pages, tree) = (walk.pages, &walk.roots.annotations);
            annotations::check_all(tree, pages, at, &mut |found| match found {
                Ok((id, key)) if is_whole && !series.contains_key(&id) => {
                    walk.problem(format!(
                        "annotation {key} of {id}, which is not in the catalog"
                    ));
                }
                Ok(_) => {}
                Err(problem) => walk.problem(problem),
            })
        })?;
        Ok(())
    }

    /// Reports each damage of a table whose keys begin with a series id, once for each affected series.
    fn tell_of_series(
        &mut self,
        what: &str,
        series: &Series,
        broken: &[Damage],
        span: Option<(i64, i64)>,
    ) {
        for damage in broken {
            let (first, last) = ids_of(damage);
            for info in series.range(first..=last.max(first)).map(|(_, info)| info) {
                let place = Place::series(info, None, span);
                let problem = format!("{what}: {}", damage.corrupt);
                self.find(Finding::new(place, problem).at(damage.corrupt.at));
            }
        }
    }
}

/// The first and the last series that may have keys in the damaged range.
fn ids_of(damage: &Damage) -> (SeriesId, SeriesId) {
    let id = |key: &[u8]| {
        let mut bytes = [0; 8];
        let len = key.len().min(8);
        bytes[..len].copy_from_slice(&key[..len]);
        u64::from_be_bytes(bytes)
    };
    // The end of the range is exclusive: if the end key is just a series id, the series before it is the last affected
    // one.
    let last = damage.to.as_ref().map_or(u64::MAX, |to| {
        let id = id(to);
        if to.len() > 8 {
            id
        } else {
            id.saturating_sub(1)
        }
    });
    (SeriesId(id(&damage.from)), SeriesId(last))
}
