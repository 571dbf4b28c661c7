//! The rows that are derived from the primary rows: sets of ready, due, waiting, dead and expiring ids, heads of lanes,
//! counters. A check compares them with the stored rows; a recovery writes them.

use crate::queues::counters::Group;
use crate::queues::due::DeadReason;
use crate::queues::keys::{self, BLOCK_BITS};
use crate::queues::mark::{self, Block, IDS, Mark, Phase};
use crate::queues::message::{self, Head};
use crate::queues::parts::{Part, damaged, part};
use crate::queues::sets::{each_set, ids};
use crate::queues::store::id_of;
use std::collections::BTreeMap;
use tidalite_index::{RoaringBitmap, RoaringTreemap};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Callback that receives a problem as text.
pub(crate) type OnProblem<'f> = dyn FnMut(String) + 'f;

/// The parts that consist of sets and are derived from the primary rows.
pub(crate) const DERIVED_SETS: [Part; 5] = [
    Part::Ready,
    Part::Due,
    Part::Waiting,
    Part::Dead,
    Part::Expiry,
];

/// Rows that are derived from the primary rows.
#[derive(Default)]
pub(crate) struct Derived {
    /// Sets by part and key. Each id is stored relative to the least id of its block.
    pub(crate) sets: BTreeMap<(Part, Vec<u8>), RoaringBitmap>,
    pub(crate) heads: BTreeMap<[u8; 12], u64>,
    /// Counters of states, by the number of the group.
    pub(crate) counts: BTreeMap<u32, Group>,
    /// Number of messages of each lease.
    pub(crate) leased: BTreeMap<[u8; 12], u32>,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) last_id: u64,
}

impl Derived {
    fn add(&mut self, part: Part, key: Vec<u8>, id: u64) {
        let low = (id & ((1 << BLOCK_BITS) - 1)) as u32;
        self.sets.entry((part, key)).or_default().insert(low);
    }

    /// Adds an open id of a group.
    fn open(&mut self, group: u32, id: u64, head: &Head, mark: &Mark, problem: &mut OnProblem<'_>) {
        let mut report = |text: &str| problem(format!("group {group}: message {id} {text}"));
        if mark.priority != head.priority {
            report("has another priority in its mark");
        }
        let lane = head.lane.map(|lane| keys::pair(group, lane));
        let counts = self.counts.entry(group).or_default();
        match mark.phase {
            Phase::Ready => {
                counts.ready += 1;
                self.add(Part::Ready, keys::ready(group, mark.priority, id), id);
            }
            Phase::Leased | Phase::Delayed => {
                if mark.phase == Phase::Leased {
                    counts.leased += 1;
                    *self
                        .leased
                        .entry(keys::pair(group, mark.lease))
                        .or_default() += 1;
                } else {
                    counts.delayed += 1;
                }
                let key = keys::due(group, mark.time, mark.priority, id);
                self.add(Part::Due, key, id);
            }
            Phase::Waiting => {
                counts.waiting += 1;
                match head.lane {
                    Some(lane) => self.add(Part::Waiting, keys::waiting(group, lane, id), id),
                    None => report("waits, but has no ordering key"),
                }
            }
            Phase::Dead => {
                counts.dead += 1;
                if DeadReason::of(mark.lease).is_err() {
                    report("is dead for an unknown reason");
                }
                self.add(Part::Dead, keys::by_group(group, id), id);
            }
        }
        if let (Some(lane), Phase::Ready | Phase::Leased | Phase::Delayed) = (lane, mark.phase)
            && let Some(other) = self.heads.insert(lane, id)
        {
            let text = format!("and message {other} of its lane are both under way");
            problem(format!("group {group}: message {id} {text}"));
        }
    }
}

