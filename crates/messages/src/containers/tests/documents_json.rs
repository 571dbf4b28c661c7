//! Documents as JSON, compared with serde_json.

use super::documents::{random_document, same, same_fields};
use crate::containers::document::{DOCUMENT_FIELDS_MAX, Document};
use crate::containers::value::FieldValue;
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;

/// Compares a value with the one that `serde_json` reads. The floats of `serde_json` may differ by some units in the
/// last place, and it reads -0 as a float.
fn agrees(ours: &FieldValue, theirs: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (ours, theirs) {
        (FieldValue::Null, Value::Null) => true,
        (FieldValue::Bool(a), Value::Bool(b)) => a == b,
        (FieldValue::Integer(a), Value::Number(b)) => {
            let b = b.as_i64().map(i128::from).or(b.as_u64().map(i128::from));
            b == Some(*a)
        }
        (FieldValue::Float(a), Value::Number(b)) => {
            let b = b.as_f64().unwrap();
            b.is_sign_negative() == a.is_sign_negative() && a.to_bits().abs_diff(b.to_bits()) <= 4
        }
        (FieldValue::Text(a), Value::String(b)) => a == b,
        (FieldValue::List(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b))
        }
        (FieldValue::Object(a), Value::Object(b)) => {
            let mut fields = a.iter();
            a.len() == b.len()
                && fields.all(|(name, a)| b.get(&**name).is_some_and(|b| agrees(a, b)))
        }
        _ => false,
    }
}

#[test]
fn random_documents_come_back_from_json() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let document = random_document(&mut rng);
        let text = document.to_json().unwrap();
        let theirs = serde_json::from_str(&text).unwrap();
        let whole = FieldValue::Object(document.fields().to_vec());
        assert!(agrees(&whole, &theirs), "seed {seed}: {text}");
        // The same document with spaces and line breaks, as another writer produces it, and sorted by name.
        let pretty = serde_json::to_string_pretty(&theirs).unwrap();
        let loose = Document::from_json(&pretty).unwrap();
        assert_eq!(loose.len(), document.len());
        let back = Document::from_json(&text).unwrap();
        assert!(
            same_fields(back.fields(), document.fields()),
            "seed {seed}: {text}"
        );
        assert!(!text.contains('\n'));
    }
}

#[test]
fn changed_texts_are_read_as_serde_json_reads_them() {
    let mut both = [0; 2];
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let mut text = random_document(&mut rng).to_json().unwrap();
        for _ in 0..=rng.index(2) {
            let at = rng.index(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                let new = [
                    "{", "}", "[", ",", "\"", "\\", "1", "e", "-", ".", " ", "", "\\ud800",
                ];
                text.replace_range(at..=at, new[rng.index(new.len())]);
            }
        }
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        if theirs.as_ref().is_ok_and(|theirs| !theirs.is_object()) {
            assert!(Document::from_json(&text).is_err());
            continue;
        }
        match (Document::from_json(&text), theirs) {
            (Ok(document), Ok(theirs)) => {
                both[0] += 1;
                let whole = FieldValue::Object(document.fields().to_vec());
                assert!(agrees(&whole, &theirs), "seed {seed}: {text}");
            }
            (Err(_), Err(_)) => both[1] += 1,
            // Our rules are stricter here.
            (Err(error), Ok(_)) => {
                let error = error.to_string();
                let rules = [
                    "two fields",
                    "the name",
                    "the number",
                    "the integer",
                    "at least 1",
                ];
                assert!(
                    rules.iter().any(|rule| error.contains(rule)),
                    "seed {seed}: {error} in {text}"
                );
            }
            (Ok(_), Err(error)) => panic!("seed {seed}: {error} in {text}"),
        }
    }
    assert!(both[0] > 100 && both[1] > 100, "{both:?}");
}

