//! Reads the primary rows of a damaged queue, ignoring rows that cannot be decoded or contradict others.

use crate::queues::counters::Group;
use crate::queues::due::DeadReason;
use crate::queues::edit::first_mark;
use crate::queues::keys;
use crate::queues::lease_row::Lease;
use crate::queues::mark::{self, IDS, Mark, Phase};
use crate::queues::message::{self, Head};
use crate::queues::options::{GROUPS_MAX, IDS_MAX};
use crate::queues::parts::{Part, change, part};
use crate::queues::seen;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_index::{RoaringTreemap, get};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Removes all rows of a part.
pub(crate) fn clear<W: PageWrite>(root: &mut Tree, w: &mut W, of: Part) -> Result<()> {
    change(root, w, of, &mut |w, table| table.clear(w))
}

/// The heads of all messages, and the idempotency keys with the ids and times of their messages.
pub(crate) struct Heads {
    pub(crate) heads: BTreeMap<u64, Head>,
    keys: Vec<(u64, i64, Vec<u8>)>,
}

/// Removes messages that cannot be decoded. Returns the ids and heads of the others.
pub(crate) fn repair_messages<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    removed: &mut u64,
) -> Result<(RoaringTreemap, Heads)> {
    let mut stored = RoaringTreemap::new();
    let mut heads = Heads {
        heads: BTreeMap::new(),
        keys: Vec::new(),
    };
    let mut wrong = Vec::new();
    {
        let mut rows = part(root, &*w, Part::Messages)?.cursor(&*w)?;
        let mut there = rows.first()?;
        while there {
            let value = rows.value()?;
            let id = rows.key().try_into().map(u64::from_be_bytes);
            let id = id.ok().filter(|id| (1..IDS_MAX).contains(id));
            let decoded = id.map(|id| message::decode(id, &value.bytes()?));
            match (id, decoded) {
                (Some(id), Some(Ok(message))) => {
                    stored.insert(id);
                    heads.heads.insert(id, message.head(value.len()));
                    if let Some(key) = message.idempotency_key {
                        heads.keys.push((id, message.pushed.0, key));
                    }
                }
                _ => wrong.push(rows.key().to_vec()),
            }
            there = rows.next()?;
        }
    }
    *removed = wrong.len() as u64;
    change(root, w, Part::Messages, &mut |w, table| {
        for key in &wrong {
            table.remove(w, key)?;
        }
        Ok(())
    })?;
    Ok((stored, heads))
}

pub(crate) fn read_groups<R: PageRead>(root: &Tree, r: &R) -> Result<BTreeMap<String, Group>> {
    let mut rows = part(root, r, Part::Groups)?.cursor(r)?;
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut there = rows.first()?;
    while there {
        let group = Group::decode(&rows.value()?.bytes()?);
        if let (Ok(name), Ok(group)) = (std::str::from_utf8(rows.key()), group)
            && group.is_dropped == name.starts_with('\0')
            && groups.values().all(|other| other.number != group.number)
            && groups.len() < GROUPS_MAX
        {
            groups.insert(name.to_owned(), group);
        }
        there = rows.next()?;
    }
    Ok(groups)
}

/// The sets of open ids that can be decoded.
pub(crate) fn read_open<R: PageRead>(root: &Tree, r: &R) -> Result<BTreeMap<u32, RoaringTreemap>> {
    let table = part(root, r, Part::Open)?;
    let mut rows = table.cursor(r)?;
    let mut open: BTreeMap<u32, RoaringTreemap> = BTreeMap::new();
    let mut there = rows.first()?;
    while there {
        // The key of a row ends with the number of a container of the bitmap, which is 0 here.
        if let Some((key, [0, 0, 0, 0])) = rows.key().split_last_chunk::<4>()
            && let Some((group, base)) = keys::split_block(key)
            && let Ok(group) = group.try_into()
            && group != [u8::MAX; 4]
            && let Ok(members) = get(&table, r, key)
        {
            let ids = members.iter().map(|low| base | low);
            open.entry(u32::from_be_bytes(group))
                .or_default()
                .extend(ids);
        }
        there = rows.next()?;
    }
    Ok(open)
}

