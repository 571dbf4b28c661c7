//! Catalogs and schemas, as the planner asks for them.
//!
//! A name with dots can be written in one piece, `"wind.speed"`, or as schema and table, `wind.speed`: the schema `wind`
//! contains every table whose name begins with `wind.`.

use crate::catalog::names::Names;
use crate::catalog::series::{self, SeriesList};
use crate::error::{Error, ErrorKind};
use crate::files::listing;
use crate::metric::table::SeriesTable;
use crate::ordered::table::OrderedTable;
use crate::relational::table::{Purpose, RelationTable};
use crate::slot::Slot;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::execution::context::SessionState;
use std::sync::Arc;

/// The catalog of the database itself.
pub(crate) const CATALOG: &str = "tidalite";

/// The schema of names without a schema.
pub(crate) const PUBLIC: &str = "public";

/// The tables of a snapshot.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) names: Arc<Names>,
    pub(crate) slot: Slot,
    /// The session that reads files; `None` if statements may not.
    pub(crate) files: Option<Arc<SessionState>>,
    /// The table that the statement changes, if it changes one.
    pub(crate) changed: Option<(Arc<str>, Purpose)>,
}

impl Tables {
    /// The table with this full name.
    pub(crate) fn table(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        let changed = self.changed.as_ref().filter(|(own, _)| **own == *name);
        let purpose = changed.map_or(Purpose::Read, |(_, purpose)| *purpose);
        let table: Option<Arc<dyn TableProvider>> =
            match RelationTable::find(name, &self.slot, purpose)? {
                Some(relation) => Some(Arc::new(relation)),
                None => match OrderedTable::find(name, &self.slot)? {
                    Some(ordered) => Some(Arc::new(ordered)),
                    None => None,
                },
            };
        let snapshot = self.slot.snapshot()?;
        if let Some(layout) = self.names.layout(&snapshot, name)?
            && (table.is_none() || self.names.has(&snapshot, name)?)
        {
            if table.is_some() {
                let problem = format!(
                    "{name} is the name of a metric and of a table; give one of them another name"
                );
                return Err(Error::new(ErrorKind::Plan, problem));
            }
            let slot = self.slot.clone();
            return Ok(Some(Arc::new(SeriesTable { layout, slot })));
        }
        if table.is_some() {
            return Ok(table);
        }
        if name == series::SERIES {
            return Ok(Some(Arc::new(SeriesList::new(self.slot.clone()))));
        }
        Ok(None)
    }
}

impl Tables {
    /// Whether a table, a metric or anything else of the database has this name.
    pub(crate) fn exists(&self, name: &str) -> crate::Result<bool> {
        let snapshot = self.slot.snapshot()?;
        Ok(name == series::SERIES
            || snapshot.table_types(name)?.is_some()
            || snapshot.is_set_table(name)?.is_some()
            || self.names.has(&snapshot, name)?)
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl CatalogProviderList for Tables {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let prefix = if name == CATALOG {
            String::new()
        } else {
            format!("{name}.")
        };
        Some(Arc::new(Catalog {
            tables: self.clone(),
            prefix,
        }))
    }
}

/// The tables whose names begin with a prefix: none, or the first part of a name of three.
#[derive(Debug)]
struct Catalog {
    tables: Tables,
    prefix: String,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let tables = &self.tables;
        let snapshot = tables.slot.snapshot();
        let schemas = snapshot.and_then(|snapshot| {
            let schemas = tables.names.schemas(&snapshot)?.into_iter();
            Ok(schemas.map(str::to_owned).collect::<Vec<_>>())
        });
        let schemas = schemas.unwrap_or_default();
        [PUBLIC.to_owned()].into_iter().chain(schemas).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let prefix = match name {
            PUBLIC if self.prefix.is_empty() => String::new(),
            name => format!("{}{name}.", self.prefix),
        };
        Some(Arc::new(Schema {
            tables: self.tables.clone(),
            prefix,
        }))
    }
}

#[derive(Debug)]
struct Schema {
    tables: Tables,
    prefix: String,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        let mut tables = self.names().unwrap_or_default();
        tables.sort_unstable();
        tables.dedup();
        // A table that cannot be opened because of a clash of names must not keep others from being listed.
        tables.retain(|name| self.tables.table(&format!("{}{name}", self.prefix)).is_ok());
        tables
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let full = format!("{}{name}", self.prefix);
        if let Some(table) = self.tables.table(&full)? {
            return Ok(Some(table));
        }
        match &self.tables.files {
            Some(session) if self.prefix.is_empty() => listing::table(name, session).await,
            _ => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        let table = self.tables.table(&format!("{}{name}", self.prefix));
        table.is_ok_and(|table| table.is_some())
    }
}

impl Schema {
    /// The names of the tables, in any order.
    fn names(&self) -> crate::Result<Vec<String>> {
        let snapshot = self.tables.slot.snapshot()?;
        let names = &self.tables.names;
        let metrics = names.metrics(&snapshot)?.iter().map(String::as_str);
        let all = metrics.chain(names.wide_tables(&snapshot)?);
        let own = all.filter_map(|name| name.strip_prefix(&self.prefix));
        let own = own.filter(|rest| self.prefix.is_empty() || !rest.contains('.'));
        let mut tables: Vec<String> = own.map(str::to_owned).collect();
        if self.prefix.is_empty() {
            tables.push(series::SERIES.to_owned());
            tables.extend(OrderedTable::names(&snapshot)?);
            tables.extend(RelationTable::names(&snapshot)?);
        }
        Ok(tables)
    }
}
