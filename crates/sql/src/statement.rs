//! Classifies statements: some read, others change rows, change tables, or control transactions.

use crate::error::{Error, ErrorKind, Result};
use crate::joins;
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    self, CopySource, CopyTarget, ObjectName, TransactionAccessMode, TransactionMode,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserOptions};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// Maximum depth of nested expressions and subqueries.
const DEPTH_MAX: usize = 100;

/// A statement.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Reads rows: `SELECT`, `EXPLAIN` and others; with `AS OF`, in an earlier version.
    Read(Parsed, Option<Version>),
    /// `INSERT`, `UPDATE`, `DELETE`.
    Change(Parsed),
    Copy(Copy),
    /// `CREATE`, `ALTER`, `DROP`.
    Define(Box<ast::Statement>),
    Begin {
        read_only: bool,
        version: Option<Version>,
    },
    Commit,
    Rollback,
    RollbackTo(String),
    Savepoint(String),
    Release(String),
    /// Makes the tables of another file readable under a name.
    Attach {
        file: String,
        name: String,
    },
    Detach(String),
    Prepare(String, Prepared),
    Execute(String, Vec<ast::Expr>),
    /// Removes a prepared statement, or all of them for the name `all`.
    Deallocate(String),
}

/// A statement whose parameters get values later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// The types of the parameters; empty if the parameters have the types of their values.
    pub(crate) types: Vec<ast::DataType>,
}

/// A version of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Pin(String),
    Txn(u64),
}

/// `COPY`.
#[derive(Debug)]
pub(crate) enum Copy {
    To {
        query: Parsed,
        file: String,
        options: Vec<ast::CopyOption>,
    },
    From {
        table: ObjectName,
        columns: Vec<ast::Ident>,
        file: String,
        options: Vec<ast::CopyOption>,
    },
}

impl Statement {
    /// Parses one statement.
    pub(crate) fn parse(sql: &str) -> Result<Self> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        // An error of the tokenizer is reported by the parser as well.
        let tokens = tokens.unwrap_or_default();
        let tokens: Vec<TokenWithSpan> = tokens
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
            .collect();
        if tokens
            .first()
            .is_some_and(|first| is(first, Keyword::PREPARE))
        {
            return parse_prepare(sql, &tokens);
        }
        let (sql, version) = split_version(sql, &tokens);
        let mut parsed = match tokens.first().map(|token| &token.token) {
            // DataFusion's parser has a different COPY statement.
            Some(Token::Word(word)) if word.keyword == Keyword::COPY => parse_copy(sql)?,
            _ => parse_one(sql)?,
        };
        if tokens.iter().any(|token| joins::is_named(&token.token)) {
            joins::prepare(&mut parsed);
        }
        let statement = Self::of(parsed, version.clone())?;
        if version.is_some() && !matches!(statement, Self::Read(..) | Self::Begin { .. }) {
            return Err(syntax("AS OF belongs to SELECT, or to BEGIN READ ONLY"));
        }
        Ok(statement)
    }

    fn of(parsed: Parsed, version: Option<Version>) -> Result<Self> {
        use ast::Statement as Sql;
        let statement = match parsed {
            Parsed::Statement(statement) => statement,
            Parsed::Explain(_) => return Ok(Self::Read(parsed, version)),
            Parsed::CreateExternalTable(_) => {
                return Err(syntax(
                    "not supported: CREATE EXTERNAL TABLE; a file is a table by its path: SELECT * FROM 'data.parquet'",
                ));
            }
            other => return Err(syntax(format!("not supported: {other}"))),
        };
        let is_chained = |chain| match chain {
            true => Err(syntax("not supported: AND CHAIN")),
            false => Ok(()),
        };
        Ok(match *statement {
            Sql::Insert(_) | Sql::Update(_) | Sql::Delete(_) => {
                Self::Change(Parsed::Statement(statement))
            }
            Sql::CreateTable(_)
            | Sql::CreateView(_)
            | Sql::CreateIndex(_)
            | Sql::AlterTable(_)
            | Sql::Drop { .. }
            | Sql::Truncate(_) => Self::Define(statement),
            Sql::Copy {
                source,
                to,
                target,
                options,
                legacy_options,
                ..
            } => {
                if !legacy_options.is_empty() {
                    return Err(syntax("options of COPY are written in parentheses"));
                }
                Self::Copy(Copy::of(source, to, target, options)?)
            }
            Sql::StartTransaction {
                modes,
                statements,
                modifier: None,
                ..
            } if statements.is_empty() => {
                let is_read_only = |mode: &TransactionMode| {
                    *mode == TransactionMode::AccessMode(TransactionAccessMode::ReadOnly)
                };
                let read_only = version.is_some() || modes.iter().any(is_read_only);
                Self::Begin { read_only, version }
            }
            Sql::Commit {
                chain,
                modifier: None,
                ..
            } => is_chained(chain).map(|()| Self::Commit)?,
            Sql::Rollback { chain, savepoint } => {
                is_chained(chain)?;
                savepoint.map_or(Self::Rollback, |name| Self::RollbackTo(name.value))
            }
            Sql::Savepoint { name } => Self::Savepoint(name.value),
            Sql::ReleaseSavepoint { name } => Self::Release(name.value),
            Sql::AttachDatabase {
                schema_name,
                database_file_name,
                ..
            } => {
                let file = match database_file_name {
                    ast::Expr::Value(value) => value.value.into_string(),
                    _ => None,
                };
                let file = file.ok_or_else(|| syntax("ATTACH needs a path in quotes"))?;
                let name = schema_name.value;
                Self::Attach { file, name }
            }
            Sql::DetachDuckDBDatabase {
                if_exists: false,
                database_alias,
                ..
            } => Self::Detach(database_alias.value),
            Sql::Execute {
                name: Some(name),
                parameters,
                immediate: false,
                using,
                ..
            } if using.is_empty() => {
                let name = match &name.0[..] {
                    [part] => part.as_ident(),
                    _ => None,
                };
                let name = name.ok_or_else(|| syntax("EXECUTE needs the name of a statement"))?;
                Self::Execute(name.value.clone(), parameters)
            }
            Sql::Deallocate { name, .. } => Self::Deallocate(name.value),
            _ => Self::Read(Parsed::Statement(statement), version),
        })
    }
}

