//! Converts errors of relations to errors of this library.

use crate::types::error::Error;
use crate::types::error::cause::Cause;
use tidalite_relations::Error as Refusal;

/// The error, with the name of the relation.
#[cold]
pub(crate) fn refused(relation: &str, error: Refusal) -> Error {
    let relation = relation.to_owned();
    match error {
        Refusal::Store(error) => error.into(),
        Refusal::Unique { conflict, key } => Error::from(Cause::UniqueViolation {
            relation,
            conflict,
            key,
        }),
        Refusal::NotNull { column } => Error::from(Cause::NotNullViolation { relation, column }),
        Refusal::NoSuchRow => Error::from(Cause::NoSuchRow { relation }),
        error => Error::from(Cause::Relation {
            relation,
            problem: error.to_string(),
        }),
    }
}
