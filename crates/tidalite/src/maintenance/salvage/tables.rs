//! Salvage of tables: first from their roots, skipping damage, then leaf by leaf.

use super::collect::Collected;
use super::inner::{Below, inner_rows};
use super::ranges::{Covered, Key, Lost};
use super::report::Saved;
use super::rescue::Rescue;
use crate::catalog::roots::owner;
use crate::catalog::table_roots::decode_table_entry;
use crate::maintenance::check::{Finding, Place};
use crate::tables::set_table_mut::SetTableMut;
use crate::tables::table_mut::TableMut;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::table_types::{TableLayout, TableTypes};
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::Corrupt;
use tidalite_kv::{Cursor, DEPTH_MAX, PageVisitor, TableReader, Tree, VisitedPage};
use tidalite_pager::{Ptr, RawFile};

/// Key of the row with the state of a hash table or a buffered table.
const STATE_KEY: &[u8] = &[1];
/// Owner ids from this value on belong to directories of runs, which salvage does not need.
const DIRECTORY_OWNERS: u64 = 1 << 47;

/// The leaves that a walk of a tree reaches, and the key ranges of damaged pages.
#[derive(Default)]
struct Reached {
    leaves: Vec<Ptr>,
    lost: Vec<Lost>,
}

impl PageVisitor for Reached {
    fn enter(&mut self, page: &VisitedPage<'_>) -> tidalite_pager::Result<bool> {
        if page.level == 0 {
            self.leaves.push(page.ptr);
            // Each leaf is listed with its keys; whether it can be read is found out later.
            self.lost.push(Lost {
                from: page.from.to_vec(),
                to: page.to.map(<[u8]>::to_vec),
                corrupt: None,
            });
        }
        Ok(page.level > 0)
    }

    fn damaged(&mut self, page: &VisitedPage<'_>, corrupt: Corrupt) -> tidalite_pager::Result<()> {
        self.lost.push(Lost {
            from: page.from.to_vec(),
            to: page.to.map(<[u8]>::to_vec),
            corrupt: Some(corrupt),
        });
        Ok(())
    }
}

/// The content of a row found in a leaf.
#[derive(Clone, Copy, Debug)]
enum Held<'a> {
    Value(&'a [u8]),
    /// One value in the set of a key.
    Pair(&'a [u8]),
    /// A nested table; its rows follow, with a longer path of keys.
    Table,
}

/// Callback for a row: receives the keys of the enclosing nested tables, the row's own key and the row's content.
type LeafRows<'f> = dyn FnMut(&[Key], &[u8], Held<'_>) -> Result<()> + 'f;

/// Callback like `LeafRows`, with a flag that is true for rows found by a header alone.
type Rows<'f> = dyn FnMut(&[Key], &[u8], Held<'_>, bool) -> Result<()> + 'f;

/// Callback for a row of a catalog table: receives key, value, and a flag that is true for rows found by a header
/// alone.
type Values<'f> = dyn FnMut(&[u8], &[u8], bool) -> Result<()> + 'f;

/// The position in the current table while its leaves are read.
struct At<'r> {
    raw: &'r RawFile,
    path: Vec<Key>,
    /// Addresses of the leaves and roots of nested tables that were visited: a hostile file may point to one twice.
    nested: BTreeSet<u64>,
    told: Vec<Lost>,
    below: Below,
}

/// Passes the readable rows of a table to `f`, and returns the ranges of keys that are lost, and those that are lost in
/// nested tables.
fn rows_of(
    raw: &RawFile,
    found: &Collected,
    id: u64,
    tree: Option<&Tree>,
    f: &mut Rows<'_>,
) -> Result<(Vec<Lost>, Below)> {
    let mut at = At {
        raw,
        path: Vec::new(),
        nested: BTreeSet::new(),
        told: Vec::new(),
        below: Below::default(),
    };
    let mut reached = BTreeSet::new();
    let lost = match tree {
        Some(tree) => at.around(tree, &mut reached, &mut |path, key, held| {
            f(path, key, held, false)
        })?,
        None => vec![Lost {
            from: Vec::new(),
            to: None,
            corrupt: None,
        }],
    };
    if lost.is_empty() {
        return Ok((at.told, at.below));
    }
    at.below.is_outer_lost = true;
    let mut lone = found.table_leaves.get(&id).cloned().unwrap_or_default();
    lone.retain(|leaf| !reached.contains(&leaf.addr));
    lone.sort_by_key(|leaf| std::cmp::Reverse(leaf.birth));
    let mut covered = Covered::default();
    for leaf in lone {
        // The rows of a nested table's leaf have no known key path unless a leaf of the enclosing table leads to them.
        if Tree::of_leaf(raw, &leaf).is_ok_and(|leaf| leaf.is_inner()) {
            continue;
        }
        let rows = at.leaf(&leaf, &mut |path, key, held| {
            let outer = path.first().map_or(key, Vec::as_slice);
            if covered.has(outer) || !lost.iter().any(|span| span.holds(outer)) {
                return Ok(());
            }
            f(path, key, held, true)
        });
        match rows {
            Ok((first, last)) => covered.add(first, last),
            Err(error) if error.kind() == ErrorKind::Damaged => {}
            Err(error) => return Err(error),
        }
    }
    let At {
        mut told, below, ..
    } = at;
    told.extend(lost.into_iter().filter(|span| span.corrupt.is_some()));
    Ok((told, below))
}

