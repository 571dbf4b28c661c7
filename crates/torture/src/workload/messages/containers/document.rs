//! Random documents, and filters for which the document shows whether it matches.

use crate::model::messages::containers::options::KEEP;
use tidalite::containers::{Document, Expression, FieldValue};
use tidalite_testkit::rng::Rng;

/// Names of containers.
pub(super) const NAMES: [&str; 4] = ["a", "a/1", "b", "\u{e4}"];

/// Integers that no float holds exactly, below and above 2^63.
const LARGE: [i128; 2] = [(1 << 53) + 1, (1 << 63) + 1];

/// The fields have the types that `options::thinning` and the columns of the series need: `s` has integers, `f` floats,
/// the large integers have columns of their own, and `mix` has every type.
pub(super) fn random(rng: &mut Rng) -> Document {
    let mut document = Document::default();
    for _ in 0..rng.below(6) {
        let (field, value) = match rng.below(10) {
            0 | 1 => ("n", FieldValue::Integer(rng.between(-20, 300).into())),
            2 => ("s", FieldValue::Integer(rng.between(-5, 5).into())),
            3 | 4 => ("f", FieldValue::Float(rng.between(-40, 400) as f64 / 4.0)),
            5 => {
                let count = *rng.pick(&[0, 3, 30]);
                ("text", FieldValue::Text("long".repeat(count)))
            }
            6 => (
                "i",
                FieldValue::Integer(LARGE[0] + rng.below(1 << 20) as i128),
            ),
            7 => (
                "u",
                FieldValue::Integer(LARGE[1] + rng.below(1 << 20) as i128),
            ),
            8 => ("gps", gps(rng)),
            _ => ("mix", mixed(rng)),
        };
        document.set(field, value);
    }
    if rng.one_in(6) {
        document.set(KEEP, FieldValue::Bool(!rng.one_in(3)));
    }
    document
}

fn gps(rng: &mut Rng) -> FieldValue {
    let lat = FieldValue::Float(rng.between(-90_000, 90_000) as f64 / 1_000.0);
    let alt = FieldValue::Integer(rng.below(2_000).into());
    FieldValue::Object(vec![("lat".into(), lat), ("alt".into(), alt)])
}

fn mixed(rng: &mut Rng) -> FieldValue {
    match rng.below(5) {
        0 => FieldValue::Null,
        1 => FieldValue::Bool(true),
        2 => FieldValue::Integer(rng.below(1_000).into()),
        3 => FieldValue::Text("on".to_owned()),
        _ => FieldValue::List(vec![FieldValue::Integer(500), gps(rng)]),
    }
}

/// An expression, and whether it is true for a document.
pub(super) type Filter = (&'static str, fn(&Document) -> bool);

/// Filters.
pub(super) const FILTERS: [Filter; 3] = [
    ("n > 100", |document| integer(document, "n") > Some(100)),
    ("exists(text) || s == 2", |document| {
        document.get("text").is_some() || integer(document, "s") == Some(2)
    }),
    ("mix == null", |document| {
        document
            .get("mix")
            .is_none_or(|value| *value == FieldValue::Null)
    }),
];

/// The expression of a filter.
pub(super) fn expression_of(filter: Option<Filter>) -> Option<Expression> {
    filter.map(|(text, _)| Expression::parse(text).expect("the filters can be parsed"))
}

/// The integer of a field.
pub(super) fn integer(document: &Document, field: &str) -> Option<i128> {
    document.get(field)?.as_integer()
}
