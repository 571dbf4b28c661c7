//! Values and messages as JSON. The library writes the numbers, because it preserves every digit of 64-bit integers.

use crate::time::TimeShow;
use tidalite::Timestamp;
use tidalite::containers::{Document, FieldValue};

/// A value as JSON.
pub(super) fn value_json(value: &FieldValue) -> tidalite::Result<String> {
    let mut document = Document::default();
    document.set("v", value.clone());
    let json = document.to_json()?;
    let inner = json.strip_prefix(r#"{"v":"#);
    Ok(inner
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or_default()
        .to_owned())
}

/// `name`, preceded by as many `_` as are needed to get a name that the message does not have.
fn free(name: &str, document: &Document) -> String {
    let mut name = name.to_owned();
    while document.get(&name).is_some() {
        name.insert(0, '_');
    }
    name
}

/// A message as a line of JSON: its time, its container if `container` is given, and its fields.
pub(super) fn message_json(
    (time, show): (Timestamp, &TimeShow),
    container: Option<&str>,
    document: &Document,
) -> tidalite::Result<String> {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut line = format!(
        "{{{}:{}",
        text(&free("time", document)),
        text(&show.show(time.0.into()))
    );
    if let Some(container) = container {
        let name = free("container", document);
        line += &format!(",{}:{}", text(&name), text(container));
    }
    let fields = document.to_json()?;
    let fields = fields.strip_prefix('{').unwrap_or_default();
    if !document.is_empty() {
        line.push(',');
    }
    line += fields;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn values_keep_every_digit() {
        let json = r#"{"a":18446744073709551615,"b":0.1,"c":{"d":[1,null,"\""]},"e":true}"#;
        let document = Document::from_json(json).unwrap();
        let values: Vec<String> = document
            .iter()
            .map(|(_, value)| value_json(value).unwrap())
            .collect();
        assert_eq!(
            values,
            [
                "18446744073709551615",
                "0.1",
                r#"{"d":[1,null,"\""]}"#,
                "true"
            ]
        );
    }

    #[test]
    fn added_names_do_not_repeat_those_of_the_message() {
        let show = TimeShow::new(TimeZone::UTC);
        for (json, line) in [
            ("{}", r#"{"time":"1970-01-01T00:00:00Z","container":"c"}"#),
            (
                r#"{"x":1}"#,
                r#"{"time":"1970-01-01T00:00:00Z","container":"c","x":1}"#,
            ),
            (
                r#"{"time":5,"_time":6,"container":"d"}"#,
                r#"{"__time":"1970-01-01T00:00:00Z","_container":"c","time":5,"_time":6,"container":"d"}"#,
            ),
        ] {
            let document = Document::from_json(json).unwrap();
            let found = message_json((Timestamp(0), &show), Some("c"), &document).unwrap();
            assert_eq!(found, line);
            assert!(Document::from_json(&found).is_ok());
        }
    }
}
