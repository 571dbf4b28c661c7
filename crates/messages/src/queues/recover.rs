//! Recovery of a queue that has lost rows or parts.
//!
//! 1. Messages that cannot be decoded are removed.
//! 2. The sets of open ids are completed: a group whose counters do not match its set gets all stored messages, and
//!    messages that are not open in any group become open in all groups.
//! 3. Marks that cannot be decoded, or contradict other rows, are dropped: their messages become ready.
//! 4. All rows that are derived from these are computed and written again.
//!
//! So every message that is still stored is delivered (again) at least once to each group that may need it. Only its
//! number of deliveries, its delay or its lease may be lost.

use crate::queues::counters::State;
use crate::queues::derive::{DERIVED_SETS, Derived, derive};
use crate::queues::keys;
use crate::queues::lease_row::Lease;
use crate::queues::mark::{Mark, Marks};
use crate::queues::options::QueueOptions;
use crate::queues::parts::{Part, change};
use crate::queues::repair::{
    adopt, clear, complete, read_groups, read_leases, read_open, repair_marks, repair_messages,
    repair_seen,
};
use crate::queues::sets::SetChanges;
use std::collections::BTreeMap;
use tidalite_index::RoaringTreemap;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Refusal, Result};

/// Number of changes of sets that are collected before they are stored.
const CHANGES_STEP: usize = 1 << 16;

/// Numbers of messages and marks that a recovery found or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRecovery {
    /// Number of stored messages.
    pub messages: u64,
    /// Number of messages that could not be decoded and were removed.
    pub removed: u64,
    /// Number of messages that became open in a group that may have acknowledged them.
    pub reopened: u64,
    /// Number of marks that were dropped, so that their messages became ready.
    pub forgotten: u64,
}

/// Repairs a queue whose pages are readable: removes rows that cannot be decoded, and derives all other rows. `options`
/// are used if the queue has lost its own.
///
/// # Errors
/// `InvalidInput` if the options are lost and none are given; `DiskFull`, `Io`; a damaged page.
///
/// # Cost
/// Reads the whole queue, and writes everything except the messages. Needs about 100 bytes of memory for each message
/// and for each mark.
pub fn recover_queue<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    options: Option<QueueOptions>,
) -> Result<QueueRecovery> {
    let mut done = QueueRecovery::default();
    let (stored, heads) = repair_messages(root, w, &mut done.removed)?;
    let options =
        match value_of(root, &*w, Part::Options)?.map(|bytes| QueueOptions::decode(&bytes)) {
            Some(Ok(options)) => options,
            _ => options.ok_or_else(|| {
                Error::refused(
                    Refusal::InvalidInput,
                    "a queue whose options are lost",
                    "the options, to recover the queue with them",
                )
            })?,
        };
    let state = value_of(root, &*w, Part::State)?.map(|bytes| State::decode(&bytes));
    let mut state = match state {
        Some(Ok(state)) => state,
        _ => State::default(),
    };
    let mut groups = read_groups(root, &*w)?;
    let mut open = read_open(root, &*w)?;
    adopt(&mut groups, &open);
    done.reopened = complete(&groups, &mut open, &stored);
    let leases = read_leases(root, &*w)?;
    let mut marks = Vec::new();
    for (number, ids) in &open {
        let kept = repair_marks(
            root,
            &*w,
            *number,
            ids,
            &heads,
            &leases,
            &mut done.forgotten,
        )?;
        marks.push((*number, kept));
    }
    state.next_id = state.next_id.max(1).max(stored.max().unwrap_or(0) + 1);
    state.next_id = repair_seen(root, w, &heads, state.next_id)?;
    write_primary(root, w, &open, &marks)?;
    let derived = derive(root, &*w, &mut |_| ())?;
    write_sets(root, w, &derived)?;
    clear(root, w, Part::Heads)?;
    change(root, w, Part::Heads, &mut |w, table| {
        for (lane, id) in &derived.heads {
            table.insert(w, lane, &id.to_be_bytes())?;
        }
        Ok(())
    })?;
    clear(root, w, Part::Leases)?;
    change(root, w, Part::Leases, &mut |w, table| {
        for (key, left) in &derived.leased {
            if let Some(lease) = leases.get(key) {
                let lease = Lease {
                    left: *left,
                    ..lease.clone()
                };
                table.insert(w, key, &lease.encode())?;
            }
        }
        Ok(())
    })?;
    clear(root, w, Part::Groups)?;
    change(root, w, Part::Groups, &mut |w, table| {
        for (name, group) in &mut groups {
            let counts = derived.counts.get(&group.number).copied();
            let counts = counts.unwrap_or_default();
            group.ready = counts.ready;
            group.delayed = counts.delayed;
            group.leased = counts.leased;
            group.waiting = counts.waiting;
            group.dead = counts.dead;
            for key in leases.keys() {
                if let Some((of, number)) = keys::split_pair(key)
                    && of == group.number
                {
                    group.next_lease = group.next_lease.max(number.saturating_add(1));
                }
            }
            state.next_group = state.next_group.max(group.number.saturating_add(1));
            table.insert(w, name.as_bytes(), &group.encode())?;
        }
        Ok(())
    })?;
    state.bytes = derived.bytes;
    done.messages = derived.messages;
    root.insert(w, &Part::Options.key(), &options.encode())?;
    root.insert(w, &Part::State.key(), &state.encode())?;
    Ok(done)
}

fn value_of<R: PageRead>(root: &Tree, r: &R, part: Part) -> Result<Option<Vec<u8>>> {
    let value = root.get(r, &part.key())?;
    value.map(|value| value.to_vec()).transpose()
}

fn write_primary<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    open: &BTreeMap<u32, RoaringTreemap>,
    marks: &[(u32, BTreeMap<u64, Mark>)],
) -> Result<()> {
    for of in [Part::Open, Part::Marks] {
        clear(root, w, of)?;
    }
    for (number, ids) in open {
        let mut changes = SetChanges::default();
        for (count, id) in ids.iter().enumerate() {
            changes.add(Part::Open, &keys::by_group(*number, id), id);
            if (count + 1).is_multiple_of(CHANGES_STEP) {
                changes.store(root, w)?;
            }
        }
        changes.store(root, w)?;
    }
    for (number, kept) in marks {
        let mut marks = Marks::new(*number);
        for (id, mark) in kept {
            marks.set(root, &*w, *id, Some(*mark))?;
        }
        marks.store(root, w)?;
    }
    Ok(())
}

fn write_sets<W: PageWrite>(root: &mut Tree, w: &mut W, derived: &Derived) -> Result<()> {
    for of in DERIVED_SETS {
        clear(root, w, of)?;
    }
    let mut changes = SetChanges::default();
    for ((of, key), members) in &derived.sets {
        for low in members {
            changes.add(*of, key, low.into());
        }
        if changes.len() >= CHANGES_STEP {
            changes.store(root, w)?;
        }
    }
    changes.store(root, w)
}
