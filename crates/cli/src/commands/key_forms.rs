//! Keys and values of tables in the forms that the user may type: text, hexadecimal, GUIDs, or numbers that are stored
//! in an order-preserving encoding.

use crate::args::KvForm;
use crate::bytes::{hex, readable, unescaped, unhex};
use crate::exit::{Failure, Outcome};
use tidalite::{Ordered, Value};

/// Converts a text typed in this form to the bytes that are stored.
pub(super) fn bytes_of(form: KvForm, text: &str) -> Outcome<Vec<u8>> {
    fn number<T: Ordered + std::str::FromStr>(text: &str) -> Option<Vec<u8>> {
        text.parse().ok().map(|number: T| number.to_key())
    }
    const TEXT: &str = "text: a backslash is followed by two hex digits, or is doubled";
    let (bytes, expected) = match form {
        KvForm::Text => (unescaped(text.as_bytes()), TEXT),
        KvForm::String => {
            let text = unescaped(text.as_bytes()).map(String::from_utf8);
            (text.and_then(Result::ok).map(|text| text.to_key()), TEXT)
        }
        KvForm::Hex => (unhex(text.as_bytes()), "made of pairs of hex digits"),
        KvForm::Guid => {
            let bytes = unhex(text.replace('-', "").as_bytes());
            (
                bytes.filter(|bytes| bytes.len() == 16),
                "a GUID of 32 hex digits",
            )
        }
        KvForm::U32 => (number::<u32>(text), "a whole number from 0 to 2^32 - 1"),
        KvForm::U64 => (number::<u64>(text), "a whole number from 0 to 2^64 - 1"),
        KvForm::I32 => (number::<i32>(text), "a whole number of 32 bits"),
        KvForm::I64 => (number::<i64>(text), "a whole number of 64 bits"),
    };
    bytes.ok_or_else(|| Failure::usage(format!("`{text}` is not {expected}")))
}

/// Formats stored bytes as the text that the user would type in this form.
pub(super) fn text_of(form: KvForm, bytes: &[u8]) -> Outcome<String> {
    fn number<T: Ordered + ToString>(bytes: &[u8]) -> Option<String> {
        T::from_key(bytes).map(|number| number.to_string())
    }
    let (text, what) = match form {
        KvForm::Text => (Some(readable(bytes)), "text"),
        KvForm::String => {
            let text = String::from_key(bytes);
            (text.map(|text| readable(text.as_bytes())), "a text")
        }
        KvForm::Hex => (Some(hex(bytes)), "bytes"),
        KvForm::Guid => {
            let guid = bytes.try_into().ok();
            (guid.map(|guid| Value::Guid(guid).to_string()), "a GUID")
        }
        KvForm::U32 => (number::<u32>(bytes), "a number"),
        KvForm::U64 => (number::<u64>(bytes), "a number"),
        KvForm::I32 => (number::<i32>(bytes), "a number"),
        KvForm::I64 => (number::<i64>(bytes), "a number"),
    };
    text.ok_or_else(|| {
        let length = bytes.len();
        Failure::bad_input(format!(
            "{} ({length} bytes) is not {what} of this form",
            readable(bytes)
        ))
        .hint("omit --keys or --values, or give the forms with which the table was stored")
    })
}

/// A printed key or value as JSON: a number if its form is numeric, otherwise a string.
pub(super) fn json_of(form: KvForm, text: String) -> serde_json::Value {
    let number = match form {
        KvForm::Text | KvForm::String | KvForm::Hex | KvForm::Guid => None,
        KvForm::U32 | KvForm::U64 => text.parse::<u64>().ok().map(serde_json::Value::from),
        KvForm::I32 | KvForm::I64 => text.parse::<i64>().ok().map(serde_json::Value::from),
    };
    number.unwrap_or(serde_json::Value::String(text))
}

/// The form in which keys or values of a type are typed and printed; `None` if the type is not known here. Text keys
/// have an encoding of their own.
pub(super) fn form_of(ty: &str, is_key: bool) -> Option<KvForm> {
    Some(match ty {
        "bytes" => KvForm::Text,
        "String" if is_key => KvForm::String,
        "String" => KvForm::Text,
        "[u8; 16]" => KvForm::Guid,
        "u32" => KvForm::U32,
        "u64" => KvForm::U64,
        "i32" => KvForm::I32,
        "i64" => KvForm::I64,
        _ => return None,
    })
}
