//! An ordered table as a value: its root, its row count and other properties.
//!
//! ```text
//! 0      32     40   46  48       49      50      56         64
//! | root | rows | id | 0 | height | flags | keys  | sequence |
//! | 32 B | u64  |48 b|   |   u8   |  u8   | 48 b  |   u64    |
//! ```
//!
//! Flags: 1 = table of sets (`rows` then counts pairs and `keys` counts keys; otherwise `keys` is 0); 2 = there may be
//! rows with an extent or a nested table, so leaves have to be read before they are freed.
//!
//! The root of a nested table takes 28 bytes in its parent's leaf: a child in the form that a branch stores, the height
//! and the flags. It takes 36 bytes if the table's sequence has begun: then the next number follows.
//!
//! Invariants:
//! 1. A table without rows has no root and height 0; any other table has a root and a height above 0.
//! 2. The root's level is height - 1; every leaf has level 0.
//! 3. A page born in the running transaction has only ancestors born in it.
//! 4. After a failed operation the value must not be used: the transaction must be rolled back.
//!    Only `Limit` errors of keys and values, and `IsTable`, are found before anything has been changed.

use crate::error::damaged;
use crate::inline::inline_table;
use crate::page::entries::Group;
use crate::page::layout::{
    CHILD_BYTES, INNER_PAGE, NESTED, Payload, ROOT_BYTES, ROOT_PLAIN_BYTES, SETS, child_bytes,
    child_of, kind_of, tag,
};
use crate::page::node::Node;
use crate::page::row_count::weight;
use tidalite_base::{get_u64, put_u64};
use tidalite_pager::{Error, Kind, PTR_BYTES, PageRead, PageWrite, Ptr, Result};

/// Length in bytes of an encoded `Tree`.
pub const TREE_BYTES: usize = 64;

/// Maximum number of levels of a tree. Four levels suffice for a billion short keys in pages of 4 KiB; the limit leaves
/// room for the longest keys in the smallest pages, whose branches hold two children.
pub const HEIGHT_MAX: u8 = 64;

const ROWS_AT: usize = PTR_BYTES;
const ID_AT: usize = ROWS_AT + 8;
const HEIGHT_AT: usize = ID_AT + 8;
const FLAGS_AT: usize = HEIGHT_AT + 1;
const KEYS_AT: usize = FLAGS_AT + 1;
const SEQUENCE_AT: usize = KEYS_AT + 6;
const _: () = assert!(SEQUENCE_AT + 8 == TREE_BYTES);

/// Flag of a table in which each key has a set of values.
pub(crate) const MULTI: u8 = 1;
/// Flag of a table whose leaves may refer to extents or nested tables.
pub(crate) const HAS_REFERENCES: u8 = 2;
/// Flag of a table that is nested in another table. Only set in memory: in the file the place of the root implies it.
pub(crate) const INNER: u8 = 4;

/// An ordered table from byte keys to byte values; keys are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub(crate) root: Ptr,
    pub(crate) rows: u64,
    pub(crate) id: u64,
    pub(crate) height: u8,
    pub(crate) flags: u8,
    /// Number of distinct keys in a table of sets; 0 in any other table.
    pub(crate) keys: u64,
    pub(crate) sequence: u64,
}

impl Tree {
    /// Creates an empty table; `id` (48 bits) is written into each of its pages.
    ///
    /// # Panics
    /// When `id` has more than 48 bits.
    #[must_use]
    pub fn new(id: u64) -> Self {
        assert!(id < 1 << 48, "owner ids have 48 bits");
        Self {
            root: Ptr::NULL,
            rows: 0,
            id,
            height: 0,
            flags: 0,
            keys: 0,
            sequence: 0,
        }
    }

    /// Creates an empty table in which each key has a set of values.
    ///
    /// # Panics
    /// As `new`.
    #[must_use]
    pub fn new_multi(id: u64) -> Self {
        Self {
            flags: MULTI,
            ..Self::new(id)
        }
    }

    /// True for a table in which each key has a set of values.
    #[must_use]
    pub fn is_multi(&self) -> bool {
        self.flags & MULTI != 0
    }

    /// Number of distinct keys of the table.
    #[must_use]
    pub fn keys(&self) -> u64 {
        if self.is_multi() {
            self.keys
        } else {
            self.rows
        }
    }

