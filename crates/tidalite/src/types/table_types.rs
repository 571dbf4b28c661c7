//! The layout of a table and the names of its key and value types, as stored with the table.
//!
//! ```text
//!  .  2 B      for other layouts than rows: 0, then the layout: 1 hash table, 2 buffered table, 3 topics, 4 queue,
//!              5 bucket, 6 containers, 7 relation
//!  0  u8       bytes of the key type's name, k, from 1
//!  1  k B      the name, UTF-8
//!  .  u8, v B  the same for the type of values
//! ```
//!
//! Layouts from 3 on have no types, and nothing follows.

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::fmt::{self, Write};
use tidalite_base::TypeName;

/// Maximum length in bytes of the name of a type.
pub const TYPE_NAME_BYTES_MAX: usize = 255;

/// How a table stores its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLayout {
    /// One row for each key, or for each key with its set of values.
    Rows,
    /// A hash table: records and an index of their keys.
    Hash,
    /// A buffered table: rows, and sorted runs of newer entries.
    Buffered,
    /// Topics with retained messages.
    Topics,
    /// A queue of jobs.
    Queue,
    /// A bucket of objects.
    Bucket,
    /// Containers of messages.
    Containers,
    /// A relation: rows of typed columns, and indexes.
    Relation,
}

impl TableLayout {
    /// The first bytes of the types of a table with this layout. No name of a type has length 0.
    fn code(self) -> &'static [u8] {
        match self {
            Self::Rows => &[],
            Self::Hash => &[0, 1],
            Self::Buffered => &[0, 2],
            Self::Topics => &[0, 3],
            Self::Queue => &[0, 4],
            Self::Bucket => &[0, 5],
            Self::Containers => &[0, 6],
            Self::Relation => &[0, 7],
        }
    }

    fn of_code(code: [u8; 2]) -> Option<Self> {
        let all = [
            Self::Hash,
            Self::Buffered,
            Self::Topics,
            Self::Queue,
            Self::Bucket,
            Self::Containers,
            Self::Relation,
        ];
        all.into_iter().find(|layout| layout.code() == code)
    }

    /// Whether the keys and values of such a table have types.
    #[must_use]
    pub fn has_types(self) -> bool {
        matches!(self, Self::Rows | Self::Hash | Self::Buffered)
    }
}

/// The names of the key and value types with which a table was created, and the layout of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableTypes {
    key: String,
    value: String,
    layout: TableLayout,
}

impl fmt::Display for TableTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = match self.layout {
            TableLayout::Rows => "",
            TableLayout::Hash => "hash table of ",
            TableLayout::Buffered => "buffered table of ",
            TableLayout::Topics => return f.write_str("topics"),
            TableLayout::Queue => return f.write_str("queue"),
            TableLayout::Bucket => return f.write_str("bucket"),
            TableLayout::Containers => return f.write_str("containers"),
            TableLayout::Relation => return f.write_str("relation"),
        };
        write!(f, "{layout}{} -> {}", self.key, self.value)
    }
}

impl TableTypes {
    /// Creates the pair of names; returns an error if a name is too long.
    pub(crate) fn new(key: &TypeName, value: &TypeName) -> Result<Self> {
        Self::named(&key.to_string(), &value.to_string())
    }

    /// Creates the pair of names from their texts; returns an error if a name is empty or too long.
    pub(crate) fn named(key: &str, value: &str) -> Result<Self> {
        let types = Self {
            key: key.to_owned(),
            value: value.to_owned(),
            layout: TableLayout::Rows,
        };
        for name in [&types.key, &types.value] {
            if name.is_empty() || name.len() > TYPE_NAME_BYTES_MAX {
                return Err(Error::from(Cause::Limit {
                    what: "bytes of the name of a type",
                    found: name.len() as u64,
                    limit: TYPE_NAME_BYTES_MAX as u64,
                }));
            }
        }
        Ok(types)
    }

    /// The same types with another layout; a layout without types has none.
    pub(crate) fn with_layout(self, layout: TableLayout) -> Self {
        match layout.has_types() {
            true => Self { layout, ..self },
            false => Self::untyped(layout),
        }
    }

