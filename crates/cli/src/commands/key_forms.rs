//! Keys and values of tables in the forms that the user may type: text, hexadecimal, or numbers that are stored in an
//! order-preserving encoding.

use crate::args::KvForm;
use crate::bytes::{unescaped, unhex};
use crate::exit::{Failure, Outcome};
use tidalite::Ordered;

/// Parses a text that is typed in this form to the bytes that are stored.
pub(super) fn bytes_of(form: KvForm, text: &str) -> Outcome<Vec<u8>> {
    fn number<T: Ordered + std::str::FromStr>(text: &str) -> Option<Vec<u8>> {
        text.parse().ok().map(|number: T| number.to_key())
    }
    let (bytes, expected) = match form {
        KvForm::Text => (
            unescaped(text.as_bytes()),
            "text: a backslash is followed by two hex digits, or is doubled",
        ),
        KvForm::Hex => (unhex(text.as_bytes()), "made of pairs of hex digits"),
        KvForm::U32 => (number::<u32>(text), "a whole number from 0 to 2^32 - 1"),
        KvForm::U64 => (number::<u64>(text), "a whole number from 0 to 2^64 - 1"),
        KvForm::I32 => (number::<i32>(text), "a whole number of 32 bits"),
        KvForm::I64 => (number::<i64>(text), "a whole number of 64 bits"),
    };
    bytes.ok_or_else(|| Failure::usage(format!("`{text}` is not {expected}")))
}
