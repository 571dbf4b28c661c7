//! Documents and their encoded form: random documents, limits, and damaged bytes.

use crate::containers::codec::{EncodedDocument, EncodedValue, decode, encode};
use crate::containers::document::{
    DOCUMENT_FIELDS_MAX, DOCUMENT_LEVELS_MAX, DOCUMENT_VALUES_MAX, Document, FIELD_NAME_BYTES_MAX,
};
use crate::containers::numbers::FieldNumber;
use crate::containers::value::FieldValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_pager::{Error, Result};
use tidalite_testkit::rng::Rng;

/// A dictionary in memory, which assigns the numbers 0, 3, 6 and so on to names.
#[derive(Default)]
pub(super) struct Names(Vec<Arc<str>>);

impl Names {
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let at = self.0.iter().position(|known| **known == *name)?;
        Some(at as u32 * 3)
    }

    pub(super) fn name(&self, number: u32) -> Option<&Arc<str>> {
        let name = number
            .is_multiple_of(3)
            .then(|| self.0.get(number as usize / 3));
        name.flatten()
    }

    pub(super) fn encode(&mut self, document: &Document) -> Result<Vec<u8>> {
        let mut bytes = vec![];
        let mut number = |name: &str| {
            if self.number(name).is_none() {
                self.0.push(name.into());
            }
            self.number(name).ok_or(Error::Cancelled)
        };
        encode(document, &mut number, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Document> {
        decode(bytes, &|number| self.name(number))
    }
}

/// Equality that distinguishes -0.0 from 0.0.
pub(super) fn same(a: &FieldValue, b: &FieldValue) -> bool {
    match (a, b) {
        (FieldValue::Float(a), FieldValue::Float(b)) => a.to_bits() == b.to_bits(),
        (FieldValue::List(a), FieldValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (FieldValue::Object(a), FieldValue::Object(b)) => same_fields(a, b),
        _ => a == b,
    }
}

pub(super) fn same_fields(a: &[(Arc<str>, FieldValue)], b: &[(Arc<str>, FieldValue)]) -> bool {
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
}

pub(super) fn random_float(rng: &mut Rng) -> f64 {
    let number = match rng.below(5) {
        0 => f64::from_bits(rng.u64()),
        1 => rng.between(-99_999, 99_999) as f64 / 10f64.powi(rng.below(7) as i32),
        2 => rng.between(-(1 << 50), 1 << 50) as f64 / 10f64.powi(rng.below(18) as i32),
        3 => rng.f64(),
        _ => [0.0, -0.0, 1e300, 5e-324, f64::MAX, 9_007_199_254_740_993.0][rng.index(6)],
    };
    if number.is_finite() { number } else { 1.5 }
}

pub(super) fn random_integer(rng: &mut Rng) -> i128 {
    match rng.below(4) {
        0 => i128::from(rng.u64()),
        1 => i128::from(rng.u64() as i64),
        2 => i128::from(rng.u64() as i64 >> rng.below(64)),
        _ => [
            i128::from(i64::MIN),
            i128::from(u64::MAX),
            i128::from(i64::MAX),
            -1,
            127,
            128,
        ][rng.index(6)],
    }
}

pub(super) fn random_text(rng: &mut Rng) -> String {
    let letters = [
        "a", "b", ".", "\"", "\\", "\n", "\u{1}", "é", "😀", "\u{2028}", " ",
    ];
    let len = if rng.one_in(10) { 100 } else { rng.index(8) };
    (0..len)
        .map(|_| letters[rng.index(letters.len())])
        .collect()
}

pub(super) fn random_value(rng: &mut Rng, levels: usize) -> FieldValue {
    match rng.below(if levels == 0 { 6 } else { 8 }) {
        0 => FieldValue::Null,
        1 => FieldValue::Bool(rng.one_in(2)),
        2 | 3 => FieldValue::Integer(random_integer(rng)),
        4 => FieldValue::Float(random_float(rng)),
        5 => FieldValue::Text(random_text(rng)),
        6 => FieldValue::List(
            (0..rng.index(5))
                .map(|_| random_value(rng, levels - 1))
                .collect(),
        ),
        _ => FieldValue::Object(random_fields(rng, levels - 1, 5)),
    }
}

fn random_fields(rng: &mut Rng, levels: usize, max: usize) -> Vec<(Arc<str>, FieldValue)> {
    let mut fields: Vec<(Arc<str>, FieldValue)> = vec![];
    for _ in 0..rng.index(max + 1) {
        let name = format!("{}{}", random_text(rng), rng.below(30));
        if name.len() <= FIELD_NAME_BYTES_MAX && !fields.iter().any(|(other, _)| **other == *name) {
            fields.push((name.into(), random_value(rng, levels)));
        }
    }
    fields
}

pub(super) fn random_document(rng: &mut Rng) -> Document {
    let max = if rng.one_in(20) { 200 } else { 20 };
    Document::new(random_fields(rng, 3, max)).unwrap()
}

#[test]
fn random_documents_come_back_from_their_bytes() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut names = Names::default();
        let document = random_document(&mut rng);
        let bytes = names.encode(&document).unwrap();
        let back = names.decode(&bytes).unwrap();
        assert!(
            same_fields(document.fields(), back.fields()),
            "seed {seed}: {document:?} became {back:?}"
        );
        let encoded = EncodedDocument::new(&bytes).unwrap();
        assert_eq!(encoded.len(), document.len());
        for (name, value) in document.iter() {
            let number = names.number(name).unwrap();
            let found = encoded.get(number).unwrap().unwrap().decode().unwrap();
            assert!(same(&found, value), "seed {seed}, field {name:?}");
        }
        assert!(encoded.get(1).unwrap().is_none());
    }
}

