//! Runs `UPDATE relation SET column = value WHERE key = value` and `DELETE FROM relation WHERE key = value` directly:
//! changes of the row with a primary key.

use crate::direct::value::Value;
use crate::error::Result;
use crate::relational::types;
use crate::write::conflict::column_of;
use crate::write::define::names::full_name;
use crate::write::relation;
use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr, FromTable, TableFactor};
use tidalite::WriteTxn;
use tidalite::relation::Schema;

/// The change of a row.
#[derive(Clone)]
pub(crate) struct RowChange {
    pub(crate) table: String,
    /// The conditions, one for each column: its name and its value.
    key: Vec<(String, Value)>,
    /// The new values; `None` deletes the row.
    values: Option<Vec<(String, Value)>>,
}

impl RowChange {
    /// The change that a statement makes; `None` if the statement has another form or must compute a value.
    pub(crate) fn of(statement: &Parsed) -> Option<Self> {
        let Parsed::Statement(statement) = statement else {
            return None;
        };
        match &**statement {
            ast::Statement::Update(update) => {
                let is_plain = update.from.is_none()
                    && update.returning.is_none()
                    && update.or.is_none()
                    && update.limit.is_none()
                    && update.output.is_none()
                    && update.order_by.is_empty();
                let assignments = update.assignments.iter();
                let values = assignments.map(|assignment| {
                    let column = column_of(&assignment.target).ok()?;
                    Some((column, Value::of(&assignment.value)?))
                });
                let values = Some(values.collect::<Option<_>>()?);
                Self::new(&update.table, update.selection.as_ref(), values).filter(|_| is_plain)
            }
            ast::Statement::Delete(delete) => {
                let is_plain = delete.tables.is_empty()
                    && delete.using.is_none()
                    && delete.returning.is_none()
                    && delete.output.is_none()
                    && delete.order_by.is_empty()
                    && delete.limit.is_none();
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) =
                    &delete.from;
                let [table] = &tables[..] else { return None };
                Self::new(table, delete.selection.as_ref(), None).filter(|_| is_plain)
            }
            _ => None,
        }
    }

    fn new(
        table: &ast::TableWithJoins,
        selection: Option<&Expr>,
        values: Option<Vec<(String, Value)>>,
    ) -> Option<Self> {
        let TableFactor::Table {
            name, alias: None, ..
        } = &table.relation
        else {
            return None;
        };
        let mut key = Vec::new();
        conditions(selection?, &mut key)?;
        // Hints and other clauses are left to the planner.
        (table.to_string() == name.to_string()).then_some(Self {
            table: full_name(name).ok()?,
            key,
            values,
        })
    }

    /// Whether the conditions cover exactly the primary key of a relation, and the new values are for other columns.
    pub(crate) fn fits(&self, schema: &Schema) -> bool {
        let key = &schema.primary_key;
        let mut assigned: Vec<&String> =
            self.values.iter().flatten().map(|(name, _)| name).collect();
        let columns = assigned.len();
        assigned.sort_unstable();
        assigned.dedup();
        !key.is_empty()
            && key.len() == self.key.len()
            && key
                .iter()
                .all(|column| self.key.iter().any(|(own, _)| own == column))
            && assigned.len() == columns
            && assigned
                .iter()
                .all(|column| schema.position(column).is_some() && !key.contains(column))
    }

    /// Changes the row; returns the number of changed rows. The change must fit the relation.
    pub(crate) fn run(&self, txn: &mut WriteTxn, parameters: &[ScalarValue]) -> Result<u64> {
        let mut relation = relation::open(txn, &self.table)?;
        let schema = relation.schema().clone();
        let mut cells = Vec::with_capacity(self.key.len());
        for column in &schema.primary_key {
            let value = self.key.iter().find(|(own, _)| own == column);
            let (Some((_, value)), Some(at)) = (value, schema.position(column)) else {
                return Ok(0);
            };
            let value = value.plain(parameters)?;
            match types::equal_cell(schema.columns[at].kind, &value)? {
                Some(cell) => cells.push(cell),
                None => return Ok(0),
            }
        }
        let view = relation.view()?;
        let key = view.row_key(&cells)?;
        let Some(mut row) = view.get_row(&key)? else {
            return Ok(0);
        };
        drop(view);
        let Some(values) = &self.values else {
            return Ok(u64::from(relation.remove(&key)?));
        };
        for (column, value) in values {
            let Some(at) = schema.position(column) else {
                return Ok(0);
            };
            let column = &schema.columns[at];
            let ty = types::data_type(column.kind);
            row[at] = value.cell(parameters, (column, &ty))?;
        }
        relation.update(&key, &row)?;
        Ok(1)
    }
}

/// The columns and values of equality conditions joined by AND; `None` if there is any other condition.
fn conditions(expr: &Expr, found: &mut Vec<(String, Value)>) -> Option<()> {
    match expr {
        Expr::Nested(expr) => conditions(expr, found),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conditions(left, found)?;
            conditions(right, found)
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let (column, value) = match (&**left, &**right) {
                (Expr::Identifier(column), value) | (value, Expr::Identifier(column)) => {
                    (column, value)
                }
                _ => return None,
            };
            found.push((column.value.clone(), Value::of(value)?));
            Some(())
        }
        _ => None,
    }
}
