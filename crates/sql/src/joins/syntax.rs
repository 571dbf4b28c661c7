//! Rewrites statements so that the planner recognises every table argument and every ASOF JOIN.
//!
//! ```text
//! asof_join(trades, 'wind.speed', ..)     =>  asof_join((SELECT * FROM trades), (SELECT * FROM "wind"."speed"), ..)
//! FROM a ASOF JOIN b MATCH_CONDITION (..) JOIN c  =>  FROM (a ASOF JOIN b MATCH_CONDITION (..)) JOIN c
//! ```

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query,
    Select, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// A table function of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    AsOf,
    Window,
}

impl Function {
    /// The function with this name.
    pub(super) fn of(name: &ObjectName) -> Option<Self> {
        let [ObjectNamePart::Identifier(name)] = &name.0[..] else {
            return None;
        };
        let mut functions = [Self::AsOf, Self::Window].into_iter();
        functions.find(|function| name.value.eq_ignore_ascii_case(function.name()))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AsOf => "asof_join",
            Self::Window => "window_join",
        }
    }
}

/// Whether a token is a keyword of this module. Only statements with such a token are rewritten.
pub(crate) fn is_named(token: &Token) -> bool {
    let names = ["ASOF", Function::AsOf.name(), Function::Window.name()];
    matches!(token, Token::Word(word) if names.iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

/// Rewrites a statement.
pub(crate) fn prepare(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            // The visitor never stops early.
            let _: ControlFlow<()> = statement.visit(&mut Rewriter);
        }
        Statement::Explain(explain) => prepare(&mut explain.statement),
        _ => {}
    }
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for tables in &mut select.from {
            nest(tables, tables.joins.len());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::NestedJoin {
                table_with_joins: tables,
                ..
            } => nest(tables, tables.joins.len().saturating_sub(1)),
            TableFactor::Table {
                name,
                args: Some(args),
                ..
            } if Function::of(name).is_some() => {
                for arg in args.args.iter_mut().take(2) {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg
                        && let Some(query) = query_of(expr)
                    {
                        *expr = ast::Expr::Subquery(query);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether a join is an ASOF JOIN.
pub(super) fn is_as_of(join: &ast::Join) -> bool {
    matches!(join.join_operator, JoinOperator::AsOf { .. })
}

/// Puts each ASOF JOIN among the first `joins` joins in parentheses, together with the joins before it.
fn nest(tables: &mut TableWithJoins, mut joins: usize) {
    while let Some(at) = tables.joins[..joins].iter().position(is_as_of) {
        let rest = tables.joins.split_off(at + 1);
        let inner = TableWithJoins {
            relation: tables.relation.clone(),
            joins: std::mem::replace(&mut tables.joins, rest),
        };
        tables.relation = TableFactor::NestedJoin {
            table_with_joins: Box::new(inner),
            alias: None,
        };
        joins -= at + 1;
    }
}

/// A query that reads the table with this name.
fn query_of(expr: &ast::Expr) -> Option<Box<Query>> {
    let parts = match expr {
        ast::Expr::Identifier(name) => vec![name.clone()],
        ast::Expr::CompoundIdentifier(parts) => parts.clone(),
        ast::Expr::Value(value) => {
            let name = value.value.clone().into_string()?;
            let parts: Vec<&str> = name.split('.').collect();
            // A name may consist of a catalog, a schema and a table.
            let parts = match parts.len() {
                1..=3 if !parts.contains(&"") => parts,
                _ => vec![&*name],
            };
            parts
                .into_iter()
                .map(|part| Ident::with_quote('"', part))
                .collect()
        }
        _ => return None,
    };
    let name = ObjectName::from(parts);
    let parser = Parser::new(&GenericDialect {}).try_with_sql(&format!("SELECT * FROM {name}"));
    parser.and_then(|mut parser| parser.parse_query()).ok()
}
