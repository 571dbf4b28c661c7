//! Values of options about the text of an import.

use encoding_rs::Encoding;

/// The words that mean "no value" unless others are given, with commas in between.
pub(crate) const NULL_WORDS: &str = "NA,N/A,#N/A,<NA>,null,NULL,None";

/// Parses the name of an encoding, such as `utf-16le`, `windows-1252` or `latin1`.
pub(super) fn encoding_named(name: &str) -> Result<&'static Encoding, String> {
    Encoding::for_label(name.trim().as_bytes()).ok_or_else(|| {
        format!("`{name}` is not an encoding: give one like windows-1252, latin1, utf-16le, shift_jis or gb18030")
    })
}

/// Parses a value of `--tag-value`.
pub(crate) fn tag_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "`{text}`: give a name and a text, such as site=north or device={{file}}"
        )),
    }
}

pub(super) fn decimal_separator(text: &str) -> Result<char, String> {
    match text {
        "," => Ok(','),
        "." => Ok('.'),
        _ => Err("give , or .".to_owned()),
    }
}

pub(super) fn thousands_separator(text: &str) -> Result<char, String> {
    match text {
        "," | "." | "'" | " " => Ok(text.chars().next().unwrap_or(' ')),
        _ => Err("give one of , . ' or a blank".to_owned()),
    }
}
