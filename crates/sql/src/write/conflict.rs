//! The ON CONFLICT clause of INSERT, and its shorter forms: INSERT OR IGNORE, INSERT OR REPLACE, REPLACE INTO.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::columns::ColumnBuilder;
use crate::relational::rows::Rows;
use crate::relational::types;
use crate::write::expression;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema as ArrowSchema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::ExprSchemable;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, ConflictTarget, Expr, ExprWithAlias, Ident,
    OnConflictAction, OnInsert, SqliteOnConflict, visit_expressions, visit_expressions_mut,
};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use tidalite::relation::{Cell, Column, Conflict, Schema};

/// The name under which an update refers to the row that could not be inserted.
const EXCLUDED: &str = "excluded";

/// The action for a row that cannot be inserted because of its key. By default the statement fails.
#[derive(Default)]
pub(crate) struct OnConflict {
    /// The keys to which the clause applies; `None` for all.
    keys: Option<Vec<Conflict>>,
    pub(crate) action: Action,
}

#[derive(Default)]
pub(crate) enum Action {
    /// The statement fails.
    #[default]
    Fail,
    /// The row is not inserted.
    Nothing,
    /// The rows that conflict are removed.
    Replace,
    /// The conflicting row is updated.
    Update(Box<DoUpdate>),
}

/// The clause as written in the statement; empty if the statement has no such clause.
#[derive(Clone, Default)]
pub(crate) struct Clause {
    target: Option<Vec<String>>,
    action: Written,
}

#[derive(Clone, Default)]
enum Written {
    #[default]
    Fail,
    Nothing,
    Replace,
    Update(Box<(Vec<Assignment>, Option<Expr>)>),
}

impl Clause {
    /// Removes the clause from a statement, because the planner does not support it, and returns it.
    pub(crate) fn take(insert: &mut ast::Insert) -> Result<Self> {
        let not_supported = |text: &dyn std::fmt::Display| {
            Err(Error::new(
                ErrorKind::Syntax,
                format!("not supported: {text}"),
            ))
        };
        let mut clause = Self::default();
        if std::mem::take(&mut insert.replace_into) {
            clause.action = Written::Replace;
        }
        if std::mem::take(&mut insert.ignore) {
            clause.action = Written::Nothing;
        }
        match insert.or.take() {
            None | Some(SqliteOnConflict::Abort) => {}
            Some(SqliteOnConflict::Replace) => clause.action = Written::Replace,
            Some(SqliteOnConflict::Ignore) => clause.action = Written::Nothing,
            Some(other) => return not_supported(&format_args!("INSERT {other}")),
        }
        let on = match insert.on.take() {
            None => return Ok(clause),
            Some(OnInsert::OnConflict(on)) => on,
            Some(other) => return not_supported(&other),
        };
        clause.target = match on.conflict_target {
            None => None,
            Some(ConflictTarget::Columns(columns)) => {
                Some(columns.into_iter().map(|column| column.value).collect())
            }
            Some(target @ ConflictTarget::OnConstraint(_)) => return not_supported(&target),
        };
        clause.action = match on.action {
            OnConflictAction::DoNothing => Written::Nothing,
            OnConflictAction::DoUpdate(update) => {
                Written::Update(Box::new((update.assignments, update.selection)))
            }
        };
        Ok(clause)
    }

    /// Whether the statement has no such clause.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.action, Written::Fail)
    }

    /// Whether a plan of the clause is valid for later statements: it has no parameters, and calls no function that
    /// depends on the time of the statement.
    pub(crate) fn can_be_kept(&self) -> bool {
        let Written::Update(update) = &self.action else {
            return true;
        };
        let (assignments, condition) = &**update;
        let values = assignments.iter().map(|assignment| &assignment.value);
        values.chain(condition).all(|expr| {
            let varies = visit_expressions(expr, |expr| match expr {
                Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                    ControlFlow::Break(())
                }
                Expr::Function(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            });
            varies.is_continue()
        })
    }

    /// Plans the clause for a relation.
    pub(crate) fn plan(
        self,
        name: &str,
        schema: &Schema,
        (session, parameters): (&SessionState, &[ScalarValue]),
    ) -> Result<OnConflict> {
        let keys = self.target.map(|columns| keys_of(columns, schema));
        let action = match self.action {
            Written::Fail => Action::Fail,
            Written::Nothing => Action::Nothing,
            Written::Replace => Action::Replace,
            Written::Update(update) => {
                let update = DoUpdate::plan(name, schema, *update, (session, parameters))?;
                Action::Update(Box::new(update))
            }
        };
        Ok(OnConflict {
            keys: keys.transpose()?,
            action,
        })
    }
}

