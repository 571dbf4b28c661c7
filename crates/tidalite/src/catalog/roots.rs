//! Storage of all roots: the app area of the meta block.
//!
//! ```text
//! 0         4        8             16           24      88       152       216      280        344       408
//! | version | inline | next series | next table | tables | names | guids | series | records | extents | policies |
//! |   u32   |  u32   |     u64     |    u64     | each a kv tree root of 64 bytes                                |
//! 472     536           600    664           760                         792
//! | texts | annotations | tags | delta root  | clock (commit_clock.rs)   | relations u64 |
//! 800
//! | inline table roots, `inline` of them: table id u64, kv tree root 64 bytes
//! ```
//!
//! `relations` counts the changes of schemas of relations.
//!
//! A changed table's root goes to the inline list, so that a small commit does not rewrite a path in `tables`; when the
//! list is full, all of it moves to `tables` at once.
//!
//! Invariants: 1. A table's newest root is the inline one if there is one, else the entry in `tables`.
//! 2. The inline list has at most `INLINE_ROOTS_MAX` entries, each table at most once.

use crate::catalog::commit_clock::{CLOCK_BYTES, CommitClock};
use crate::types::error::Result;
use tidalite_base::{Corrupt, get_u32, get_u64, put_u32, put_u64};
use tidalite_delta::{DELTA_ROOT_BYTES, DeltaRoot};
use tidalite_kv::{TREE_BYTES, Tree};
use tidalite_pager::Ptr;

const VERSION: u32 = 6;
const VERSION_AT: usize = 0;
const INLINE_COUNT_AT: usize = VERSION_AT + 4;
const NEXT_SERIES_AT: usize = INLINE_COUNT_AT + 4;
const NEXT_TABLE_AT: usize = NEXT_SERIES_AT + 8;
const TREES_AT: usize = NEXT_TABLE_AT + 8;
const TREE_COUNT: usize = 10;
const DELTA_AT: usize = TREES_AT + TREE_COUNT * TREE_BYTES;
const CLOCK_AT: usize = DELTA_AT + DELTA_ROOT_SPACE;
const RELATIONS_AT: usize = CLOCK_AT + CLOCK_BYTES;
const INLINE_AT: usize = RELATIONS_AT + 8;
const INLINE_ENTRY_BYTES: usize = 8 + TREE_BYTES;
/// Bytes reserved in the app area for the root of the delta.
const DELTA_ROOT_SPACE: usize = 96;
/// Maximum number of recently changed table roots in the meta block.
pub(crate) const INLINE_ROOTS_MAX: usize = 8;
/// Maximum length in bytes of the encoded roots in the app area.
pub(crate) const ROOTS_BYTES_MAX: usize = INLINE_AT + INLINE_ROOTS_MAX * INLINE_ENTRY_BYTES;
const _: () = assert!(DELTA_ROOT_BYTES <= DELTA_ROOT_SPACE);
const _: () = assert!(ROOTS_BYTES_MAX <= tidalite_pager::APP_BYTES_MAX);

/// Owner ids of the catalog's own trees; the ids of user tables begin at `FIRST_TABLE`.
pub(crate) mod owner {
    pub(crate) const TABLES: u64 = 1;
    pub(crate) const NAMES: u64 = 2;
    pub(crate) const GUIDS: u64 = 3;
    pub(crate) const SERIES: u64 = 4;
    pub(crate) const RECORDS: u64 = 5;
    pub(crate) const EXTENTS: u64 = 6;
    pub(crate) const POLICIES: u64 = 7;
    pub(crate) const TEXTS: u64 = 8;
    pub(crate) const ANNOTATIONS: u64 = 9;
    pub(crate) const TAGS: u64 = 10;
    pub(crate) const FIRST_TABLE: u64 = 16;
    /// Owner ids are less than this: the headers of pages and blocks store 48 bits.
    pub(crate) const LIMIT: u64 = 1 << 48;
}