    /// What is stored with a table of a layout that has no types.
    pub(crate) fn untyped(layout: TableLayout) -> Self {
        debug_assert!(!layout.has_types(), "{layout:?} has no types");
        Self {
            key: String::new(),
            value: String::new(),
            layout,
        }
    }

    /// How the table stores its entries.
    #[must_use]
    pub fn layout(&self) -> TableLayout {
        self.layout
    }

    /// Name of the type of keys; empty if the layout has no types.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Name of the type of values; empty if the layout has no types.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether these are the names of the two types, whatever the layout. Allocates nothing.
    pub(crate) fn are(&self, key: &TypeName, value: &TypeName) -> bool {
        is_named(&self.key, key) && is_named(&self.value, value)
    }

    /// Appends the encoded names to `bytes`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.layout.code());
        if !self.layout.has_types() {
            return;
        }
        for name in [&self.key, &self.value] {
            bytes.push(name.len() as u8);
            bytes.extend_from_slice(name.as_bytes());
        }
    }

    /// Decodes the two names; `None` if the bytes are invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (layout, bytes) = match bytes.split_first_chunk::<2>() {
            Some((&[0, code], names)) => (TableLayout::of_code([0, code])?, names),
            _ => (TableLayout::Rows, bytes),
        };
        if !layout.has_types() {
            return bytes.is_empty().then(|| Self::untyped(layout));
        }
        let (key, bytes) = split_name(bytes)?;
        let (value, bytes) = split_name(bytes)?;
        bytes.is_empty().then_some(Self { key, value, layout })
    }
}

fn split_name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (&len, bytes) = bytes.split_first()?;
    let (name, rest) = bytes.split_at_checked(usize::from(len))?;
    let name = std::str::from_utf8(name).ok()?;
    (len > 0).then(|| (name.to_owned(), rest))
}

/// Whether `text` is the name of a type. The name is compared piece by piece while it is formatted, so it is never
/// written to memory.
fn is_named(text: &str, name: &TypeName) -> bool {
    let mut rest = Rest(text);
    write!(rest, "{name}").is_ok() && rest.0.is_empty()
}

/// The rest of a text with which the next formatted pieces must agree.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{TableLayout, TableTypes};
    use tidalite_base::{Ordered, TypeName};

    #[test]
    fn stored_types_are_read_back_and_nothing_else_is() {
        let (key, value) = (<(String, [u8; 4])>::NAME, f64::NAME);
        let types = TableTypes::new(&key, &value).unwrap();
        assert_eq!(types.to_string(), "(String, [u8; 4]) -> f64");
        let mut bytes = Vec::new();
        types.encode(&mut bytes);
        assert_eq!(TableTypes::decode(&bytes), Some(types.clone()));
        for len in 0..bytes.len() {
            assert_eq!(TableTypes::decode(&bytes[..len]), None);
        }
        assert_eq!(TableTypes::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(TableTypes::decode(b"\x01\xff\x01v"), None);
        assert_eq!(TableTypes::decode(b"\x00\x01v"), None);

        assert!(types.are(&key, &value));
        for (key, value) in [
            (key, f32::NAME),
            (value, key),
            (<(String, [u8; 5])>::NAME, value),
            (<(String,)>::NAME, value),
        ] {
            assert!(!types.are(&key, &value));
        }
        for layout in [
            TableLayout::Topics,
            TableLayout::Queue,
            TableLayout::Bucket,
            TableLayout::Relation,
        ] {
            let types = types.clone().with_layout(layout);
            let mut bytes = Vec::new();
            types.encode(&mut bytes);
            assert_eq!(TableTypes::decode(&bytes), Some(types));
            bytes.push(0);
            assert_eq!(TableTypes::decode(&bytes), None);
        }
        assert_eq!(TableTypes::decode(&[0, 99]), None);

        let long: &'static str = "name".repeat(64).leak();
        assert!(TableTypes::new(&TypeName::new(long), &value).is_err());
        assert!(TableTypes::new(&TypeName::new(&long[1..]), &value).is_ok());
    }
}