    /// The next number of the table's sequence.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Takes `count` numbers of the table's sequence and returns the first; `None` if the sequence is exhausted.
    pub fn take_sequence(&mut self, count: u64) -> Option<u64> {
        let first = self.sequence;
        self.sequence = first.checked_add(count)?;
        Some(first)
    }

    /// A table with the same id, kind and sequence, without rows.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            root: Ptr::NULL,
            rows: 0,
            keys: 0,
            height: 0,
            flags: self.flags & (MULTI | INNER),
            ..*self
        }
    }

    /// Encodes the root of a nested table in the form that the leaf of its parent table stores.
    pub(crate) fn encode_nested_root(&self) -> Vec<u8> {
        debug_assert!(
            !self.root.is_null() && self.height > 0,
            "a table with pages"
        );
        debug_assert!(self.is_inner() && !self.is_multi(), "a nested table");
        let mut bytes = Vec::with_capacity(ROOT_BYTES);
        bytes.extend_from_slice(&child_bytes(&self.root, self.rows));
        bytes.extend_from_slice(&[self.height, self.flags & !INNER]);
        if self.sequence > 0 {
            bytes.extend_from_slice(&self.sequence.to_le_bytes());
        }
        bytes
    }

    /// Creates an empty table that is to be nested in a table with this id.
    pub(crate) fn new_inner(id: u64) -> Self {
        Self {
            flags: INNER,
            ..Self::new(id)
        }
    }

    /// True for a table nested in another table. A tree from [`of_leaf`](Self::of_leaf) may be a part of such a table.
    #[must_use]
    pub fn is_inner(&self) -> bool {
        self.flags & INNER != 0
    }

    /// The flags that each page of this table carries.
    pub(crate) fn page_flags(&self) -> u8 {
        let inner = if self.is_inner() { INNER_PAGE } else { 0 };
        inner | if self.is_multi() { SETS } else { 0 }
    }

    /// Decodes the root of a nested table, stored in the leaf at `leaf_at` of a table with this id.
    pub(crate) fn decode_nested_root(
        bytes: &[u8],
        id: u64,
        page_size: usize,
        leaf_at: u64,
    ) -> Result<Self> {
        let sequence = match bytes.len() {
            ROOT_PLAIN_BYTES => Some(0),
            ROOT_BYTES => Some(get_u64(bytes, ROOT_PLAIN_BYTES)).filter(|begun| *begun > 0),
            _ => None,
        };
        let tree = sequence.map(|sequence| {
            let height = bytes[CHILD_BYTES];
            let (root, rows) = child_of(bytes, height.max(1) - 1, page_size);
            Self {
                root,
                rows,
                height,
                flags: bytes[CHILD_BYTES + 1] ^ INNER,
                sequence,
                ..Self::new(id)
            }
        });
        tree.filter(|tree| {
            let whole = (1..=HEIGHT_MAX).contains(&tree.height);
            let known = tree.is_inner() && tree.flags & !(HAS_REFERENCES | INNER) == 0;
            whole && !tree.root.is_null() && tree.rows > 0 && known
        })
        .ok_or_else(|| damaged("root of a nested table", leaf_at, bytes.len(), "a root"))
    }

    /// The pointer to the root page; null for an empty table.
    #[must_use]
    pub fn root(&self) -> Ptr {
        self.root
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// True for a table without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_null()
    }

    /// The id that the pages of this table carry.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of levels of the tree: 0 when empty, 1 for a single leaf.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.height
    }

    /// Encodes the table as the bytes that a catalog stores.
    #[must_use]
    pub fn encode(&self) -> [u8; TREE_BYTES] {
        debug_assert!(
            self.root.is_null() == (self.height == 0),
            "a root has a level"
        );
        debug_assert!(!self.is_inner(), "the catalog holds outer tables");
        let mut bytes = [0; TREE_BYTES];
        self.root.encode(&mut bytes, 0);
        put_u64(&mut bytes, ROWS_AT, self.rows);
        put_u64(&mut bytes, ID_AT, self.id);
        put_u64(&mut bytes, FLAGS_AT - 1, self.keys << 16);
        bytes[HEIGHT_AT] = self.height;
        bytes[FLAGS_AT] = self.flags;
        put_u64(&mut bytes, SEQUENCE_AT, self.sequence);
        bytes
    }

    /// Decodes the result of `encode`; `bytes` may be longer.
    ///
    /// # Errors
    /// `Corrupt` for bytes that `encode` cannot have produced.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<TREE_BYTES>() else {
            return Err(damaged("table root", 0, bytes.len(), TREE_BYTES));
        };
        let tree = Self {
            root: Ptr::decode(bytes, 0),
            rows: get_u64(bytes, ROWS_AT),
            id: get_u64(bytes, ID_AT),
            height: bytes[HEIGHT_AT],
            flags: bytes[FLAGS_AT],
            keys: get_u64(bytes, FLAGS_AT - 1) >> 16,
            sequence: get_u64(bytes, SEQUENCE_AT),
        };
        let known = tree.flags & !(MULTI | HAS_REFERENCES) == 0
            && (tree.keys == 0 || tree.is_multi() && tree.keys <= tree.rows);
        let empty = tree.root == Ptr::NULL && tree.height == 0 && tree.rows == 0;
        let filled = !tree.root.is_null()
            && (1..=HEIGHT_MAX).contains(&tree.height)
            && tree.rows > 0
            && tree.root.kind == kind_of(tree.height - 1);
        // Compares with the encoded result, to detect set bits that have no meaning.
        if !(known && (empty || filled)) || tree.id >= 1 << 48 || tree.encode() != *bytes {
            return Err(damaged(
                "table root",
                tree.root.addr,
                format!("{tree:?}"),
                "root, rows and height that agree",
            ));
        }
        Ok(tree)
    }

    /// Number of keys below `key`; in a table of sets, number of key-value pairs with a smaller key.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page per level; the row counts of a branch's entries before the child are added up.
    pub fn rank<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let mut rank = 0u64;
        let mut ptr = self.root;
        for level in (0..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            if level == 0 {
                let index = node.find(r, key)?.0;
                rank = rank.wrapping_add(self.leaf_rows(&node, 0..index)?);
                break;
            }
            let child = node.find_child(r, key)?;
            for before in 0..child {
                rank = rank.wrapping_add(node.child(before)?.1);
            }
            ptr = node.child(child)?.0;
        }
        Ok(rank)
    }

    /// Seals every page that this transaction wrote, bottom-up: computes checksums and stores the final pointers. Must
    /// be called before the root is stored anywhere; the table may be changed and sealed again afterwards.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    ///
    /// # Cost
    /// Reads and writes only the pages that this transaction wrote.
    pub fn seal<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        if !self.root.is_null() && self.root.birth == w.txn() {
            assert!(self.height > 0, "a table with a root has a level");
            let may_nest = self.flags & HAS_REFERENCES != 0;
            let own = &mut Vec::with_capacity(OWN);
            self.root = seal_below(w, &self.root, self.height - 1, may_nest, own)?;
        }
        Ok(())
    }

    /// An empty group for entries of this table's pages.
    pub(crate) fn group<'a>(&self, leaf: bool, page_size: usize) -> Group<'a> {
        Group::empty(leaf, page_size, self.is_multi())
    }

    /// Number of rows that the entries of a leaf in this range stand for.
    pub(crate) fn leaf_rows(&self, node: &Node<'_>, range: std::ops::Range<usize>) -> Result<u64> {
        debug_assert!(range.end <= node.count(), "the entries exist");
        if !self.is_multi() {
            return Ok(range.len() as u64);
        }
        let mut rows = 0u64;
        for index in range {
            // The row counts in a hostile file may overflow.
            rows = rows.wrapping_add(weight(node.cell(index)?.payload()));
        }
        Ok(rows)
    }

    /// Allocates a page without entries that belongs to the transaction.
    pub(crate) fn new_page<W: PageWrite>(&self, w: &mut W, level: u8) -> Result<Ptr> {
        debug_assert!(level < HEIGHT_MAX, "the height was limited");
        let kind: Kind = kind_of(level);
        let ptr = w.new_page(kind, self.id)?;
        let page = w.page_mut(&ptr)?;
        crate::page::edit::init(page, level, 0);
        page[crate::page::layout::FLAGS_AT] = self.page_flags();
        Ok(ptr)
    }
}

