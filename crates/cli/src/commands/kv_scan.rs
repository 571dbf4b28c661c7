//! `kv scan`: prints the pairs of a table in order.

use super::kv_place::{Held, Pairs};
use super::kv_types::Kind;
use crate::exit::Outcome;
use crate::terminal::Terminal;
use std::ops::Bound;
use tidalite::ReadTxn;

/// The pairs to print.
pub(super) struct Bounds {
    pub from: Option<Vec<u8>>,
    pub to: Option<Vec<u8>>,
    pub limit: u64,
    pub reverse: bool,
    pub value: Option<Vec<u8>>,
    pub value_from: Option<Vec<u8>>,
    pub value_to: Option<Vec<u8>>,
}

impl Bounds {
    fn any_value(&self) -> bool {
        self.value.is_none() && self.value_from.is_none() && self.value_to.is_none()
    }

    fn takes(&self, found: &[u8]) -> bool {
        self.value.as_deref().is_none_or(|value| found == value)
            && self.value_from.as_deref().is_none_or(|from| found >= from)
            && self.value_to.as_deref().is_none_or(|to| found < to)
    }

    fn beyond(&self, key: &[u8]) -> bool {
        if self.reverse {
            self.from.as_deref().is_some_and(|from| key < from)
        } else {
            self.to.as_deref().is_some_and(|to| key >= to)
        }
    }
}

/// Runs the command `tidalite kv scan`.
pub(super) fn scan(pairs: &Pairs<'_>, bounds: &Bounds, terminal: &mut Terminal<'_>) -> Outcome {
    let snap = pairs.place.snapshot()?;
    match pairs.place.kind(&snap)? {
        Kind::Single => single(&snap, pairs, bounds, terminal)?,
        Kind::Sets => sets(&snap, pairs, bounds, terminal)?,
        Kind::Buffered => buffered(&snap, pairs, bounds, terminal)?,
    }
    Ok(terminal.out.flush()?)
}

fn sets(
    snap: &ReadTxn,
    pairs: &Pairs<'_>,
    bounds: &Bounds,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let place = pairs.place;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut left = bounds.limit;
    let Some(table) = snap.set_table(&place.table).map_err(fail)? else {
        return Ok(());
    };
    let mut cursor = table.cursor();
    let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
        (false, Some(from), _) => cursor.seek_key_ge(from),
        (false, None, _) => cursor.first(),
        (true, _, Some(to)) => cursor.seek_lt(to, &[]),
        (true, _, None) => cursor.last(),
    }
    .map_err(fail)?;
    while found && left > 0 && !bounds.beyond(cursor.key()) {
        if bounds.takes(cursor.value()) {
            pairs.pair(cursor.key(), &Held::Value(cursor.value()), terminal)?;
            left -= 1;
        }
        found = if bounds.reverse {
            cursor.previous().map_err(fail)?
        } else {
            cursor.next().map_err(fail)?
        };
    }
    Ok(())
}

fn single(
    snap: &ReadTxn,
    pairs: &Pairs<'_>,
    bounds: &Bounds,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let place = pairs.place;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut left = bounds.limit;
    let table = place.table(snap)?;
    let mut cursor = table.cursor();
    let mut found = match (bounds.reverse, &bounds.from, &bounds.to) {
        (false, Some(from), _) => cursor.seek_ge(from),
        (false, None, _) => cursor.first(),
        (true, _, Some(to)) => cursor.seek_lt(to),
        (true, _, None) => cursor.last(),
    }
    .map_err(fail)?;
    while found && left > 0 && !bounds.beyond(cursor.key()) {
        if cursor.is_nested() {
            if bounds.any_value() {
                let below = table.nested(cursor.key()).map_err(fail)?;
                let count = below.map_or(0, |below| below.count());
                pairs.pair(cursor.key(), &Held::Table(count), terminal)?;
                left -= 1;
            }
        } else {
            let value = cursor.value().map_err(fail)?;
            if bounds.takes(&value) {
                pairs.pair(cursor.key(), &Held::Value(&value), terminal)?;
                left -= 1;
            }
        }
        found = if bounds.reverse {
            cursor.previous().map_err(fail)?
        } else {
            cursor.next().map_err(fail)?
        };
    }
    Ok(())
}

fn buffered(
    snap: &ReadTxn,
    pairs: &Pairs<'_>,
    bounds: &Bounds,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let place = pairs.place;
    let fail = |error: tidalite::Error| place.fail(&error);
    let mut left = bounds.limit;
    let table = place.buffered_table(snap)?;
    let bound = |key: &Option<Vec<u8>>, of: fn(Vec<u8>) -> Bound<Vec<u8>>| {
        key.clone().map_or(Bound::Unbounded, of)
    };
    let range = (
        bound(&bounds.from, Bound::Included),
        bound(&bounds.to, Bound::Excluded),
    );
    let mut entries = match bounds.reverse {
        true => table.range_reversed(range),
        false => table.range(range),
    }
    .map_err(fail)?;
    while left > 0
        && let Some(entry) = entries.next()
    {
        let (key, value) = entry.map_err(fail)?;
        if bounds.takes(&value) {
            pairs.pair(&key, &Held::Value(&value), terminal)?;
            left -= 1;
        }
    }
    Ok(())
}
