//! CREATE, ALTER and DROP.

use crate::catalog::providers::Tables;
use crate::catalog::views;
use crate::error::{Error, ErrorKind, Result};
use crate::metric::table::SeriesTable;
use crate::relational::declared;
use crate::relational::table::{Purpose, RelationTable};
use crate::relational::types;
use crate::session::Planner;
use crate::write::{relation, view};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Constraint, ScalarValue};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::Expr as LogicalExpr;
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan, Volatility};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ColumnDef, CreateTableOptions, DataType,
    ObjectName, ObjectType, RenameTableNameKind, SqlOption, TableConstraint,
};
use tidalite::relation::{Cell, Column, ColumnType, Index, Schema};
use tidalite::{SeriesName, WriteTxn};

/// A change of tables, planned.
pub(crate) enum Definition {
    Create {
        name: String,
        schema: Schema,
        /// The rows of CREATE TABLE ... AS.
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
    /// Nothing is to do, because of IF EXISTS or IF NOT EXISTS.
    Nothing,
}

/// A table that is dropped or emptied.
pub(crate) enum Dropped {
    Table(String),
    /// The declaration of a metric, which has no rows.
    Declaration(String),
    Series(Vec<tidalite::SeriesId>),
}

pub(crate) enum Alteration {
    AddColumn(Column),
    DropColumn(String),
    RenameColumn(String, String),
    SetDefault(String, Option<Cell>),
    AddIndex(Index),
    RenameTable(String),
}

fn syntax(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Syntax, format!("not supported: {problem}"))
}

fn plan_error(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Plan, problem)
}

/// The full name of a table, as the catalog has it.
pub(crate) fn full_name(name: &ObjectName) -> Result<String> {
    let mut parts = Vec::new();
    for part in &name.0 {
        let ident = part.as_ident().ok_or_else(|| syntax(name))?;
        parts.push(ident.value.as_str());
    }
    let own = [
        crate::catalog::providers::CATALOG,
        crate::catalog::providers::PUBLIC,
    ];
    let parts = match &parts[..] {
        [catalog, schema, table] if [*catalog, *schema] == own => &[*table][..],
        [schema, table] if *schema == own[1] => &[*table][..],
        parts => parts,
    };
    Ok(parts.join("."))
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

    /// CREATE TABLE ... WITH (series = true): the metric is there before its first series.
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

    /// Makes the change, but for the rows of CREATE TABLE ... AS.
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

fn apply(operation: &Alteration, table: &str, txn: &mut WriteTxn) -> Result<()> {
    if let Alteration::RenameTable(name) = operation {
        txn.rename_table(table, name)?;
        return Ok(());
    }
    let mut relation = relation::open(txn, table)?;
    match operation {
        Alteration::AddColumn(column) => relation.add_column(column.clone())?,
        Alteration::DropColumn(name) => relation.drop_column(name)?,
        Alteration::RenameColumn(from, to) => relation.rename_column(from, to)?,
        Alteration::SetDefault(column, default) => relation.set_default(column, default.clone())?,
        Alteration::AddIndex(index) => relation.create_index(index.clone())?,
        Alteration::RenameTable(_) => {}
    }
    Ok(())
}

async fn alteration(
    operation: AlterTableOperation,
    table: &RelationTable,
    tables: &Tables,
    planner: &Planner,
    operations: &mut Vec<Alteration>,
) -> Result<()> {
    let has = |column: &str| table.source.relation.position(column).is_some();
    match operation {
        AlterTableOperation::AddColumn {
            if_not_exists,
            column_def,
            column_position: None,
            ..
        } => {
            if if_not_exists && has(&column_def.name.value) {
                return Ok(());
            }
            let mut columns = vec![column_def];
            let guids = guids(&mut columns);
            // A table of this column alone gives its type and its options.
            let mut create = empty_table();
            create.columns = columns;
            let statement = Parsed::Statement(Box::new(ast::Statement::CreateTable(create)));
            let planned = planned(statement, planner).await?;
            let schema = schema_of(&planned, &guids, &[], planner.session())?;
            if !schema.primary_key.is_empty() {
                return Err(syntax("ADD COLUMN with PRIMARY KEY"));
            }
            let mut added = String::new();
            for column in schema.columns {
                added.clone_from(&column.name);
                operations.push(Alteration::AddColumn(column));
            }
            for mut index in schema.indexes {
                index.name = unique_index_name(&table.source.name, &[added.clone()]);
                operations.push(Alteration::AddIndex(index));
            }
        }
        AlterTableOperation::DropColumn {
            column_names,
            if_exists,
            ..
        } => {
            for column in column_names {
                if has(&column.value) {
                    operations.push(Alteration::DropColumn(column.value));
                } else if !if_exists {
                    expect_column(table, &column.value)?;
                }
            }
        }
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => {
            expect_column(table, &old_column_name.value)?;
            let (from, to) = (old_column_name.value, new_column_name.value);
            operations.push(Alteration::RenameColumn(from, to));
        }
        AlterTableOperation::RenameTable { table_name } => {
            let (RenameTableNameKind::To(name) | RenameTableNameKind::As(name)) = table_name;
            let name = full_name(&name)?;
            if tables.exists(&name)? {
                return Err(plan_error(format_args!("there is a table {name} already")));
            }
            operations.push(Alteration::RenameTable(name));
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            let column = column_name.value;
            expect_column(table, &column)?;
            let at = table.source.relation.position(&column).unwrap_or_default();
            let default = match op {
                AlterColumnOperation::DropDefault => None,
                AlterColumnOperation::SetDefault { value } => {
                    let schema = datafusion::common::DFSchema::empty();
                    let value = ast::ExprWithAlias {
                        expr: value,
                        alias: None,
                    };
                    let session = planner.session();
                    let value = session.create_logical_expr_from_sql_expr(value, &schema)?;
                    let kind = table.source.relation.columns[at].kind;
                    Some(default_of(&column, kind, value, session)?)
                }
                other => return Err(syntax(format_args!("ALTER COLUMN {column} {other}"))),
            };
            operations.push(Alteration::SetDefault(column, default));
        }
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::Unique(unique),
            ..
        } => {
            let mut columns = Vec::new();
            for column in &unique.columns {
                columns.push(column.column.expr.to_string().trim_matches('"').to_owned());
            }
            for column in &columns {
                expect_column(table, column)?;
            }
            let name = match unique.name {
                Some(name) => name.value,
                None => unique_index_name(&table.source.name, &columns),
            };
            operations.push(Alteration::AddIndex(Index::new(name, columns).unique()));
        }
        other => return Err(syntax(format_args!("ALTER TABLE {other}"))),
    }
    Ok(())
}