/// Seals the children born in this transaction, stores their final pointers, then seals the page. The recursion depth
/// is the height of the tree plus the heights of nested tables. `may_nest`: leaves may lead to nested tables. `own` is
/// a stack with the children of the pages above that are still to be sealed; this call leaves it unchanged.
fn seal_below<W: PageWrite>(
    w: &mut W,
    ptr: &Ptr,
    level: u8,
    may_nest: bool,
    own: &mut Vec<(usize, Ptr)>,
) -> Result<Ptr> {
    debug_assert!(ptr.kind == kind_of(level), "a page of this level");
    if level > 0 {
        let first = own.len();
        own_children(w, ptr, level, own)?;
        for at in first..own.len() {
            let (index, child) = own[at];
            let sealed = seal_below(w, &child, level - 1, may_nest, own)?;
            debug_assert!(own.len() > at, "the stack is unchanged");
            if sealed != child {
                crate::page::edit::set_child_ptr(
                    w.page_mut(ptr)?,
                    level,
                    ptr.addr,
                    index,
                    &sealed,
                )?;
            }
        }
        own.truncate(first);
    } else if let Some(sealed) = w.sealed(ptr)
        && !may_nest
    {
        // The page is sealed and may already be written; it need not be read again.
        return Ok(sealed);
    } else if may_nest && w.page(ptr)?[crate::page::layout::FLAGS_AT] & NESTED != 0 {
        seal_nested(w, ptr)?;
    }
    w.seal_page(ptr)
}

