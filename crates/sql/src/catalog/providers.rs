//! Implements the catalogs and schemas that the planner requires.
//!
//! A name with dots can be written in one piece, `"wind.speed"`, or as schema and table, `wind.speed`: the schema
//! `wind` contains every table whose name begins with `wind.`. An attached file appears both as a catalog and as a
//! schema that contains its tables. Its name wins over tables whose names begin with the same part.

pub(crate) use crate::catalog::files::{CATALOG, PUBLIC};
use crate::catalog::files::{Files, INFORMATION_SCHEMA};
use crate::catalog::names::Names;
use crate::catalog::read_only::ReadOnly;
use crate::catalog::series;
use crate::catalog::system;
use crate::catalog::views::{self, Views};
use crate::error::{Error, ErrorKind};
use crate::files::listing;
use crate::metric::table::SeriesTable;
use crate::ordered::table::OrderedTable;
use crate::relational::table::{Purpose, RelationTable};
use crate::slot::Slot;
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::ViewTable;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableType};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::{AnyRead, Database};

/// In the query of a RETURNING clause, the name of the table with the rows that the statement has written.
pub(crate) const RETURNED: &str = "__returned";

/// The tables of a snapshot.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) names: Arc<Names>,
    pub(crate) slot: Slot,
    /// The session with which files of rows are read; `None` if statements may not read files.
    pub(crate) reader: Option<Arc<SessionState>>,
    /// The table that the statement changes, if any.
    pub(crate) changed: Option<(Arc<str>, Purpose)>,
    /// The rows that the statement has written, for its RETURNING clause.
    pub(crate) returned: Option<Arc<dyn TableProvider>>,
    /// The database, for the tables that describe it.
    pub(crate) database: Option<Database>,
    pub(crate) views: Views,
    pub(crate) attached: Attached,
    /// Whether these are the tables of an attached file.
    pub(crate) is_read_only: bool,
}

/// The attached files, as a statement sees them. Each file is opened when the statement first refers to it.
#[derive(Clone, Default)]
pub(crate) struct Attached {
    files: Files,
    open: Arc<Mutex<BTreeMap<String, Tables>>>,
}

impl Attached {
    /// The files for a new statement.
    pub(crate) fn new(files: &Files) -> Self {
        Self {
            files: files.clone(),
            open: Arc::default(),
        }
    }

    /// The tables of the file with this name. The whole statement, which runs in the slot `main`, reads one snapshot of
    /// the file.
    fn tables(&self, name: &str, (main, views): (&Slot, &Views)) -> crate::Result<Option<Tables>> {
        let Some(file) = self.files.get(name) else {
            return Ok(None);
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = open.get(name) {
            return Ok(Some(Tables {
                views: views.elsewhere(),
                ..tables.clone()
            }));
        }
        let snapshot = AnyRead::from(file.database.begin_read()?);
        let tables = Tables {
            names: file.names_of(&snapshot),
            slot: Slot::default(),
            reader: None,
            changed: None,
            returned: None,
            database: Some(file.database.clone()),
            views: views.elsewhere(),
            attached: Self::default(),
            is_read_only: true,
        };
        main.keep(tables.slot.run(snapshot))?;
        open.insert(name.to_owned(), tables.clone());
        Ok(Some(tables))
    }
}

impl Tables {
    /// The table with this full name.
    pub(crate) fn table(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        Ok(match self.own_table(name)? {
            Some(table) if self.is_read_only => Some(Arc::new(ReadOnly(table))),
            table => table,
        })
    }

    fn own_table(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        if let Some(returned) = self.returned.as_ref().filter(|_| name == RETURNED) {
            return Ok(Some(Arc::clone(returned)));
        }
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
            return Ok(Some(Arc::new(series::table(self.slot.clone()))));
        }
        let table = system::table(name, self.database.as_ref());
        Ok(table.map(|table| Arc::new(table) as Arc<dyn TableProvider>))
    }
}

impl Tables {
    /// The tables of each attached file, with the name of the file.
    pub(crate) fn attached_tables(&self) -> crate::Result<Vec<(String, Self)>> {
        let main = (&self.slot, &self.views);
        let mut found = Vec::new();
        for name in self.attached.files.names() {
            let tables = self.attached.tables(name, main)?;
            found.extend(tables.map(|tables| (name.clone(), tables)));
        }
        Ok(found)
    }

    /// Finds the tables that contain a full name, and the name within them. These are the tables of an attached file if
    /// the name begins with the name of the file and the database has no table with the full name.
    pub(crate) fn of_file<'n>(&self, name: &'n str) -> crate::Result<(Self, &'n str)> {
        if let Some((file, rest)) = name.split_once('.')
            && !self.exists(name)?
            && let Some(tables) = self.attached.tables(file, (&self.slot, &self.views))?
        {
            return Ok((tables, rest));
        }
        Ok((self.clone(), name))
    }

    /// The view with this name, as a table; `None` if the view does not exist.
    pub(crate) async fn view(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        let Some(query) = views::query(&self.slot.snapshot()?, name)? else {
            return Ok(None);
        };
        let plan = match self.planned_view(name, &query).await {
            Err(error) if self.views.are_listed && error.database().is_none() => {
                Some(LogicalPlanBuilder::empty(false).build()?)
            }
            planned => planned?,
        };
        let table = |plan| Arc::new(ViewTable::new(plan, Some(query))) as Arc<dyn TableProvider>;
        Ok(plan.map(table))
    }

    /// The plan of a view's query; `None` if tables are only being listed.
    pub(crate) async fn planned_view(
        &self,
        view: &str,
        query: &str,
    ) -> crate::Result<Option<LogicalPlan>> {
        let Some(planner) = self.views.planner() else {
            return Ok(None);
        };
        let tables = Self {
            changed: None,
            returned: None,
            views: self.views.with(view)?,
            ..self.clone()
        };
        let plan = planner.plan(query, Arc::new(tables)).await;
        plan.map(Some)
            .map_err(|error| views::problem_of(view, error))
    }

    /// Whether a table, a metric, a view or any other object of the database has this name.
    pub(crate) fn exists(&self, name: &str) -> crate::Result<bool> {
        let snapshot = self.slot.snapshot()?;
        Ok(name == series::SERIES
            || system::is_named(name)
            || snapshot.table_types(name)?.is_some()
            || snapshot.is_set_table(name)?.is_some()
            || self.names.has(&snapshot, name)?
            || views::query(&snapshot, name)?.is_some())
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
        let attached = self.attached.files.names().cloned();
        [CATALOG.to_owned()].into_iter().chain(attached).collect()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        if self.attached.files.get(name).is_some() {
            return Some(Arc::new(Catalog {
                tables: self.clone(),
                prefix: String::new(),
                file: Some(name.to_owned()),
            }));
        }
        let prefix = if name == CATALOG {
            String::new()
        } else {
            format!("{name}.")
        };
        Some(Arc::new(Catalog {
            tables: self.clone(),
            prefix,
            file: None,
        }))
    }
}

