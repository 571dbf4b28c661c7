//! Bytes and lists of lines as text of an export.

use crate::bytes::checksum;
use std::fmt::{self, Write as _};

/// Maximum length of byte strings that are shown in full; a longer string is shown as length and hash.
const SHOWN_BYTES: usize = 80;

/// Number of lines that are shown at the beginning and at the end of a long list.
pub(crate) const SHOWN_ROWS: usize = 20;

/// Formats bytes as text in quotes, or as length and hash.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        if bytes.len() > SHOWN_BYTES {
            return write!(f, "{} bytes, hash {:016x}", bytes.len(), checksum(bytes));
        }
        f.write_char('"')?;
        for &byte in bytes {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => f.write_char(char::from(byte))?,
                _ => write!(f, "\\{byte:02x}")?,
            }
        }
        f.write_char('"')
    }
}

/// Writes the number and the hash of lines, and the first and last of them.
pub(crate) fn lines(f: &mut fmt::Formatter<'_>, kind: &str, lines: &[String]) -> fmt::Result {
    let hash = checksum(lines.concat().as_bytes());
    writeln!(f, "  {} {kind}, hash {hash:016x}", lines.len())?;
    let hidden = SHOWN_ROWS..lines.len().saturating_sub(SHOWN_ROWS);
    for (number, line) in lines.iter().enumerate() {
        if hidden.contains(&number) {
            if number == hidden.start {
                f.write_str("  ...\n")?;
            }
            continue;
        }
        f.write_str(line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_escaped_and_long_ones_hashed() {
        assert_eq!(
            Bytes(b"a \"\\\x00\xff").to_string(),
            "\"a \\\"\\\\\\00\\ff\""
        );
        assert!(
            Bytes(&[b'a'; 81])
                .to_string()
                .starts_with("81 bytes, hash ")
        );
    }
}
