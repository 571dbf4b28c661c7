//! Reads the index of tags (section 9.8 of docs/format.md), and compares it with the names of all series.

use crate::bytes::{Fields, big};
use crate::catalog::{Roots, SeriesEntry, plain_rows};
use crate::error::{Error, Result};
use crate::image::Image;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers by the key of their set.
pub(crate) type Sets = BTreeMap<Vec<u8>, BTreeSet<u64>>;

const SMALL_BYTES_MAX: usize = 16;
const COOKIE: usize = 12346;
const COOKIE_RUNS: usize = 12347;
const ARRAY_MAX: usize = 4096;
const BITMAP_BYTES: usize = 8192;

/// Checks that the index has exactly the sets that the names of the series demand.
///
/// # Errors
/// If a container is damaged, or the sets differ.
pub fn verify(image: &Image, roots: &Roots, series: &[SeriesEntry]) -> Result<()> {
    let found = sets_of(plain_rows(image, &roots.tags)?)?;
    let mut expected = Sets::new();
    for entry in series {
        let mut add = |key: Vec<u8>| expected.entry(key).or_default().insert(entry.id);
        add(set_key("", 0, None));
        let Some(name) = &entry.name else {
            add(set_key("", 2, None));
            continue;
        };
        let (metric, tags) = split(name).ok_or(Error::damaged(0, "a name of a series"))?;
        add(set_key("", 1, Some(&metric)));
        for (key, value) in &tags {
            add(set_key(key, 0, None));
            add(set_key(key, 1, Some(value)));
        }
    }
    if found == expected {
        return Ok(());
    }
    Err(Error::damaged(
        0,
        "an index of tags that differs from the names",
    ))
}

/// Reads the sets whose containers are the values of rows.
///
/// # Errors
/// If a container is damaged.
pub(crate) fn sets_of<B: AsRef<[u8]>>(rows: Vec<(B, B)>) -> Result<Sets> {
    let mut found = Sets::new();
    for (row, value) in &rows {
        let (row, value) = (row.as_ref(), value.as_ref());
        let fields = Fields::new(value, 0);
        fields.require(row.len() > 4, "a key in a table of sets of numbers")?;
        let (key, block) = row.split_at(row.len() - 4);
        let block = big(block);
        let members = container(value, block)?;
        fields.require(!members.is_empty(), "a container without members")?;
        let set = found.entry(key.to_vec()).or_default();
        set.extend(members.iter().map(|low| block << 16 | u64::from(*low)));
    }
    Ok(found)
}

fn set_key(tag: &str, kind: u8, value: Option<&str>) -> Vec<u8> {
    let escaped = |text: &str| {
        let mut bytes = Vec::new();
        for byte in text.bytes() {
            bytes.push(byte);
            bytes.extend((byte == 0).then_some(255));
        }
        bytes.extend([0, 1]);
        bytes
    };
    let mut key = escaped(tag);
    key.push(kind);
    key.extend(value.map(escaped).unwrap_or_default());
    key
}

