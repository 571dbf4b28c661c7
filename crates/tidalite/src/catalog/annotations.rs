//! Annotations: texts about a series that do not identify it, such as its unit or the installer of the sensor.
//!
//! In the `annotations` tree:
//!
//! ```text
//! key    0   8  u64   series id, big-endian
//!        8   n        the annotation's key, UTF-8, 1 to 64 bytes
//! value               its text, UTF-8, up to 4096 bytes
//! ```
//!
//! Invariant: every key's series id is in the catalog.

use crate::catalog::entries::id_key;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use tidalite_base::{Corrupt, SeriesId};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite};

/// Maximum length in bytes of an annotation's key. A tree key is the 8 bytes of the series id and this key: it fits
/// even the smallest page size.
pub const ANNOTATION_KEY_BYTES_MAX: usize = 64;

/// Maximum length of an annotation's text in bytes.
pub const ANNOTATION_BYTES_MAX: usize = 4096;

pub(crate) fn check(key: &str, text: &str) -> Result<()> {
    if key.is_empty() {
        let problem = "the key of an annotation has one byte at least".to_owned();
        let name = key.to_owned();
        return Err(Error::from(Cause::Name { name, problem }));
    }
    let bounds = [
        (
            "bytes of the key of an annotation",
            key.len(),
            ANNOTATION_KEY_BYTES_MAX,
        ),
        ("bytes of an annotation", text.len(), ANNOTATION_BYTES_MAX),
    ];
    for (what, found, limit) in bounds {
        if found > limit {
            let (found, limit) = (found as u64, limit as u64);
            return Err(Error::from(Cause::Limit { what, found, limit }));
        }
    }
    Ok(())
}

pub(crate) fn tree_key(id: SeriesId, key: &str) -> Vec<u8> {
    let mut bytes = id_key(id).to_vec();
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

fn text_of(value: Vec<u8>) -> Result<String> {
    String::from_utf8(value)
        .map_err(|error| Corrupt::new("annotation", 0, error.to_string(), "UTF-8").into())
}

pub(crate) fn get<R: PageRead>(
    tree: &Tree,
    pages: &R,
    id: SeriesId,
    key: &str,
) -> Result<Option<String>> {
    if key.len() > ANNOTATION_KEY_BYTES_MAX {
        return Ok(None);
    }
    let value = tree.get(pages, &tree_key(id, key))?;
    value.map(|value| text_of(value.to_vec()?)).transpose()
}

/// Decodes an entry of the `annotations` tree into series id, key and text. Returns an error for an entry that no call
/// can have written.
pub(crate) fn annotation_of(key: &[u8], value: &[u8]) -> Result<(SeriesId, String, String)> {
    let Some((id, key)) = key.split_first_chunk::<8>() else {
        let found = format!("{} bytes", key.len());
        return Err(Corrupt::new("key of an annotation", 0, found, "8 bytes at least").into());
    };
    let (key, text) = (text_of(key.to_vec())?, text_of(value.to_vec())?);
    if check(&key, &text).is_err() {
        let found = format!("{} and {} bytes", key.len(), text.len());
        return Err(Corrupt::new("annotation", 0, found, "a key and a text within bounds").into());
    }
    Ok((SeriesId(u64::from_be_bytes(*id)), key, text))
}

pub(crate) fn of_series<R: PageRead>(
    tree: &Tree,
    pages: &R,
    id: SeriesId,
) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut cursor = tree.cursor(pages);
    let mut there = cursor.seek_ge(&id_key(id))?;
    while there && cursor.key().starts_with(&id_key(id)) {
        let (_, key, text) = annotation_of(cursor.key(), &cursor.value()?.to_vec()?)?;
        found.push((key, text));
        there = cursor.next()?;
    }
    Ok(found)
}

/// Removes all annotations of a series.
pub(crate) fn remove_series<W: PageWrite>(w: &mut W, tree: &mut Tree, id: SeriesId) -> Result<()> {
    tree.remove_range(w, &id_key(id), &id_key(SeriesId(id.0 + 1)))?;
    Ok(())
}

/// Callback that receives the series of each sound annotation, or, for a damaged annotation, the series (if known) and
/// a description of the damage.
pub(crate) type Found<'f> = dyn FnMut(std::result::Result<(SeriesId, &str), String>) + 'f;

/// Checks every annotation whose tree key is `at` or greater, and moves `at` forward as it reads. Passes each
/// annotation or problem to `f`, with the series if known.
pub(crate) fn check_all<R: PageRead>(
    tree: &Tree,
    pages: &R,
    at: &mut Vec<u8>,
    f: &mut Found<'_>,
) -> Result<()> {
    let mut cursor = tree.cursor(pages);
    let mut there = cursor.seek_ge(at)?;
    while there {
        cursor.key().clone_into(at);
        match annotation_of(cursor.key(), &cursor.value()?.to_vec()?) {
            Ok((id, key, _)) => f(Ok((id, &key))),
            Err(error) => f(Err(error.finding())),
        }
        there = cursor.next()?;
    }
    Ok(())
}