fn integer(number: i128) -> FieldValue {
    FieldValue::Integer(number)
}

fn object(fields: &[(&str, FieldValue)]) -> FieldValue {
    let fields = fields.iter();
    FieldValue::Object(fields.map(|(n, v)| ((*n).into(), v.clone())).collect())
}

#[test]
fn documents_follow_a_map_through_changes() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (mut document, mut map, mut order) = (Document::default(), BTreeMap::new(), vec![]);
        for _ in 0..60 {
            let mut fresh = || {
                let name = format!("f{}", rng.below(12));
                let value = random_value(&mut rng, 1);
                (name, value)
            };
            let (name, value) = fresh();
            let mut other = Document::default();
            let (second, third) = (fresh(), fresh());
            let mut note = |name: &str, value: FieldValue| {
                if !map.contains_key(name) {
                    order.push(name.to_owned());
                }
                map.insert(name.to_owned(), value)
            };
            match rng.below(3) {
                0 => assert_eq!(document.set(&name, value.clone()), note(&name, value)),
                1 => {
                    for (name, value) in [second, third] {
                        other.set(&name, value);
                    }
                    for (name, value) in other.iter() {
                        note(name, value.clone());
                    }
                    document.merge(other);
                }
                _ => {
                    order.retain(|other| *other != name);
                    assert_eq!(document.remove(&name), map.remove(&name));
                }
            }
            let names: Vec<&str> = document.iter().map(|(name, _)| name).collect();
            assert_eq!(names, order, "seed {seed}");
            assert!(
                map.iter()
                    .all(|(name, value)| document.get(name) == Some(value))
            );
            assert_eq!(document.is_empty(), map.is_empty());
        }
    }
}