/// All roots of one version of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Roots {
    pub(crate) next_series: u64,
    pub(crate) next_table: u64,
    /// Tree that maps a table's name to its id and root.
    pub(crate) tables: Tree,
    /// Tree that maps the canonical name of a series to its id.
    pub(crate) names: Tree,
    /// Tree that maps the GUID of a series to its id.
    pub(crate) guids: Tree,
    /// Tree that maps the id of a series to its name, GUID and schema.
    pub(crate) series: Tree,
    /// Tree that maps the id of a series to the record with the root of its rows.
    pub(crate) records: Tree,
    /// Tree of the extents into which leaves of series are packed.
    pub(crate) extents: Tree,
    /// Tree that maps a name to a retention policy.
    pub(crate) policies: Tree,
    /// Tree of the strings, bytes and GUIDs to which rows refer (texts.rs).
    pub(crate) texts: Tree,
    /// Tree of the annotations of series (annotations.rs).
    pub(crate) annotations: Tree,
    /// Tree of the index of series by metric and tags (tags/mod.rs).
    pub(crate) tags: Tree,
    pub(crate) delta: DeltaRoot,
    /// Commit clock as of the newest commit; `None` in a new file.
    pub(crate) clock: Option<CommitClock>,
    /// Number of changes of schemas of relations.
    pub(crate) relations: u64,
    pub(crate) inline: Vec<(u64, Tree)>,
}

/// A version of the catalog: the roots of the trees for names, GUIDs and series, and the number of changes of schemas
/// of relations. Each root contains a checksum of its page, which covers the whole tree. Schemas are in the tables of
/// their relations, whose roots also change with each row, so their changes are counted instead.
pub(crate) type Catalog = ([Tree; 3], u64);

impl Roots {
    pub(crate) const fn catalog(&self) -> Catalog {
        ([self.names, self.guids, self.series], self.relations)
    }

    pub(crate) fn empty() -> Self {
        Self {
            next_series: 0,
            next_table: owner::FIRST_TABLE,
            tables: Tree::new(owner::TABLES),
            names: Tree::new(owner::NAMES),
            guids: Tree::new(owner::GUIDS),
            series: Tree::new(owner::SERIES),
            records: Tree::new(owner::RECORDS),
            extents: Tree::new(owner::EXTENTS),
            policies: Tree::new(owner::POLICIES),
            texts: Tree::new(owner::TEXTS),
            annotations: Tree::new(owner::ANNOTATIONS),
            tags: Tree::new(owner::TAGS),
            delta: DeltaRoot::default(),
            clock: None,
            relations: 0,
            inline: Vec::new(),
        }
    }

    /// Pointers to all root pages in an encoded app area; an empty list if the app area is damaged.
    pub(crate) fn pages(app: &[u8]) -> Vec<Ptr> {
        let Ok(roots) = Self::decode(app) else {
            return Vec::new();
        };
        let trees = [
            &roots.tables,
            &roots.names,
            &roots.guids,
            &roots.series,
            &roots.records,
            &roots.extents,
            &roots.policies,
            &roots.texts,
            &roots.annotations,
            &roots.tags,
        ];
        let inline = roots.inline.iter().map(|(_, tree)| tree);
        let trees = trees.into_iter().chain(inline).map(Tree::root);
        trees
            .chain([roots.delta.tail, roots.delta.record])
            .collect()
    }

    /// The trees that a transaction seals directly at its commit; `Leaves` seals the other two, records and extents.
    pub(crate) fn catalog_trees(&mut self) -> [&mut Tree; 8] {
        [
            &mut self.tables,
            &mut self.names,
            &mut self.guids,
            &mut self.series,
            &mut self.policies,
            &mut self.texts,
            &mut self.annotations,
            &mut self.tags,
        ]
    }

