//! Compares the entries of a table in two versions, including nested tables.

use super::change::{Change, Tell};
use crate::catalog::table_roots::expect_first_time;
use crate::types::error::Result;
use std::cmp::Ordering;
use std::collections::HashSet;
use tidalite_base::Corrupt;
use tidalite_kv::{Cursor, DEPTH_MAX, TableReader, Tree, Value};
use tidalite_pager::Snapshot;

/// Two versions of a table, and the state of their comparison.
pub(super) struct Sides<'a, 'f> {
    pub(super) new: &'a Snapshot,
    pub(super) old: &'a Snapshot,
    pub(super) table: &'a str,
    /// Keys that lead from the outermost table to the nested table being compared.
    pub(super) path: Vec<Vec<u8>>,
    /// Whether this is a table of sets, whose sets are reported value by value and not as nested tables.
    pub(super) multi: bool,
    /// Roots of the nested tables that were compared, in the new version: in a hostile file, many paths may lead to one
    /// table.
    pub(super) met: HashSet<u64>,
    pub(super) f: &'a mut Tell<'f>,
}

impl Sides<'_, '_> {
    /// Compares two versions of a table, nested or not. Recursion is as deep as tables are nested.
    pub(super) fn tables(&mut self, new: &TableReader<'_>, old: &TableReader<'_>) -> Result<()> {
        if self.path.len() > DEPTH_MAX {
            let found = format!("{} tables in one another", self.path.len());
            return Err(Corrupt::new("nested table", 0, found, DEPTH_MAX).into());
        }
        let (Some(new_tree), Some(old_tree)) = (new.tree(), old.tree()) else {
            return self.entries((new, old), (&[], None));
        };
        let mut failed = None;
        let (pages, base) = (self.new, self.old);
        let walked = new_tree.changed_since(pages, old_tree, base, &mut |from, to| {
            self.entries((new, old), (from, to)).map_err(|error| {
                failed = Some(error);
                tidalite_pager::Error::Cancelled
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(walked?),
        }
    }

    /// Compares the entries of both versions in a range of keys, as in a merge.
    fn entries(
        &mut self,
        (new, old): (&TableReader<'_>, &TableReader<'_>),
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<()> {
        let inside = |key: &[u8]| to.is_none_or(|to| key < to);
        let (mut a, mut b) = (new.cursor(self.new)?, old.cursor(self.old)?);
        let mut there_a = a.seek_ge(from)? && inside(a.key());
        let mut there_b = b.seek_ge(from)? && inside(b.key());
        while there_a || there_b {
            let order = match (there_a, there_b) {
                (true, true) => a.key().cmp(b.key()),
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            };
            match order {
                Ordering::Less => self.entry(Some(&a), None)?,
                Ordering::Greater => self.entry(None, Some(&b))?,
                Ordering::Equal => self.entry(Some(&a), Some(&b))?,
            }
            if order.is_le() {
                there_a = a.next()? && inside(a.key());
            }
            if order.is_ge() {
                there_b = b.next()? && inside(b.key());
            }
        }
        Ok(())
    }

    /// Compares the entry of one key; the entry may exist in both versions or in only one.
    fn entry(&mut self, new: Option<&At<'_>>, old: Option<&At<'_>>) -> Result<()> {
        if self.multi && self.path.is_empty() {
            return self.sets(new, old);
        }
        let (table, path) = (self.table, &self.path[..]);
        match (new, old) {
            (Some(new), None) => {
                let key = new.key();
                (self.f)(Change::Inserted { table, path, key })?;
                if new.is_nested() {
                    let below = new.nested()?;
                    return self.below(new.key(), &below, &TableReader::of(Tree::new(0)));
                }
                Ok(())
            }
            (None, Some(old)) => {
                let key = old.key();
                (self.f)(Change::Removed { table, path, key })
            }
            (Some(new), Some(old)) => {
                if new.is_nested() && old.is_nested() {
                    return self.below(new.key(), &new.nested()?, &old.nested()?);
                }
                let same =
                    !new.is_nested() && !old.is_nested() && alike(&new.value()?, &old.value()?)?;
                if same {
                    return Ok(());
                }
                let key = new.key();
                (self.f)(Change::Changed { table, path, key })?;
                if new.is_nested() {
                    let below = new.nested()?;
                    return self.below(new.key(), &below, &TableReader::of(Tree::new(0)));
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn below(&mut self, key: &[u8], new: &TableReader<'_>, old: &TableReader<'_>) -> Result<()> {
        if let Some(tree) = new.tree() {
            expect_first_time(tree, &mut self.met)?;
        }
        self.path.push(key.to_vec());
        let done = self.tables(new, old);
        self.path.pop();
        done
    }

    /// Compares the set of values of one key; the set may exist in both versions or in only one.
    fn sets(&mut self, new: Option<&At<'_>>, old: Option<&At<'_>>) -> Result<()> {
        let Some(key) = new.or(old).map(|at| at.key().to_vec()) else {
            return Ok(());
        };
        let (new, old) = (Set::of(new)?, Set::of(old)?);
        if let (Set::Table(new), Set::Table(old)) = (&new, &old) {
            return self.below(&key, new, old);
        }
        // In at least one version the key has a single value, stored in the row itself, or none.
        let (pages, base) = (self.new, self.old);
        self.path.push(key);
        let done = new.each(pages, &mut |key| {
            if !old.has(base, key)? {
                let (table, path) = (self.table, &self.path[..]);
                (self.f)(Change::Inserted { table, path, key })?;
            }
            Ok(())
        });
        let done = done.and_then(|()| {
            old.each(base, &mut |key| {
                if !new.has(pages, key)? {
                    let (table, path) = (self.table, &self.path[..]);
                    (self.f)(Change::Removed { table, path, key })?;
                }
                Ok(())
            })
        });
        self.path.pop();
        done
    }
}

/// A cursor in one version of the table.
type At<'p> = Cursor<'p, Snapshot>;

/// The set of values of a key in one version.
enum Set<'p> {
    None,
    One(Vec<u8>),
    Table(TableReader<'p>),
}

impl<'p> Set<'p> {
    fn of(at: Option<&At<'p>>) -> Result<Self> {
        Ok(match at {
            None => Self::None,
            Some(at) if at.is_nested() => Self::Table(at.nested()?),
            Some(at) => Self::One(at.value()?.to_vec()?),
        })
    }

    fn has(&self, pages: &Snapshot, value: &[u8]) -> Result<bool> {
        match self {
            Self::None => Ok(false),
            Self::One(one) => Ok(one == value),
            Self::Table(set) => Ok(set.contains(pages, value)?),
        }
    }

    fn each(&self, pages: &Snapshot, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::One(one) => f(one),
            Self::Table(set) => {
                let mut cursor = set.cursor(pages)?;
                while cursor.next()? {
                    f(cursor.key())?;
                }
                Ok(())
            }
        }
    }
}

fn alike(a: &Value<'_>, b: &Value<'_>) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) {
        return Ok(a == b);
    }
    // Compares piece by piece: two long values of equal length have equal pieces; a value stored in a page is a single
    // piece.
    let (mut a, mut b) = (a.chunks(), b.chunks());
    let (mut left, mut right): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    loop {
        if left.is_empty() {
            match a.next() {
                Some(piece) => left.extend_from_slice(&piece?),
                None => return Ok(right.is_empty() && b.next().is_none()),
            }
        }
        if right.is_empty() {
            match b.next() {
                Some(piece) => right.extend_from_slice(&piece?),
                None => return Ok(false),
            }
        }
        let common = left.len().min(right.len());
        if left[..common] != right[..common] {
            return Ok(false);
        }
        left.drain(..common);
        right.drain(..common);
    }
}
