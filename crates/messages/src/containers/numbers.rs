//! The numbers in a message, each with the dotted path of its field. These are the fields that a series can store.

use crate::containers::document::Document;
use crate::containers::value::FieldValue;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// A number of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldNumber {
    /// An integer, from `i64::MIN` to `u64::MAX`.
    Integer(i128),
    /// Any other number. Finite.
    Float(f64),
}

impl FieldNumber {
    /// Compares two numbers exactly. Converting an integer to a float would round it.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            // Floats in fields are finite.
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
    /// `latitude` in the object `position`. Numbers in lists are omitted.
    ///
    /// Each path occurs once: if several numbers have the same path, the iterator returns the one that
    /// [`Document::find`] finds.
    ///
    /// # Cost
    /// Allocates nothing for a message without objects. Each number in an object needs a string. If a message with
    /// objects has a name with a dot, several values may have the same path: then the paths of all values are collected
    /// first.
    pub fn numbers(&self) -> impl Iterator<Item = (Cow<'_, str>, FieldNumber)> {
        let is_object =
            |(_, value): &(Arc<str>, FieldValue)| matches!(value, FieldValue::Object(_));
        let is_ambiguous = self.fields().iter().any(is_object) && has_dot(self.fields());
        Numbers {
            walk: Walk::new(self.fields()),
            found: is_ambiguous.then(|| found_values(self.fields())),
        }
    }
}

/// Whether a name of a field, also in objects, contains a dot.
fn has_dot(fields: &[(Arc<str>, FieldValue)]) -> bool {
    fields.iter().any(|(name, value)| {
        let inner = match value {
            FieldValue::Object(inner) => &inner[..],
            _ => &[],
        };
        name.contains('.') || has_dot(inner)
    })
}

/// The value that [`Document::find`] finds at each path. If several values have the same path, it prefers the one whose
/// first name is longest, then the one whose second name is longest, and so on.
fn found_values(fields: &[(Arc<str>, FieldValue)]) -> HashMap<String, &FieldValue> {
    let mut found: HashMap<String, (Vec<usize>, &FieldValue)> = HashMap::new();
    let mut walk = Walk::new(fields);
    while let Some((name, value)) = walk.next() {
        let path = walk.path_of(name);
        // The positions in the path at which the names of the objects end. Of two such lists, the greater one has the
        // longer name at the first difference. The last position is the end of the path, so a list that is the
        // beginning of another one has the longer name there.
        let mut way = walk.ends_of_names();
        way.push(path.len());
        match found.entry(path) {
            Entry::Occupied(mut old) if old.get().0 < way => drop(old.insert((way, value))),
            Entry::Occupied(_) => {}
            Entry::Vacant(new) => drop(new.insert((way, value))),
        }
        walk.enter(name, value);
    }
    let found = found.into_iter();
    found.map(|(path, (_, value))| (path, value)).collect()
}

/// Walks through the values of a message and of the objects in it.
struct Walk<'a> {
    /// The remaining fields of the message and of the objects down to the current one.
    levels: Vec<std::slice::Iter<'a, (Arc<str>, FieldValue)>>,
    /// The path of the current object, followed by a dot.
    path: String,
    /// Lengths of the paths of the objects that contain the current one.
    above: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(fields: &'a [(Arc<str>, FieldValue)]) -> Self {
        Self {
            levels: vec![fields.iter()],
            path: String::new(),
            above: vec![],
        }
    }

    /// The next field of the current object, or of the nearest enclosing object that has more fields.
    fn next(&mut self) -> Option<(&'a str, &'a FieldValue)> {
        loop {
            if let Some((name, value)) = self.levels.last_mut()?.next() {
                return Some((name, value));
            }
            self.levels.pop();
            self.path.truncate(self.above.pop().unwrap_or(0));
        }
    }

    /// Descends into the value that was returned last, if it is an object.
    fn enter(&mut self, name: &str, value: &'a FieldValue) {
        if let FieldValue::Object(fields) = value {
            self.above.push(self.path.len());
            self.path.push_str(name);
            self.path.push('.');
            self.levels.push(fields.iter());
        }
    }

    fn path_of(&self, name: &str) -> String {
        [&*self.path, name].concat()
    }

    /// The ends of the names of the objects in the current path.
    fn ends_of_names(&self) -> Vec<usize> {
        let starts = self.above.iter().copied().skip(1);
        let starts = starts.chain([self.path.len()]);
        let ends = starts.map(|start| start.saturating_sub(1));
        ends.take(self.above.len()).collect()
    }
}

/// The numbers of a document.
struct Numbers<'a> {
    walk: Walk<'a>,
    /// The value at each path, if several values may have the same path.
    found: Option<HashMap<String, &'a FieldValue>>,
}

impl<'a> Iterator for Numbers<'a> {
    type Item = (Cow<'a, str>, FieldNumber);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (name, value) = self.walk.next()?;
            self.walk.enter(name, value);
            let Some(number) = value.as_number() else {
                continue;
            };
            let path = match self.walk.path.is_empty() {
                true => Cow::Borrowed(name),
                false => Cow::Owned(self.walk.path_of(name)),
            };
            let is_found = |found: &HashMap<String, &'a FieldValue>| {
                let there = found.get(&*path);
                there.is_some_and(|there| std::ptr::eq(*there, value))
            };
            if self.found.as_ref().is_none_or(is_found) {
                return Some((path, number));
            }
        }
    }
}
