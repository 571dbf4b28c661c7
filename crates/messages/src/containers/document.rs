//! A message: fields with unique names, and the limits of a message.
//!
//! [`Document::set`] and the other changes keep the names of the fields unique and check nothing else, so a document in
//! memory may exceed the limits. [`Document::check`] and the encoder check all limits.

use crate::containers::value::FieldValue;
use std::sync::Arc;
use tidalite_pager::{Error, Refusal, Result};

/// Maximum number of fields of a message. Fields of nested objects are not counted.
pub const DOCUMENT_FIELDS_MAX: usize = 1_000;

/// Maximum length in bytes of the name of a field. The minimum is 1.
pub const FIELD_NAME_BYTES_MAX: usize = 255;

/// Maximum number of levels of a message: the message itself is one, and each list or object inside another adds one.
pub const DOCUMENT_LEVELS_MAX: usize = 32;

/// Maximum length in bytes of an encoded message.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Maximum number of values of a message, including those in lists and objects. A value that takes one byte in encoded
/// form takes 56 bytes in memory, so this limit bounds the memory that damaged bytes can claim.
pub const DOCUMENT_VALUES_MAX: usize = 1 << 20;

/// Number of fields up to which all pairs of names are compared; more names are sorted first.
const PAIRS_MAX: usize = 16;

/// The fields of a message, in the order in which they were given. Names are unique. Messages that were read from one
/// table share the strings of their field names in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    fields: Vec<(Arc<str>, FieldValue)>,
}

impl Document {
    /// Creates a document from fields.
    ///
    /// # Errors
    /// As for [`Document::check`]; `InvalidInput` if two fields have the same name.
    pub fn new<N: Into<Arc<str>>>(fields: Vec<(N, FieldValue)>) -> Result<Self> {
        let fields = fields.into_iter();
        let fields: Vec<_> = fields.map(|(name, value)| (name.into(), value)).collect();
        if fields.len() <= DOCUMENT_FIELDS_MAX
            && let Some(name) = duplicate_name(&fields)
        {
            return Err(duplicate(name));
        }
        let document = Self { fields };
        document.check()?;
        Ok(document)
    }

    /// Creates a document from fields whose names are known to be unique and that are within the limits.
    pub(crate) fn of_checked(fields: Vec<(Arc<str>, FieldValue)>) -> Self {
        Self { fields }
    }

    /// The fields, in the order in which they were given.
    #[must_use]
    pub fn fields(&self) -> &[(Arc<str>, FieldValue)] {
        &self.fields
    }

    /// The names and values of the fields, in the order in which they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &FieldValue)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the document has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The value of a field; `None` if the message does not have it.
    ///
    /// # Cost
    /// Compares the names one by one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        let found = self.fields.iter().find(|(field, _)| **field == *name);
        found.map(|(_, value)| value)
    }

    /// The value at a dotted path. A field with exactly this name comes first; otherwise the names between the dots
    /// lead through nested objects.
    ///
    /// If a path can be read in several ways, a longer name of an outer field comes first: `a.b.c` means the field
    /// `a.b.c`, then `c` in the field `a.b`, then `b.c` in the field `a`. [`crate::FieldNumber`] and expressions use
    /// the same rule.
    ///
    /// # Cost
    /// Visits each object on the way once.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&FieldValue> {
        find_in(&self.fields, path)
    }

    /// Sets a field; returns its earlier value. A new field comes last.
    pub fn set(&mut self, name: &str, value: FieldValue) -> Option<FieldValue> {
        match self.fields.iter_mut().find(|(field, _)| **field == *name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.fields.push((name.into(), value));
                None
            }
        }
    }

    /// Removes a field; returns its value. The other fields keep their order.
    pub fn remove(&mut self, name: &str) -> Option<FieldValue> {
        let at = self.fields.iter().position(|(field, _)| **field == *name)?;
        Some(self.fields.remove(at).1)
    }

    /// Takes over the fields of another document. They replace the fields of the same names in place; new fields come
    /// last. Nested objects are replaced as a whole.
    ///
    /// # Cost
    /// Compares each name of one document with the names of the other.
    pub fn merge(&mut self, other: Self) {
        // Names of `other` are unique, so only the earlier fields can have the same names.
        let earlier = self.fields.len();
        for (name, value) in other.fields {
            let mut fields = self.fields[..earlier].iter_mut();
            match fields.find(|(field, _)| *field == name) {
                Some((_, old)) => *old = value,
                None => self.fields.push((name, value)),
            }
        }
    }

    /// Checks all limits except the length in bytes, which is known only when the document is encoded.
    ///
    /// # Errors
    /// [`Error::Limit`] for too many fields, levels or values, and for long names. `InvalidName` for names that are
    /// empty or contain a NUL; `InvalidInput` for two fields of an object with the same name, for integers outside
    /// `i64::MIN..=u64::MAX`, and for floating-point numbers that are not finite.
    pub fn check(&self) -> Result<()> {
        within(
            "fields of a message",
            self.fields.len(),
            DOCUMENT_FIELDS_MAX,
        )?;
        let mut values = self.fields.len();
        for (name, value) in &self.fields {
            check_name(name)?;
            check_value(name, value, 1, &mut values)?;
        }
        Ok(())
    }
}

