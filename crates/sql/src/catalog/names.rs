//! The names of tables. Each metric is a table with its name; metrics with a common prefix, such as `p.a` and `p.b`,
//! also form a wide table `p`.
//!
//! The tables for a list of series are kept for later statements until the list changes. No snapshot is retained: every
//! call passes one that has this list.

use crate::error::Result;
use crate::metric::layout::{Layout, Source};
use crate::relational::declared;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidalite::{AnyRead, CatalogVersion, SeriesName};

/// The tables for one list of series.
pub(crate) struct Names {
    version: CatalogVersion,
    metrics: OnceLock<Vec<String>>,
    layouts: Mutex<HashMap<String, Option<Arc<Layout>>>>,
}

/// The tables for the list of series that was requested last.
#[derive(Default)]
pub(crate) struct NewestNames(Mutex<Option<Arc<Names>>>);

impl NewestNames {
    /// The names of the tables in a snapshot.
    pub(crate) fn of(&self, snapshot: &AnyRead) -> Arc<Names> {
        let version = snapshot.catalog_version();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|names| names.version == version) {
            Some(names) => Arc::clone(names),
            None => Arc::clone(known.insert(Arc::new(Names::new(version)))),
        }
    }
}

/// The meaning of a name.
pub(crate) enum Named {
    Metric(String),
    Wide(String),
}

impl Names {
    fn new(version: CatalogVersion) -> Self {
        Self {
            version,
            metrics: OnceLock::new(),
            layouts: Mutex::default(),
        }
    }

    /// All metrics, ascending.
    pub(crate) fn metrics(&self, snapshot: &AnyRead) -> Result<&[String]> {
        if self.metrics.get().is_none() {
            let metrics = snapshot.metrics("", usize::MAX)?;
            let mut names = declared::metrics(snapshot)?;
            names.extend(metrics.into_iter().map(|metric| metric.text));
            let metrics = names.into_iter().collect();
            // If another thread has set it first, its list is the same.
            drop(self.metrics.set(metrics));
        }
        Ok(self.metrics.get().map_or(&[], Vec::as_slice))
    }

    /// The names of wide tables: the part of a metric before its last dot.
    pub(crate) fn wide_tables(&self, snapshot: &AnyRead) -> Result<BTreeSet<&str>> {
        let metrics = self.metrics(snapshot)?;
        let prefixes = metrics
            .iter()
            .filter_map(|metric| Some(metric.rsplit_once('.')?.0));
        let is_metric = |prefix: &str| {
            metrics
                .binary_search_by(|metric| metric.as_str().cmp(prefix))
                .is_ok()
        };
        Ok(prefixes.filter(|prefix| !is_metric(prefix)).collect())
    }

    /// The names of schemas: the first part of names that have two parts.
    pub(crate) fn schemas(&self, snapshot: &AnyRead) -> Result<BTreeSet<&str>> {
        let metrics = self.metrics(snapshot)?.iter().map(String::as_str);
        let names = metrics.chain(self.wide_tables(snapshot)?);
        let schemas =
            names.filter_map(|name| name.split_once('.').filter(|(_, rest)| !rest.contains('.')));
        Ok(schemas.map(|(schema, _)| schema).collect())
    }

    /// Whether a metric or a wide table has exactly this name.
    pub(crate) fn has(&self, snapshot: &AnyRead, name: &str) -> Result<bool> {
        let metrics = self.metrics(snapshot)?;
        let found = metrics.binary_search_by(|metric| metric.as_str().cmp(name));
        Ok(found.is_ok() || self.wide_tables(snapshot)?.contains(name))
    }

    /// Finds the table with a name: exactly this name, or else the only name that differs just in case.
    pub(crate) fn find(&self, snapshot: &AnyRead, name: &str) -> Result<Option<Named>> {
        let metrics = self.metrics(snapshot)?;
        if metrics
            .binary_search_by(|metric| metric.as_str().cmp(name))
            .is_ok()
        {
            return Ok(Some(Named::Metric(name.to_owned())));
        }
        let wide = self.wide_tables(snapshot)?;
        if wide.contains(name) {
            return Ok(Some(Named::Wide(name.to_owned())));
        }
        let lower = name.to_lowercase();
        let is_like = |other: &str| other.to_lowercase() == lower;
        let mut alike = metrics
            .iter()
            .filter(|metric| is_like(metric))
            .map(|metric| Named::Metric(metric.clone()))
            .chain(
                wide.into_iter()
                    .filter(|wide| is_like(wide))
                    .map(|wide| Named::Wide(wide.to_owned())),
            );
        let found = alike.next();
        Ok(if alike.next().is_none() { found } else { None })
    }

    /// The table with this name; `None` if it does not exist.
    pub(crate) fn layout(&self, snapshot: &AnyRead, name: &str) -> Result<Option<Arc<Layout>>> {
        let known = |layouts: &Mutex<HashMap<_, _>>| {
            let layouts = layouts.lock().unwrap_or_else(PoisonError::into_inner);
            layouts.get(name).cloned()
        };
        if let Some(layout) = known(&self.layouts) {
            return Ok(layout);
        }
        let layout = match self.find(snapshot, name)? {
            None => None,
            Some(Named::Metric(metric)) => {
                Some(self.layout_of(snapshot, &metric, &[(None, &metric)])?)
            }
            Some(Named::Wide(prefix)) => {
                let metrics = self.metrics(snapshot)?.iter();
                let leaves = metrics.filter_map(|metric| {
                    let (own, leaf) = metric.rsplit_once('.')?;
                    (own == prefix).then_some((Some(leaf), metric.as_str()))
                });
                Some(self.layout_of(snapshot, &prefix, &leaves.collect::<Vec<_>>())?)
            }
        };
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        layouts.insert(name.to_owned(), layout.clone());
        Ok(layout)
    }

    fn layout_of(
        &self,
        snapshot: &AnyRead,
        table: &str,
        metrics: &[(Option<&str>, &str)],
    ) -> Result<Arc<Layout>> {
        let mut sources = Vec::with_capacity(metrics.len());
        for &(leaf, metric) in metrics {
            // The printed form of a metric's name is a pattern that selects all its series.
            let pattern = SeriesName::new(metric, [])?.to_string();
            sources.push(Source {
                metric: metric.to_owned(),
                leaf: leaf.map(str::to_owned),
                declared: declared::find(snapshot, metric)?
                    .map(|declared| (declared.tags, declared.schema)),
                series: snapshot.list(&pattern)?,
            });
        }
        Ok(Arc::new(Layout::new(table, sources)?))
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}
