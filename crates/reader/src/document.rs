//! Reads the documents of containers (section 9.14 of docs/format.md), and writes values as JSON.

use crate::bytes::{Fields, little};
use crate::error::Result;
use crate::image::text;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const FIELDS_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 255;
const LEVELS_MAX: usize = 32;
const VALUES_MAX: usize = 1 << 20;
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Null.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// The bits of a float.
    Float(u64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<FieldValue>),
    /// An object: names and values.
    Object(Vec<(String, FieldValue)>),
}

/// Names of fields by their numbers.
pub(crate) type Names = BTreeMap<u64, String>;

/// Reads a document, which consists of all remaining fields.
pub(crate) fn document(
    fields: &mut Fields<'_>,
    names: &Names,
) -> Result<Vec<(String, FieldValue)>> {
    fields.require(
        fields.left() <= DOCUMENT_BYTES_MAX,
        "the length of a document",
    )?;
    let count = varint(fields)?;
    fields.require(count <= FIELDS_MAX, "the fields of a document")?;
    let (mut document, mut numbers) = (Vec::new(), BTreeSet::new());
    let mut values = count;
    for _ in 0..count {
        let number = varint(fields)? as u64;
        let is_new = numbers.insert(number);
        fields.require(is_new, "two fields of one name")?;
        document.push((name(names, number, fields)?, value(fields, 1, &mut values)?));
    }
    fields.require(fields.left() == 0, "a document goes on")?;
    Ok(document)
}

/// The name of a field.
pub(crate) fn name(names: &Names, number: u64, of: &Fields<'_>) -> Result<String> {
    let name = names.get(&number).cloned();
    name.ok_or_else(|| of.damaged("a field without a name"))
}

/// Reads a varint, which must have the shortest form.
pub(crate) fn varint(fields: &mut Fields<'_>) -> Result<usize> {
    let start = fields.position();
    let value = fields.varint32()?;
    let shortest = match value {
        0 => 1,
        _ => (value.ilog2() / 7 + 1) as usize,
    };
    fields.require(
        fields.position() - start == shortest,
        "a varint of a document is too long",
    )?;
    Ok(value)
}

/// Reads a value at a level of the document, the document itself being level 1; adds the values in it to `values`.
pub(crate) fn value(
    fields: &mut Fields<'_>,
    level: usize,
    values: &mut usize,
) -> Result<FieldValue> {
    let tag = fields.u8()?;
    Ok(match tag {
        0 => FieldValue::Null,
        1 | 2 => FieldValue::Bool(tag == 2),
        3 => {
            let bits = fields.u64()?;
            fields.require(
                f64::from_bits(bits).is_finite(),
                "a float that is not finite",
            )?;
            FieldValue::Float(bits)
        }
        4 => {
            let length = varint(fields)?;
            FieldValue::Text(text(fields.take(length)?, fields)?)
        }
        5 | 6 => nested(fields, tag == 6, level + 1, values)?,
        0x11..=0x18 => {
            let integer = integer(fields, tag - 0x10)?;
            fields.require(integer > 127, "an integer with a tag too much")?;
            FieldValue::Integer(integer.into())
        }
        0x21..=0x28 => {
            let integer = integer(fields, tag - 0x20)?;
            fields.require(integer < 1 << 63, "a negative integer")?;
            FieldValue::Integer(-1 - i128::from(integer))
        }
        0x30..=0x36 => {
            let scale = fields.u8()?;
            let digits = integer(fields, tag - 0x30)?;
            let exponent = u32::from(scale & 127);
            fields.require(exponent <= 11, "the exponent of a decimal")?;
            let number = digits as f64 / 10_u64.pow(exponent) as f64;
            let number = if scale < 128 { number } else { -number };
            FieldValue::Float(number.to_bits())
        }
        0x40..=0x7f => {
            let bytes = fields.take(usize::from(tag - 0x40))?;
            FieldValue::Text(text(bytes, fields)?)
        }
        0x80.. => FieldValue::Integer(i128::from(tag - 0x80)),
        _ => return Err(fields.damaged("the tag of a value")),
    })
}

