//! Checks the rules of the format for a queue.

use crate::queues::counters::Group;
use crate::queues::derive::{DERIVED_SETS, Derived, OnProblem, derive};
use crate::queues::edit::decode_head;
use crate::queues::keys;
use crate::queues::lease_row::Lease;
use crate::queues::parts::{Part, part};
use crate::queues::read::QueueReader;
use crate::queues::seen;
use crate::queues::sets::each_set;
use crate::queues::writer::is_reserved;
use std::collections::BTreeMap;
use tidalite_pager::{PageRead, Result};

impl<R: PageRead> QueueReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, a row that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole queue. Needs a few bits of memory for each message and group.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let derived = derive(&self.root, &self.r, problem)?;
        for part in DERIVED_SETS {
            self.check_sets(part, &derived, problem)?;
        }
        self.check_heads(&derived, problem)?;
        self.check_leases(&derived, problem)?;
        self.check_counters(&derived, problem);
        self.check_seen(problem)
    }

    fn check_sets(&self, of: Part, derived: &Derived, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut expected = derived.sets.iter().filter(|((part, _), _)| *part == of);
        let mut next = expected.next();
        each_set(
            &self.root,
            &self.r,
            of,
            &[],
            &[],
            &mut |prefix, base, members| {
                let block = &(base >> keys::BLOCK_BITS).to_be_bytes()[2..];
                let key = [prefix, block].concat();
                while let Some(((_, missing), _)) = next.filter(|((_, other), _)| *other < key) {
                    problem(format!("{of:?}: no set {}", missing.escape_ascii()));
                    next = expected.next();
                }
                match next.filter(|((_, other), _)| *other == key) {
                    Some((_, ids)) => {
                        if !members.iter().eq(ids.iter().map(u64::from)) {
                            problem(format!(
                                "{of:?}: wrong ids in the set {}",
                                key.escape_ascii()
                            ));
                        }
                        next = expected.next();
                    }
                    None => problem(format!("{of:?}: a set {} too many", key.escape_ascii())),
                }
                Ok(true)
            },
        )?;
        while let Some(((_, missing), _)) = next {
            problem(format!("{of:?}: no set {}", missing.escape_ascii()));
            next = expected.next();
        }
        Ok(())
    }

    fn check_heads(&self, derived: &Derived, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut rows = part(&self.root, &self.r, Part::Heads)?.cursor(&self.r)?;
        let mut count = 0;
        let mut there = rows.first()?;
        while there {
            let id = decode_head(&rows.value()?.bytes()?)?;
            if derived.heads.get(rows.key()) != Some(&id) {
                let lane = rows.key().escape_ascii();
                problem(format!("lane {lane}: message {id} is not its head"));
            }
            count += 1;
            there = rows.next()?;
        }
        if count != derived.heads.len() {
            let lanes = derived.heads.len();
            problem(format!("{count} heads of lanes, {lanes} lanes"));
        }
        Ok(())
    }

    fn check_leases(&self, derived: &Derived, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut rows = part(&self.root, &self.r, Part::Leases)?.cursor(&self.r)?;
        let mut count = 0;
        let mut there = rows.first()?;
        let next: BTreeMap<u32, u64> = self
            .groups
            .values()
            .map(|group| (group.number, group.next_lease))
            .collect();
        while there {
            let lease = Lease::decode(&rows.value()?.bytes()?)?;
            let found = derived.leased.get(rows.key()).copied().unwrap_or(0);
            let name = rows.key().escape_ascii();
            if found != lease.left {
                let left = lease.left;
                problem(format!("lease {name}: {found} messages, {left} are noted"));
            }
            if keys::split_pair(rows.key())
                .is_none_or(|(group, number)| next.get(&group).is_none_or(|next| number >= *next))
            {
                problem(format!("lease {name}: its number is not taken yet"));
            }
            count += 1;
            there = rows.next()?;
        }
        if count != derived.leased.len() {
            let leases = derived.leased.len();
            problem(format!("{count} leases, messages of {leases} are leased"));
        }
        Ok(())
    }

    fn check_counters(&self, derived: &Derived, problem: &mut OnProblem<'_>) {
        let state = &self.state;
        if state.bytes != derived.bytes {
            let (found, noted) = (derived.bytes, state.bytes);
            problem(format!("messages of {found} bytes, {noted} are noted"));
        }
        if derived.last_id >= state.next_id {
            let (last, next) = (derived.last_id, state.next_id);
            problem(format!("message {last}, but the next id is {next}"));
        }
        for (name, group) in &self.groups {
            let name = name.escape_default();
            let found = derived.counts.get(&group.number).copied();
            let found = found.unwrap_or_default();
            let counts = |of: &Group| [of.ready, of.delayed, of.leased, of.waiting, of.dead];
            if counts(&found) != counts(group) {
                let (found, noted) = (counts(&found), counts(group));
                problem(format!("group {name}: counts {found:?}, noted {noted:?}"));
            }
            if group.number >= state.next_group {
                problem(format!("group {name}: its number is not taken yet"));
            }
        }
        let mut numbers: Vec<u32> = self.groups.values().map(|group| group.number).collect();
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            problem("two groups with one number".into());
        }
        for number in derived.counts.keys() {
            if numbers.binary_search(number).is_err() {
                problem(format!("messages of group {number}, which does not exist"));
            }
        }
        let hidden = |(name, group): (&String, &Group)| group.is_dropped != name.starts_with('\0');
        if self.groups.iter().any(hidden) {
            problem("a dropped group with a name, or a group that hides".into());
        }
        let named = self.groups.keys().any(|name| !is_reserved(name));
        if named == self.groups.contains_key("") {
            problem("a group without a name beside others, or no group".into());
        }
    }

    fn check_seen(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let times = part(&self.root, &self.r, Part::SeenTimes)?;
        let seen = part(&self.root, &self.r, Part::Seen)?;
        let mut rows = seen.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (time, id) = seen::decode(&rows.value()?.bytes()?)?;
            let back = times.get(&self.r, &keys::seen_time(time, id))?;
            let is_same = match &back {
                Some(key) => *key.bytes()? == *rows.key(),
                None => false,
            };
            if !is_same || id >= self.state.next_id {
                let key = rows.key().escape_ascii();
                problem(format!(
                    "idempotency key {key}: its time or its id is wrong"
                ));
            }
            there = rows.next()?;
        }
        if seen.len() != times.len() {
            let (keys, times) = (seen.len(), times.len());
            problem(format!("{keys} idempotency keys, {times} times"));
        }
        Ok(())
    }
}
