//! The entries of a run's directory, read around its damage.
//!
//! A page of a directory that cannot be read hides the blocks that it names, and no others: those before and behind it are
//! read on. What is hit are the rows between the last block before the damage and the first one behind it, which the
//! blocks' own keys say more tightly than the separators of the directory.

use crate::key::Key;
use crate::run::descriptor::Run;
use crate::run::directory::{END_OF_BLOCKS, Entry, entries_at_or_behind, entries_from};
use crate::visit::damage::{FrontDamage, Hit};
use tidalite_base::Corrupt;
use tidalite_kv::Damage;
use tidalite_pager::{Error, PageRead, Result};

/// Entries read at once.
const ENTRIES: usize = 64;

/// Where the entries go on.
enum Start {
    /// With the block that holds this key, or the first one behind it.
    At(Key),
    /// With the first block at or behind these bytes, where a damaged page ends.
    Behind(Vec<u8>),
}

/// A walk over the entries.
pub(crate) struct Around<'a> {
    run: &'a Run,
    /// Rows up to this are not seen.
    after: Option<Key>,
    /// The damage of the directory's pages, and whether it was told with the rows that it hides.
    broken: Vec<(Damage, bool)>,
    next: Option<Start>,
    /// The first key that no entry so far has reached.
    reached: Key,
    /// Where the block of the last entry so far begins.
    begun: Key,
    /// Where damage was met that no entry has ended yet, and what reading met.
    gap: Option<(Key, Corrupt)>,
    /// Where the walk went on behind damage last: it only goes forward.
    resumed: Vec<u8>,
}

impl<'a> Around<'a> {
    /// `broken` is what a check of the directory's pages found.
    pub(crate) fn new(run: &'a Run, after: Option<Key>, broken: Vec<Damage>) -> Self {
        Self {
            run,
            after,
            broken: broken.into_iter().map(|damage| (damage, false)).collect(),
            next: Some(Start::At(Key::MIN)),
            reached: run.first,
            begun: Key::MIN,
            gap: None,
            resumed: Vec::new(),
        }
    }

    /// Puts the next entries into `out`, and tells of the rows that lie in gaps before them; false at the end.
    pub(crate) fn more<R: PageRead>(
        &mut self,
        r: &R,
        out: &mut Vec<Entry>,
        tell: &mut dyn FnMut(FrontDamage),
    ) -> Result<bool> {
        out.clear();
        let tree = &self.run.directory;
        let read = match self.next.take() {
            Some(Start::At(key)) => entries_from(tree, r, &key, ENTRIES, out),
            Some(Start::Behind(bytes)) => entries_at_or_behind(tree, r, &bytes, ENTRIES, out),
            None => {
                self.end(tell);
                return Ok(false);
            }
        };
        if let (Some(first), Some(last)) = (out.first(), out.last()) {
            self.close_gap(first.first.before(), tell);
            let after = last.last.next();
            self.reached = after.unwrap_or(last.last);
            self.begun = last.first;
            self.next = after.map(Start::At);
        }
        match read {
            Err(Error::Corrupt(corrupt)) if !self.broken.is_empty() => {
                self.gap.get_or_insert((self.reached, corrupt));
                self.next = self.behind_damage();
                Ok(true)
            }
            read => read.map(|()| true),
        }
    }

    /// Where the first damaged page that ends behind what was reached ends.
    fn behind_damage(&mut self) -> Option<Start> {
        let reached = self.reached.encode();
        let ends = self
            .broken
            .iter()
            .filter_map(|(damage, _)| damage.to.as_ref());
        let end = ends
            .filter(|end| end.as_slice() > &reached[..] && **end > self.resumed)
            .min()?;
        self.resumed.clone_from(end);
        Some(Start::Behind(end.clone()))
    }

    /// Tells of the gap before an entry: the damage whose keys lie there, with all its rows.
    fn close_gap(&mut self, last: Key, tell: &mut dyn FnMut(FrontDamage)) {
        let Some((first, met)) = self.gap.take() else {
            return;
        };
        let last = last.max(first);
        let hit = Hit::of(self.run, self.after, first, last);
        let (from, to) = (first.encode(), last.encode());
        let mut named = false;
        for (damage, told) in &mut self.broken {
            let begins = damage.from.as_slice() <= &to[..];
            let ends = damage.to.as_deref().is_none_or(|end| end > &from[..]);
            if begins && ends && !*told {
                (*told, named) = (true, true);
                tell(hit.with(damage.corrupt.clone()));
            }
        }
        if !named {
            tell(hit.with(met));
        }
    }

    /// Behind the last block there are extents alone, and damage there hides no rows. Other damage that was not met on the way
    /// may be of the whole run.
    fn end(&mut self, tell: &mut dyn FnMut(FrontDamage)) {
        let (begun, blocks_end) = (self.begun.encode(), END_OF_BLOCKS.encode());
        let is_at_end = self.reached > self.run.last;
        let behind = |damage: &Damage| {
            let from = damage.from.as_slice();
            from >= &blocks_end[..] || is_at_end && from > &begun[..]
        };
        let hides = |(damage, told): &(Damage, bool)| !told && !behind(damage);
        if !is_at_end && self.broken.iter().any(hides) {
            self.close_gap(self.run.last, tell);
        }
        for (damage, told) in &mut self.broken {
            if std::mem::replace(told, true) {
                continue;
            }
            let hit = match behind(damage) {
                true => Hit::Nothing,
                false => Hit::of(self.run, self.after, self.run.first, self.run.last),
            };
            tell(hit.with(damage.corrupt.clone()));
        }
    }
}
