//! The name of a table that is read: what its errors are told with.

use crate::types::error::Error;
use std::sync::Arc;

/// A name that is not copied for each who reads the table.
#[derive(Clone, Debug)]
pub(crate) enum Named<'a> {
    /// By the transaction, or by what snapshots of one commit share.
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

    /// What went wrong in this table, or in one that is nested in it.
    #[cold]
    pub(crate) fn error(&self, error: tidalite_pager::Error) -> Error {
        match error {
            tidalite_pager::Error::IsTable { key } => Error::IsTable {
                table: self.as_str().to_owned(),
                key,
            },
            error => error.into(),
        }
    }
}
