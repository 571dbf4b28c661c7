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

/// Number of directory entries that are read at once.
const ENTRIES: usize = 64;

/// Position at which reading the directory continues.
enum Start {
    /// Continue at the block that contains this key, or at the first block after it.
    At(Key),
    /// Continue at the first block whose encoded key is at or after these bytes, where a damaged page ends.
    Behind(Vec<u8>),
}

/// Reads the entries of a directory that may have damaged pages.
pub(crate) struct Around<'a> {
    run: &'a Run,
    /// Watermark: rows up to this key are hidden, because a compaction has consumed them.
    after: Option<Key>,
    /// Damaged pages of the directory, each with a flag that is set once the page and the rows that it hides are
    /// reported.
    broken: Vec<(Damage, bool)>,
    next: Option<Start>,
    /// The smallest key that is greater than all keys covered by the entries so far.
    reached: Key,
    /// First key of the block of the last entry read so far.
    begun: Key,
    /// First key of the current gap (a damaged part of the directory that is not yet followed by an entry), and the
    /// error that reading it caused.
    gap: Option<(Key, Corrupt)>,
    /// Encoded key at which reading last continued after damage. The key only increases, so the walk ends.
    resumed: Vec<u8>,
}

impl<'a> Around<'a> {
    /// Creates a reader; `broken` lists the damaged pages of the directory, as a check has found them.
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

    /// Reads the next entries into `out`, and reports the rows that damaged pages before these entries hide. Returns
    /// false at the end of the directory.
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

    /// Returns the end of the first damaged page that ends after `reached`, as the position at which reading
    /// continues.
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

    /// Reports the gap before an entry: each damaged page with keys in the gap, together with all rows that the gap
    /// may hide.
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

    /// Reports the remaining damage at the end of the directory. Entries after the last block describe only extents,
    /// so damage there hides no rows. Other damage that is not yet reported may affect the whole run.
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
