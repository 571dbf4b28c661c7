//! Rewrites UPDATE ... FROM and DELETE ... USING as a query that returns the rows to change, joined with the other
//! tables.
//!
//! ```text
//! UPDATE t SET v = o.v FROM o WHERE t.id = o.id  =>  SELECT t.id, o.v AS v, t.__key FROM t, o WHERE t.id = o.id
//! DELETE FROM t USING o WHERE t.id = o.id        =>  SELECT t.id, t.v, t.__key FROM t, o WHERE t.id = o.id
//! ```
//!
//! A row that matches several rows of the other tables is returned several times; only the first one counts.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::table::KEY;
use crate::statement::parse_one;
use crate::write::conflict::column_of;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, Expr, FromTable, Ident, SelectItem, SetExpr, TableFactor, TableWithJoins,
    UpdateTableFromKind,
};
use tidalite::relation::Schema;

/// A change of the rows that a join selects.
pub(crate) struct Joined {
    table: TableWithJoins,
    /// The new values of an UPDATE; `None` for DELETE.
    assignments: Option<Vec<Assignment>>,
    others: Vec<TableWithJoins>,
    selection: Option<Expr>,
}

impl Joined {
    /// The join of a statement; `None` if it has none. A DELETE with a table alias also counts, because the planner
    /// does not support the alias.
    pub(crate) fn of(statement: &Statement) -> Result<Option<Self>> {
        let Statement::Statement(statement) = statement else {
            return Ok(None);
        };
        match &**statement {
            ast::Statement::Update(update) => {
                let Some(from) = &update.from else {
                    return Ok(None);
                };
                let (UpdateTableFromKind::BeforeSet(others)
                | UpdateTableFromKind::AfterSet(others)) = from;
                let has_more = update.or.is_some()
                    || update.limit.is_some()
                    || update.output.is_some()
                    || !update.order_by.is_empty()
                    || !update.table.joins.is_empty();
                if has_more {
                    return Err(not_supported(update));
                }
                Ok(Some(Self {
                    table: update.table.clone(),
                    assignments: Some(update.assignments.clone()),
                    others: others.clone(),
                    selection: update.selection.clone(),
                }))
            }
            ast::Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) =
                    &delete.from;
                let [table] = &tables[..] else {
                    return Ok(None);
                };
                let has_alias =
                    matches!(&table.relation, TableFactor::Table { alias, .. } if alias.is_some());
                if delete.using.is_none() && !has_alias {
                    return Ok(None);
                }
                let has_more = !delete.tables.is_empty()
                    || delete.output.is_some()
                    || !delete.order_by.is_empty()
                    || delete.limit.is_some()
                    || !table.joins.is_empty();
                if has_more {
                    return Err(not_supported(delete));
                }
                Ok(Some(Self {
                    table: table.clone(),
                    assignments: None,
                    others: delete.using.clone().unwrap_or_default(),
                    selection: delete.selection.clone(),
                }))
            }
            _ => Ok(None),
        }
    }

    /// Whether the statement is an UPDATE.
    pub(crate) fn is_update(&self) -> bool {
        self.assignments.is_some()
    }

    /// The query that returns the rows of a relation, with their keys in the last column.
    pub(crate) fn query(self, relation: &Schema) -> Result<Statement> {
        let TableFactor::Table { name, alias, .. } = &self.table.relation else {
            return Err(not_supported(&self.table));
        };
        let qualifier: Vec<Ident> = match alias {
            Some(alias) => vec![alias.name.clone()],
            None => {
                let parts = name.0.iter().map(|part| part.as_ident().cloned());
                let parts: Option<Vec<Ident>> = parts.collect();
                parts.ok_or_else(|| not_supported(name))?
            }
        };
        let own = |column: &str| {
            let mut parts = qualifier.clone();
            parts.push(Ident::with_quote('"', column));
            Expr::CompoundIdentifier(parts)
        };
        let mut assigned = Vec::new();
        for assignment in self.assignments.into_iter().flatten() {
            let column = column_of(&assignment.target)?;
            if relation.position(&column).is_none() {
                let problem = format!("table {name} has no column {column}");
                return Err(Error::new(ErrorKind::Plan, problem));
            }
            assigned.push((column, assignment.value));
        }
        let item = |column: &str| {
            // If a column is assigned several values, the last one counts, as in a statement without a join.
            let value = assigned.iter().rev().find(|(own, _)| own == column);
            SelectItem::ExprWithAlias {
                expr: value.map_or_else(|| own(column), |(_, value)| value.clone()),
                alias: Ident::with_quote('"', column),
            }
        };
        let columns = relation.columns.iter();
        let mut items: Vec<SelectItem> = columns.map(|column| item(&column.name)).collect();
        items.push(SelectItem::ExprWithAlias {
            expr: own(KEY),
            alias: Ident::new(KEY),
        });
        let mut tables = vec![self.table.clone()];
        tables.extend(self.others);
        let mut query = parse_one("SELECT 1")?;
        if let Statement::Statement(statement) = &mut query
            && let ast::Statement::Query(query) = &mut **statement
            && let SetExpr::Select(select) = &mut *query.body
        {
            select.projection = items;
            select.from = tables;
            select.selection = self.selection;
        }
        Ok(query)
    }
}

fn not_supported(text: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Syntax, format!("not supported: {text}"))
}