impl IntoIterator for Document {
    type Item = (Arc<str>, FieldValue);
    type IntoIter = std::vec::IntoIter<(Arc<str>, FieldValue)>;

    /// The fields, in the order in which they were given.
    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

/// Finds the value at a dotted path, by the rule of [`Document::find`].
pub(crate) fn find_in<'a>(
    fields: &'a [(Arc<str>, FieldValue)],
    path: &str,
) -> Option<&'a FieldValue> {
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| **field == *name);
        found.map(|(_, value)| value)
    };
    field(path).or_else(|| {
        splits(path).find_map(|(outer, rest)| match field(outer)? {
            FieldValue::Object(inner) => find_in(inner, rest),
            _ => None,
        })
    })
}

/// All ways to split a path at one of its dots, beginning with the longest first part.
pub(crate) fn splits(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = path.rmatch_indices('.');
    dots.map(|(at, _)| (&path[..at], &path[at + 1..]))
}

/// Checks the name of a field.
pub(crate) fn check_name(name: &str) -> Result<()> {
    within(
        "bytes of the name of a field",
        name.len(),
        FIELD_NAME_BYTES_MAX,
    )?;
    if name.is_empty() || name.as_bytes().contains(&0) {
        return Err(Error::refused(
            Refusal::InvalidName,
            format!("the name {name:?} of a field"),
            "a name that is not empty and has no NUL",
        ));
    }
    Ok(())
}

/// Checks a value of a field at level `level` of the message. Adds the number of values inside it to `values`.
fn check_value(field: &str, value: &FieldValue, level: usize, values: &mut usize) -> Result<()> {
    match value {
        FieldValue::Integer(number) if !is_integer(*number) => Err(Error::refused(
            Refusal::InvalidInput,
            format!("the integer {number} in field {field:?}"),
            format!("an integer from {} to {}", i64::MIN, u64::MAX),
        )),
        FieldValue::Float(number) if !number.is_finite() => Err(Error::refused(
            Refusal::InvalidInput,
            format!("the number {number} in field {field:?}"),
            "a finite number",
        )),
        FieldValue::List(items) => {
            check_level(level + 1)?;
            count_values(values, items.len())?;
            let mut items = items.iter();
            items.try_for_each(|item| check_value(field, item, level + 1, values))
        }
        FieldValue::Object(fields) => {
            check_level(level + 1)?;
            count_values(values, fields.len())?;
            for (name, value) in fields {
                check_name(name)?;
                check_value(field, value, level + 1, values)?;
            }
            duplicate_name(fields).map_or(Ok(()), |name| Err(duplicate(name)))
        }
        _ => Ok(()),
    }
}

/// Whether a field can hold an integer.
pub(crate) fn is_integer(number: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number)
}

pub(crate) fn check_level(level: usize) -> Result<()> {
    within("levels of a message", level, DOCUMENT_LEVELS_MAX)
}

/// Adds to the number of values of a message.
pub(crate) fn count_values(values: &mut usize, more: usize) -> Result<()> {
    *values = values.saturating_add(more);
    within("values of a message", *values, DOCUMENT_VALUES_MAX)
}

/// Number of values in lists and objects.
pub(crate) fn values_in(value: &FieldValue) -> usize {
    match value {
        FieldValue::List(items) => items.iter().map(|item| 1 + values_in(item)).sum(),
        FieldValue::Object(fields) => fields.iter().map(|(_, item)| 1 + values_in(item)).sum(),
        _ => 0,
    }
}

/// The first name that two fields have.
pub(crate) fn duplicate_name<V>(fields: &[(Arc<str>, V)]) -> Option<&str> {
    if fields.len() <= PAIRS_MAX {
        let mut at = fields.iter().enumerate();
        let found = at.find(|(at, (name, _))| fields[..*at].iter().any(|(other, _)| other == name));
        return found.map(|(_, (name, _))| &**name);
    }
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    let mut pairs = names.windows(2);
    pairs.find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

#[cold]
pub(crate) fn duplicate(name: &str) -> Error {
    Error::refused(
        Refusal::InvalidInput,
        format!("two fields with the name {name:?} in one object"),
        "unique names: remove or rename one of the fields",
    )
}

pub(crate) fn within(what: &'static str, found: usize, limit: usize) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    Err(Error::Limit {
        what,
        found: found as u64,
        limit: limit as u64,
    })
}