#[test]
fn limits_are_kept_and_named() {
    let nested = |levels: usize| {
        let mut value = integer(1);
        for _ in 1..levels {
            value = FieldValue::List(vec![value]);
        }
        vec![("a".into(), value)]
    };
    let named = |name: String| vec![(name.into(), FieldValue::Null)];
    let many = |count: usize| -> Vec<(Arc<str>, FieldValue)> {
        (0..count)
            .map(|at| (at.to_string().into(), FieldValue::Null))
            .collect()
    };
    let list = |count: usize| vec![("a".into(), FieldValue::List(vec![FieldValue::Null; count]))];
    let of = |value| vec![("a".into(), value)];
    for good in [
        nested(DOCUMENT_LEVELS_MAX),
        named("n".repeat(FIELD_NAME_BYTES_MAX)),
        many(DOCUMENT_FIELDS_MAX),
        list(DOCUMENT_VALUES_MAX - 1),
        of(integer(i64::MIN.into())),
        of(integer(u64::MAX.into())),
    ] {
        let document = Document::new(good).unwrap();
        let mut names = Names::default();
        let bytes = names.encode(&document).unwrap();
        assert_eq!(names.decode(&bytes).unwrap(), document);
    }
    for (wrong, text) in [
        (nested(DOCUMENT_LEVELS_MAX + 1), "levels of a message"),
        (
            named("n".repeat(FIELD_NAME_BYTES_MAX + 1)),
            "bytes of the name of a field",
        ),
        (named(String::new()), "the name \"\" of a field"),
        (named("a\0".to_owned()), "the name \"a\\0\" of a field"),
        (many(DOCUMENT_FIELDS_MAX + 1), "fields of a message"),
        (list(DOCUMENT_VALUES_MAX), "values of a message"),
        (
            of(integer(i128::from(i64::MIN) - 1)),
            "the integer -9223372036854775809 in field \"a\"",
        ),
        (
            of(integer(i128::from(u64::MAX) + 1)),
            "the integer 18446744073709551616 in field \"a\"",
        ),
        (
            of(FieldValue::Float(f64::NAN)),
            "the number NaN in field \"a\"",
        ),
        (
            of(FieldValue::Float(f64::INFINITY)),
            "the number inf in field \"a\"",
        ),
        (
            [many(1), many(1)].concat(),
            "two fields with the name \"0\"",
        ),
        (
            [many(40), many(1)].concat(),
            "two fields with the name \"0\"",
        ),
        (
            of(object(&[("x", integer(1)), ("x", integer(2))])),
            "two fields with the name \"x\"",
        ),
        (of(object(&[("", integer(1))])), "the name \"\" of a field"),
    ] {
        let error = Document::new(wrong.clone()).unwrap_err();
        assert!(matches!(error, Error::Limit { .. } | Error::Refused { .. }));
        assert!(error.to_string().contains(text), "{error}");
        // The encoder finds the same problem, and leaves the bytes unchanged.
        let document = Document::of_checked(wrong);
        if document.check().is_err() {
            let mut bytes = b"earlier".to_vec();
            encode(&document, &mut |_| Ok(1), &mut bytes).unwrap_err();
            assert_eq!(bytes, b"earlier");
        }
    }
    let mut large = Document::default();
    large.set("a", FieldValue::Text("x".repeat(16 << 20)));
    let mut bytes = b"earlier".to_vec();
    let error = encode(&large, &mut |_| Ok(1), &mut bytes).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    let error = encode(&large, &mut |_| Err(Error::Cancelled), &mut bytes).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert_eq!(bytes, b"earlier");
}

#[test]
fn numbers_have_the_paths_that_find_them() {
    let mut document = Document::default();
    document.set("speed", integer(5));
    document.set("on", FieldValue::Bool(true));
    document.set("name", FieldValue::Text("7".into()));
    document.set("list", FieldValue::List(vec![integer(1)]));
    let inner = object(&[
        ("b.c", integer(1)),
        ("b", object(&[("c", integer(2)), ("d", integer(3))])),
    ]);
    document.set("a", inner);
    document.set(
        "a.b",
        object(&[("d", integer(4)), ("e", FieldValue::Float(0.5))]),
    );
    document.set("a.b.e", integer(6));
    let found: Vec<_> = document.numbers().collect();
    let expected = [
        ("speed", FieldNumber::Integer(5)),
        ("a.b.c", FieldNumber::Integer(1)),
        ("a.b.d", FieldNumber::Integer(4)),
        ("a.b.e", FieldNumber::Integer(6)),
    ];
    assert_eq!(found, expected.map(|(path, number)| (path.into(), number)));
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let document = random_document(&mut rng);
        let mut paths = std::collections::BTreeSet::new();
        for (path, number) in document.numbers() {
            assert_eq!(
                document.find(&path).and_then(FieldValue::as_number),
                Some(number)
            );
            assert!(paths.insert(path.into_owned()), "seed {seed}");
        }
    }
    assert_eq!(document.find("a.b"), document.get("a.b"));
    assert_eq!(document.find("a.b.x"), None);
    assert_eq!(document.find("speed.x"), None);
}

/// The paths of all values of an object, each with the value, by brute force.
fn all_paths<'a>(
    fields: &'a [(Arc<str>, FieldValue)],
    above: &str,
    found: &mut Vec<(String, &'a FieldValue)>,
) {
    for (name, value) in fields {
        let path = format!("{above}{name}");
        if let FieldValue::Object(inner) = value {
            all_paths(inner, &format!("{path}."), found);
        }
        found.push((path, value));
    }
}

