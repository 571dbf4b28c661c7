//! Containers are created, renamed, dropped, restored, maintained and thinned.

use super::document::NAMES;
use super::{One, allowed};
use crate::model::messages::containers::{left_of, options};
use tidalite::{Result, Timestamp};

/// Number of messages that are thinned in one call: all of them.
const THINNED_MAX: u64 = 10_000;

impl One<'_, '_> {
    pub(super) fn manage(&mut self) -> Result<()> {
        let now = self.now;
        let to = *self.rng.pick(&NAMES);
        let own = (!self.rng.one_in(4)).then(|| self.rng.index(options::OWN));
        match self.rng.below(10) {
            0 | 1 => {
                let own = Some(self.rng.index(options::OWN));
                let created = self.table.create_container(to, options::own(own).as_ref());
                let known = match self.all.live.contains_key(to) {
                    true => None,
                    false => Some(self.all.create(to, own, now)),
                };
                assert_eq!(allowed(created)?, known, "creation of {to}");
                return Ok(());
            }
            2 | 3 => {
                let dropped = self.all.dropped.last();
                let name = dropped.filter(|_| !self.rng.one_in(3));
                let name = name.map_or(to, |dropped| &dropped.name).to_owned();
                let restored = allowed(self.table.restore_container(&name, to))?;
                let known = self.all.restore_container(&name, to, now);
                assert_eq!(restored, known, "{name} is restored as {to}");
                self.all.reduce_to(&left_of(&self.table)?, now);
                return Ok(());
            }
            _ => {}
        }
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        match self.rng.below(8) {
            0 | 1 => {
                let dropped = self.table.drop_container(&name)?;
                let messages = self.all.live[&name].messages.len() as u64;
                let free_at = self.all.drop_container(&name, now).map(Timestamp);
                assert_eq!((dropped.messages, dropped.free_at), (messages, free_at));
            }
            2 => {
                let renamed = allowed(self.table.rename_container(&name, to))?;
                let is_new = !self.all.live.contains_key(to);
                assert_eq!(renamed.is_some(), is_new, "{name} becomes {to}");
                if is_new && let Some(container) = self.all.live.remove(&name) {
                    self.all.live.insert(to.to_owned(), container);
                }
            }
            3..=5 => {
                self.table.set_options(&name, options::own(own).as_ref())?;
                self.all.get_mut(&name).own = own;
            }
            _ => {
                let rules = self.rng.index(options::THINNINGS + 1);
                let rules = Some(rules).filter(|rules| *rules < options::THINNINGS);
                let thinning = rules.map(options::thinning);
                self.table.set_thinning(&name, thinning.as_ref())?;
                self.all.set_thinning(&name, rules);
            }
        }
        Ok(())
    }

    pub(super) fn thin(&mut self) -> Result<()> {
        let thinned = self.table.thin(THINNED_MAX)?;
        let before = self.messages();
        self.all.thin(self.now);
        let removed = before - self.messages();
        assert_eq!((thinned.more, thinned.removed), (false, removed));
        Ok(())
    }

    fn messages(&self) -> u64 {
        let live = self.all.live.values();
        live.map(|container| container.messages.len() as u64).sum()
    }

    /// Maintains the table in steps, to the end or not. The rows that a step removes must be due.
    pub(super) fn maintain(&mut self) -> Result<()> {
        let steps = *self.rng.pick(&[1, 2, usize::MAX]);
        self.maintain_steps(steps)
    }

    pub(super) fn maintain_steps(&mut self, steps: usize) -> Result<()> {
        let budget = *self.rng.pick(&[1, 3, 10, 1_000]);
        for _ in 0..steps {
            let done = self.table.maintain(budget)?;
            let left = left_of(&self.table)?;
            self.all.reduce_to(&left, self.now);
            assert_eq!(self.all.left(), left, "only what is due is removed");
            if !done.more {
                self.all.maintain(self.now);
                assert_eq!(self.all.left(), left, "all that is due is removed");
                break;
            }
        }
        Ok(())
    }
}
