//! Idempotency keys that were seen within the window, and the ids of their messages.
//!
//! ```text
//! row of a key   | time: i64 | id: u64 |       row of a time and an id: the key
//! ```

use crate::queues::keys;
use crate::queues::parts::{Part, change, damaged, part};
use tidalite_base::{get_i64, get_u64};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

const BYTES: usize = 16;

/// A key, the time of its push, and the id of its message.
pub(crate) struct Seen<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) time: i64,
    pub(crate) id: u64,
}

pub(crate) fn encode(time: i64, id: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&time.to_le_bytes());
    bytes[8..].copy_from_slice(&id.to_le_bytes());
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> Result<(i64, u64)> {
    if bytes.len() != BYTES {
        return Err(damaged("idempotency key", bytes.escape_ascii(), "16 bytes"));
    }
    Ok((get_i64(bytes, 0), get_u64(bytes, 8)))
}

/// The id of the message with an idempotency key; `None` if the key was not seen within the window.
pub(crate) fn find<R: PageRead>(
    root: &Tree,
    r: &R,
    key: &[u8],
    window: i64,
    now: i64,
) -> Result<Option<u64>> {
    let Some(value) = part(root, r, Part::Seen)?.get(r, key)? else {
        return Ok(None);
    };
    let (time, id) = decode(&value.bytes()?)?;
    Ok((time.saturating_add(window) > now).then_some(id))
}

/// Adds keys, and removes keys that have left the window: up to twice as many as it adds.
pub(crate) fn add<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    new: &[Seen<'_>],
    window: i64,
    now: i64,
) -> Result<()> {
    let mut replaced = Vec::new();
    change(root, w, Part::Seen, &mut |w, table| {
        for seen in new {
            if let Some(old) = table.get(w, seen.key)? {
                replaced.push(decode(&old)?);
            }
            table.insert(w, seen.key, &encode(seen.time, seen.id))?;
        }
        Ok(())
    })?;
    change(root, w, Part::SeenTimes, &mut |w, table| {
        for &(time, id) in &replaced {
            table.remove(w, &keys::seen_time(time, id))?;
        }
        for seen in new {
            table.insert(w, &keys::seen_time(seen.time, seen.id), seen.key)?;
        }
        Ok(())
    })?;
    prune(root, w, window, now, 2 * new.len()).map(drop)
}

/// The time of a row of `Part::SeenTimes`.
fn time_of(row: &[u8]) -> Result<i64> {
    match keys::split_time(row) {
        Some((time, _)) => Ok(time),
        None => Err(damaged("idempotency key", row.escape_ascii(), "a time")),
    }
}

/// Whether a key has left the window.
pub(crate) fn is_due<R: PageRead>(root: &Tree, r: &R, window: i64, now: i64) -> Result<bool> {
    let mut rows = part(root, r, Part::SeenTimes)?.cursor(r)?;
    Ok(rows.first()? && time_of(rows.key())?.saturating_add(window) <= now)
}

/// Removes keys that have left the window, at most `limit`; returns their number.
pub(crate) fn prune<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    window: i64,
    now: i64,
    limit: usize,
) -> Result<usize> {
    let mut left = Vec::new();
    {
        let mut rows = part(root, &*w, Part::SeenTimes)?.cursor(&*w)?;
        let mut there = rows.first()?;
        while there && left.len() < limit {
            if time_of(rows.key())?.saturating_add(window) > now {
                break;
            }
            left.push((rows.key().to_vec(), rows.value()?.to_vec()?));
            there = rows.next()?;
        }
    }
    let (Some((first, _)), Some((last, _))) = (left.first(), left.last()) else {
        return Ok(0);
    };
    let end = [last, &[0][..]].concat();
    change(root, w, Part::SeenTimes, &mut |w, table| {
        table.remove_range(w, first, &end)
    })?;
    change(root, w, Part::Seen, &mut |w, table| {
        for (_, key) in &left {
            table.remove(w, key)?;
        }
        Ok(())
    })?;
    Ok(left.len())
}
