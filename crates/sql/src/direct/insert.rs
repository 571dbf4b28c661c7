//! Runs `INSERT INTO table VALUES (value, ...)` directly.

use crate::direct::value::Value;
use crate::error::Result;
use crate::relational::types;
use crate::write::conflict::{Clause, OnConflict};
use crate::write::define::names::full_name;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, SetExpr};
use std::sync::Arc;
use tidalite::relation::{Cell, Column, Schema};

/// Rows of constants and parameters.
#[derive(Clone)]
pub(crate) struct InsertValues {
    pub(crate) table: String,
    /// The columns in order; empty if the statement does not name them.
    pub(crate) columns: Vec<String>,
    pub(crate) clause: Clause,
    rows: Vec<Vec<Value>>,
}

impl InsertValues {
    /// The rows of a statement; `None` if the statement has another form or must compute a value.
    pub(crate) fn of(statement: &Parsed) -> Option<Self> {
        let Parsed::Statement(statement) = statement else {
            return None;
        };
        let ast::Statement::Insert(insert) = &**statement else {
            return None;
        };
        let ast::TableObject::TableName(table) = &insert.table else {
            return None;
        };
        let source = insert.source.as_ref()?;
        let SetExpr::Values(values) = &*source.body else {
            return None;
        };
        let row = |row: &Vec<ast::Expr>| row.iter().map(Value::of).collect::<Option<Vec<_>>>();
        let rows = values.rows.iter().map(|parens| row(&parens.content));
        let rows: Vec<Vec<Value>> = rows.collect::<Option<_>>()?;
        let column = |name: &ast::ObjectName| {
            let [part] = &name.0[..] else { return None };
            Some(part.as_ident()?.value.clone())
        };
        let columns: Vec<String> = insert.columns.iter().map(column).collect::<Option<_>>()?;
        // Clauses that the planner rejects are left to it.
        let mut rest = insert.clone();
        let clause = Clause::take(&mut rest).ok()?;
        let plain = ast::Insert {
            columns: Vec::new(),
            source: None,
            ..rest.clone()
        };
        // This is the printed form of an INSERT that has neither a source nor other clauses.
        let is_plain = plain.to_string() == format!("INSERT INTO {table} DEFAULT VALUES");
        let has_order =
            source.order_by.is_some() || source.limit_clause.is_some() || source.with.is_some();
        (is_plain && !has_order).then_some(Self {
            table: full_name(table).ok()?,
            columns,
            clause,
            rows,
        })
    }

    /// Whether the statement has exactly one row.
    pub(crate) fn is_row(&self) -> bool {
        self.rows.len() == 1
    }

    /// Whether a table with this schema has the named columns, and each row has a value for each of them.
    pub(crate) fn fits(&self, schema: &ArrowSchema) -> bool {
        let width = match self.columns.is_empty() {
            true => schema.fields().len(),
            false => self.columns.len(),
        };
        let mut names = self.columns.iter();
        self.rows.iter().all(|row| row.len() == width)
            && names.all(|name| schema.index_of(name).is_ok())
            && (1..self.columns.len()).all(|at| !self.columns[..at].contains(&self.columns[at]))
    }

    /// The rows as a batch with these columns of a table.
    pub(crate) fn batch(
        &self,
        schema: &SchemaRef,
        parameters: &[ScalarValue],
    ) -> Result<RecordBatch> {
        let fields = schema.fields().iter();
        let fields: Vec<Field> = match self.columns.is_empty() {
            true => fields.map(|field| field.as_ref().clone()).collect(),
            false => {
                let named = self.columns.iter();
                let named = named.map(|name| Ok(schema.field_with_name(name)?.clone()));
                named.collect::<Result<_>>()?
            }
        };
        let fields = fields.into_iter().map(|field| field.with_nullable(true));
        let fields: Vec<Field> = fields.collect();
        let column = |(place, field): (usize, &Field)| {
            let cells = self.rows.iter();
            let cells = cells.map(|row| {
                let value = row[place].cast(parameters, field.data_type());
                value.map_err(|error| {
                    crate::Error::new(error.kind(), format!("column {}: {error}", field.name()))
                })
            });
            let cells: Vec<ScalarValue> = cells.collect::<Result<_>>()?;
            Ok(ScalarValue::iter_to_array(cells)?)
        };
        let columns = fields.iter().enumerate().map(column);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(
            Arc::new(ArrowSchema::new(fields)),
            columns,
        )?)
    }
}

/// Rows of constants and parameters for a relation, whose columns have been looked up.
pub(crate) struct RelationInsert {
    pub(crate) schema: Schema,
    /// The ON CONFLICT clause; `None` if it must be planned for each run.
    pub(crate) on_conflict: Option<OnConflict>,
    /// For each column of the schema: its type in Arrow, and the source of its cells.
    columns: Vec<(DataType, Source)>,
}

/// The source of the cells of a column.
enum Source {
    /// The value at this position in the row.
    Value(usize),
    Default(Cell),
}

impl RelationInsert {
    /// The rows of an INSERT that fits the relation.
    pub(crate) fn new(
        insert: &InsertValues,
        schema: &Schema,
        on_conflict: Option<OnConflict>,
    ) -> Self {
        let column = |(place, column): (usize, &Column)| {
            let named = || insert.columns.iter().position(|name| *name == column.name);
            let place = match insert.columns.is_empty() {
                true => Some(place),
                false => named(),
            };
            let default = || Source::Default(column.default.clone().unwrap_or_default());
            let source = place.map_or_else(default, Source::Value);
            (types::data_type(column.kind), source)
        };
        Self {
            schema: schema.clone(),
            on_conflict,
            columns: schema.columns.iter().enumerate().map(column).collect(),
        }
    }

    /// The cells of the rows.
    pub(crate) fn cells(
        &self,
        insert: &InsertValues,
        parameters: &[ScalarValue],
    ) -> Result<Vec<Vec<Cell>>> {
        let cells = |row: &Vec<Value>| {
            let columns = self.schema.columns.iter().zip(&self.columns);
            let cells = columns.map(|(column, (ty, source))| match source {
                Source::Value(place) => row[*place].cell(parameters, (column, ty)),
                Source::Default(cell) => Ok(cell.clone()),
            });
            cells.collect()
        };
        insert.rows.iter().map(cells).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse_one;

    #[test]
    fn rows_of_constants_and_parameters_need_no_plan() {
        let rows = |sql: &str| {
            let found = InsertValues::of(&parse_one(sql).unwrap());
            found.map(|insert| (insert.table, insert.columns.len(), insert.rows.len()))
        };
        let name = "t".to_owned();
        assert_eq!(
            rows("INSERT INTO t VALUES ($1, -2.5, 'x')"),
            Some((name.clone(), 0, 1))
        );
        assert_eq!(
            rows("INSERT INTO t (a, b) VALUES (1, NULL), (2, true) ON CONFLICT DO NOTHING"),
            Some((name, 2, 2))
        );
        for planned in [
            "INSERT INTO t VALUES (1 + 1)",
            "INSERT INTO t VALUES (DEFAULT)",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t VALUES (1) RETURNING a",
            "INSERT INTO t VALUES (1) ORDER BY 1",
            "DELETE FROM t",
        ] {
            assert_eq!(rows(planned), None, "{planned}");
        }
    }
}
