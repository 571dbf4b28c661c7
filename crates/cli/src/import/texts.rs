//! A list of texts in one buffer, to which rows refer by number.

use tidalite::{Column, ColumnType, Value};

/// The number that stands for a missing text.
pub(crate) const NO_TEXT: u64 = u64::MAX;

/// Texts in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// For each text, the offset of its end in `bytes`.
    ends: Vec<usize>,
}

impl Texts {
    /// Adds a text to the list and returns its number.
    pub(crate) fn push(&mut self, text: &[u8]) -> u64 {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.ends.len() as u64 - 1
    }

    pub(crate) fn get(&self, number: u64) -> Option<&[u8]> {
        let number = usize::try_from(number).ok()?;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// Number of texts in the list.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Shortens the list to `len` texts.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// The text with this number as a value of a text column; null if the text is missing.
    pub(crate) fn value(&self, column: &Column, number: u64) -> Value {
        let Some(text) = self.get(number) else {
            return Value::Null;
        };
        match column.ty {
            ColumnType::Bytes => Value::Bytes(text.to_vec()),
            ColumnType::Guid => Value::Guid(text.try_into().unwrap_or_default()),
            _ => Value::String(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_their_numbers() {
        let mut texts = Texts::default();
        let numbers = ["one", "", "three"].map(|text| texts.push(text.as_bytes()));
        assert_eq!(numbers, [0, 1, 2]);
        let column = Column::nullable("s", ColumnType::String);
        let values = |texts: &Texts| [0, 1, 2, NO_TEXT].map(|number| texts.value(&column, number));
        let text = |text: &str| Value::String(text.to_owned());
        assert_eq!(
            values(&texts),
            [text("one"), text(""), text("three"), Value::Null]
        );
        texts.truncate(1);
        assert_eq!(texts.len(), 1);
        assert_eq!(texts.push(b"2"), 1);
        assert_eq!(
            values(&texts),
            [text("one"), text("2"), Value::Null, Value::Null]
        );
        texts.truncate(0);
        assert_eq!(texts.get(0), None);
        let guid = Column::new("g", ColumnType::Guid);
        assert_eq!(texts.push(&[7; 16]), 0);
        assert_eq!(texts.value(&guid, 0), Value::Guid([7; 16]));
    }
}
