//! Idempotency keys that were seen within the window, and the times at which they were seen. Each container has its own
//! keys.
//!
//! ```text
//! row of a key   | time: i64 |       row of a time and a key: nothing
//! ```

use crate::containers::keys::{seen_key, seen_time, split_seen_time};
use crate::containers::parts::{Part, change, damaged, part, shown};
use tidalite_base::get_i64;
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};

pub(crate) fn decode(bytes: &[u8]) -> Result<i64> {
    match bytes.len() {
        8 => Ok(get_i64(bytes, 0)),
        _ => Err(damaged("idempotency key", shown(bytes), "8 bytes")),
    }
}

/// Whether a key was seen within the window. `table` is the part `Seen`.
pub(crate) fn is_seen<'r, R: PageRead>(
    table: &TableReader<'r>,
    r: &'r R,
    (container, key): (u32, &[u8]),
    window: i64,
    now: i64,
) -> Result<bool> {
    match table.get(r, &seen_key(container, key))? {
        Some(value) => Ok(decode(&value.bytes()?)?.saturating_add(window) > now),
        None => Ok(false),
    }
}

/// Adds keys, sorted by container and key.
pub(crate) fn add<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    new: &[(u32, &[u8])],
    now: i64,
) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut replaced = Vec::new();
    change(root, w, Part::Seen, &mut |w, table| {
        for (container, key) in new {
            let row = seen_key(*container, key);
            if let Some(old) = table.get(w, &row)? {
                replaced.push(seen_time(decode(&old)?, *container, key));
            }
            table.insert(w, &row, &now.to_le_bytes())?;
        }
        Ok(())
    })?;
    change(root, w, Part::SeenTimes, &mut |w, table| {
        for row in &replaced {
            table.remove(w, row)?;
        }
        let mut rows = new.iter();
        table.extend_lent(w, |put| {
            rows.try_for_each(|(container, key)| put(&seen_time(now, *container, key), &[]))
        })
    })
}

/// Whether a key has left the window.
pub(crate) fn is_due<R: PageRead>(root: &Tree, r: &R, window: i64, now: i64) -> Result<bool> {
    let mut rows = part(root, r, Part::SeenTimes)?.cursor(r)?;
    Ok(rows.first()? && split_seen_time(rows.key())?.0.saturating_add(window) <= now)
}

/// Removes keys that have left the window, at most `limit`; returns their number.
pub(crate) fn prune<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    window: i64,
    now: i64,
    limit: u64,
) -> Result<u64> {
    let mut left: Vec<Vec<u8>> = Vec::new();
    {
        let mut rows = part(root, &*w, Part::SeenTimes)?.cursor(&*w)?;
        let mut there = rows.first()?;
        while there && (left.len() as u64) < limit {
            let (time, _) = split_seen_time(rows.key())?;
            if time.saturating_add(window) > now {
                break;
            }
            left.push(rows.key().to_vec());
            there = rows.next()?;
        }
    }
    let (Some(first), Some(last)) = (left.first(), left.last()) else {
        return Ok(0);
    };
    let end = [last, &[0][..]].concat();
    change(root, w, Part::SeenTimes, &mut |w, table| {
        table.remove_range(w, first, &end)
    })?;
    change(root, w, Part::Seen, &mut |w, table| {
        for row in &left {
            let (time, key) = split_seen_time(row)?;
            // The keys of a removed container are already gone, and its number is not used again.
            if let Some(found) = table.get(w, key)?
                && decode(&found)? == time
            {
                table.remove(w, key)?;
            }
        }
        Ok(())
    })?;
    Ok(left.len() as u64)
}