    /// Decodes the app area. An empty app area decodes as the roots of a new file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self::empty());
        }
        let damaged = |found: String, expected: &str| {
            Corrupt::new("roots in the meta block", 0, found, expected)
        };
        if bytes.len() < INLINE_AT {
            return Err(
                damaged(format!("{} bytes", bytes.len()), "at least the fixed part").into(),
            );
        }
        let version = get_u32(bytes, VERSION_AT);
        let count = get_u32(bytes, INLINE_COUNT_AT) as usize;
        if version != VERSION {
            return Err(damaged(format!("version {version}"), "version 6").into());
        }
        if count > INLINE_ROOTS_MAX || bytes.len() < INLINE_AT + count * INLINE_ENTRY_BYTES {
            return Err(damaged(format!("{count} inline roots"), "what fits").into());
        }
        let Some(delta) = bytes[DELTA_AT..].first_chunk::<DELTA_ROOT_BYTES>() else {
            return Err(damaged(
                format!("{} bytes", bytes.len()),
                "room for the delta's root",
            )
            .into());
        };
        let delta = DeltaRoot::decode(delta);
        let tree = |i: usize| Tree::decode(&bytes[TREES_AT + i * TREE_BYTES..]);
        let mut inline = Vec::with_capacity(count);
        for i in 0..count {
            let at = INLINE_AT + i * INLINE_ENTRY_BYTES;
            inline.push((get_u64(bytes, at), Tree::decode(&bytes[at + 8..])?));
        }
        let roots = Self {
            next_series: get_u64(bytes, NEXT_SERIES_AT),
            next_table: get_u64(bytes, NEXT_TABLE_AT),
            tables: tree(0)?,
            names: tree(1)?,
            guids: tree(2)?,
            series: tree(3)?,
            records: tree(4)?,
            extents: tree(5)?,
            policies: tree(6)?,
            texts: tree(7)?,
            annotations: tree(8)?,
            tags: tree(9)?,
            delta,
            clock: CommitClock::decode(&bytes[CLOCK_AT..RELATIONS_AT])?,
            relations: get_u64(bytes, RELATIONS_AT),
            inline,
        };
        roots.check_counters()?;
        Ok(roots)
    }

    /// Checks that the ids for the next series and table are not in use and that an owner id of 48 bits can hold them.
    fn check_counters(&self) -> Result<()> {
        let damaged = |what: &str, found: u64, expected: String| {
            Err(Corrupt::new(format!("{what} in the meta block"), 0, found, expected).into())
        };
        if self.next_series < self.series.len() || self.next_series > owner::LIMIT {
            let expected = format!("{} at least, one for each series", self.series.len());
            return damaged("next series id", self.next_series, expected);
        }
        if !(owner::FIRST_TABLE..owner::LIMIT).contains(&self.next_table) {
            let expected = format!("{} up to 2^48", owner::FIRST_TABLE);
            return damaged("next table id", self.next_table, expected);
        }
        Ok(())
    }

    /// Replaces the commit clock in already encoded roots.
    pub(crate) fn put_clock(bytes: &mut [u8], clock: &CommitClock) {
        bytes[CLOCK_AT..RELATIONS_AT].copy_from_slice(&clock.encode());
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        assert!(
            self.inline.len() <= INLINE_ROOTS_MAX,
            "the inline list is flushed when full"
        );
        let mut bytes = vec![0u8; INLINE_AT + self.inline.len() * INLINE_ENTRY_BYTES];
        put_u32(&mut bytes, VERSION_AT, VERSION);
        put_u32(&mut bytes, INLINE_COUNT_AT, self.inline.len() as u32);
        put_u64(&mut bytes, NEXT_SERIES_AT, self.next_series);
        put_u64(&mut bytes, NEXT_TABLE_AT, self.next_table);
        let trees = [
            &self.tables,
            &self.names,
            &self.guids,
            &self.series,
            &self.records,
            &self.extents,
            &self.policies,
            &self.texts,
            &self.annotations,
            &self.tags,
        ];
        for (i, tree) in trees.into_iter().enumerate() {
            let at = TREES_AT + i * TREE_BYTES;
            bytes[at..at + TREE_BYTES].copy_from_slice(&tree.encode());
        }
        bytes[DELTA_AT..DELTA_AT + DELTA_ROOT_BYTES].copy_from_slice(&self.delta.encode());
        put_u64(&mut bytes, RELATIONS_AT, self.relations);
        if let Some(clock) = &self.clock {
            Self::put_clock(&mut bytes, clock);
        }
        for (i, (id, tree)) in self.inline.iter().enumerate() {
            let at = INLINE_AT + i * INLINE_ENTRY_BYTES;
            put_u64(&mut bytes, at, *id);
            bytes[at + 8..at + INLINE_ENTRY_BYTES].copy_from_slice(&tree.encode());
        }
        bytes
    }
}
