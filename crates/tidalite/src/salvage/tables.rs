//! Tables: from their roots around damage, then leaf by leaf.

use super::collect::Collected;
use super::{Rescue, Saved};
use crate::check::{Finding, Place};
use crate::error::{Error, Result};
use crate::roots::owner;
use crate::write::decode_table_entry;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::Corrupt;
use tidalite_kv::{PageAt, Tree, Walk};
use tidalite_pager::{PageRead, Ptr, RawFile};

/// Directories of runs have owners from here on.
const DIRECTORY_OWNERS: u64 = 1 << 47;

type Key = Vec<u8>;

/// A stretch of keys without a bound or up to one.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    from: Key,
    to: Option<Key>,
    corrupt: Option<Corrupt>,
}

impl Lost {
    fn holds(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// What a walk around damage reaches.
#[derive(Default)]
struct Reached {
    leaves: Vec<Ptr>,
    lost: Vec<Lost>,
}

impl Walk for Reached {
    fn enter(&mut self, page: &PageAt<'_>) -> tidalite_pager::Result<bool> {
        if page.level == 0 {
            self.leaves.push(page.ptr);
            // Whether it can be read shows now, while its keys are known.
            self.lost.push(Lost {
                from: page.from.to_vec(),
                to: page.to.map(<[u8]>::to_vec),
                corrupt: None,
            });
        }
        Ok(page.level > 0)
    }

    fn damaged(&mut self, page: &PageAt<'_>, corrupt: Corrupt) -> tidalite_pager::Result<()> {
        self.lost.push(Lost {
            from: page.from.to_vec(),
            to: page.to.map(<[u8]>::to_vec),
            corrupt: Some(corrupt),
        });
        Ok(())
    }
}

/// The keys for which a newer leaf has spoken: disjoint, first key and last key.
#[derive(Default)]
struct Covered(BTreeMap<Key, Key>);

impl Covered {
    fn has(&self, key: &[u8]) -> bool {
        let mut before = self
            .0
            .range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(key)));
        before
            .next_back()
            .is_some_and(|(_, last)| key <= last.as_slice())
    }

    fn add(&mut self, first: Key, last: Key) {
        let (mut first, mut last) = (first, last);
        let touching: Vec<Key> = self
            .0
            .range(..=last.clone())
            .rev()
            .take_while(|(_, end)| **end >= first)
            .map(|(start, _)| start.clone())
            .collect();
        for start in touching {
            if let Some(end) = self.0.remove(&start) {
                last = last.max(end);
            }
            first = first.min(start);
        }
        self.0.insert(first, last);
    }
}

/// The rows of one leaf, as they come: key, value.
type LeafRows<'f> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'f;

/// The rows of one table, as they come: key, value, whether a header alone vouches for it.
type Rows<'f> = dyn FnMut(&[u8], &[u8], bool) -> Result<()> + 'f;

/// Shows the rows of a table that can be read, and returns what is lost.
pub(super) fn rows_of(
    raw: &RawFile,
    found: &Collected,
    id: u64,
    tree: Option<&Tree>,
    f: &mut Rows<'_>,
) -> Result<Vec<Lost>> {
    let mut told = Vec::new();
    let mut lost = Vec::new();
    let mut reached = BTreeSet::new();
    if let Some(tree) = tree {
        let mut walk = Reached::default();
        tree.walk(raw, &mut walk)?;
        let mut leaves = walk.leaves.into_iter();
        for mut span in walk.lost {
            if span.corrupt.is_none()
                && let Some(leaf) = leaves.next()
            {
                reached.insert(leaf.addr);
                match leaf_rows(raw, &leaf, &mut told, &mut |key, value| {
                    f(key, value, false)
                }) {
                    Ok(_) => continue,
                    Err(Error::Store(tidalite_pager::Error::Corrupt(corrupt))) => {
                        span.corrupt = Some(corrupt);
                    }
                    Err(error) => return Err(error),
                }
            }
            lost.push(span);
        }
        if lost.is_empty() {
            return Ok(told);
        }
    } else {
        lost.push(Lost {
            from: Vec::new(),
            to: None,
            corrupt: None,
        });
    }
    let mut lone = found.table_leaves.get(&id).cloned().unwrap_or_default();
    lone.retain(|leaf| !reached.contains(&leaf.addr));
    lone.sort_by_key(|leaf| std::cmp::Reverse(leaf.birth));
    let mut covered = Covered::default();
    for leaf in lone {
        let rows = leaf_rows(raw, &leaf, &mut told, &mut |key, value| {
            if covered.has(key) || !lost.iter().any(|span| span.holds(key)) {
                return Ok(());
            }
            f(key, value, true)
        });
        match rows {
            Ok((first, last)) => covered.add(first, last),
            Err(Error::Store(tidalite_pager::Error::Corrupt(_))) => {}
            Err(error) => return Err(error),
        }
    }
    told.extend(lost.into_iter().filter(|span| span.corrupt.is_some()));
    Ok(told)
}

