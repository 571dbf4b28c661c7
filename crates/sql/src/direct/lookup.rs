//! SELECT columns FROM relation WHERE key = value: the row with a primary key.

use crate::direct::value::{number, parameter};
use crate::error::Result;
use crate::relational::columns::ColumnBuilder;
use crate::relational::table::RelationTable;
use crate::relational::types;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::relation::{Cell, ColumnType};

/// The look-up of a row.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    table: Arc<str>,
    /// The columns of the primary key, in order.
    key: Vec<(ColumnType, Wanted)>,
    /// The columns of the result.
    columns: Vec<(usize, ColumnType)>,
    schema: SchemaRef,
}

/// The value of a column of the key.
#[derive(Clone, Debug)]
enum Wanted {
    Constant(Cell),
    Parameter(usize),
}

impl Lookup {
    /// The look-up that a plan is, after its optimization; `None` if it is something else.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Self> {
        let (names, filtered) = match plan {
            LogicalPlan::Projection(projection) => {
                let column = |expr: &Expr| match expr {
                    Expr::Column(column) => Some(column.name.clone()),
                    Expr::Alias(alias) => match &*alias.expr {
                        Expr::Column(column) => Some(column.name.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let names: Vec<String> =
                    projection.expr.iter().map(column).collect::<Option<_>>()?;
                (Some(names), &*projection.input)
            }
            other => (None, other),
        };
        let LogicalPlan::Filter(filter) = filtered else {
            return None;
        };
        let LogicalPlan::TableScan(scan) = &*filter.input else {
            return None;
        };
        let provider = source_as_provider(&scan.source).ok()?;
        let table = provider.downcast_ref::<RelationTable>()?;
        let relation = &table.source.relation;
        let conditions = split_conjunction(&filter.predicate);
        if relation.primary_key.is_empty()
            || conditions.len() != relation.primary_key.len()
            || scan.fetch.is_some()
        {
            return None;
        }
        let mut key = Vec::new();
        for column in &relation.primary_key {
            let kind = relation.columns[relation.position(column)?].kind;
            let mut found = conditions.iter();
            key.push((kind, found.find_map(|one| wanted(one, column, kind))?));
        }
        let schema = plan.schema().inner();
        let names = names.unwrap_or_else(|| {
            let fields = schema.fields().iter();
            fields.map(|field| field.name().clone()).collect()
        });
        let column = |name: &String| {
            let at = relation.position(name)?;
            Some((at, relation.columns[at].kind))
        };
        Some(Self {
            table: Arc::clone(&table.source.name),
            key,
            columns: names.iter().map(column).collect::<Option<_>>()?,
            schema: Arc::new(Schema::clone(schema)),
        })
    }

    /// The row as a batch of one row, or of none.
    pub(crate) fn run(&self, state: &AnyRead, parameters: &[ScalarValue]) -> Result<RecordBatch> {
        let empty = || RecordBatch::new_empty(Arc::clone(&self.schema));
        let mut key = Vec::with_capacity(self.key.len());
        for (kind, wanted) in &self.key {
            let cell = match wanted {
                Wanted::Constant(cell) => cell.clone(),
                Wanted::Parameter(number) => {
                    let value = parameter(parameters, *number)?;
                    match types::equal_cell(*kind, value)? {
                        None => return Ok(empty()),
                        Some(cell) => cell,
                    }
                }
            };
            key.push(cell);
        }
        let Some(relation) = state.relation(&self.table)? else {
            return Ok(empty());
        };
        let key = relation.row_key(&key)?;
        let columns = relation.with_row(&key, |row| {
            let columns = self.columns.iter().map(|&(column, kind)| {
                let mut builder = ColumnBuilder::new(kind);
                builder.append_cell(row.cell(column)?);
                Ok(builder)
            });
            columns.collect::<tidalite::Result<Vec<_>>>()
        })?;
        let Some(mut columns) = columns else {
            return Ok(empty());
        };
        let columns = columns.iter_mut().map(ColumnBuilder::finish);
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?)
    }
}

/// The value that a condition wants in a column.
fn wanted(condition: &Expr, column: &str, kind: ColumnType) -> Option<Wanted> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = condition
    else {
        return None;
    };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(own) if own.name == column);
    let value = match (is_column(left), is_column(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    match &**value {
        Expr::Literal(value, _) => match types::cell(kind, value)? {
            Cell::Null => None,
            cell => Some(Wanted::Constant(cell)),
        },
        Expr::Placeholder(placeholder) => {
            // A parameter of another type would be compared in that type.
            let ty = placeholder.field.as_ref()?.data_type().clone();
            (ty == types::data_type(kind)).then_some(())?;
            number(&placeholder.id).map(Wanted::Parameter)
        }
        _ => None,
    }
}