/// Passes the readable entries of a catalog table to `f`, as keys and values, and returns the ranges of keys that are
/// lost.
pub(super) fn values_of(
    raw: &RawFile,
    found: &Collected,
    id: u64,
    tree: Option<&Tree>,
    f: &mut Values<'_>,
) -> Result<Vec<Lost>> {
    let (lost, _) = rows_of(
        raw,
        found,
        id,
        tree,
        &mut |path, key, held, by_header| match held {
            Held::Value(value) if path.is_empty() => f(key, value, by_header),
            _ => Ok(()),
        },
    )?;
    Ok(lost)
}

impl At<'_> {
    /// Passes the rows of a table to `f`, skipping damage; returns the ranges of keys of unreadable parts.
    fn around(
        &mut self,
        tree: &Tree,
        reached: &mut BTreeSet<u64>,
        f: &mut LeafRows<'_>,
    ) -> Result<Vec<Lost>> {
        let mut walk = Reached::default();
        let mut lost = Vec::new();
        tree.walk(self.raw, &mut walk)?;
        let mut leaves = walk.leaves.into_iter();
        for mut span in walk.lost {
            if span.corrupt.is_none()
                && let Some(leaf) = leaves.next()
            {
                reached.insert(leaf.addr);
                match self.leaf(&leaf, f) {
                    Ok(_) => continue,
                    Err(error) => match error.corrupt() {
                        Some(corrupt) => span.corrupt = Some(corrupt.clone()),
                        None => return Err(error),
                    },
                }
            }
            lost.push(span);
        }
        Ok(lost)
    }

    /// Passes the rows of one leaf to `f`; returns the leaf's first and last key. Damage in values and nested tables
    /// that the leaf points to is recorded as lost.
    fn leaf(&mut self, leaf: &Ptr, f: &mut LeafRows<'_>) -> Result<(Key, Key)> {
        let tree = Tree::of_leaf(self.raw, leaf)?;
        let mut cursor = tree.cursor(self.raw);
        let (mut first, mut last) = (None, Key::new());
        let mut there = cursor.first()?;
        while there {
            let key = cursor.key().to_vec();
            self.row(&cursor, &tree, &key, f)?;
            first.get_or_insert_with(|| key.clone());
            last = key;
            there = cursor.next()?;
        }
        Ok((first.unwrap_or_default(), last))
    }

    fn row(
        &mut self,
        cursor: &Cursor<'_, RawFile>,
        table: &Tree,
        key: &[u8],
        f: &mut LeafRows<'_>,
    ) -> Result<()> {
        let shown = if cursor.is_nested() {
            match cursor.nested() {
                Ok(below) if table.is_multi() => self.nested(&below, key, &mut |path, value, _| {
                    f(path, value, Held::Pair(value))
                }),
                Ok(below) => {
                    f(&self.path, key, Held::Table).and_then(|()| self.nested(&below, key, f))
                }
                Err(error) => Err(error.into()),
            }
        } else {
            match cursor.value().and_then(|value| value.to_vec()) {
                Ok(value) if table.is_multi() => {
                    self.path.push(key.to_vec());
                    let shown = f(&self.path, &value, Held::Pair(&value));
                    self.path.pop();
                    shown
                }
                Ok(value) => f(&self.path, key, Held::Value(&value)),
                Err(error) => Err(error.into()),
            }
        };
        match shown {
            Err(error) => match error.corrupt() {
                Some(corrupt) => {
                    self.lose(key, corrupt.clone());
                    Ok(())
                }
                None => Err(error),
            },
            Ok(()) => Ok(()),
        }
    }

    /// Passes the rows of a nested table to `f`. Recursion is as deep as tables are nested.
    fn nested(&mut self, below: &TableReader<'_>, key: &[u8], f: &mut LeafRows<'_>) -> Result<()> {
        if self.path.len() >= DEPTH_MAX {
            self.lose(
                key,
                Corrupt::new("nested table", 0, "one too deep", DEPTH_MAX),
            );
            return Ok(());
        }
        self.path.push(key.to_vec());
        let shown = self.nested_rows(below, f);
        self.path.pop();
        shown
    }

    fn nested_rows(&mut self, below: &TableReader<'_>, f: &mut LeafRows<'_>) -> Result<()> {
        let Some(tree) = below.tree() else {
            let mut cursor = below.cursor(self.raw)?;
            let table = Tree::new(0);
            while cursor.next()? {
                let key = cursor.key().to_vec();
                self.row(&cursor, &table, &key, f)?;
            }
            return Ok(());
        };
        if !self.nested.insert(tree.root().addr) {
            let at = tree.root().addr;
            return Err(
                Corrupt::new("nested table", at, "a second pointer to it", "one pointer").into(),
            );
        }
        let mut reached = BTreeSet::new();
        let lost = self.around(tree, &mut reached, f)?;
        self.below.reached.extend(reached);
        if let ([part], false) = (self.path.as_slice(), lost.is_empty()) {
            let spans = self.below.lost.entry(part.clone()).or_default();
            spans.extend(lost.iter().cloned());
        }
        for corrupt in lost.into_iter().filter_map(|span| span.corrupt) {
            self.lose(&[], corrupt);
        }
        Ok(())
    }

    /// Records a loss under a key of the current table; in a nested table, under the key in the outermost table.
    fn lose(&mut self, key: &[u8], corrupt: Corrupt) {
        let from = self.path.first().map_or(key, Vec::as_slice).to_vec();
        self.told.push(Lost {
            to: Some([&from[..], &[0]].concat()),
            from,
            corrupt: Some(corrupt),
        });
    }
}