/// Seals the nested tables of a leaf whose roots were written by this transaction, and stores their final pointers.
fn seal_nested<W: PageWrite>(w: &mut W, leaf: &Ptr) -> Result<()> {
    let mut nested = Vec::new();
    let page = w.page(leaf)?;
    let node = Node::open(&page, 0, leaf.addr)?;
    for index in 0..node.count() {
        let cell = node.cell(index)?;
        if cell.payload().nested() && !has_no_references(cell.tag, cell.payload) {
            nested.push((index, cell.tag, cell.payload.to_vec()));
        }
    }
    drop(page);
    for (index, tag, mut bytes) in nested {
        if seal_payload(w, tag, &mut bytes, leaf.addr, 0)? {
            let bytes = &bytes[..];
            let payload = Payload { tag, bytes };
            crate::page::edit::overwrite(w.page_mut(leaf)?, leaf.addr, index, payload)?;
        }
    }
    Ok(())
}

/// True if the payload is a packed inline set, which refers to no pages.
fn has_no_references(tag: u32, bytes: &[u8]) -> bool {
    tag::kind(tag) == tag::NESTED && inline_table::is_packed(bytes)
}

/// Seals the pages of a nested table and updates the table's root in `bytes`; returns true if the root changed.
fn seal_payload<W: PageWrite>(
    w: &mut W,
    tag: u32,
    bytes: &mut [u8],
    leaf_at: u64,
    depth: usize,
) -> Result<bool> {
    check_depth(depth)?;
    if tag::kind(tag) == tag::ROOT {
        let mut tree = Tree::decode_nested_root(bytes, 0, w.page_size(), leaf_at)?;
        let before = tree.root;
        tree.seal(w)?;
        bytes.copy_from_slice(&tree.encode_nested_root());
        return Ok(tree.root != before);
    }
    let mut below = Vec::new();
    for cell in inline_table::cells(bytes, leaf_at)? {
        let cell = cell?;
        if tag::kind(cell.tag) >= tag::NESTED {
            below.push((
                cell.tag,
                cell.payload_at..cell.payload_at + cell.payload.len(),
            ));
        }
    }
    let mut changed = false;
    for (tag, range) in below {
        changed |= seal_payload(w, tag, &mut bytes[range], leaf_at, depth + 1)?;
    }
    Ok(changed)
}

/// Initial capacity of the stack of children that are still to be sealed: enough for a transaction of a few rows.
const OWN: usize = 16;

/// Maximum depth of tables nested in one another.
pub const DEPTH_MAX: usize = 64;

/// Returns `Limit` if the depth exceeds the maximum depth of tables nested in one another.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth < DEPTH_MAX {
        return Ok(());
    }
    Err(Error::Limit {
        what: "tables nested in one another",
        found: depth as u64 + 1,
        limit: DEPTH_MAX as u64,
    })
}

/// Pushes the pointers of the children that were written by this transaction to `own`, with their indexes in the
/// branch.
fn own_children<W: PageWrite>(
    w: &W,
    ptr: &Ptr,
    level: u8,
    own: &mut Vec<(usize, Ptr)>,
) -> Result<()> {
    let page = w.page(ptr)?;
    let node = Node::open(&page, level, ptr.addr)?;
    for index in node.born_in(w.txn()) {
        own.push((index, node.child(index)?.0));
    }
    Ok(())
}
