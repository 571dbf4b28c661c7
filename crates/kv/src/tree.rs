//! An ordered table as a value: where its root is and what lies below.
//!
//! ```text
//! 0      32     40   46  48       49        64
//! | root | rows | id | 0 | height | 0 ...    |
//! | 32 B | u64  |48 b|   |   u8   |  15 B    |
//! ```
//!
//! Invariants:
//! 1. No root, no height, no rows, all three together.
//! 2. The root's level is height - 1; every leaf has level 0.
//! 3. A page born in the running transaction has only ancestors born in it.
//! 4. After an operation that failed the value is not to be used: the transaction must be rolled back.
//!    Only `Limit` errors of keys and values are found before anything has been changed.

use crate::node::{Node, damaged, kind_of};
use crate::value::{self, Value};
use tidalite_base::{get_u64, put_u64};
use tidalite_pager::{Error, Kind, PTR_BYTES, PageRead, PageRef, PageWrite, Ptr, Result};

/// Bytes of an encoded tree.
pub const TREE_BYTES: usize = 64;

/// Levels of a tree at most. Four suffice for a billion short keys in pages of 4 KiB; the bound leaves
/// room for the longest keys in the smallest pages, whose branches hold two children.
pub const HEIGHT_MAX: u8 = 64;

const ROWS_AT: usize = PTR_BYTES;
const ID_AT: usize = ROWS_AT + 8;
const HEIGHT_AT: usize = ID_AT + 8;
const ZERO_AT: usize = HEIGHT_AT + 1;
const _: () = assert!(ZERO_AT + 15 == TREE_BYTES);

/// An ordered table: bytes to bytes, each key once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    pub(crate) root: Ptr,
    pub(crate) rows: u64,
    pub(crate) id: u64,
    pub(crate) height: u8,
}