impl Rescue<'_, '_> {
    /// Saves every table, under its name or under a name generated from its id.
    pub(super) fn tables(&mut self) -> Result<()> {
        let mut named: BTreeMap<u64, Named> = BTreeMap::new();
        let roots = self.roots.clone();
        let tables = roots.as_ref().map(|roots| roots.tables);
        let mut entries = Vec::new();
        let lost = values_of(
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
                Ok(entry) => {
                    let multi = Some(entry.tree.is_multi());
                    let tree = (roots.is_some() && !by_header).then_some(entry.tree);
                    let types = entry.types;
                    let table = Named {
                        name,
                        tree,
                        multi,
                        types,
                    };
                    named.insert(entry.id, table);
                }
                Err(error) => self.lose_file(format!("table {name}: {}", error.finding())),
            }
        }
        for (id, tree) in roots.iter().flat_map(|roots| &roots.inline) {
            let entry = named.entry(*id);
            let named = entry.or_insert_with(|| Named::by_number(*id));
            named.tree = Some(*tree);
            named.multi = Some(tree.is_multi());
        }
        let owners: Vec<u64> = self.found.table_leaves.keys().copied().collect();
        for id in owners {
            if (owner::FIRST_TABLE..DIRECTORY_OWNERS).contains(&id) {
                named.entry(id).or_insert_with(|| Named::by_number(id));
            }
        }
        for (id, named) in named {
            self.table(id, &named)?;
        }
        Ok(())
    }

    /// Whether a table is a table of sets, judging by its leaves.
    fn looks_multi(&self, id: u64) -> bool {
        let leaves = self.found.table_leaves.get(&id).into_iter().flatten();
        let mut leaves = leaves.filter_map(|leaf| Tree::of_leaf(self.raw, leaf).ok());
        let outer = leaves.find(|leaf| !leaf.is_inner());
        outer.is_some_and(|leaf| leaf.is_multi())
    }

    fn table(&mut self, id: u64, named: &Named) -> Result<()> {
        let (name, tree) = (named.name.as_str(), named.tree.as_ref());
        let multi = named.multi.unwrap_or_else(|| self.looks_multi(id));
        self.running.at(&format!("table {name}"));
        let mut saved = Saved {
            name: name.to_owned(),
            ..Saved::default()
        };
        let (raw, found, running) = (self.raw, &self.found, &mut self.running);
        // Only a table with one value for each key can have another layout.
        let rows = |types: &TableTypes| types.clone().with_layout(TableLayout::Rows);
        let types = match multi {
            true => named.types.as_ref().map(rows),
            false => named.types.clone(),
        };
        let layout = types.as_ref().map(TableTypes::layout);
        let mut to = if multi {
            self.tx.open_with(name, multi, types)?;
            To::Multi(self.tx.raw_set_table(name)?)
        } else {
            To::Plain(self.tx.table_to_fill(name, types)?)
        };
        let mut state = None;
        let (lost, below) = rows_of(raw, found, id, tree, &mut |path, key, held, by_header| {
            if let (true, Held::Value(value)) = (path.is_empty() && key == STATE_KEY, held) {
                state = Some(value.to_vec());
            }
            if !to.put(path, key, held)? {
                return Ok(());
            }
            saved.rows += 1;
            saved.rows_by_headers += u64::from(by_header);
            let value = match held {
                Held::Value(value) => value.len(),
                Held::Pair(_) | Held::Table => 0,
            };
            Ok(running.moved((key.len() + value) as u64)?)
        })?;
        if let Some(layout) = layout {
            let known = (&below, state.as_deref());
            inner_rows(raw, found, (id, layout), known, &mut |part, key, value| {
                to.put(&[part.to_vec()], key, Held::Value(value))?;
                saved.rows += 1;
                saved.rows_by_headers += 1;
                Ok(running.moved((key.len() + value.len()) as u64)?)
            })?;
        }
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
        let mut problems = Vec::new();
        if layout == Some(TableLayout::Hash) && !self.tx.recover_hash_table(name)? {
            problems.push(
                "the options of the hash table are lost: its records are in a table of bytes"
                    .to_owned(),
            );
        }
        if layout == Some(TableLayout::Buffered) {
            let mut problem = |problem| problems.push(problem);
            self.tx.recover_buffered_table(name, &mut problem)?;
        }
        if layout == Some(TableLayout::Containers) {
            let mut problem = |problem| problems.push(problem);
            self.tx.recover_containers(name, &mut problem)?;
        }
        if layout == Some(TableLayout::Relation) {
            let mut problem = |problem| problems.push(problem);
            self.tx.recover_relation(name, &mut problem)?;
        }
        self.tx
            .recover_messages(name, layout, &mut |problem| problems.push(problem))?;
        for problem in problems {
            let place = Place::Table {
                name: name.to_owned(),
                from: Vec::new(),
                to: None,
            };
            self.report.lose(Finding::new(place, problem));
        }
        self.report.tables.push(saved);
        Ok(())
    }

    /// Makes the series of containers fit the messages that were saved, also if nothing was lost: they may differ in
    /// the file.
    pub(super) fn container_series(&mut self) -> Result<()> {
        let mut problems = Vec::new();
        for name in self.tx.tables()? {
            let types = self.tx.table_types(&name)?;
            if types.is_some_and(|types| types.layout() == TableLayout::Containers) {
                let mut problem = |problem| problems.push(format!("{name}: {problem}"));
                self.tx.mend_container_series(&name, &mut problem)?;
            }
        }
        for problem in problems {
            self.lose_file(problem);
        }
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

/// Properties of a table that are known before its rows are read.
struct Named {
    name: String,
    tree: Option<Tree>,
    multi: Option<bool>,
    types: Option<TableTypes>,
}

impl Named {
    fn by_number(id: u64) -> Self {
        Self {
            name: format!("table-{id}"),
            tree: None,
            multi: None,
            types: None,
        }
    }
}

/// The new table to which a damaged table's rows are written.
enum To<'t> {
    Plain(TableMut<'t>),
    Multi(SetTableMut<'t>),
}

impl To<'_> {
    /// Stores a row. Returns false if no row was counted: a nested table was created, the row does not belong in such a
    /// table, or it is a value whose key already has a nested table.
    fn put(&mut self, path: &[Key], key: &[u8], held: Held<'_>) -> Result<bool> {
        match (self, held) {
            (Self::Plain(table), Held::Value(value)) => {
                match table.nested_at(path).put(key, value) {
                    Err(error) if error.key().is_some() => return Ok(false),
                    done => done?,
                };
            }
            (Self::Plain(table), Held::Table) => {
                table.nested_at(path).nested(key).make()?;
                return Ok(false);
            }
            (Self::Multi(table), Held::Pair(value)) => {
                let Some(key) = path.first() else {
                    return Ok(false);
                };
                table.put(key, value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