#[test]
fn numbers_are_all_that_a_search_finds() {
    const NAMES: [&str; 7] = ["a", "b", "a.b", "b.a", "a.a", "a.b.a", "b.b"];
    fn random_fields(rng: &mut Rng, levels: u64) -> Vec<(Arc<str>, FieldValue)> {
        let mut document = Document::default();
        for _ in 0..1 + rng.below(5) {
            let value = match rng.below(4) {
                0 => FieldValue::Null,
                1 => integer(rng.below(100).into()),
                _ if levels > 0 => FieldValue::Object(random_fields(rng, levels - 1)),
                _ => integer(7),
            };
            document.set(rng.pick::<&str>(&NAMES), value);
        }
        document.into_iter().collect()
    }
    for seed in 0..3000 {
        let document = Document::new(random_fields(&mut Rng::new(seed), 3)).unwrap();
        let mut all = Vec::new();
        all_paths(document.fields(), "", &mut all);
        let mut expected: Vec<String> = all
            .into_iter()
            .filter(|(path, value)| {
                let found = document.find(path);
                value.as_number().is_some()
                    && found.is_some_and(|found| std::ptr::eq(found, *value))
            })
            .map(|(path, _)| path)
            .collect();
        expected.sort_unstable();
        let mut found: Vec<_> = document
            .numbers()
            .map(|(path, _)| path.into_owned())
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// Searching for each number separately would compare 10^10 names.
#[test]
fn numbers_of_a_large_object_are_found_at_once() {
    for dot in ["", "."] {
        let fields = (0..100_000).map(|at| (format!("n{dot}{at}").into(), integer(at)));
        let object = FieldValue::Object(fields.collect());
        let document = Document::new(vec![("o", object)]).unwrap();
        assert_eq!(document.numbers().count(), 100_000);
    }
}

#[test]
fn paths_into_damaged_objects_end_at_the_limit_of_levels() {
    let varint = |number: usize| match number {
        ..0x80 => vec![number as u8],
        _ => vec![number as u8 | 0x80, (number >> 7) as u8],
    };
    let mut value = vec![0];
    for _ in 0..1_000 {
        let fields = [&[1, 1, b'a'], &value[..]].concat();
        value = [&[6], &varint(fields.len())[..], &fields].concat();
    }
    let bytes = [&[1, 0], &value[..]].concat();
    let Ok(Some(EncodedValue::Object(object))) = EncodedDocument::new(&bytes).unwrap().get(0)
    else {
        panic!("no object");
    };
    assert!(object.find(&vec!["a"; 30].join(".")).unwrap().is_some());
    let error = object.find(&vec!["a"; 900].join(".")).unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
}

/// Decodes a message in every available way; returns whether the whole message is valid.
fn read_all(names: &Names, bytes: &[u8]) -> bool {
    let whole = names.decode(bytes);
    let Ok(encoded) = EncodedDocument::new(bytes) else {
        assert!(whole.is_err());
        return false;
    };
    let mut is_good = true;
    for field in encoded.fields() {
        is_good &= match field {
            Ok((_, EncodedValue::Object(object))) => object.find("a.b.c").is_ok(),
            Ok(_) => true,
            Err(error) => {
                assert!(matches!(error, Error::Corrupt(_)), "{error}");
                false
            }
        };
    }
    for number in [0, 3, 9, u32::MAX] {
        let _ = encoded.get(number);
    }
    match whole {
        Ok(document) => {
            assert!(is_good, "{document:?}");
            // Every message that can be read can be written again.
            document.check().unwrap();
            true
        }
        Err(error) => {
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
            false
        }
    }
}

#[test]
fn damaged_bytes_give_errors_of_damage() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut names = Names::default();
        let bytes = names.encode(&random_document(&mut rng)).unwrap();
        for cut in 0..bytes.len().min(300) {
            assert!(
                !read_all(&names, &bytes[..cut]),
                "seed {seed}, cut at {cut}"
            );
        }
        assert!(!read_all(&names, &[&bytes[..], &[0]].concat()));
        for _ in 0..300 {
            let mut hurt = bytes.clone();
            for _ in 0..=rng.index(3) {
                let at = rng.index(hurt.len());
                hurt[at] = rng.below(256) as u8;
            }
            read_all(&names, &hurt);
        }
        let noise: Vec<u8> = (0..rng.index(60)).map(|_| rng.below(256) as u8).collect();
        read_all(&names, &noise);
    }
    let mut names = Names::default();
    let mut one = Document::default();
    one.set("a", integer(1));
    names.encode(&one).unwrap();
    let mut deep = vec![0x81];
    for _ in 0..40 {
        let mut outer = vec![5, deep.len() as u8 + 1, 1];
        outer.extend(deep);
        deep = outer;
    }
    deep.splice(0..0, [1, 0]);
    for (bytes, problem) in [
        (&[][..], "no bytes"),
        (&[2, 0, 0x81, 0, 0x82], "a number twice"),
        (&[1, 3, 0x81], "a number without a name"),
        (&[1, 0x80, 0, 0x81], "a varint with a needless byte"),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f], "too many fields"),
        (
            &[0xff, 0xff, 0xff, 0xff, 0x7f],
            "a varint of more than 32 bits",
        ),
        (&[1, 0, 0x07], "an unknown tag"),
        (&[1, 0, 0x12, 1, 0], "an integer with a needless byte"),
        (&[1, 0, 0x11, 127], "a small integer in two bytes"),
        (&[1, 0, 0x10], "an integer without bytes"),
        (&[1, 0, 0x20], "a negative integer without bytes"),
        (
            &[1, 0, 0x19, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            "an integer with nine bytes",
        ),
        (
            &[1, 0, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x80],
            "an integer below i64::MIN",
        ),
        (&[1, 0, 0x03, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f], "infinity"),
        (&[1, 0, 0x31, 12, 1], "a decimal with a large exponent"),
        (
            &[1, 0, 0x37, 1, 1, 1, 1, 1, 1, 1, 1],
            "a decimal with many digits",
        ),
        (&[1, 0, 0x41, 0xff], "a text that is not UTF-8"),
        (
            &[1, 0, 0x05, 5, 0xff, 0xff, 0xff, 0xff, 0x0f],
            "a list with too many values",
        ),
        (
            &[1, 0, 0x06, 7, 2, 1, b'x', 0, 1, b'x', 0],
            "an object with a name twice",
        ),
        (&[1, 0, 0x06, 3, 1, 0, 0], "an object with an empty name"),
        (&deep, "too many levels"),
    ] {
        assert!(!read_all(&names, bytes), "{problem}");
    }
}