/// Assigns new names to groups whose rows are lost. A queue without groups gets the group without a name.
pub(crate) fn adopt(groups: &mut BTreeMap<String, Group>, open: &BTreeMap<u32, RoaringTreemap>) {
    for &number in open.keys() {
        if groups.values().all(|group| group.number != number) && groups.len() < GROUPS_MAX {
            let group = Group {
                number,
                // This makes the counters match the set, so that the set is not completed.
                ready: open[&number].len(),
                ..Group::default()
            };
            let name = match groups.is_empty() && open.len() == 1 {
                true => String::new(),
                false => format!("recovered {number}"),
            };
            groups.insert(name, group);
        }
    }
    let has_named = groups
        .keys()
        .any(|name| !name.is_empty() && !name.starts_with('\0'));
    if has_named {
        if let Some(group) = groups.remove("") {
            groups.insert(format!("recovered {}", group.number), group);
        }
    } else if !groups.contains_key("") {
        // The last number is never assigned. If the next number would be the last one, the lowest unused number is
        // taken.
        let next = groups.values().map(|group| group.number + 1).max();
        let is_free = |number: &u32| groups.values().all(|group| group.number != *number);
        let number = match next.unwrap_or(0) {
            u32::MAX => (0..u32::MAX).find(is_free).unwrap_or(0),
            next => next,
        };
        let group = Group {
            number,
            ..Group::default()
        };
        groups.insert(String::new(), group);
    }
}

/// Completes the sets of open ids; returns the number of ids that were added.
pub(crate) fn complete(
    groups: &BTreeMap<String, Group>,
    open: &mut BTreeMap<u32, RoaringTreemap>,
    stored: &RoaringTreemap,
) -> u64 {
    let mut added = 0;
    let mut needed = RoaringTreemap::new();
    open.retain(|number, _| groups.values().any(|group| group.number == *number));
    for group in groups.values() {
        let ids = open.entry(group.number).or_default();
        if ids.len() == group.open() || group.is_dropped {
            *ids &= stored;
        } else {
            added += (stored - &*ids).len();
            ids.clone_from(stored);
        }
        needed |= &*ids;
    }
    let unneeded = stored - needed;
    for group in groups.values().filter(|group| !group.is_dropped) {
        let ids = open.entry(group.number).or_default();
        added += (&unneeded - &*ids).len();
        *ids |= &unneeded;
    }
    added
}

pub(crate) fn read_leases<R: PageRead>(root: &Tree, r: &R) -> Result<BTreeMap<[u8; 12], Lease>> {
    let mut rows = part(root, r, Part::Leases)?.cursor(r)?;
    let mut leases = BTreeMap::new();
    let mut there = rows.first()?;
    while there {
        let lease = Lease::decode(&rows.value()?.bytes()?);
        // The row of a group counts its leases up to `IDS_MAX`.
        let is_number = keys::split_pair(rows.key()).is_some_and(|(_, number)| number < IDS_MAX);
        if let (Ok(key), Ok(lease), true) = (rows.key().try_into(), lease, is_number) {
            leases.insert(key, lease);
        }
        there = rows.next()?;
    }
    Ok(leases)
}

