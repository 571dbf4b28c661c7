//! Errors of statements.

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use std::error::Error as StdError;
use std::fmt;

/// The result of a call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an [`Error`], with which a program can decide how to react.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not SQL, or a statement or clause is not supported.
    Syntax,
    /// A table, column or function does not exist, a type does not match, or a name is ambiguous.
    Plan,
    /// A value is out of range or cannot be converted.
    Execution,
    /// The statement is not allowed in the current state of the connection: no transaction is open, an earlier
    /// statement of the transaction failed, or the transaction is read-only.
    Transaction,
    /// The query needs more memory than [`ConnectionOptions::memory_bytes`](crate::ConnectionOptions::memory_bytes).
    Memory,
    /// The statement was cancelled.
    Cancelled,
    /// A file of rows cannot be read or written, or is damaged.
    File,
    /// The database cannot be read or written: damage, a full disk, a second writer. [`Error::database`] returns the
    /// cause.
    Database,
}

/// An error that ended a statement. The statement has changed nothing.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    position: Option<(u64, u64)>,
    cause: Option<Box<DataFusionError>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            position: None,
            cause: None,
        }
    }

    /// The text without a position.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Line and column of the problem in the text of the statement, both counted from 1; `None` if the error has no
    /// position.
    #[must_use]
    pub fn position(&self) -> Option<(u64, u64)> {
        self.position
    }

    /// The database error that ended the statement, for the kind [`ErrorKind::Database`].
    #[must_use]
    pub fn database(&self) -> Option<&tidalite::Error> {
        database_error(self.cause.as_deref()?)
    }
}

/// Finds an error of the database among the causes of an error.
fn database_error<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e tidalite::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<tidalite::Error>() {
            return Some(own);
        }
        cause = match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(&**inner),
            Some(DataFusionError::ArrowError(inner, _)) => match &**inner {
                ArrowError::ExternalError(inner) => Some(&**inner),
                _ => None,
            },
            _ => error.source(),
        };
    }
    None
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.position {
            Some((line, column)) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<tidalite::Error> for Error {
    fn from(error: tidalite::Error) -> Self {
        Self {
            message: error.to_string(),
            cause: Some(Box::new(DataFusionError::External(Box::new(error)))),
            ..Self::new(ErrorKind::Database, "")
        }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error.cause {
            Some(cause) => *cause,
            None if error.kind == ErrorKind::Plan => Self::Plan(error.message),
            None => Self::Execution(error.message),
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        let position = position_of(&error);
        let (kind, message) = if let Some(own) = database_error(&error) {
            (ErrorKind::Database, own.to_string())
        } else {
            described(error.find_root())
        };
        Self {
            kind,
            message,
            position,
            cause: Some(Box::new(error)),
        }
    }
}

/// The kind of an error without causes, and its text without DataFusion's prefix.
fn described(root: &DataFusionError) -> (ErrorKind, String) {
    match root {
        DataFusionError::SQL(error, _) => {
            let text = error.to_string();
            let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
            // The position is reported separately.
            let text = text.split(" at Line: ").next().unwrap_or(text);
            (ErrorKind::Syntax, text.to_owned())
        }
        DataFusionError::NotImplemented(text) => {
            (ErrorKind::Syntax, format!("not supported: {text}"))
        }
        DataFusionError::Plan(text) => (ErrorKind::Plan, text.clone()),
        DataFusionError::SchemaError(error, _) => (ErrorKind::Plan, error.to_string()),
        DataFusionError::Configuration(text) => (ErrorKind::Plan, text.clone()),
        DataFusionError::ResourcesExhausted(text) => (ErrorKind::Memory, text.clone()),
        DataFusionError::Execution(text) => (ErrorKind::Execution, text.clone()),
        DataFusionError::ArrowError(error, _) => (ErrorKind::Execution, error.to_string()),
        other => (ErrorKind::Execution, other.to_string()),
    }
}

/// The line and column that an error contains.
fn position_of(error: &DataFusionError) -> Option<(u64, u64)> {
    if let Some(span) = error.iter().find_map(|error| match error {
        DataFusionError::Diagnostic(diagnostic, _) => diagnostic.span,
        _ => None,
    }) {
        return Some((span.start.line, span.start.column));
    }
    // The parser reports positions only in its error texts.
    let DataFusionError::SQL(error, _) = error.find_root() else {
        return None;
    };
    let text = error.to_string();
    let (_, place) = text.rsplit_once("at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}