#[test]
fn values_have_the_expected_bytes() {
    let text = |len: usize| FieldValue::Text("x".repeat(len));
    for (value, expected) in [
        (FieldValue::Null, &[0][..]),
        (FieldValue::Bool(false), &[1]),
        (FieldValue::Bool(true), &[2]),
        (integer(0), &[0x80]),
        (integer(127), &[0xff]),
        (integer(128), &[0x11, 0x80]),
        (integer(256), &[0x12, 0, 1]),
        (integer(-1), &[0x21, 0]),
        (integer(-256), &[0x21, 255]),
        (integer(-257), &[0x22, 0, 1]),
        (FieldValue::Float(0.0), &[0x30, 0]),
        (FieldValue::Float(-0.0), &[0x30, 0x80]),
        (FieldValue::Float(21.5), &[0x31, 1, 215]),
        (FieldValue::Float(-21.5), &[0x31, 0x81, 215]),
        (
            FieldValue::Float(53.123_456_7),
            &[0x34, 7, 0x07, 0xff, 0xa9, 0x1f],
        ),
        (
            FieldValue::Float(0.1 + 0.2),
            &[3, 0x34, 0x33, 0x33, 0x33, 0x33, 0x33, 0xd3, 0x3f],
        ),
        (text(1), b"\x41x"),
        (FieldValue::List(vec![integer(1)]), &[5, 2, 1, 0x81]),
        (object(&[("n", integer(1))]), &[6, 4, 1, 1, b'n', 0x81]),
    ] {
        let mut document = Document::default();
        document.set("a", value.clone());
        let bytes = Names::default().encode(&document).unwrap();
        assert_eq!(&bytes[..2], [1, 0]);
        assert_eq!(&bytes[2..], expected, "{value:?}");
    }
    for (len, head) in [(63, 1), (64, 2), (127, 2), (128, 3)] {
        let mut document = Document::default();
        document.set("a", text(len));
        let bytes = Names::default().encode(&document).unwrap();
        assert_eq!(bytes.len(), 2 + head + len);
    }
}
