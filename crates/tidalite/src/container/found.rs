//! Filters and selected fields of queries, and the messages that queries find.

use crate::txn::pages::Pages;
use crate::types::error::{Error, Result};
use std::cell::OnceCell;
use tidalite_messages::{
    ContainerMessage, ContainersReader, Document, EncodedDocument, EncodedFields, EncodedPath,
    EncodedProjection, Expression, ExpressionError, FieldNames, MessageKey, Projection,
};
use tidalite_time::Timestamp;

/// A message that was found, not yet decoded.
pub struct FoundMessage<'m> {
    message: ContainerMessage<'m>,
    names: &'m FieldNames,
}

impl<'m> FoundMessage<'m> {
    pub(super) fn new(message: ContainerMessage<'m>, names: &'m FieldNames) -> Self {
        Self { message, names }
    }

    /// Time of the message.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.message.key.time
    }

    /// Number that distinguishes the messages of one time.
    #[must_use]
    pub fn tie(&self) -> u32 {
        self.message.key.tie
    }

    /// Number of the container, time and tie.
    #[must_use]
    pub fn key(&self) -> MessageKey {
        self.message.key
    }

    /// Time at which the message was appended.
    #[must_use]
    pub fn received(&self) -> Timestamp {
        self.message.received
    }

    /// Whether the message is exempt from expiry and rotation.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.message.is_protected
    }

    /// The fields, not decoded.
    ///
    /// # Errors
    /// A damaged message.
    pub fn encoded(&self) -> Result<EncodedDocument<'m>> {
        Ok(EncodedDocument::new(self.message.document)?)
    }

    /// All fields.
    ///
    /// # Errors
    /// A damaged message.
    pub fn document(&self) -> Result<Document> {
        Ok(self.names.decode(self.message.document)?)
    }
}

/// The names of the fields of a table. They are read on first use.
#[derive(Default)]
pub(super) struct Names(OnceCell<FieldNames>);

impl Names {
    pub(super) fn get(&self, reader: &ContainersReader<Pages<'_>>) -> Result<&FieldNames> {
        if let Some(names) = self.0.get() {
            return Ok(names);
        }
        let names = reader.field_names()?;
        Ok(self.0.get_or_init(|| names))
    }
}

/// Converts an error of an expression to an error of this library.
pub(super) fn expression_error(error: ExpressionError) -> Error {
    tidalite_pager::Error::from(error).into()
}

/// A filter with the numbers of its fields in one snapshot.
pub(super) struct Filter<'f> {
    expression: &'f Expression,
    paths: Vec<EncodedPath>,
}

impl<'f> Filter<'f> {
    pub(super) fn new(expression: &'f Expression, number: &dyn Fn(&str) -> Option<u32>) -> Self {
        let paths = EncodedPath::all(expression.fields(), number);
        Self { expression, paths }
    }

    pub(super) fn matches(&self, message: &ContainerMessage<'_>) -> Result<bool> {
        let source = EncodedFields {
            document: EncodedDocument::new(message.document)?,
            paths: &self.paths,
            time: Some(message.key.time),
            received: Some(message.received),
        };
        self.expression.matches(&source).map_err(expression_error)
    }
}

/// A found message with the fields that a query asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Time of the message.
    pub time: Timestamp,
    /// Number that distinguishes the messages of one time.
    pub tie: u32,
    /// Time at which the message was appended.
    pub received: Timestamp,
    /// The fields.
    pub document: Document,
}

/// The fields that a query selects, with their numbers in one snapshot.
pub(super) struct Fields<'f>(Option<EncodedProjection<'f>>);

impl<'f> Fields<'f> {
    pub(super) fn new(
        projection: Option<&'f Projection>,
        number: &dyn Fn(&str) -> Option<u32>,
    ) -> Self {
        Self(projection.map(|projection| projection.resolve(number)))
    }

    pub(super) fn of(&self, found: &FoundMessage<'_>) -> Result<Message> {
        let document = match &self.0 {
            Some(fields) => fields.project(&found.encoded()?)?,
            None => found.document()?,
        };
        Ok(Message {
            time: found.time(),
            tie: found.tie(),
            received: found.received(),
            document,
        })
    }
}
