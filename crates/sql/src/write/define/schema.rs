//! Converts the columns, keys and defaults of CREATE TABLE to the schema of a relation.

use crate::error::Result;
use crate::relational::types;
use crate::session::Planner;
use crate::write::define::names::{plan_error, syntax};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Constraint, ScalarValue};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::Expr as LogicalExpr;
use datafusion::logical_expr::{CreateMemoryTable, DdlStatement, LogicalPlan, Volatility};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    self, ColumnDef, CreateTableOptions, DataType, SqlOption, TableConstraint,
};
use tidalite::relation::{Cell, Column, ColumnType, Index, Schema};

pub(super) async fn planned(statement: Parsed, planner: &Planner) -> Result<CreateMemoryTable> {
    match planner.session().statement_to_plan(statement).await? {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => match create.or_replace {
            true => Err(syntax("CREATE OR REPLACE TABLE")),
            false if create.temporary => Err(syntax("CREATE TEMPORARY TABLE")),
            false => Ok(create),
        },
        other => Err(syntax(other.display())),
    }
}

/// The schema of a relation for a table that the planner has analysed.
pub(super) fn schema_of(
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

/// The cell of a default value, which must be a constant.
pub(super) fn default_of(
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

/// Changes columns of GUIDs to the text type, which the planner supports; returns their names.
pub(super) fn guids(columns: &mut [ColumnDef]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        if matches!(column.data_type, DataType::Uuid) {
            column.data_type = DataType::Text;
            names.push(column.name.value.clone());
        }
    }
    names
}

/// Removes the series options from a statement. Returns `None` if it creates a relation; otherwise the names of the
/// tags, if given.
pub(super) fn series_options(create: &mut ast::CreateTable) -> Result<Option<Option<Vec<String>>>> {
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

/// The names that a statement assigns to the unique constraints of the table, in order.
pub(super) fn unique_names(create: &ast::CreateTable) -> Vec<Option<String>> {
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

pub(super) fn unique_index_name(table: &str, columns: &[String]) -> String {
    format!("{table}_{}_key", columns.join("_"))
}