impl Copy {
    fn of(
        source: CopySource,
        to: bool,
        target: CopyTarget,
        options: Vec<ast::CopyOption>,
    ) -> Result<Self> {
        let CopyTarget::File { filename: file } = target else {
            return Err(syntax("COPY reads and writes files: give a path in quotes"));
        };
        Ok(match (to, source) {
            (true, CopySource::Query(query)) => Self::To {
                query: Parsed::Statement(Box::new(ast::Statement::Query(query))),
                file,
                options,
            },
            (
                true,
                CopySource::Table {
                    table_name,
                    columns,
                },
            ) => {
                let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let columns = match columns.is_empty() {
                    true => "*".to_owned(),
                    false => columns.join(", "),
                };
                Self::To {
                    query: parse_one(&format!("SELECT {columns} FROM {table_name}"))?,
                    file,
                    options,
                }
            }
            (
                false,
                CopySource::Table {
                    table_name,
                    columns,
                },
            ) => Self::From {
                table: table_name,
                columns,
                file,
                options,
            },
            (false, CopySource::Query(_)) => {
                return Err(syntax("COPY FROM needs a table"));
            }
        })
    }
}

fn syntax(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Syntax, problem)
}

pub(crate) fn parse_one(sql: &str) -> Result<Parsed> {
    let parser = DFParserBuilder::new(sql)
        .with_dialect(&GenericDialect {})
        .with_recursion_limit(DEPTH_MAX);
    let mut statements = parser.build()?.parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (None, _) => Err(syntax("there is no statement")),
        _ => Err(syntax("there are several statements; run one at a time")),
    }
}

fn parse_copy(sql: &str) -> Result<Parsed> {
    let parse = || {
        let parser = Parser::new(&GenericDialect {})
            .with_recursion_limit(DEPTH_MAX)
            .with_options(ParserOptions::new());
        let mut parser = parser.try_with_sql(sql)?;
        let statement = parser.parse_statement()?;
        while parser.consume_token(&Token::SemiColon) {}
        parser.expect_token(&Token::EOF)?;
        Ok::<_, datafusion::sql::sqlparser::parser::ParserError>(statement)
    };
    let statement =
        parse().map_err(|error| datafusion::common::DataFusionError::SQL(Box::new(error), None))?;
    Ok(Parsed::Statement(Box::new(statement)))
}

/// Cuts `AS OF 'pin'` or `AS OF 17` off the end of a statement.
fn split_version<'s>(sql: &'s str, tokens: &[TokenWithSpan]) -> (&'s str, Option<Version>) {
    let end = tokens
        .iter()
        .rposition(|token| token.token != Token::SemiColon);
    let tokens = &tokens[..end.map_or(0, |end| end + 1)];
    let [before @ .., as_, of, version] = tokens else {
        return (sql, None);
    };
    let version = match &version.token {
        Token::SingleQuotedString(name) => Version::Pin(name.clone()),
        Token::Number(number, false) => match number.parse() {
            Ok(number) => Version::Txn(number),
            Err(_) => return (sql, None),
        },
        _ => return (sql, None),
    };
    if !is(as_, Keyword::AS) || !is(of, Keyword::OF) {
        return (sql, None);
    }
    // In the SQL standard the clause is FOR SYSTEM_TIME AS OF.
    let first = match before {
        [.., for_, system_time]
            if is(for_, Keyword::FOR) && is(system_time, Keyword::SYSTEM_TIME) =>
        {
            for_
        }
        _ => as_,
    };
    (&sql[..byte_at(sql, first.span.start)], Some(version))
}