fn integer(fields: &mut Fields<'_>, bytes: u8) -> Result<u64> {
    let taken = fields.take(usize::from(bytes))?;
    let is_short = bytes <= 1 || taken.last() != Some(&0);
    fields.require(is_short, "an integer is longer than necessary")?;
    Ok(little(taken))
}

fn nested(
    fields: &mut Fields<'_>,
    is_object: bool,
    level: usize,
    values: &mut usize,
) -> Result<FieldValue> {
    fields.require(level <= LEVELS_MAX, "the levels of a document")?;
    let length = varint(fields)?;
    let mut inside = Fields::new(fields.take(length)?, 0);
    let count = varint(&mut inside)?;
    *values = values.saturating_add(count);
    inside.require(*values <= VALUES_MAX, "the values of a document")?;
    let (mut items, mut object, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for _ in 0..count {
        if is_object {
            let length = varint(&mut inside)?;
            let name = text(inside.take(length)?, &inside)?;
            check_name(&name, &inside)?;
            inside.require(names.insert(name.clone()), "two names in one object")?;
            object.push((name, value(&mut inside, level, values)?));
        } else {
            items.push(value(&mut inside, level, values)?);
        }
    }
    inside.require(inside.left() == 0, "a list or an object goes on")?;
    Ok(if is_object {
        FieldValue::Object(object)
    } else {
        FieldValue::List(items)
    })
}

/// Checks the name of a field.
pub(crate) fn check_name(name: &str, of: &Fields<'_>) -> Result<()> {
    of.require(
        (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0'),
        "the name of a field",
    )
}

/// Writes a text as JSON.
fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for char in text.chars() {
        match char {
            '"' | '\\' => write!(f, "\\{char}")?,
            ' '..='~' => write!(f, "{char}")?,
            _ => {
                let mut units = [0; 2];
                for unit in char.encode_utf16(&mut units) {
                    write!(f, "\\u{unit:04x}")?;
                }
            }
        }
    }
    f.write_str("\"")
}

/// Writes the fields of an object as JSON.
pub(crate) struct Json<'a>(pub(crate) &'a [(String, FieldValue)]);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "{";
        for (name, value) in self.0 {
            f.write_str(before)?;
            quoted(f, name)?;
            write!(f, ": {value}")?;
            before = ", ";
        }
        f.write_str(if self.0.is_empty() { "{}" } else { "}" })
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            Self::Text(text) => quoted(f, text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Object(object) => Json(object).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_description_is_read() {
        let names = ["battery", "state", "serial", "gps", "codes"];
        let names: Names = (0..).zip(names.map(str::to_owned)).collect();
        let bytes = b"\x05\x00\x31\x01\x7d\x01\x42on\x02\x18\xff\xff\xff\xff\xff\xff\xff\xff\
            \x03\x06\x09\x01\x03lat\x32\x82\xfd\x0c\x04\x05\x06\x03\x81\x12\x2c\x01\x00";
        let read = |bytes: &[u8]| document(&mut Fields::new(bytes, 0), &names);
        assert_eq!(
            Json(&read(bytes).expect("a document")).to_string(),
            r#"{"battery": 12.5, "state": "on", "serial": 18446744073709551615, "gps": {"lat": -33.25}, "codes": [1, 300, null]}"#
        );
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end} bytes");
        }
        for damaged in [
            &b"\x01\x00\x11\x05"[..],
            b"\x01\x00\x12\x2c\x00",
            b"\x01\x07\x00",
            b"\x02\x00\x00\x00\x00",
            b"\x01\x00\x30\x0c",
            b"\x01\x80\x00\x00",
        ] {
            assert!(read(damaged).is_err(), "{damaged:?}");
        }
    }
}