impl Tree {
    /// An empty table; `id` (48 bits) is written into each of its pages.
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
        }
    }

    /// The root page; null for an empty table.
    #[must_use]
    pub fn root(&self) -> Ptr {
        self.root
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_null()
    }

    /// The number that its pages carry.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Levels: 0 when empty, 1 for a single leaf.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.height
    }

    /// The bytes that a catalog stores.
    #[must_use]
    pub fn encode(&self) -> [u8; TREE_BYTES] {
        let mut bytes = [0; TREE_BYTES];
        self.root.encode(&mut bytes, 0);
        put_u64(&mut bytes, ROWS_AT, self.rows);
        put_u64(&mut bytes, ID_AT, self.id);
        bytes[HEIGHT_AT] = self.height;
        bytes
    }

    /// Reads what `encode` wrote; more bytes may follow.
    ///
    /// # Errors
    /// `Corrupt` for bytes that no tree encodes to.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<TREE_BYTES>() else {
            return Err(damaged("table root", 0, bytes.len(), TREE_BYTES));
        };
        let tree = Self {
            root: Ptr::decode(bytes, 0),
            rows: get_u64(bytes, ROWS_AT),
            id: get_u64(bytes, ID_AT),
            height: bytes[HEIGHT_AT],
        };
        let empty = tree.root == Ptr::NULL && tree.height == 0 && tree.rows == 0;
        let filled = !tree.root.is_null()
            && (1..=HEIGHT_MAX).contains(&tree.height)
            && tree.rows > 0
            && tree.root.kind == kind_of(tree.height - 1);
        // Encoding again also tells bits that have no meaning.
        if !(empty || filled) || tree.id >= 1 << 48 || tree.encode() != *bytes {
            return Err(damaged(
                "table root",
                tree.root.addr,
                format!("{tree:?}"),
                "root, rows and height that agree",
            ));
        }
        Ok(tree)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page a level.
    pub fn get<'r, R: PageRead>(&self, r: &'r R, key: &[u8]) -> Result<Option<Value<'r>>> {
        let Some((page, at)) = self.leaf_for(r, key)? else {
            return Ok(None);
        };
        let node = Node::open(&page, 0, at)?;
        let (index, found) = node.find(key)?;
        if !found {
            return Ok(None);
        }
        let cell = node.cell(index)?;
        if let Some(reference) = value::reference(cell.tag, cell.payload, r.page_size(), at)? {
            return Ok(Some(Value::referenced(r, reference)));
        }
        let range = cell.payload_at..cell.payload_at + cell.payload.len();
        Ok(Some(Value::inline(page, range)))
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        match self.leaf_for(r, key)? {
            Some((page, at)) => Ok(Node::open(&page, 0, at)?.find(key)?.1),
            None => Ok(false),
        }
    }

    /// The leaf that would hold `key`, and its address.
    #[inline]
    fn leaf_for<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
    ) -> Result<Option<(PageRef<'r>, u64)>> {
        if self.root.is_null() {
            return Ok(None);
        }
        let mut ptr = self.root;
        for level in (1..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            ptr = node.child(node.find_child(key)?)?.0;
        }
        Ok(Some((r.page(&ptr)?, ptr.addr)))
    }

    /// How many keys are below `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page a level; a branch's entries before the child are added up.
    pub fn rank<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<u64> {
        let mut rank = 0u64;
        let mut ptr = self.root;
        for level in (0..self.height).rev() {
            let page = r.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            if level == 0 {
                rank = rank.wrapping_add(node.find(key)?.0 as u64);
                break;
            }
            let child = node.find_child(key)?;
            for before in 0..child {
                rank = rank.wrapping_add(node.child(before)?.1);
            }
            ptr = node.child(child)?.0;
        }
        Ok(rank)
    }

    /// Completes every page that this transaction wrote: checksums, bottom-up. To be called before the
    /// root is stored anywhere; the table may be changed and sealed again afterwards.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    ///
    /// # Cost
    /// The pages that this transaction wrote and nothing else.
    pub fn seal<W: PageWrite>(&mut self, w: &mut W) -> Result<()> {
        if !self.root.is_null() && self.root.birth == w.txn() {
            self.root = seal_below(w, &self.root, self.height - 1)?;
        }
        Ok(())
    }

    /// A page without entries, owned by the transaction.
    pub(crate) fn new_page<W: PageWrite>(&self, w: &mut W, level: u8) -> Result<Ptr> {
        let kind: Kind = kind_of(level);
        let ptr = w.new_page(kind, self.id)?;
        crate::edit::init(w.page_mut(&ptr)?, level, 0);
        Ok(ptr)
    }

    /// Checks a key's length before anything is changed.
    pub(crate) fn check_key(page_size: usize, key: &[u8]) -> Result<()> {
        let limit = crate::node::key_bytes_max(page_size);
        if key.len() > limit {
            return Err(Error::Limit {
                what: "bytes of a table's key (a third of a page)",
                found: key.len() as u64,
                limit: limit as u64,
            });
        }
        Ok(())
    }
}

/// Seals the children born in this transaction, stores their final pointers, seals the page.
/// Recursion is as deep as the tree is high.
fn seal_below<W: PageWrite>(w: &mut W, ptr: &Ptr, level: u8) -> Result<Ptr> {
    if level > 0 {
        for (index, child) in own_children(w, ptr, level)? {
            let sealed = seal_below(w, &child, level - 1)?;
            if sealed != child {
                crate::edit::set_child_ptr(w.page_mut(ptr)?, level, ptr.addr, index, &sealed)?;
            }
        }
    }
    w.seal_page(ptr)
}

/// The children of a branch that were born in this transaction, with their places.
fn own_children<W: PageWrite>(w: &W, ptr: &Ptr, level: u8) -> Result<Vec<(usize, Ptr)>> {
    let page = w.page(ptr)?;
    let node = Node::open(&page, level, ptr.addr)?;
    let mut own = Vec::new();
    for index in 0..node.count() {
        let (child, _) = node.child(index)?;
        if child.birth == w.txn() {
            own.push((index, child));
        }
    }
    Ok(own)
}
