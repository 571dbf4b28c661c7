//! Combines the fields of the messages in one step of time into the fields of one message.
//!
//! Values stay encoded; only figures that compute with numbers decode them. While the fields of a step are collected,
//! they are bounded by the limits of one message, so a step whose messages do not fit into one message needs no more
//! memory than others.

use crate::containers::codec::{EncodedValue, put_value, put_varint, raw_fields, value_of};
use crate::containers::dictionary::decode_number;
use crate::containers::document::{DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX};
use crate::containers::latest::are_few;
use crate::containers::numbers::FieldNumber;
use crate::containers::parts::{Part, part};
use crate::containers::thinning::{Thinning, ThinningFigure};
use crate::containers::value::FieldValue;
use std::collections::HashMap;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Factor for sums of numbers that are near the maximum of a float: with it, the sum of 2^64 products is finite.
const SCALE: f64 = 1.0 / (1u128 << 70) as f64;

/// The figures of fields, by the number of the field.
pub(crate) struct Figures {
    own: HashMap<u32, ThinningFigure>,
    others: ThinningFigure,
}

impl Figures {
    /// Looks up the numbers of the fields that have a figure of their own. A field without a number occurs in no
    /// message.
    pub(crate) fn read<R: PageRead>(root: &Tree, r: &R, thinning: &Thinning) -> Result<Self> {
        let fields = part(root, r, Part::Fields)?;
        let mut own = HashMap::new();
        for (name, figure) in &thinning.fields {
            if let Some(number) = fields.get(r, name.as_bytes())? {
                own.insert(decode_number(&number.bytes()?)?, *figure);
            }
        }
        Ok(Self {
            own,
            others: thinning.others,
        })
    }

    fn of(&self, field: u32) -> ThinningFigure {
        self.own.get(&field).copied().unwrap_or(self.others)
    }
}

/// The values of one field so far.
struct Values {
    field: u32,
    figure: ThinningFigure,
    /// The encoded value that represents the step if no value is a number.
    value: Vec<u8>,
    /// The number that was chosen, or the sum while it is an exact integer.
    number: Option<FieldNumber>,
    /// The sum of the numbers. For `Mean`, each number is multiplied by the number of messages for which it stands.
    sum: f64,
    /// The same sum times `SCALE`, used for the mean if the sum is too large for a float.
    scaled: f64,
    /// Number of messages for which the numbers stand; 0 if there are no numbers.
    messages: u64,
}

/// The fields of a step.
#[derive(Default)]
pub(crate) struct StepFields {
    fields: Vec<Values>,
    /// The index of each field in `fields`.
    places: HashMap<u32, usize>,
    /// Total number of bytes of all values.
    bytes: usize,
    is_too_large: bool,
}

/// The sum of two integers, if a document can store it.
fn sum_of(a: FieldNumber, b: FieldNumber) -> Option<FieldNumber> {
    let (FieldNumber::Integer(a), FieldNumber::Integer(b)) = (a, b) else {
        return None;
    };
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let sum = a.checked_add(b).filter(|sum| range.contains(sum));
    sum.map(FieldNumber::Integer)
}

fn number_of(value: &[u8]) -> Result<Option<FieldNumber>> {
    Ok(match value_of(value)? {
        EncodedValue::Integer(number) => Some(FieldNumber::Integer(number)),
        EncodedValue::Float(number) => Some(FieldNumber::Float(number)),
        _ => None,
    })
}

impl Values {
    fn new(field: u32, figure: ThinningFigure, value: &[u8]) -> Self {
        Self {
            field,
            figure,
            value: value.to_vec(),
            number: None,
            sum: 0.0,
            scaled: 0.0,
            messages: 0,
        }
    }

