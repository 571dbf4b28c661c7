//! The numbers in a message, each with the dotted path of its field. They are the fields that series can hold.

use crate::containers::document::Document;
use crate::containers::value::FieldValue;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A number of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldNumber {
    /// An integer, from `i64::MIN` to `u64::MAX`.
    Integer(i128),
    /// Any other number. Finite.
    Float(f64),
}

impl FieldNumber {
    /// Compares two numbers exactly: a conversion of an integer to a float would round it.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            // Floats of fields are finite.
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Self::Integer(a), Self::Float(b)) => integer_to_float(a, b),
            (Self::Float(a), Self::Integer(b)) => integer_to_float(b, a).reverse(),
        }
    }

    /// The number as a float, rounded if it is an integer beyond 2^53.
    #[must_use]
    pub fn as_float(self) -> f64 {
        match self {
            Self::Integer(x) => x as f64,
            Self::Float(x) => x,
        }
    }
}

impl From<FieldNumber> for FieldValue {
    fn from(number: FieldNumber) -> Self {
        match number {
            FieldNumber::Integer(x) => Self::Integer(x),
            FieldNumber::Float(x) => Self::Float(x),
        }
    }
}

fn integer_to_float(integer: i128, float: f64) -> Ordering {
    /// The first power of two that is larger than any `i128`.
    const LIMIT: f64 = (1u128 << 127) as f64;
    if float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    let fraction = float - whole;
    let by_fraction = || 0.0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal);
    integer.cmp(&(whole as i128)).then_with(by_fraction)
}

impl FieldValue {
    /// The number that the value is; `None` for any other value, booleans and texts with digits included.
    #[must_use]
    pub fn as_number(&self) -> Option<FieldNumber> {
        match self {
            Self::Integer(number) => Some(FieldNumber::Integer(*number)),
            Self::Float(number) => Some(FieldNumber::Float(*number)),
            _ => None,
        }
    }
}

impl Document {
    /// The numbers of the message, in the order of the fields, with dotted paths: `position.latitude` is the field
    /// `latitude` in the object `position`. Numbers in lists are left out.
    ///
    /// Each path occurs once: if several numbers have the same path, it is the one that [`Document::find`] finds.
    ///
    /// # Cost
    /// Allocates nothing for a message without objects. Each number in an object needs a string and a [`Document::find`].
    pub fn numbers(&self) -> impl Iterator<Item = (Cow<'_, str>, FieldNumber)> {
        Numbers {
            document: self,
            levels: vec![self.fields().iter()],
            path: String::new(),
            ends: vec![],
        }
    }
}

/// Walks through a document.
struct Numbers<'a> {
    document: &'a Document,
    /// The fields that are left of the message and of the objects down to the current one.
    levels: Vec<std::slice::Iter<'a, (String, FieldValue)>>,
    /// The path of the current object, with a dot at its end.
    path: String,
    /// Lengths of the paths of the objects above the current one.
    ends: Vec<usize>,
}

impl<'a> Iterator for Numbers<'a> {
    type Item = (Cow<'a, str>, FieldNumber);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((name, value)) = self.levels.last_mut()?.next() else {
                self.levels.pop();
                self.path.truncate(self.ends.pop().unwrap_or(0));
                continue;
            };
            if let FieldValue::Object(fields) = value {
                self.ends.push(self.path.len());
                self.path.push_str(name);
                self.path.push('.');
                self.levels.push(fields.iter());
                continue;
            }
            let Some(number) = value.as_number() else {
                continue;
            };
            if self.path.is_empty() {
                return Some((Cow::Borrowed(name), number));
            }
            let path = format!("{}{name}", self.path);
            let found = self.document.find(&path);
            if found.is_some_and(|found| std::ptr::eq(found, value)) {
                return Some((Cow::Owned(path), number));
            }
        }
    }
}