#[test]
fn numbers_are_exact() {
    let read = |text: &str| {
        let document = Document::from_json(&format!("{{\"a\":{text}}}"));
        document.map(|document| document.get("a").cloned().unwrap())
    };
    for (text, value, written) in [
        (
            "9223372036854775807",
            FieldValue::Integer(i64::MAX.into()),
            "",
        ),
        ("9223372036854775808", FieldValue::Integer(1 << 63), ""),
        (
            "18446744073709551615",
            FieldValue::Integer(u64::MAX.into()),
            "",
        ),
        (
            "-9223372036854775808",
            FieldValue::Integer(i64::MIN.into()),
            "",
        ),
        ("9007199254740993", FieldValue::Integer((1 << 53) + 1), ""),
        ("-0", FieldValue::Integer(0), "0"),
        ("-0.0", FieldValue::Float(-0.0), ""),
        ("1.0", FieldValue::Float(1.0), ""),
        ("1e2", FieldValue::Float(100.0), "100.0"),
        (
            "18446744073709551616.0",
            FieldValue::Float(18_446_744_073_709_551_616.0),
            "1.8446744073709552e+19",
        ),
        ("0.1", FieldValue::Float(0.1), ""),
        ("5e-324", FieldValue::Float(5e-324), ""),
        ("1e-400", FieldValue::Float(0.0), "0.0"),
        ("1.7976931348623157e+308", FieldValue::Float(f64::MAX), ""),
        (
            "2.2250738585072011e-308",
            FieldValue::Float(2.225_073_858_507_201e-308),
            "2.225073858507201e-308",
        ),
    ] {
        let found = read(text).unwrap();
        assert!(same(&found, &value), "{text} is {found:?}");
        let mut document = Document::default();
        document.set("a", value);
        let expected = if written.is_empty() { text } else { written };
        assert_eq!(document.to_json().unwrap(), format!("{{\"a\":{expected}}}"));
    }
    for text in [
        "18446744073709551616",
        "-9223372036854775809",
        "1e999",
        "-1e999",
        &"9".repeat(100),
        "[{\"x\": 18446744073709551616}]",
    ] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(error.to_string().contains("the number "), "{error}");
    }
}

#[test]
fn errors_name_the_place() {
    let many: Vec<String> = (0..=DOCUMENT_FIELDS_MAX)
        .map(|at| format!("\"{at}\":1"))
        .collect();
    let many = format!("{{{}}}", many.join(","));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(32), "]".repeat(32));
    let deeper = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for (text, expected) in [
        ("", "EOF while parsing"),
        ("[]", "invalid type: sequence, expected an object"),
        ("{} {}", "trailing characters at line 1 column 4"),
        ("{\"a\":1,}", "trailing comma at line 1 column 8"),
        ("{\"a\": NaN}", "at line 1 column 7"),
        ("{\"a\": 01}", "line 1 column"),
        (
            "{\n \"é\":\n [1, 99999999999999999999]}",
            "the number 99999999999999999999 at line 3 column 6",
        ),
        ("{\"a\": {\"b\": \"\\ud800\"}}", "at line 1 column 13"),
        ("{\"a\":1, \"a\":2}", "two fields with the name \"a\""),
        (
            "{\"a\":{\"b\":1,\"b\":2}}",
            "two fields with the name \"b\"",
        ),
        ("{\"\\u0061\":1, \"a\":2}", "two fields with the name \"a\""),
        ("{\"\":1}", "the name \"\" of a field"),
        ("{\"a\\u0000\":1}", "the name \"a\\0\" of a field"),
        (&many, "fields of a message"),
        (&deep, "levels of a message"),
        (&deeper, "levels of a message"),
    ] {
        let error = Document::from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, not {expected}");
    }
    let text = r#" {"a":"\u00e9\ud83d\ude00\n\/","b":[[],{}]} "#;
    let document = Document::from_json(text).unwrap();
    assert_eq!(document.get("a"), Some(&FieldValue::Text("é😀\n/".into())));
    let mut wrong = Document::default();
    wrong.set("a", FieldValue::Float(f64::NAN));
    assert!(matches!(wrong.to_json(), Err(Error::Refused { .. })));
}

#[test]
fn lines_are_read_one_by_one() {
    let text = "{\"a\":1}\n\n  \r\n{\"a\":2}\r\n{\"a\":}\n{\"a\":1e5000}\n{\"a\":3}";
    let mut found = vec![];
    for message in Document::from_json_lines(text) {
        match message {
            Ok(message) => found.push(message.to_json().unwrap()),
            Err(error) => {
                let error = error.to_string();
                let at = error.find("line ").unwrap();
                found.push(error[at..at + 7].to_owned());
            }
        }
    }
    let expected = ["{\"a\":1}", "{\"a\":2}", "line 5:", "line 6:", "{\"a\":3}"];
    assert_eq!(found, expected);
}