impl Rescue<'_, '_> {
    /// Every table, under its name or one made from its number.
    pub(super) fn tables(&mut self) -> Result<()> {
        let mut named: BTreeMap<u64, (String, Option<Tree>)> = BTreeMap::new();
        let roots = self.roots.clone();
        let tables = roots.as_ref().map(|roots| roots.tables);
        let mut entries = Vec::new();
        let lost = rows_of(
            self.raw,
            &self.found,
            owner::TABLES,
            tables.as_ref(),
            &mut |key, value, by_header| {
                entries.push((key.to_vec(), value.to_vec(), by_header));
                Ok(())
            },
        )?;
        self.lose_catalog("table of tables", lost);
        for (name, entry, by_header) in entries {
            let name = String::from_utf8_lossy(&name).into_owned();
            match decode_table_entry(&entry) {
                Ok((id, tree)) => {
                    let tree = (roots.is_some() && !by_header).then_some(tree);
                    named.insert(id, (name, tree));
                }
                Err(error) => self.lose_file(format!("table {name}: {error}")),
            }
        }
        for (id, tree) in roots.iter().flat_map(|roots| &roots.inline) {
            let entry = named.entry(*id);
            entry.or_insert_with(|| (format!("table-{id}"), None)).1 = Some(*tree);
        }
        let owners: Vec<u64> = self.found.table_leaves.keys().copied().collect();
        for id in owners {
            if (owner::FIRST_TABLE..DIRECTORY_OWNERS).contains(&id) {
                named
                    .entry(id)
                    .or_insert_with(|| (format!("table-{id}"), None));
            }
        }
        for (id, (name, tree)) in named {
            self.table(id, &name, tree.as_ref())?;
        }
        Ok(())
    }

    fn table(&mut self, id: u64, name: &str, tree: Option<&Tree>) -> Result<()> {
        self.running.at(&format!("table {name}"));
        let mut saved = Saved {
            name: name.to_owned(),
            ..Saved::default()
        };
        let (raw, found, running) = (self.raw, &self.found, &mut self.running);
        let mut table = self.tx.table(name)?;
        let lost = rows_of(raw, found, id, tree, &mut |key, value, by_header| {
            table.put(key, value)?;
            saved.rows += 1;
            saved.rows_by_headers += u64::from(by_header);
            Ok(running.moved((key.len() + value.len()) as u64)?)
        })?;
        for span in lost {
            let corrupt = span
                .corrupt
                .map_or_else(String::new, |corrupt| corrupt.to_string());
            let place = Place::Table {
                name: name.to_owned(),
                from: span.from,
                to: span.to,
            };
            self.report.lose(Finding::new(place, corrupt));
        }
        self.report.tables.push(saved);
        Ok(())
    }

    pub(super) fn lose_catalog(&mut self, name: &str, lost: Vec<Lost>) {
        for span in lost {
            let corrupt = span
                .corrupt
                .map_or_else(String::new, |corrupt| corrupt.to_string());
            let place = Place::Catalog {
                name: name.to_owned(),
                from: span.from,
                to: span.to,
            };
            self.report.lose(Finding::new(place, corrupt));
        }
    }
}

/// Shows the rows of one leaf; returns its first and last key. A large value that is damaged is told as lost.
fn leaf_rows(
    raw: &RawFile,
    leaf: &Ptr,
    told: &mut Vec<Lost>,
    f: &mut LeafRows<'_>,
) -> Result<(Key, Key)> {
    let tree = Tree::of_leaf(raw, leaf)?;
    let mut cursor = tree.cursor(raw);
    let (mut first, mut last) = (None, Key::new());
    let mut there = cursor.first()?;
    while there {
        let key = cursor.key().to_vec();
        match cursor.value().and_then(|value| value.to_vec()) {
            Ok(value) => f(&key, &value)?,
            Err(tidalite_pager::Error::Corrupt(corrupt)) => told.push(Lost {
                from: key.clone(),
                to: Some([&key[..], &[0]].concat()),
                corrupt: Some(corrupt),
            }),
            Err(error) => return Err(error.into()),
        }
        first.get_or_insert_with(|| key.clone());
        last = key;
        there = cursor.next()?;
    }
    let _ = raw.page_size();
    Ok((first.unwrap_or_default(), last))
}
