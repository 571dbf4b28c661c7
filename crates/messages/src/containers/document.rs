//! A message: fields with unique names.

use crate::containers::value::FieldValue;

/// The fields of a message, in the order in which they were given. Names are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    fields: Vec<(String, FieldValue)>,
}

impl Document {
    /// The fields, in the order in which they were given.
    #[must_use]
    pub fn fields(&self) -> &[(String, FieldValue)] {
        &self.fields
    }

    /// The value of a field; `None` if the message does not have it.
    ///
    /// # Cost
    /// Compares the names one after the other.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value)
    }

    /// Sets a field; returns its earlier value. A new field comes last.
    pub fn set(&mut self, name: &str, value: FieldValue) -> Option<FieldValue> {
        match self.fields.iter_mut().find(|(field, _)| field == name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.fields.push((name.to_owned(), value));
                None
            }
        }
    }
}
