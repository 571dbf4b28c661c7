//! Keys and values of tables as text, for printing and typing.
//!
//! ```text
//! printed   printable ASCII as it is, every other byte and the backslash as \ and two hex digits; by `kv get` and
//!           `kv scan` printable characters beyond ASCII as they are, too
//! typed     as printed; also, \\ is a backslash, and characters beyond ASCII stand for their UTF-8 bytes
//! ```
//!
//! Invariant: printed text can be typed again and gives the original bytes.

/// Formats bytes as hexadecimal, with two digits per byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// Formats bytes as text: printable ASCII as it is, other bytes and the backslash as a backslash and two hexadecimal
/// digits.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if matches!(byte, b' '..=b'~') && *byte != b'\\' {
            text.push(char::from(*byte));
        } else {
            text.push('\\');
            text.push_str(&hex(&[*byte]));
        }
    }
    text
}

/// Parses hexadecimal digits; `None` if the text contains anything else.
pub(crate) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

/// Parses text in the form that `escaped` prints; a doubled backslash is also accepted. Returns `None` for an invalid
/// escape.
pub(crate) fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.extend(unhex(digits)?);
            rest = after;
        }
    }
    Some(bytes)
}

/// Formats bytes like `escaped`, for use on a command line: a leading dash is escaped, so that the text is not parsed
/// as an option, except in a negative number.
pub(crate) fn typeable(bytes: &[u8]) -> String {
    match bytes.strip_prefix(b"-") {
        Some(rest) if !is_number(rest) => format!("\\2d{}", escaped(rest)),
        _ => escaped(bytes),
    }
}

/// Formats bytes like `typeable`, but leaves printable characters beyond ASCII unchanged if they are valid UTF-8.
pub(crate) fn readable(bytes: &[u8]) -> String {
    // Characters that combine with others or cannot be seen are escaped: accents, marks of direction, controls.
    let shown = |c: &char| !c.is_ascii() && !c.is_whitespace() && c.escape_debug().len() == 1;
    let mut text = String::with_capacity(bytes.len());
    let mut first = true;
    for chunk in bytes.utf8_chunks() {
        for run in chunk
            .valid()
            .split_inclusive(|c| shown(&c))
            .filter(|run| !run.is_empty())
        {
            let last = run.chars().next_back().filter(shown);
            let ascii = &run[..run.len() - last.map_or(0, char::len_utf8)];
            let written = match first {
                true => typeable(ascii.as_bytes()),
                false => escaped(ascii.as_bytes()),
            };
            first = false;
            text.push_str(&written);
            text.extend(last);
        }
        text.push_str(&escaped(chunk.invalid()));
        first &= chunk.invalid().is_empty();
    }
    text
}

/// Whether the text consists of digits, with or without a decimal point between them.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match text.iter().position(|byte| *byte == b'.') {
        Some(point) => digits(&text[..point]) && digits(&text[point + 1..]),
        None => digits(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_bytes_parse_back() {
        let every: Vec<u8> = (0..=255).collect();
        for bytes in [
            &every[..],
            b"",
            b"\\",
            b"\\41",
            b"-x",
            b"-3.5",
            b"-",
            b"-1.",
            b"--",
        ] {
            assert_eq!(
                unescaped(readable(bytes).as_bytes()).as_deref(),
                Some(bytes)
            );
            for text in [escaped(bytes), typeable(bytes)] {
                assert!(text.is_ascii() && !text.contains(char::is_control));
                assert_eq!(unescaped(text.as_bytes()).as_deref(), Some(bytes), "{text}");
            }
        }
        for (bytes, text) in [
            ("über\u{202e}x".as_bytes(), "über\\e2\\80\\aex"),
            (b"\xc3\xbc\xff", "ü\\ff"),
            ("-ü".as_bytes(), "\\2dü"),
            ("a-ü -5".as_bytes(), "a-ü -5"),
            (
                "e\u{301}\u{a0}\n日本".as_bytes(),
                "e\\cc\\81\\c2\\a0\\0a日本",
            ),
            (b"\xff-", "\\ff-"),
        ] {
            assert_eq!(readable(bytes), text);
            assert_eq!(unescaped(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(typeable(b"-3.5"), "-3.5");
        assert_eq!(typeable(b"-x"), "\\2dx");
        assert_eq!(unescaped(b"a\\\\b").as_deref(), Some(&b"a\\b"[..]));
        for wrong in [&b"\\"[..], b"\\4", b"\\zz", b"a\\"] {
            assert_eq!(unescaped(wrong), None);
        }
    }
}
