//! Conditions of changes and reads, and their outcomes.

use crate::objects::content_hash::ContentHash;
use crate::objects::manifest::ObjectInfo;

/// A condition on the object that currently has a name. A change or a read takes place only if it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectCondition {
    /// No condition.
    #[default]
    Always,
    /// No object has the name.
    Missing,
    /// An object has the name.
    Exists,
    /// The object has this hash.
    Hash(ContentHash),
    /// No object with this hash has the name.
    NotHash(ContentHash),
}

impl ObjectCondition {
    /// Whether the condition holds for the object that has the name; `None` means that no object has it.
    #[must_use]
    pub fn holds(&self, object: Option<&ObjectInfo>) -> bool {
        match self {
            Self::Always => true,
            Self::Missing => object.is_none(),
            Self::Exists => object.is_some(),
            Self::Hash(hash) => object.is_some_and(|object| object.hash == *hash),
            Self::NotHash(hash) => object.is_none_or(|object| object.hash != *hash),
        }
    }
}

/// Outcome of a conditional change or read.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectOutcome<T> {
    /// The condition held, and the change or read was done.
    Done(T),
    /// The condition does not hold. The value is the object that has the name, if any. Nothing was changed.
    Refused(Option<Box<ObjectInfo>>),
    /// The object to be read or changed does not exist. Nothing was changed.
    NotFound,
}

impl<T> ObjectOutcome<T> {
    /// The result, if the condition held.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Refused(_) | Self::NotFound => None,
        }
    }
}