/// The lowest 16 bits of the members of a container.
fn container(value: &[u8], block: u64) -> Result<Vec<u16>> {
    let mut fields = Fields::new(value, 0);
    let mut members = Vec::new();
    if value.len() <= SMALL_BYTES_MAX && value.len().is_multiple_of(2) {
        while fields.left() > 0 {
            members.push(fields.u16()? as u16);
        }
        fields.require(members.is_sorted_by(|a, b| a < b), "the order of members")?;
        return Ok(members);
    }
    let cookie = fields.u32()?;
    let runs = cookie == COOKIE_RUNS;
    if runs {
        let marks = fields.u8()?;
        fields.require(marks == 1, "a container that has runs")?;
    } else {
        fields.require(cookie == COOKIE, "the cookie of a bitmap")?;
        let containers = fields.u32()?;
        fields.require(containers == 1, "one container")?;
    }
    let key = fields.u16()?;
    fields.require(key as u64 == block & 0xffff, "the key of a container")?;
    let count = fields.u16()? + 1;
    if runs {
        for _ in 0..fields.u16()? {
            let (start, more) = (fields.u16()?, fields.u16()?);
            fields.require(start + more < 1 << 16, "the end of a run")?;
            let ascends = members.last().is_none_or(|last| usize::from(*last) < start);
            fields.require(ascends, "the order of runs")?;
            members.extend((start..=start + more).map(|member| member as u16));
        }
    } else {
        let offset = fields.u32()?;
        fields.require(offset == fields.position(), "the offset of a container")?;
        if count <= ARRAY_MAX {
            for _ in 0..count {
                members.push(fields.u16()? as u16);
            }
        } else {
            let bits = fields.take(BITMAP_BYTES)?;
            let is_set = |at: &u16| bits[usize::from(*at / 8)] >> (at % 8) & 1 == 1;
            members.extend((0..=u16::MAX).filter(is_set));
        }
    }
    fields.require(fields.left() == 0, "a container goes on")?;
    fields.require(
        members.len() == count && members.is_sorted_by(|a, b| a < b),
        "the members of a container",
    )?;
    Ok(members)
}

/// Splits a canonical name into the metric and the tags.
fn split(name: &str) -> Option<(String, Vec<(String, String)>)> {
    let mut rest = name;
    let metric = word(&mut rest)?;
    let mut tags = Vec::new();
    if rest.is_empty() {
        return Some((metric, tags));
    }
    let mut before = '{';
    loop {
        rest = rest.strip_prefix(before)?;
        let key = word(&mut rest)?;
        rest = rest.strip_prefix('=')?;
        tags.push((key, quoted(&mut rest)?));
        if rest == "}" {
            return Some((metric, tags));
        }
        before = ',';
    }
}

fn word(rest: &mut &str) -> Option<String> {
    if rest.starts_with('"') {
        return quoted(rest);
    }
    let end = rest.find(['{', '=', '}', ',']).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    (!word.is_empty()).then(|| word.to_owned())
}

fn quoted(rest: &mut &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = rest.strip_prefix('"')?.char_indices();
    loop {
        let (at, char) = chars.next()?;
        match char {
            '"' => {
                *rest = &rest[at + 2..];
                return Some(text);
            }
            '\\' => text.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_all_forms() {
        assert_eq!(container(&[1, 0, 2, 1], 7).ok(), Some(vec![1, 0x102]));
        assert!(container(&[2, 0, 1, 0], 7).is_err());
        // Runs: cookie, mark, key, members less one, number of runs, start and length less one.
        let runs = [0x3b, 0x30, 0, 0, 1, 7, 0, 9, 0, 1, 0, 5, 0, 9, 0];
        assert_eq!(container(&runs, 0x1_0007).ok(), Some((5..15).collect()));
        assert!(container(&runs, 8).is_err());
        let mut array = vec![0x3a, 0x30, 0, 0, 1, 0, 0, 0, 7, 0, 8, 0, 16, 0, 0, 0];
        array.extend((0..9u16).flat_map(|i| (i * 3).to_le_bytes()));
        assert_eq!(
            container(&array, 7).ok(),
            Some((0..9).map(|i| i * 3).collect())
        );
        let mut bitmap = vec![0x3a, 0x30, 0, 0, 1, 0, 0, 0, 7, 0, 255, 127, 16, 0, 0, 0];
        bitmap.extend([0x55; BITMAP_BYTES]);
        assert_eq!(
            container(&bitmap, 7).map(|members| members.len()).ok(),
            Some(32_768)
        );
    }

    #[test]
    fn names_are_split() {
        let tags = |name| split(name).map(|(metric, tags)| (metric, tags.len()));
        assert_eq!(tags("load"), Some(("load".to_owned(), 0)));
        assert_eq!(
            tags(r#""a b"{"k="="\"\\\n",x="}"}"#),
            Some(("a b".to_owned(), 2))
        );
        assert_eq!(tags("load{"), None);
    }
}
