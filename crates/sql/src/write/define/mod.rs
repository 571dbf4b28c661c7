//! CREATE, ALTER and DROP statements.
//!
//! ```text
//! names    names of tables, columns and indexes
//! schema   the columns of CREATE TABLE as the schema of a relation
//! alter    ALTER TABLE
//! drop     DROP TABLE and TRUNCATE
//! view     CREATE VIEW and DROP VIEW
//! ```

mod alter;
mod drop;
pub(crate) mod names;
mod schema;
mod view;

use crate::catalog::providers::Tables;
use crate::catalog::views;
use crate::error::Result;
use crate::relational::declared;
use crate::session::Planner;
use crate::write::define::alter::{Alteration, alteration, apply};
use crate::write::define::drop::{Dropped, dropped};
use crate::write::define::names::{
    expect_column, full_name, plan_error, relation_of, syntax, table_of_index,
};
use crate::write::define::schema::{guids, planned, schema_of, series_options, unique_names};
use crate::write::relation;
use datafusion::logical_expr::{CreateMemoryTable, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, ObjectName, ObjectType};
use tidalite::relation::{Column, ColumnType, Index, Schema};
use tidalite::{SeriesName, WriteTxn};

/// A planned change of tables.
pub(crate) enum Definition {
    Create {
        name: String,
        schema: Schema,
        /// The query that returns the rows of CREATE TABLE ... AS.
        rows: Option<LogicalPlan>,
    },
    CreateIndex {
        table: String,
        index: Index,
    },
    DropIndex {
        table: String,
        index: String,
    },
    Alter {
        table: String,
        operations: Vec<Alteration>,
    },
    CreateView {
        name: String,
        query: String,
    },
    DropViews(Vec<String>),
    /// Drops or empties tables.
    Drop(Vec<Dropped>),
    Empty(Vec<Dropped>),
    /// There is nothing to do, because of IF EXISTS or IF NOT EXISTS.
    Nothing,
}

impl Definition {
    /// Plans a statement on these tables.
    pub(crate) async fn plan(
        statement: ast::Statement,
        tables: &Tables,
        planner: &Planner,
    ) -> Result<Self> {
        match statement {
            ast::Statement::CreateTable(create) => Self::create(create, tables, planner).await,
            ast::Statement::CreateView(create) => {
                let name = full_name(&create.name)?;
                let query = view::created(&name, create, tables, planner).await?;
                Ok(query.map_or(Self::Nothing, |query| Self::CreateView { name, query }))
            }
            ast::Statement::CreateIndex(create) => Self::create_index(&create, tables),
            ast::Statement::AlterTable(alter) => Self::alter(alter, tables, planner).await,
            ast::Statement::Drop {
                object_type,
                if_exists,
                names,
                cascade: false,
                table,
                ..
            } => match object_type {
                ObjectType::Table => Ok(Self::Drop(dropped(&names, if_exists, tables)?)),
                ObjectType::View => {
                    let names = names.iter().map(full_name).collect::<Result<_>>()?;
                    view::dropped(names, if_exists, tables).map(Self::DropViews)
                }
                ObjectType::Index => Self::drop_index(&names, if_exists, table.as_ref(), tables),
                other => Err(syntax(format_args!("DROP {other}"))),
            },
            ast::Statement::Truncate(truncate) => {
                let names: Vec<ObjectName> = truncate
                    .table_names
                    .into_iter()
                    .map(|target| target.name)
                    .collect();
                Ok(Self::Empty(dropped(&names, truncate.if_exists, tables)?))
            }
            other => Err(syntax(other)),
        }
    }

    async fn create(
        mut create: ast::CreateTable,
        tables: &Tables,
        planner: &Planner,
    ) -> Result<Self> {
        let name = full_name(&create.name)?;
        if tables.exists(&name)? {
            if create.if_not_exists {
                return Ok(Self::Nothing);
            }
            return Err(plan_error(format_args!("there is a table {name} already")));
        }
        let series = series_options(&mut create)?;
        let uniques = unique_names(&create);
        let guids = guids(&mut create.columns);
        let statement = Parsed::Statement(Box::new(ast::Statement::CreateTable(create)));
        let planned = planned(statement, planner).await?;
        let schema = schema_of(&planned, &guids, &uniques, planner.session())?;
        if let Some(tags) = series {
            return Self::declare(&name, schema, tags, &planned);
        }
        let rows = match &*planned.input {
            LogicalPlan::EmptyRelation(_) => None,
            rows => Some(rows.clone()),
        };
        Ok(Self::Create { name, schema, rows })
    }

