//! Projection to fields, of documents and of encoded messages.

use super::documents::{Names, random_document, same_fields};
use crate::containers::codec::EncodedDocument;
use crate::containers::document::{DOCUMENT_FIELDS_MAX, Document};
use crate::containers::fields::Projection;
use tidalite_testkit::rng::Rng;

#[test]
fn projections_keep_the_given_fields_in_the_given_order() {
    let text = r#"{"b": 1, "a": {"x": 2, "y": {"z": 3}}, "a.x": 4, "c": null, "p.q": {"r.s": 5}}"#;
    let document = Document::from_json(text).unwrap();
    let mut names = Names::default();
    let bytes = names.encode(&document).unwrap();
    for (paths, expected) in [
        (&["c", "b"][..], r#"{"c":null,"b":1}"#),
        (&["a.y.z", "missing", "a.x"], r#"{"a.y.z":3,"a.x":4}"#),
        (&["a.y"], r#"{"a.y":{"z":3}}"#),
        (&["p.q.r.s", "p", "b.x"], r#"{"p.q.r.s":5}"#),
        (&[], "{}"),
    ] {
        let projection = Projection::new(paths).unwrap();
        assert!(
            projection
                .paths()
                .iter()
                .map(|path| &**path)
                .eq(paths.iter().copied())
        );
        assert_eq!(projection.project(&document).to_json().unwrap(), expected);
        let resolved = projection.resolve(&|name| names.number(name));
        let encoded = EncodedDocument::new(&bytes).unwrap();
        let found = resolved.project(&encoded).unwrap();
        assert_eq!(found.to_json().unwrap(), expected);
    }
    let many: Vec<String> = (0..=DOCUMENT_FIELDS_MAX).map(|at| at.to_string()).collect();
    for (wrong, text) in [
        (
            vec!["a".into(), "a".into()],
            "two fields with the name \"a\"",
        ),
        (vec![String::new()], "the name \"\""),
        (vec!["n".repeat(256)], "bytes of the name"),
        (many, "fields of a message"),
    ] {
        let error = Projection::new(&wrong).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn both_projections_find_the_same_values() {
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let document = random_document(&mut rng);
        let mut names = Names::default();
        let bytes = names.encode(&document).unwrap();
        let mut paths: Vec<String> = document.numbers().map(|(path, _)| path.into()).collect();
        paths.extend(document.iter().map(|(name, _)| format!("{name}.x")));
        paths.sort();
        paths.dedup();
        paths.retain(|path| path.len() <= 255 && !path.contains('\0'));
        let projection = Projection::new(&paths).unwrap();
        let plain = projection.project(&document);
        let resolved = projection.resolve(&|name| names.number(name));
        let found = resolved.project(&EncodedDocument::new(&bytes).unwrap());
        assert!(
            same_fields(found.unwrap().fields(), plain.fields()),
            "seed {seed}"
        );
    }
}