    fn take(&mut self, value: &[u8], stands_for: u32) -> Result<()> {
        if self.figure == ThinningFigure::First {
            return Ok(());
        }
        self.value.clear();
        self.value.extend_from_slice(value);
        if self.figure == ThinningFigure::Last {
            return Ok(());
        }
        let Some(number) = number_of(value)? else {
            return Ok(());
        };
        self.number = match (self.figure, self.number) {
            (ThinningFigure::Min, Some(old)) if old.compare(number).is_le() => Some(old),
            (ThinningFigure::Max, Some(old)) if old.compare(number).is_ge() => Some(old),
            (ThinningFigure::Sum, Some(old)) => sum_of(old, number),
            (ThinningFigure::Sum, None) if self.messages > 0 => None,
            _ => Some(number),
        };
        let times = match self.figure {
            ThinningFigure::Mean => f64::from(stands_for),
            _ => 1.0,
        };
        self.sum += number.as_float() * times;
        self.scaled += number.as_float() * SCALE * times;
        self.messages += u64::from(stands_for);
        Ok(())
    }

    /// The mean. It is exact if the sum is exact. A sum of very large numbers is computed at a smaller scale, so that
    /// it remains finite.
    fn mean(&self) -> f64 {
        let messages = self.messages as f64;
        match self.sum.is_finite() {
            true => self.sum / messages,
            false => (self.scaled / messages / SCALE).clamp(-f64::MAX, f64::MAX),
        }
    }

    /// The number that represents the step; `None` if the stored value does.
    fn computed(&self) -> Option<FieldValue> {
        let float = |x: f64| match x.is_finite() {
            true => FieldValue::Float(x),
            false => FieldValue::Null,
        };
        match (self.figure, self.number) {
            _ if self.messages == 0 => None,
            (ThinningFigure::Min | ThinningFigure::Max | ThinningFigure::Sum, Some(number)) => {
                Some(number.into())
            }
            (ThinningFigure::Sum, None) => Some(float(self.sum)),
            (ThinningFigure::Mean, _) => Some(float(self.mean())),
            _ => None,
        }
    }
}

impl StepFields {
    /// Adds the fields of a message that is later than all earlier ones and stands for `stands_for` messages.
    ///
    /// # Cost
    /// A lookup in a hash map for each field that is not at the same position as in the first message.
    pub(crate) fn take(
        &mut self,
        document: &[u8],
        stands_for: u32,
        figures: &Figures,
    ) -> Result<()> {
        for (at, (field, value)) in raw_fields(document)?.into_iter().enumerate() {
            if self.is_too_large {
                return Ok(());
            }
            // Messages mostly have the same fields in the same order.
            let place = match self.fields.get(at) {
                Some(values) if values.field == field => Some(at),
                _ => self.places.get(&field).copied(),
            };
            let place = match (place, figures.of(field)) {
                (Some(place), _) => place,
                (None, ThinningFigure::Drop) => continue,
                (None, figure) => {
                    self.places.insert(field, self.fields.len());
                    self.fields.push(Values::new(field, figure, value));
                    self.bytes += value.len();
                    self.fields.len() - 1
                }
            };
            let values = &mut self.fields[place];
            self.bytes -= values.value.len();
            values.take(value, stands_for)?;
            self.bytes += values.value.len();
            if self.fields.len() > DOCUMENT_FIELDS_MAX || self.bytes > DOCUMENT_BYTES_MAX {
                *self = Self {
                    is_too_large: true,
                    ..Self::default()
                };
            }
        }
        Ok(())
    }

    /// Whether the fields are too large for one message. Further fields are then ignored.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Appends the document that represents the step to a row; returns false if it does not fit into one message.
    pub(crate) fn encode(&self, row: &mut Vec<u8>) -> Result<bool> {
        let start = row.len();
        put_varint(self.fields.len() as u64, row);
        for field in &self.fields {
            put_varint(field.field.into(), row);
            match field.computed() {
                Some(number) => put_value(&number, row),
                None => row.extend_from_slice(&field.value),
            }
        }
        let len = row.len() - start;
        let values = self.fields.iter().map(|field| &field.value[..]);
        Ok(!self.is_too_large && len <= DOCUMENT_BYTES_MAX && are_few(len, values)?)
    }
}
