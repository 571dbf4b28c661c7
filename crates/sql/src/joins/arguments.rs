//! Reads the arguments of `asof_join` and `window_join`.

use super::asof::Direction;
use super::syntax::Function;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{self, FunctionArg, FunctionArgExpr, TableFactor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// The arguments.
pub(super) struct Arguments {
    pub(super) left: TableFactor,
    pub(super) right: TableFactor,
    /// The columns that must be equal in matching rows; `None` for all tags that both tables have.
    pub(super) by: Option<Vec<String>>,
    pub(super) time: String,
    pub(super) direction: Direction,
    pub(super) is_strict: bool,
    pub(super) tolerance: Option<ast::Expr>,
    /// The start and the end of a window.
    pub(super) window: Vec<ast::Expr>,
    /// The aggregates over a window, with the names of their columns.
    pub(super) aggregates: Vec<(String, ast::Expr)>,
}

impl Arguments {
    pub(super) fn new(function: Function, args: Vec<FunctionArg>) -> Result<Self> {
        let name = function.name();
        let mut positional = Vec::new();
        let mut named = Vec::new();
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => positional.push(expr),
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(expr),
                    ..
                } => named.push((name.value, expr)),
                other => return plan_err!("{name}: {other} is not an argument"),
            }
        }
        let mut positional = positional.into_iter();
        let (Some(left), Some(right)) = (positional.next(), positional.next()) else {
            return plan_err!("{name}: the first two arguments are the tables");
        };
        let mut found = Self {
            left: table(function, left)?,
            right: table(function, right)?,
            by: None,
            time: "time".to_owned(),
            direction: Direction::Backward,
            is_strict: false,
            tolerance: None,
            window: Vec::new(),
            aggregates: Vec::new(),
        };
        match function {
            Function::AsOf => {
                if let Some(by) = positional.next() {
                    found.by = Some(columns(function, by)?);
                }
                if let Some(surplus) = positional.next() {
                    return plan_err!(
                        "{name}: write the name of the argument, such as tolerance => {surplus}"
                    );
                }
            }
            Function::Window => {
                found.window = positional.by_ref().take(2).collect();
                for expr in positional {
                    let expr = parsed(expr)?;
                    found.aggregates.push((expr.to_string(), expr));
                }
            }
        }
        for (argument, expr) in named {
            found.set(function, argument, expr)?;
        }
        match function {
            Function::Window if found.window.len() < 2 => {
                plan_err!(
                    "{name}: the third and fourth arguments are the begin and the end of the window"
                )
            }
            Function::Window if found.aggregates.is_empty() => {
                plan_err!(
                    "{name}: the arguments after the window are aggregates, such as avg(value)"
                )
            }
            _ => Ok(found),
        }
    }

    /// Sets a named argument.
    fn set(&mut self, function: Function, argument: String, expr: ast::Expr) -> Result<()> {
        let name = function.name();
        match (argument.to_lowercase().as_str(), function) {
            ("by", _) => self.by = Some(columns(function, expr)?),
            ("time", _) => {
                self.time = match &columns(function, expr)?[..] {
                    [time] => time.clone(),
                    _ => return plan_err!("{name}: time is the name of one column"),
                }
            }
            ("tolerance", Function::AsOf) => self.tolerance = Some(expr),
            ("strict", Function::AsOf) => {
                self.is_strict = match expr.to_string().to_lowercase().as_str() {
                    "true" => true,
                    "false" => false,
                    other => return plan_err!("{name}: strict is {other}, expected true or false"),
                }
            }
            ("direction", Function::AsOf) => {
                let text = columns(function, expr)?.join(" ");
                self.direction = match text.to_lowercase().as_str() {
                    "backward" => Direction::Backward,
                    "forward" => Direction::Forward,
                    "nearest" => Direction::Nearest,
                    _ => {
                        return plan_err!(
                            "{name}: the direction is {text}, expected backward, forward or nearest"
                        );
                    }
                }
            }
            (_, Function::AsOf) => {
                return plan_err!(
                    "{name}: there is no argument {argument}; it has by, time, direction, strict and tolerance"
                );
            }
            (_, Function::Window) => self.aggregates.push((argument, parsed(expr)?)),
        }
        Ok(())
    }
}

/// A table; names have already been rewritten to subqueries.
fn table(function: Function, expr: ast::Expr) -> Result<TableFactor> {
    match expr {
        ast::Expr::Subquery(subquery) => Ok(TableFactor::Derived {
            lateral: false,
            subquery,
            alias: None,
            sample: None,
        }),
        other => plan_err!(
            "{}: {other} is not a table: expected a name or a query in parentheses",
            function.name()
        ),
    }
}

/// The names of columns: a single text or name, or a list of them.
fn columns(function: Function, expr: ast::Expr) -> Result<Vec<String>> {
    let several = |exprs: Vec<ast::Expr>| {
        let names = exprs.into_iter().map(|expr| columns(function, expr));
        Ok(names.collect::<Result<Vec<_>>>()?.concat())
    };
    match expr {
        ast::Expr::Identifier(name) => Ok(vec![name.value]),
        ast::Expr::Array(list) => several(list.elem),
        ast::Expr::Tuple(list) => several(list),
        ast::Expr::Nested(expr) => columns(function, *expr),
        ast::Expr::Value(value) => match value.value.into_string() {
            Some(name) => Ok(vec![name]),
            None => plan_err!("{}: expected the name of a column", function.name()),
        },
        other => plan_err!("{}: {other} is not the name of a column", function.name()),
    }
}

/// An expression, written directly or as a text.
fn parsed(expr: ast::Expr) -> Result<ast::Expr> {
    let ast::Expr::Value(value) = &expr else {
        return Ok(expr);
    };
    let Some(text) = value.value.clone().into_string() else {
        return Ok(expr);
    };
    let parser = Parser::new(&GenericDialect {}).try_with_sql(&text);
    match parser.and_then(|mut parser| parser.parse_expr()) {
        Ok(expr) => Ok(expr),
        Err(error) => plan_err!("{text}: {error}"),
    }
}
