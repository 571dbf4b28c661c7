//! ALTER TABLE.

use crate::catalog::providers::Tables;
use crate::error::Result;
use crate::relational::table::RelationTable;
use crate::session::Planner;
use crate::write::define::names::{expect_column, full_name, plan_error, syntax};
use crate::write::define::schema::{default_of, guids, planned, schema_of, unique_index_name};
use crate::write::relation;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ObjectName, RenameTableNameKind,
    TableConstraint,
};
use tidalite::WriteTxn;
use tidalite::relation::{Cell, Column, Index};

pub(crate) enum Alteration {
    AddColumn(Column),
    DropColumn(String),
    RenameColumn(String, String),
    SetDefault(String, Option<Cell>),
    AddIndex(Index),
    RenameTable(String),
}

pub(super) fn apply(operation: &Alteration, table: &str, txn: &mut WriteTxn) -> Result<()> {
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

pub(super) async fn alteration(
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
            // A table definition with only this column is planned to get the column's type and options.
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
                let ast::Expr::Identifier(name) = &column.column.expr else {
                    return Err(syntax(format_args!("UNIQUE ({})", column.column)));
                };
                expect_column(table, &name.value)?;
                columns.push(name.value.clone());
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
pub(super) fn empty_table() -> ast::CreateTable {
    let name = ObjectName::from(vec![ast::Ident::new("t")]);
    ast::helpers::stmt_create_table::CreateTableBuilder::new(name).build()
}
