//! Reads the entries of a run's directory around its damage.
//!
//! An unreadable page of a directory hides only the blocks that it lists; reading continues with the blocks before
//! and after it. The affected rows are those between the last block before the damage and the first block after it.
//! The keys of these blocks are tighter bounds than the separators of the directory.

use crate::key::Key;
use crate::run::descriptor::Run;
use crate::run::directory::{END_OF_BLOCKS, Entry, entries_at_or_behind, entries_from};
use crate::visit::damage::{DeltaDamage, Hit};
use tidalite_base::Corrupt;
use tidalite_kv::Damage;
use tidalite_pager::{Error, PageRead, Result};

/// Entries read at once.
const ENTRIES: usize = 64;

/// Position at which reading continues.
enum Start {
    /// The block that holds this key, or the first block after it.
    At(Key),
    /// The first block at or after these bytes, where a damaged page ends.
    Behind(Vec<u8>),
}

/// Iterator over the entries of a damaged directory.
pub(crate) struct Around<'a> {
    run: &'a Run,
    /// Rows up to this key are hidden, because a compaction has consumed them.
    after: Option<Key>,
    /// Damage of the directory's pages, and for each whether it was reported with the rows that it hides.
    broken: Vec<(Damage, bool)>,
    next: Option<Start>,
    /// The first key that no entry so far has reached.
    reached: Key,
    /// First key of the block of the last entry read so far.
    begun: Key,
    /// Start of an open gap (damage not yet followed by an entry), and the error found there.
    gap: Option<(Key, Corrupt)>,
    /// Position at which reading last continued after damage; it only increases.
    resumed: Vec<u8>,
}

impl<'a> Around<'a> {
    /// `broken` is the result of a check of the directory's pages.
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

    /// Puts the next entries into `out`, and reports the rows in gaps before them. Returns false at the end.
    pub(crate) fn more<R: PageRead>(
        &mut self,
        r: &R,
        out: &mut Vec<Entry>,
        report: &mut dyn FnMut(DeltaDamage),
    ) -> Result<bool> {
        out.clear();
        let tree = &self.run.directory;
        let read = match self.next.take() {
            Some(Start::At(key)) => entries_from(tree, r, &key, ENTRIES, out),
            Some(Start::Behind(bytes)) => entries_at_or_behind(tree, r, &bytes, ENTRIES, out),
            None => {
                self.end(report);
                return Ok(false);
            }
        };
        if let (Some(first), Some(last)) = (out.first(), out.last()) {
            self.close_gap(first.first.before(), report);
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

    /// The end of the first damaged page that ends after `reached`.
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

    /// Reports the gap before an entry: each damage with keys in the gap, together with all rows of the gap.
    fn close_gap(&mut self, last: Key, report: &mut dyn FnMut(DeltaDamage)) {
        let Some((first, met)) = self.gap.take() else {
            return;
        };
        let last = last.max(first);
        let hit = Hit::of(self.run, self.after, first, last);
        let (from, to) = (first.encode(), last.encode());
        let mut named = false;
        for (damage, reported) in &mut self.broken {
            let begins = damage.from.as_slice() <= &to[..];
            let ends = damage.to.as_deref().is_none_or(|end| end > &from[..]);
            if begins && ends && !*reported {
                (*reported, named) = (true, true);
                report(hit.with(damage.corrupt.clone()));
            }
        }
        if !named {
            report(hit.with(met));
        }
    }

    /// Ends the walk. After the last block there are only extents, and damage there hides no rows. Other damage not
    /// yet reported may affect the whole run.
    fn end(&mut self, report: &mut dyn FnMut(DeltaDamage)) {
        let (begun, blocks_end) = (self.begun.encode(), END_OF_BLOCKS.encode());
        let is_at_end = self.reached > self.run.last;
        let behind = |damage: &Damage| {
            let from = damage.from.as_slice();
            from >= &blocks_end[..] || is_at_end && from > &begun[..]
        };
        let hides = |(damage, reported): &(Damage, bool)| !reported && !behind(damage);
        if !is_at_end && self.broken.iter().any(hides) {
            self.close_gap(self.run.last, report);
        }
        for (damage, reported) in &mut self.broken {
            if std::mem::replace(reported, true) {
                continue;
            }
            let hit = match behind(damage) {
                true => Hit::Nothing,
                false => Hit::of(self.run, self.after, self.run.first, self.run.last),
            };
            report(hit.with(damage.corrupt.clone()));
        }
    }
}