/// A statement that creates a table without columns.
fn empty_table() -> ast::CreateTable {
    let name = ObjectName::from(vec![ast::Ident::new("t")]);
    ast::helpers::stmt_create_table::CreateTableBuilder::new(name).build()
}

async fn planned(statement: Parsed, planner: &Planner) -> Result<CreateMemoryTable> {
    match planner.session().statement_to_plan(statement).await? {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => match create.or_replace {
            true => Err(syntax("CREATE OR REPLACE TABLE")),
            false if create.temporary => Err(syntax("CREATE TEMPORARY TABLE")),
            false => Ok(create),
        },
        other => Err(syntax(other.display())),
    }
}

/// Gives columns of GUIDs the type of texts, which the planner knows; returns their names.
fn guids(columns: &mut [ColumnDef]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        if matches!(column.data_type, DataType::Uuid) {
            column.data_type = DataType::Text;
            names.push(column.name.value.clone());
        }
    }
    names
}

/// Takes the options of series out of a statement: `None` if it creates a relation; else the tags, if they are named.
fn series_options(create: &mut ast::CreateTable) -> Result<Option<Option<Vec<String>>>> {
    let options = match &mut create.table_options {
        CreateTableOptions::With(options) => std::mem::take(options),
        _ => return Ok(None),
    };
    create.table_options = CreateTableOptions::None;
    let (mut is_series, mut tags) = (false, None);
    for option in options {
        match &option {
            SqlOption::KeyValue {
                key,
                value: ast::Expr::Value(value),
            } if key.value.eq_ignore_ascii_case("series") => match value.value {
                ast::Value::Boolean(value) => is_series = value,
                _ => return Err(syntax(option)),
            },
            SqlOption::KeyValue {
                key,
                value: ast::Expr::Value(value),
            } if key.value.eq_ignore_ascii_case("tags") => {
                let ast::Value::SingleQuotedString(list) = &value.value else {
                    return Err(syntax(option));
                };
                let names = list.split(',').map(str::trim);
                tags = Some(
                    names
                        .filter(|name| !name.is_empty())
                        .map(str::to_owned)
                        .collect(),
                );
            }
            _ => return Err(syntax(option)),
        }
    }
    match (is_series, tags) {
        (true, tags) => Ok(Some(tags)),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(syntax("tags of a table that is not WITH (series = true)")),
    }
}

/// The names that a statement gives to the unique constraints of the table, in order.
fn unique_names(create: &ast::CreateTable) -> Vec<Option<String>> {
    let constraints = create.constraints.iter();
    constraints
        .filter_map(|constraint| match constraint {
            TableConstraint::Unique(unique) => {
                Some(unique.name.as_ref().map(|name| name.value.clone()))
            }
            _ => None,
        })
        .collect()
}

fn unique_index_name(table: &str, columns: &[String]) -> String {
    format!("{table}_{}_key", columns.join("_"))
}

