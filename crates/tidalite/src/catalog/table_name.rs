//! The name of a table that is being read. Errors in the table report it.

use crate::types::error::Error;
use crate::types::error::cause::Cause;
use std::sync::Arc;

/// A table name that is not copied for each reader.
#[derive(Clone, Debug)]
pub(crate) enum Named<'a> {
    /// Borrowed from the transaction, or from the state that snapshots of one commit share.
    Lent(&'a str),
    Shared(Arc<str>),
}

impl Named<'_> {
    pub(crate) fn of(name: &str) -> Self {
        Self::Shared(name.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Lent(name) => name,
            Self::Shared(name) => name,
        }
    }

    /// Adds the table's name to an error in this table, or in one nested in it.
    #[cold]
    pub(crate) fn error(&self, error: tidalite_pager::Error) -> Error {
        match error {
            tidalite_pager::Error::IsTable { key } => Error::from(Cause::IsTable {
                table: self.as_str().to_owned(),
                key,
            }),
            error => error.into(),
        }
    }
}
