//! The name of a table that is being read, for error messages.

use crate::types::error::Error;
use crate::types::error::cause::Cause;
use std::sync::Arc;

/// A table name, borrowed or shared, so that readers need no copy of the text.
#[derive(Clone, Debug)]
pub(crate) enum Named<'a> {
    /// Name borrowed from the transaction, or from the catalog state that all snapshots of one commit share.
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

    /// Adds the table's name to an error that occurred in this table or in a table nested in it.
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