/// Whether a token is this keyword, without quotes.
fn is(token: &TokenWithSpan, wanted: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == wanted && word.quote_style.is_none())
}

/// Parses `PREPARE name [(types)] AS statement`, and keeps the text of the statement.
fn parse_prepare(sql: &str, tokens: &[TokenWithSpan]) -> Result<Statement> {
    let problem = || syntax("PREPARE is written as PREPARE name AS statement");
    // Neither the name nor the types contain an AS.
    let place = tokens.iter().position(|token| is(token, Keyword::AS));
    let place = place.ok_or_else(problem)?;
    let [as_, first, ..] = &tokens[place..] else {
        return Err(problem());
    };
    let head = &sql[..byte_at(sql, as_.span.start)];
    if let Parsed::Statement(parsed) = parse_one(&format!("{head} AS SELECT 1"))?
        && let ast::Statement::Prepare {
            name, data_types, ..
        } = *parsed
    {
        let text = sql[byte_at(sql, first.span.start)..].to_owned();
        let types = data_types;
        return Ok(Statement::Prepare(name.value, Prepared { text, types }));
    }
    Err(problem())
}

/// The number of bytes before a position in a text.
fn byte_at(sql: &str, place: Location) -> usize {
    let mut lines = sql.split_inclusive('\n');
    let lines_before = place.line as usize - 1;
    let before: usize = lines.by_ref().take(lines_before).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let column = line.char_indices().nth(place.column as usize - 1);
    before + column.map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_of_ends_a_statement() {
        let version = |sql: &str| match Statement::parse(sql).unwrap() {
            Statement::Read(parsed, version) => (parsed.to_string(), version),
            Statement::Begin { read_only, version } => (read_only.to_string(), version),
            other => panic!("{other:?}"),
        };
        let pin = |name: &str| Some(Version::Pin(name.to_owned()));
        let plain = "SELECT 1".to_owned();
        assert_eq!(version("SELECT 1"), (plain.clone(), None));
        assert_eq!(
            version("SELECT 1\n as of 'ä b' ;"),
            (plain.clone(), pin("ä b"))
        );
        assert_eq!(
            version("/* ü\n*/ SELECT 1 FOR SYSTEM_TIME AS OF 17"),
            (plain, Some(Version::Txn(17)))
        );
        assert_eq!(
            version("BEGIN READ ONLY AS OF 'a'"),
            ("true".to_owned(), pin("a"))
        );
        assert_eq!(version("SELECT 1 AS of").1, None);
        assert!(Statement::parse("COMMIT AS OF 'a'").is_err());
    }

    #[test]
    fn statements_are_told_apart() {
        let parse = |sql| Statement::parse(sql).unwrap();
        assert!(matches!(parse("EXPLAIN SELECT 1"), Statement::Read(..)));
        assert!(matches!(
            parse("INSERT INTO a VALUES (1)"),
            Statement::Change(_)
        ));
        assert!(matches!(
            parse("BEGIN"),
            Statement::Begin {
                read_only: false,
                ..
            }
        ));
        assert!(matches!(
            parse("START TRANSACTION READ ONLY"),
            Statement::Begin {
                read_only: true,
                ..
            }
        ));
        assert!(matches!(parse("ROLLBACK TO a"), Statement::RollbackTo(name) if name == "a"));
        assert!(matches!(parse("END"), Statement::Commit));
        assert!(matches!(
            parse("COPY a TO 'a.csv' (FORMAT csv, HEADER)"),
            Statement::Copy(Copy::To { .. })
        ));
        assert!(matches!(
            parse("COPY a (b) FROM 'a.csv';"),
            Statement::Copy(Copy::From { .. })
        ));
        assert!(Statement::parse("COPY a TO 'b' 'c'").is_err());
    }

    #[test]
    fn the_text_of_a_prepared_statement_stays() {
        let parse = |sql| match Statement::parse(sql).unwrap() {
            Statement::Prepare(name, prepared) => (name, prepared.types.len(), prepared.text),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            parse("/* ü */ prepare p (INT, DECIMAL(9, 2)) as\n SELECT $1 AS a, '$2' AS OF 'pin'"),
            (
                "p".to_owned(),
                2,
                "SELECT $1 AS a, '$2' AS OF 'pin'".to_owned()
            )
        );
        assert_eq!(parse("PREPARE \"AS\" AS DELETE FROM t").1, 0);
        assert!(Statement::parse("PREPARE p SELECT 1").is_err());
        assert!(Statement::parse("PREPARE p AS").is_err());
        assert!(Statement::parse("PREPARE p q AS SELECT 1").is_err());
        assert!(
            matches!(Statement::parse("EXECUTE p(1, 'x')").unwrap(), Statement::Execute(name, values) if name == "p" && values.len() == 2)
        );
        assert!(matches!(
            Statement::parse("DEALLOCATE PREPARE p").unwrap(),
            Statement::Deallocate(_)
        ));
    }
}
