//! Thinning: of the messages that are older than the age of a rule, one remains for each step of time.

use super::options;
use super::table::{Container, Containers, Stored};
use std::collections::BTreeMap;
use tidalite::containers::{Document, FieldNumber, FieldValue, Thinning, ThinningFigure};

fn figure(thinning: &Thinning, field: &str) -> ThinningFigure {
    let mut named = thinning.fields.iter();
    let own = named.find(|(name, _)| name == field);
    own.map_or(thinning.others, |(_, figure)| *figure)
}

/// The value that replaces the values of a field; each value is given with the number of messages that it represents.
fn value_of(figure: ThinningFigure, values: &[(&FieldValue, u32)]) -> Option<FieldValue> {
    let numbers: Vec<(FieldNumber, u32)> = values
        .iter()
        .filter_map(|(value, weight)| Some((value.as_number()?, *weight)))
        .collect();
    let by = |a: &FieldNumber, b: &FieldNumber| a.compare(*b);
    let plain = numbers.iter().map(|(number, _)| *number);
    let computed = match figure {
        ThinningFigure::Drop => return None,
        ThinningFigure::First => return values.first().map(|(value, _)| (*value).clone()),
        ThinningFigure::Last => None,
        ThinningFigure::Min => plain.min_by(by).map(FieldValue::from),
        ThinningFigure::Max => plain.max_by(by).map(FieldValue::from),
        // Only integers are summed up in the workload.
        ThinningFigure::Sum => {
            let integers = values.iter().filter_map(|(value, _)| value.as_integer());
            (!numbers.is_empty()).then(|| FieldValue::Integer(integers.sum()))
        }
        ThinningFigure::Mean => {
            let weighted = numbers.iter();
            let sum = weighted.fold(0.0, |sum, (number, weight)| {
                sum + number.as_float() * f64::from(*weight)
            });
            let weights: u32 = numbers.iter().map(|(_, weight)| *weight).sum();
            (weights > 0).then(|| FieldValue::Float(sum / f64::from(weights)))
        }
    };
    computed.or_else(|| values.last().map(|(value, _)| (*value).clone()))
}

/// Combines several messages into the one that replaces them.
fn one_for(thinning: &Thinning, messages: &[Stored]) -> Stored {
    let mut document = Document::default();
    let names = messages.iter().flat_map(|message| message.document.iter());
    for (name, _) in names {
        if document.get(name).is_some() {
            continue;
        }
        let values = messages.iter();
        let values: Vec<(&FieldValue, u32)> = values
            .filter_map(|message| Some((message.document.get(name)?, message.stands_for)))
            .collect();
        if let Some(value) = value_of(figure(thinning, name), &values) {
            document.set(name, value);
        }
    }
    Stored {
        document,
        received: messages[0].received,
        is_protected: false,
        stands_for: messages.iter().map(|message| message.stands_for).sum(),
    }
}

impl Container {
    fn thin(&mut self, now: i64) {
        let options = self.options();
        let Some((number, done)) = &mut self.thinning else {
            return;
        };
        let thinning = options::thinning(*number);
        let mut changes = 0;
        for (rule, done) in thinning.rules.iter().zip(done) {
            // Whole steps only.
            let (age, step) = (rule.age.as_nanos() as i64, rule.step.as_nanos() as i64);
            let to = (now - age).div_euclid(step) * step;
            let mut steps: BTreeMap<i64, Vec<(i64, u32)>> = BTreeMap::new();
            for (key, message) in &self.messages {
                let is_shown = !message.is_expired(&options, key.0, now);
                if (*done..to).contains(&key.0) && !message.is_protected && is_shown {
                    let of = key.0.div_euclid(step);
                    steps.entry(of).or_default().push(*key);
                }
            }
            *done = to.max(*done);
            for keys in steps.values().filter(|keys| keys.len() > 1) {
                changes += keys.len();
                let all: Vec<Stored> = keys
                    .iter()
                    .filter_map(|key| self.messages.remove(key))
                    .collect();
                self.messages.insert(keys[0], one_for(&thinning, &all));
            }
        }
        self.count_changes(changes);
    }
}

impl Containers {
    /// Thins all containers with rules.
    pub(crate) fn thin(&mut self, now: i64) {
        self.live
            .values_mut()
            .for_each(|container| container.thin(now));
    }

    /// Sets the rules of a container, or removes them.
    pub(crate) fn set_thinning(&mut self, name: &str, number: Option<usize>) {
        let rules = |number| options::thinning(number).rules.len();
        let row = number.map(|number| (number, vec![i64::MIN; rules(number)]));
        self.get_mut(name).thinning = row;
    }
}
