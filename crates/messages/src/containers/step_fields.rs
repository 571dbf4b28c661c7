//! The fields of the messages of one step of time, while they become one message.

use crate::containers::document::Document;
use crate::containers::numbers::FieldNumber;
use crate::containers::thinning::{Thinning, ThinningFigure};
use crate::containers::value::FieldValue;

/// The values of one field so far.
struct Values {
    name: String,
    figure: ThinningFigure,
    value: FieldValue,
    /// The number that was chosen, or the sum as long as it is an exact integer.
    number: Option<FieldNumber>,
    sum: f64,
    numbers: u64,
}

/// The fields of a step.
#[derive(Default)]
pub(crate) struct StepFields {
    fields: Vec<Values>,
}

/// The sum of two integers, if a document can hold it.
fn sum_of(a: FieldNumber, b: FieldNumber) -> Option<FieldNumber> {
    let (FieldNumber::Integer(a), FieldNumber::Integer(b)) = (a, b) else {
        return None;
    };
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let sum = a.checked_add(b).filter(|sum| range.contains(sum));
    sum.map(FieldNumber::Integer)
}

impl Values {
    fn take(&mut self, value: FieldValue) {
        let Some(number) = value.as_number() else {
            if self.figure != ThinningFigure::First {
                self.value = value;
            }
            return;
        };
        let chosen = match (self.figure, self.number) {
            (ThinningFigure::Min, Some(old)) if old.compare(number).is_le() => Some(old),
            (ThinningFigure::Max, Some(old)) if old.compare(number).is_ge() => Some(old),
            (ThinningFigure::Sum, Some(old)) => sum_of(old, number),
            (ThinningFigure::Sum, None) if self.numbers > 0 => None,
            _ => Some(number),
        };
        self.number = chosen;
        self.sum += number.as_float();
        self.numbers += 1;
        if self.figure != ThinningFigure::First {
            self.value = value;
        }
    }

    fn value(self) -> FieldValue {
        let float = |x: f64| match x.is_finite() {
            true => FieldValue::Float(x),
            false => FieldValue::Null,
        };
        match (self.figure, self.number) {
            _ if self.numbers == 0 => self.value,
            (ThinningFigure::Min | ThinningFigure::Max | ThinningFigure::Sum, Some(number)) => {
                number.into()
            }
            (ThinningFigure::Sum, None) => float(self.sum),
            (ThinningFigure::Mean, _) => float(self.sum / self.numbers as f64),
            _ => self.value,
        }
    }
}

impl StepFields {
    /// Adds the fields of a message that is later than those before.
    pub(crate) fn take(&mut self, document: Document, thinning: &Thinning) {
        for (at, (name, value)) in document.into_iter().enumerate() {
            // Messages mostly have the same fields in the same order.
            let is_here = |values: &Values| values.name == name;
            let found = match self.fields.get(at).is_some_and(is_here) {
                true => Some(at),
                false => self.fields.iter().position(is_here),
            };
            if let Some(found) = found {
                self.fields[found].take(value);
                continue;
            }
            let figure = thinning.figure_of(&name);
            let mut values = Values {
                name,
                figure,
                value: value.clone(),
                number: None,
                sum: 0.0,
                numbers: 0,
            };
            values.take(value);
            self.fields.push(values);
        }
    }

    /// The message that stands for the step.
    pub(crate) fn document(self) -> Document {
        let mut document = Document::default();
        for values in self.fields {
            if values.figure != ThinningFigure::Drop {
                let name = values.name.clone();
                document.set(&name, values.value());
            }
        }
        document
    }
}
