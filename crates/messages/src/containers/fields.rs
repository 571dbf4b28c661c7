//! The fields that a query returns, and dotted paths into encoded messages.

use crate::containers::codec::{EncodedDocument, EncodedValue};
use crate::containers::document::{
    DOCUMENT_FIELDS_MAX, Document, check_name, duplicate, splits, within,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite_pager::Result;

/// The paths of the fields that a query returns, in the order of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    paths: Vec<Arc<str>>,
}

impl Projection {
    /// Creates a projection to dotted paths, which are read by the rule of [`Document::find`].
    ///
    /// # Errors
    /// `Limit` for more paths than a message may have fields; `InvalidName` for paths that cannot be names of fields;
    /// `InvalidInput` for a path that occurs twice.
    pub fn new<P: AsRef<str>>(paths: &[P]) -> Result<Self> {
        within("fields of a message", paths.len(), DOCUMENT_FIELDS_MAX)?;
        let mut seen = BTreeSet::new();
        for path in paths {
            check_name(path.as_ref())?;
            if !seen.insert(path.as_ref()) {
                return Err(duplicate(path.as_ref()));
            }
        }
        let paths = paths.iter().map(|path| path.as_ref().into()).collect();
        Ok(Self { paths })
    }

    /// The paths, in the order of the result.
    #[must_use]
    pub fn paths(&self) -> &[Arc<str>] {
        &self.paths
    }

    /// The values at the paths, each as a field with its path as name. Paths that the message does not have are
    /// omitted.
    #[must_use]
    pub fn project(&self, document: &Document) -> Document {
        let found = self.paths.iter().filter_map(|path| {
            let value = document.find(path)?;
            Some((Arc::clone(path), value.clone()))
        });
        Document::of_checked(found.collect())
    }

    /// Looks up the numbers of the names once, for [`EncodedProjection::project`]. `number` returns the number of a
    /// name in the dictionary. Names that are added to the dictionary later are not found.
    #[must_use]
    pub fn resolve(&self, number: &dyn Fn(&str) -> Option<u32>) -> EncodedProjection<'_> {
        let paths = EncodedPath::all(&self.paths, number);
        EncodedProjection {
            names: &self.paths,
            paths,
        }
    }
}

/// A projection of encoded messages.
#[derive(Clone, Debug)]
pub struct EncodedProjection<'p> {
    names: &'p [Arc<str>],
    paths: Vec<EncodedPath>,
}

impl EncodedProjection<'_> {
    /// Returns the same document as [`Projection::project`], without decoding other fields.
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes, in the part of the message that is read.
    ///
    /// # Cost
    /// For each path, skips the fields before the one that is found.
    pub fn project(&self, document: &EncodedDocument<'_>) -> Result<Document> {
        let mut found = Vec::with_capacity(self.paths.len());
        for (name, path) in self.names.iter().zip(&self.paths) {
            if let Some(value) = path.find(document)? {
                found.push((Arc::clone(name), value.decode()?));
            }
        }
        Ok(Document::of_checked(found))
    }
}

/// A dotted path with the numbers of the names that may be its first part.
#[derive(Clone, Debug)]
pub struct EncodedPath {
    /// The number of a field, and the rest of the path; empty for the field itself.
    starts: Vec<(u32, String)>,
}

impl EncodedPath {
    /// Looks up the names. `number` returns the number of a name in the dictionary. Names that are added to the
    /// dictionary later are not found.
    #[must_use]
    pub fn new(path: &str, number: &dyn Fn(&str) -> Option<u32>) -> Self {
        let whole = std::iter::once((path, ""));
        let starts = whole.chain(splits(path).filter(|(_, rest)| !rest.is_empty()));
        let starts = starts.filter_map(|(name, rest)| Some((number(name)?, rest.to_owned())));
        Self {
            starts: starts.collect(),
        }
    }

    /// Looks up the names of several paths.
    #[must_use]
    pub fn all<P: AsRef<str>>(paths: &[P], number: &dyn Fn(&str) -> Option<u32>) -> Vec<Self> {
        let paths = paths.iter();
        paths.map(|path| Self::new(path.as_ref(), number)).collect()
    }

    /// The value at the path, by the rule of [`Document::find`].
    ///
    /// # Errors
    /// [`tidalite_pager::Error::Corrupt`] for bytes that no encoder writes, in the part of the message that is read.
    pub fn find<'a>(&self, document: &EncodedDocument<'a>) -> Result<Option<EncodedValue<'a>>> {
        for (number, rest) in &self.starts {
            match document.get(*number)? {
                Some(value) if rest.is_empty() => return Ok(Some(value)),
                Some(EncodedValue::Object(object)) => {
                    if let Some(value) = object.find(rest)? {
                        return Ok(Some(value));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