/// The schema of a relation for a table that the planner has understood.
fn schema_of(
    create: &CreateMemoryTable,
    guids: &[String],
    names: &[Option<String>],
    session: &SessionState,
) -> Result<Schema> {
    let mut schema = Schema::new();
    for field in create.input.schema().fields() {
        let kind = match guids.contains(field.name()) {
            true => ColumnType::Guid,
            false => types::column_type(field.data_type())?,
        };
        let mut column = Column::new(field.name(), kind);
        column.not_null = !field.is_nullable();
        let default = create
            .column_defaults
            .iter()
            .find(|(name, _)| name == field.name());
        if let Some((name, value)) = default {
            column.default = Some(default_of(name, kind, value.clone(), session)?);
        }
        schema = schema.column(column);
    }
    let table = create.name.table();
    let columns = |places: &[usize]| -> Vec<String> {
        let columns = places
            .iter()
            .map(|&place| schema.columns[place].name.clone());
        columns.collect()
    };
    let mut names = names.iter();
    let (mut primary, mut indexes) = (Vec::new(), Vec::new());
    for constraint in create.constraints.iter() {
        match constraint {
            Constraint::PrimaryKey(places) => primary = columns(places),
            Constraint::Unique(places) => {
                let columns = columns(places);
                let name = names.next().cloned().flatten();
                let name = name.unwrap_or_else(|| unique_index_name(table, &columns));
                indexes.push(Index::new(name, columns).unique());
            }
        }
    }
    schema.primary_key = primary;
    schema.indexes = indexes;
    Ok(schema)
}

/// The cell of a default, which is a constant.
fn default_of(
    column: &str,
    kind: ColumnType,
    value: LogicalExpr,
    session: &SessionState,
) -> Result<Cell> {
    let schema = datafusion::common::DFSchema::empty();
    let not_constant = || {
        plan_error(format_args!(
            "the default of column {column} is not a constant: {value}"
        ))
    };
    let varies = value.exists(|part| {
        Ok(matches!(part, LogicalExpr::ScalarFunction(call)
            if call.func.signature().volatility != Volatility::Immutable))
    })?;
    if varies || !value.column_refs().is_empty() {
        return Err(not_constant());
    }
    let physical = session.create_physical_expr(value.clone(), &schema)?;
    let row = arrow::array::RecordBatch::try_new_with_options(
        schema.inner().clone(),
        Vec::new(),
        &arrow::array::RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let found = physical.evaluate(&row)?.into_array(1)?;
    let found = ScalarValue::try_from_array(&found, 0)?;
    let found = found.cast_to(&types::data_type(kind))?;
    types::cell(kind, &found).ok_or_else(not_constant)
}

/// The relation with a name.
fn relation_of(name: &str, tables: &Tables) -> Result<RelationTable> {
    if let Some(relation) = RelationTable::find(name, &tables.slot, Purpose::Read)? {
        return Ok(relation);
    }
    Err(plan_error(match tables.exists(name)? {
        true => format!(
            "{name} was not created with CREATE TABLE, so its columns cannot be changed here"
        ),
        false => format!("there is no table {name}"),
    }))
}

fn expect_column(table: &RelationTable, column: &str) -> Result<()> {
    match table.source.relation.position(column) {
        Some(_) => Ok(()),
        None => Err(plan_error(format_args!(
            "table {} has no column {column}",
            table.source.name
        ))),
    }
}

/// The relation that has an index with this name.
fn table_of_index(index: &str, tables: &Tables) -> Result<Option<String>> {
    let snapshot = tables.slot.snapshot()?;
    for name in RelationTable::names(&snapshot)? {
        if let Some(relation) = snapshot.relation(&name)?
            && relation
                .schema()
                .indexes
                .iter()
                .any(|own| own.name == index)
        {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The tables that are dropped or emptied.
fn dropped(names: &[ObjectName], if_exists: bool, tables: &Tables) -> Result<Vec<Dropped>> {
    let mut dropped = Vec::new();
    for name in names {
        let name = full_name(name)?;
        let Some(table) = tables.table(&name)? else {
            if views::query(&tables.slot.snapshot()?, &name)?.is_some() {
                return Err(plan_error(format_args!(
                    "{name} is a view; DROP VIEW removes it"
                )));
            }
            if if_exists {
                continue;
            }
            return Err(plan_error(format_args!("there is no table {name}")));
        };
        if table.is::<RelationTable>() {
            dropped.push(Dropped::Table(name));
        } else if let Some(table) = table.downcast_ref::<SeriesTable>() {
            let sources = table.layout.sources.iter();
            for source in sources.clone().filter(|source| source.declared.is_some()) {
                dropped.push(Dropped::Declaration(declared::relation_name(
                    &source.metric,
                )));
            }
            let series = sources.flat_map(|source| source.series.iter().map(|info| info.id));
            dropped.push(Dropped::Series(series.collect()));
        } else {
            return Err(plan_error(format_args!(
                "{name} cannot be changed with SQL"
            )));
        }
    }
    Ok(dropped)
}