/// The primary key and the unique indexes that consist of these columns.
fn keys_of(columns: Vec<String>, schema: &Schema) -> Result<Vec<Conflict>> {
    let wanted: HashSet<&String> = columns.iter().collect();
    let unique = schema.indexes.iter().filter(|index| index.unique);
    let unique = unique.map(|index| (Conflict::Index(index.name.clone()), &index.columns));
    let keys = std::iter::once((Conflict::PrimaryKey, &schema.primary_key)).chain(unique);
    let keys = keys.filter(|(_, columns)| wanted == columns.iter().collect());
    let keys: Vec<Conflict> = keys.map(|(key, _)| key).collect();
    if !keys.is_empty() {
        return Ok(keys);
    }
    let problem = format!(
        "ON CONFLICT ({}) names neither the primary key nor the columns of a unique index",
        columns.join(", ")
    );
    Err(Error::new(ErrorKind::Plan, problem))
}

impl OnConflict {
    /// Whether the clause applies to rows with this conflict.
    pub(crate) fn is_for(&self, conflict: &Conflict) -> bool {
        self.keys
            .as_ref()
            .is_none_or(|keys| keys.contains(conflict))
    }
}

/// Computes new values for an existing row from that row and the row that could not be inserted.
pub(crate) struct DoUpdate {
    columns: Vec<Column>,
    /// The columns of both rows.
    schema: Arc<ArrowSchema>,
    /// The columns that are assigned new values.
    assignments: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    condition: Option<Arc<dyn PhysicalExpr>>,
}

impl DoUpdate {
    fn plan(
        name: &str,
        relation: &Schema,
        (assignments, selection): (Vec<Assignment>, Option<Expr>),
        (session, parameters): (&SessionState, &[ScalarValue]),
    ) -> Result<Self> {
        let own = types::schema(relation);
        let of = |qualifier: &str| {
            let qualifier = datafusion::common::TableReference::bare(qualifier);
            DFSchema::try_from_qualified_schema(qualifier, &own)
        };
        let both = of(name)?.join(&of(EXCLUDED)?)?;
        let plan = |mut expr: Expr, ty: &DataType| -> Result<Arc<dyn PhysicalExpr>> {
            qualify(&mut expr, name);
            let expr = ExprWithAlias { expr, alias: None };
            let expr = session.create_logical_expr_from_sql_expr(expr, &both)?;
            let expr = expression::bound(expr, parameters)?.cast_to(ty, &both)?;
            expression::plan(session, expr, &both)
        };
        let mut planned = Vec::new();
        for assignment in assignments {
            let column = column_of(&assignment.target)?;
            let Some(at) = relation.position(&column) else {
                let problem = format!("table {name} has no column {column}");
                return Err(Error::new(ErrorKind::Plan, problem));
            };
            let ty = types::data_type(relation.columns[at].kind);
            planned.push((at, plan(assignment.value, &ty)?));
        }
        let twice: Vec<Arc<Field>> = own.fields().iter().chain(own.fields()).cloned().collect();
        Ok(Self {
            columns: relation.columns.clone(),
            schema: Arc::new(ArrowSchema::new(twice)),
            assignments: planned,
            condition: selection
                .map(|condition| plan(condition, &DataType::Boolean))
                .transpose()?,
        })
    }

    /// The new cells of a row; `None` if the condition is not true.
    pub(crate) fn apply(
        &self,
        mut found: Vec<Cell>,
        excluded: &[Cell],
    ) -> Result<Option<Vec<Cell>>> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(2 * self.columns.len());
        for row in [&found[..], excluded] {
            for (column, cell) in self.columns.iter().zip(row) {
                let mut builder = ColumnBuilder::new(column.kind);
                builder.append_cell(cell.as_ref());
                arrays.push(builder.finish()?);
            }
        }
        // A null in a column that refuses null is detected when the row is stored.
        let fields = self.schema.fields().iter();
        let fields: Vec<Field> = fields
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays)?;
        if let Some(condition) = &self.condition {
            let holds = condition.evaluate(&batch)?.into_array(1)?;
            let holds = holds.as_any().downcast_ref::<BooleanArray>();
            if !holds.is_some_and(|holds| holds.is_valid(0) && holds.value(0)) {
                return Ok(None);
            }
        }
        for (column, expr) in &self.assignments {
            let value = expr.evaluate(&batch)?.into_array(1)?;
            let own = std::slice::from_ref(&self.columns[*column]);
            let mut cells = Rows::new(own, &[value])?.row(0)?;
            found[*column] = cells.swap_remove(0);
        }
        Ok(Some(found))
    }
}

/// The column of an assignment.
pub(crate) fn column_of(target: &AssignmentTarget) -> Result<String> {
    if let AssignmentTarget::ColumnName(name) = target
        && let Some(part) = name.0.last()
        && let Some(ident) = part.as_ident()
    {
        return Ok(ident.value.clone());
    }
    let problem = format!("not supported: a value for {target}");
    Err(Error::new(ErrorKind::Syntax, problem))
}

/// Qualifies columns without a table with the name of the table.
fn qualify(expr: &mut Expr, table: &str) {
    let visited: ControlFlow<()> = visit_expressions_mut(expr, |expr| {
        if let Expr::Identifier(column) = expr {
            *expr = Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), column.clone()]);
        }
        ControlFlow::Continue(())
    });
    debug_assert!(visited.is_continue(), "the visitor goes to the end");
}
