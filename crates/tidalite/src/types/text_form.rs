//! Text forms of table keys and of GUIDs.

/// A key as text for messages: quoted if it is text, otherwise in hexadecimal. A long key is truncated.
#[must_use]
pub fn key_text(key: &[u8]) -> String {
    const SHOWN: usize = 64;
    let cut = if key.len() > SHOWN { "..." } else { "" };
    let shown = &key[..key.len().min(SHOWN)];
    if shown.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return format!("\"{}\"{cut}", String::from_utf8_lossy(shown));
    }
    let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}{cut}")
}

/// Converts a GUID between the memory layout of .NET and Windows (`Guid.ToByteArray`: the first three fields
/// little-endian) and the byte order of its text form, in either direction.
///
/// ```
/// let text_order = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
/// let dotnet = tidalite::text::guid_dotnet(text_order);
/// assert_eq!(dotnet[..8], [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66]);
/// assert_eq!(tidalite::text::guid_dotnet(dotnet), text_order);
/// ```
#[must_use]
pub const fn guid_dotnet(guid: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = guid;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

/// The sixteen bytes of a GUID, in order, as 8-4-4-4-12 hexadecimal digits.
#[must_use]
pub fn guid_text(guid: &[u8; 16]) -> String {
    let hex: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}