/// The tables, of the database or of an attached file, whose names begin with a prefix. The prefix is the first part of
/// names with three parts, or empty.
#[derive(Debug)]
struct Catalog {
    tables: Tables,
    prefix: String,
    file: Option<String>,
}

impl Catalog {
    /// The tables of the database or of the file.
    fn tables(&self) -> crate::Result<Tables> {
        let Some(file) = &self.file else {
            return Ok(self.tables.clone());
        };
        let main = (&self.tables.slot, &self.tables.views);
        let tables = self.tables.attached.tables(file, main)?;
        tables.ok_or_else(|| Error::new(ErrorKind::Plan, format!("no file is attached as {file}")))
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let schemas = self.tables().and_then(|tables| {
            let snapshot = tables.slot.snapshot()?;
            let schemas = tables.names.schemas(&snapshot)?.into_iter();
            Ok(schemas.map(str::to_owned).collect::<Vec<_>>())
        });
        let schemas = schemas.unwrap_or_default();
        [PUBLIC.to_owned()].into_iter().chain(schemas).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == INFORMATION_SCHEMA && self.prefix.is_empty() {
            let mut tables = self.tables.clone();
            tables.views.are_listed = true;
            return Some(Arc::new(InformationSchemaProvider::new(Arc::new(tables))));
        }
        let is_file = self.prefix.is_empty() && self.tables.attached.files.get(name).is_some();
        let (prefix, file) = match name {
            _ if self.file.is_none() && is_file => (String::new(), Some(name.to_owned())),
            PUBLIC if self.prefix.is_empty() => (String::new(), self.file.clone()),
            name => (format!("{}{name}.", self.prefix), self.file.clone()),
        };
        let catalog = Self {
            tables: self.tables.clone(),
            prefix: prefix.clone(),
            file,
        };
        Some(Arc::new(Schema { catalog, prefix }))
    }
}

#[derive(Debug)]
struct Schema {
    catalog: Catalog,
    prefix: String,
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        let mut tables = self.names().unwrap_or_default();
        tables.sort_unstable();
        tables.dedup();
        // A table that cannot be opened because of a name conflict must not prevent other tables from being listed.
        tables.retain(|name| self.find(name).is_ok());
        tables
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.find(name)? {
            return Ok(Some(table));
        }
        let tables = self.catalog.tables()?;
        if let Some(view) = tables.view(&format!("{}{name}", self.prefix)).await? {
            return Ok(Some(view));
        }
        match &tables.reader {
            Some(session) if self.prefix.is_empty() => listing::table(name, session).await,
            _ => Ok(None),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if let Some(table) = self.find(name)? {
            return Ok(Some(table.table_type()));
        }
        // A view whose query cannot be planned must not prevent other views from being listed.
        if self.has_view(name)? {
            return Ok(Some(TableType::View));
        }
        Ok(self.table(name).await?.map(|table| table.table_type()))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|table| table.is_some()) || self.has_view(name).unwrap_or(false)
    }
}

impl Schema {
    fn find(&self, name: &str) -> crate::Result<Option<Arc<dyn TableProvider>>> {
        self.catalog
            .tables()?
            .table(&format!("{}{name}", self.prefix))
    }

    fn has_view(&self, name: &str) -> crate::Result<bool> {
        let snapshot = self.catalog.tables()?.slot.snapshot()?;
        let view = views::query(&snapshot, &format!("{}{name}", self.prefix))?;
        Ok(view.is_some())
    }

    /// The names of the tables, in arbitrary order.
    fn names(&self) -> crate::Result<Vec<String>> {
        let tables = self.catalog.tables()?;
        let snapshot = tables.slot.snapshot()?;
        let names = &tables.names;
        let metrics = names.metrics(&snapshot)?.iter().map(String::as_str);
        let all = metrics.chain(names.wide_tables(&snapshot)?);
        let own = all.filter_map(|name| name.strip_prefix(&self.prefix));
        let own = own.filter(|rest| self.prefix.is_empty() || !rest.contains('.'));
        let mut tables: Vec<String> = own.map(str::to_owned).collect();
        if self.prefix.is_empty() {
            let system = [series::SERIES, system::STATS, system::PINS];
            tables.extend(system.map(str::to_owned));
            tables.extend(OrderedTable::names(&snapshot)?);
            tables.extend(RelationTable::names(&snapshot)?);
            tables.extend(views::names(&snapshot)?);
        }
        Ok(tables)
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tables({:?})", self.slot)
    }
}