    /// CREATE TABLE ... WITH (series = true): the metric exists before its first series.
    fn declare(
        metric: &str,
        mut schema: Schema,
        tags: Option<Vec<String>>,
        planned: &CreateMemoryTable,
    ) -> Result<Self> {
        if !matches!(&*planned.input, LogicalPlan::EmptyRelation(_)) {
            return Err(syntax("CREATE TABLE ... WITH (series = true) ... AS"));
        }
        if !schema.indexes.is_empty()
            || !schema.primary_key.is_empty()
            || schema.columns.iter().any(|column| column.default.is_some())
        {
            return Err(syntax("keys and defaults of series"));
        }
        let is_tag = |column: &&Column| match &tags {
            Some(tags) => tags.contains(&column.name),
            None => column.kind == ColumnType::Text,
        };
        if let Some(unknown) = tags
            .iter()
            .flatten()
            .find(|tag| schema.position(tag).is_none())
        {
            return Err(plan_error(format_args!(
                "there is no column {unknown} for a tag"
            )));
        }
        let keys = schema.columns.iter().take(1);
        let keys = keys.chain(schema.columns.iter().skip(1).filter(is_tag));
        schema.primary_key = keys.map(|column| column.name.clone()).collect();
        SeriesName::new(metric, [])?;
        declared::of(metric, &schema)?;
        Ok(Self::Create {
            name: declared::relation_name(metric),
            schema,
            rows: None,
        })
    }

    fn create_index(create: &ast::CreateIndex, tables: &Tables) -> Result<Self> {
        if create.predicate.is_some()
            || !create.include.is_empty()
            || create.nulls_distinct == Some(false)
        {
            return Err(syntax(create));
        }
        let table = full_name(&create.table_name)?;
        let known = relation_of(&table, tables)?;
        let mut columns = Vec::new();
        for column in &create.columns {
            match &column.column.expr {
                ast::Expr::Identifier(name) if column.column.options.asc != Some(false) => {
                    columns.push(name.value.clone());
                }
                _ => return Err(syntax(format_args!("an index on {}", column.column))),
            }
        }
        let name = match &create.name {
            Some(name) => full_name(name)?,
            None => format!("{table}_{}_idx", columns.join("_")),
        };
        if let Some(other) = table_of_index(&name, tables)? {
            if create.if_not_exists {
                return Ok(Self::Nothing);
            }
            return Err(plan_error(format_args!(
                "there is an index {name} already, of table {other}"
            )));
        }
        for column in &columns {
            expect_column(&known, column)?;
        }
        let index = Index::new(name, columns);
        let index = match create.unique {
            true => index.unique(),
            false => index,
        };
        Ok(Self::CreateIndex { table, index })
    }

    fn drop_index(
        names: &[ObjectName],
        if_exists: bool,
        table: Option<&ObjectName>,
        tables: &Tables,
    ) -> Result<Self> {
        let [name] = names else {
            return Err(syntax("DROP INDEX of several indexes"));
        };
        let index = full_name(name)?;
        let found = match table {
            Some(table) => {
                let table = full_name(table)?;
                let known = relation_of(&table, tables)?;
                let indexes = &known.source.relation.indexes;
                let exists = indexes.iter().any(|own| own.name == index);
                exists.then_some(table)
            }
            None => table_of_index(&index, tables)?,
        };
        match found {
            Some(table) => Ok(Self::DropIndex { table, index }),
            None if if_exists => Ok(Self::Nothing),
            None => Err(plan_error(format_args!("there is no index {index}"))),
        }
    }

    async fn alter(alter: ast::AlterTable, tables: &Tables, planner: &Planner) -> Result<Self> {
        let table = full_name(&alter.name)?;
        if alter.if_exists && !tables.exists(&table)? {
            return Ok(Self::Nothing);
        }
        let known = relation_of(&table, tables)?;
        let mut operations = Vec::new();
        for operation in alter.operations {
            alteration(operation, &known, tables, planner, &mut operations).await?;
        }
        Ok(Self::Alter { table, operations })
    }

    /// Makes the change, except inserting the rows of CREATE TABLE ... AS.
    pub(crate) fn apply(&self, txn: &mut WriteTxn) -> Result<()> {
        match self {
            Self::Create { name, schema, .. } => {
                txn.create_relation(name, schema)?;
            }
            Self::CreateIndex { table, index } => {
                relation::open(txn, table)?.create_index(index.clone())?;
            }
            Self::DropIndex { table, index } => {
                relation::open(txn, table)?.drop_index(index)?;
            }
            Self::Alter { table, operations } => {
                for operation in operations {
                    apply(operation, table, txn)?;
                }
            }
            Self::CreateView { name, query } => views::create(txn, name, query)?,
            Self::DropViews(names) => {
                for name in names {
                    views::remove(txn, name)?;
                }
            }
            Self::Drop(dropped) => {
                for dropped in dropped {
                    match dropped {
                        Dropped::Table(name) | Dropped::Declaration(name) => {
                            txn.drop_table(name)?;
                        }
                        Dropped::Series(series) => {
                            for &id in series {
                                txn.remove_series_by_id(id)?;
                            }
                        }
                    }
                }
            }
            Self::Empty(emptied) => {
                for emptied in emptied {
                    match emptied {
                        Dropped::Table(name) => relation::open(txn, name)?.clear()?,
                        Dropped::Declaration(_) => {}
                        Dropped::Series(series) => {
                            for &id in series {
                                txn.series_by_id(id)?.delete(..)?;
                            }
                        }
                    }
                }
            }
            Self::Nothing => {}
        }
        Ok(())
    }
}