/// The sets of open ids by the number of the group.
pub(crate) fn read_open<R: PageRead>(root: &Tree, r: &R) -> Result<BTreeMap<u32, RoaringTreemap>> {
    let mut open: BTreeMap<u32, RoaringTreemap> = BTreeMap::new();
    each_set(root, r, Part::Open, &[], &[], &mut |key, base, members| {
        let Ok(group) = key.try_into() else {
            return Err(damaged("open ids", key.escape_ascii(), "a group"));
        };
        open.entry(u32::from_be_bytes(group))
            .or_default()
            .extend(ids(base, members));
        Ok(true)
    })?;
    Ok(open)
}

/// Reads the rows of marks of a group in the order of their ids, and holds the row that was read last.
struct MarkRows {
    group: u32,
    row: Option<(u64, Option<Box<Block>>)>,
    found: u64,
}

impl MarkRows {
    fn get<R: PageRead>(&mut self, root: &Tree, r: &R, id: u64) -> Result<Option<Mark>> {
        let row = id / IDS as u64;
        if self.row.as_ref().is_none_or(|(last, _)| *last != row) {
            let key = keys::pair(self.group, row);
            let block = match part(root, r, Part::Marks)?.get(r, &key)? {
                Some(value) => Some(mark::decode(&value.bytes()?)?),
                None => None,
            };
            self.row = Some((row, block));
        }
        let block = self.row.as_ref().and_then(|(_, block)| block.as_deref());
        let mark = block.and_then(|block| block[(id % IDS as u64) as usize]);
        self.found += u64::from(mark.is_some());
        Ok(mark)
    }
}

/// Derives all rows, and reports primary rows that contradict each other.
pub(crate) fn derive<R: PageRead>(
    root: &Tree,
    r: &R,
    problem: &mut OnProblem<'_>,
) -> Result<Derived> {
    let mut derived = Derived::default();
    let open = read_open(root, r)?;
    let mut marks: Vec<MarkRows> = open
        .keys()
        .map(|&group| MarkRows {
            group,
            row: None,
            found: 0,
        })
        .collect();
    let mut stored = RoaringTreemap::new();
    let mut rows = part(root, r, Part::Messages)?.cursor(r)?;
    let mut there = rows.first()?;
    while there {
        let id = id_of(rows.key())?;
        let head = message::head_of(id, &rows.value()?)?;
        stored.insert(id);
        derived.bytes += head.bytes;
        derived.messages += 1;
        derived.last_id = id;
        if let Some(expires) = head.expires {
            derived.add(Part::Expiry, keys::expiry(expires, id), id);
        }
        let mut is_needed = false;
        for ((group, open), marks) in open.iter().zip(&mut marks) {
            if open.contains(id) {
                is_needed = true;
                let mark = marks.get(root, r, id)?;
                let mark = mark.unwrap_or(Mark::ready(head.priority, 0));
                derived.open(*group, id, &head, &mark, problem);
            }
        }
        if !is_needed {
            problem(format!("message {id} is not open in any group"));
        }
        there = rows.next()?;
    }
    for (group, open) in &open {
        if let Some(id) = (open - &stored).min() {
            problem(format!(
                "group {group}: message {id} is open, but not stored"
            ));
        }
    }
    let used: u64 = marks.iter().map(|marks| marks.found).sum();
    let all = count_marks(root, r)?;
    if used != all {
        problem(format!("{used} marks of open messages, {all} in all"));
    }
    for (part, key) in derived.sets.keys() {
        if *part == Part::Waiting && !derived.heads.contains_key(&key[..12]) {
            problem(format!(
                "lane {}: messages wait, but none is under way",
                key[..12].escape_ascii()
            ));
        }
    }
    Ok(derived)
}

fn count_marks<R: PageRead>(root: &Tree, r: &R) -> Result<u64> {
    let mut rows = part(root, r, Part::Marks)?.cursor(r)?;
    let mut count = 0;
    let mut there = rows.first()?;
    while there {
        if keys::split_pair(rows.key()).is_none() {
            return Err(damaged(
                "marks",
                rows.key().escape_ascii(),
                "a group, and a row",
            ));
        }
        let block = mark::decode(&rows.value()?.bytes()?)?;
        count += block.iter().flatten().count() as u64;
        there = rows.next()?;
    }
    Ok(count)
}