/// The marks of a group that can be kept. Each lane has one head afterwards.
pub(crate) fn repair_marks<R: PageRead>(
    root: &Tree,
    r: &R,
    group: u32,
    open: &RoaringTreemap,
    heads: &Heads,
    leases: &BTreeMap<[u8; 12], Lease>,
    forgotten: &mut u64,
) -> Result<BTreeMap<u64, Mark>> {
    let mut marks = BTreeMap::new();
    let prefix = keys::group_prefix(group);
    let mut rows = part(root, r, Part::Marks)?.cursor(r)?;
    let mut there = rows.seek_ge(&prefix)?;
    while there && rows.key().starts_with(&prefix) {
        let row = keys::split_pair(rows.key()).map(|(_, row)| row);
        let row = row.filter(|row| *row <= u64::MAX / IDS as u64);
        let block = mark::decode(&rows.value()?.bytes()?);
        match (row, block) {
            (Some(row), Ok(block)) => {
                for (place, mark) in block.iter().enumerate() {
                    let id = row * IDS as u64 + place as u64;
                    let (Some(mark), Some(head)) = (mark, heads.heads.get(&id)) else {
                        continue;
                    };
                    let lease = keys::pair(group, mark.lease);
                    let is_wrong = match mark.phase {
                        Phase::Leased => !leases.contains_key(&lease),
                        Phase::Dead => DeadReason::of(mark.lease).is_err(),
                        Phase::Waiting => head.lane.is_none(),
                        Phase::Ready | Phase::Delayed => false,
                    };
                    if !open.contains(id) {
                        continue;
                    }
                    if is_wrong || mark.priority != head.priority {
                        *forgotten += 1;
                    } else {
                        marks.insert(id, *mark);
                    }
                }
            }
            _ => *forgotten += 1,
        }
        there = rows.next()?;
    }
    repair_lanes(open, heads, &mut marks);
    Ok(marks)
}

/// Chooses a head for each lane: the leased message, otherwise the first message. All other messages wait.
fn repair_lanes(open: &RoaringTreemap, heads: &Heads, marks: &mut BTreeMap<u64, Mark>) {
    let mut chosen: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
    let lane_ids = || {
        let keyed = heads.heads.iter().filter(|(id, _)| open.contains(**id));
        keyed.filter_map(|(id, head)| Some((*id, head, head.lane?)))
    };
    for (id, _, lane) in lane_ids() {
        let phase = marks.get(&id).map(|mark| mark.phase);
        if phase == Some(Phase::Dead) {
            continue;
        }
        let is_leased = phase == Some(Phase::Leased);
        let head = chosen.entry(lane).or_insert((id, is_leased));
        if is_leased && !head.1 {
            *head = (id, true);
        }
    }
    for (id, head, lane) in lane_ids() {
        let mark = marks.get(&id).copied();
        let mark = mark.unwrap_or(Mark::ready(head.priority, 0));
        let is_head = chosen.get(&lane).is_some_and(|(chosen, _)| *chosen == id);
        match (mark.phase, is_head) {
            (Phase::Dead, _) | (Phase::Waiting, false) => {}
            (Phase::Waiting, true) => {
                // The next lease determines whether the delay is over.
                let mark = first_mark(head, mark.count, i64::MIN);
                marks.insert(id, mark);
            }
            (_, true) => {}
            (_, false) => {
                marks.insert(id, Mark::waiting(head.priority, mark.count));
            }
        }
    }
}

/// Writes the rows of idempotency keys again: the stored keys, and the keys in stored messages. Returns the next id.
pub(crate) fn repair_seen<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    heads: &Heads,
    mut next_id: u64,
) -> Result<u64> {
    let mut all: BTreeMap<Vec<u8>, (i64, u64)> = BTreeMap::new();
    for (id, time, key) in &heads.keys {
        all.insert(key.clone(), (*time, *id));
    }
    {
        let mut taken = BTreeSet::new();
        let mut rows = part(root, &*w, Part::Seen)?.cursor(&*w)?;
        let mut there = rows.first()?;
        while there {
            // Keys of stored messages are already known, and no two keys may have the same id.
            if let Ok((time, id)) = seen::decode(&rows.value()?.bytes()?)
                && id < IDS_MAX
                && !heads.heads.contains_key(&id)
                && taken.insert(id)
            {
                next_id = next_id.max(id + 1);
                let entry = all.entry(rows.key().to_vec()).or_insert((time, id));
                *entry = (*entry).max((time, id));
            }
            there = rows.next()?;
        }
    }
    for of in [Part::Seen, Part::SeenTimes] {
        clear(root, w, of)?;
    }
    change(root, w, Part::Seen, &mut |w, table| {
        for (key, (time, id)) in &all {
            table.insert(w, key, &seen::encode(*time, *id))?;
        }
        Ok(())
    })?;
    change(root, w, Part::SeenTimes, &mut |w, table| {
        for (key, (time, id)) in &all {
            table.insert(w, &keys::seen_time(*time, *id), key)?;
        }
        Ok(())
    })?;
    Ok(next_id)
}
