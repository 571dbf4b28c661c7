//! Payloads and times as text and as JSON.
//!
//! In JSON, bytes that are valid UTF-8 are a string in the field NAME; other bytes are hex digits in the field
//! `NAME_hex`.

use crate::bytes::{hex, readable, unhex};
use crate::output::printable;
use crate::time::TimeShow;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use tidalite::Timestamp;

/// Formats bytes for a line of text: control characters are escaped, and so are bytes that are not UTF-8.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => printable(text),
        Err(_) => readable(bytes),
    }
}

/// Adds bytes to a JSON object, under `name` or `name_hex`.
pub(crate) fn put_bytes(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), Value::from(text)),
        Err(_) => object.insert(format!("{name}_hex"), Value::from(hex(bytes))),
    };
}

/// Takes bytes out of a JSON object, from `name` or `name_hex`; `None` if it has neither.
pub(crate) fn bytes_of_json(
    object: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<u8>>, String> {
    let hex_name = format!("{name}_hex");
    match (object.remove(name), object.remove(&hex_name)) {
        (None, None) => Ok(None),
        (Some(Value::String(text)), None) => Ok(Some(text.into_bytes())),
        (None, Some(Value::String(text))) => match unhex(text.as_bytes()) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(format!("`{hex_name}` is not made of pairs of hex digits")),
        },
        (Some(_), Some(_)) => Err(format!("both `{name}` and `{hex_name}`")),
        _ => Err(format!("`{name}` is not a string")),
    }
}

/// Names and values as a JSON list of objects, which preserves their order and repeated names.
pub(crate) fn pairs_json<'p>(pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>) -> Value {
    let pairs = pairs.into_iter().map(|(name, value)| {
        let mut pair = Map::new();
        put_bytes(&mut pair, "name", name);
        put_bytes(&mut pair, "value", value);
        Value::Object(pair)
    });
    Value::Array(pairs.collect())
}

/// A time, formatted as a date.
pub(crate) fn time_text(time: Timestamp) -> String {
    TimeShow::new(TimeZone::UTC).show(time.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::read_any;

    #[test]
    fn bytes_survive_json() {
        for bytes in [&b""[..], b"a\0\n", "über".as_bytes(), b"\xff\x00"] {
            let mut object = Map::new();
            put_bytes(&mut object, "payload", bytes);
            let text = Value::Object(object).to_string();
            let Ok(Value::Object(mut object)) = serde_json::from_str(&text) else {
                panic!("{text}");
            };
            let read = bytes_of_json(&mut object, "payload").unwrap();
            assert_eq!(read.as_deref(), Some(bytes), "{text}");
            assert!(object.is_empty());
        }
    }

    #[test]
    fn times_survive_as_dates() {
        for time in [i64::MIN, -1, 0, 1, 1_700_000_000_123_456_789, i64::MAX] {
            let read = read_any(&time_text(Timestamp(time)), &TimeZone::UTC);
            assert_eq!(read, Ok(time.into()));
        }
    }
}
