//! Checks every rule for the pages of a table, and reports every page and extent that the table uses.

use crate::error::damaged;
use crate::inline::inline_table;
use crate::page::key;
use crate::page::layout::{
    ASCENDS, FLAGS_AT, NESTED, Payload, ROOT_BYTES, head_of, slot_bytes, tag,
};
use crate::page::node::{Cell, Node};
use crate::page::overflow::check_chunks;
use crate::page::read_ahead::request_children;
use crate::table::tree::{DEPTH_MAX, HAS_REFERENCES, Tree};
use crate::value;
use std::collections::HashSet;
use tidalite_base::{Corrupt, TxnId};
use tidalite_pager::{Error, Header, Kind, PageRead, Ptr, Result};

/// A range of the file that a table uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedPages {
    /// Byte offset in the file.
    pub addr: u64,
    /// Number of pages.
    pub pages: u64,
    /// Type of the contents: "table branch", "table leaf", "large value" or "long key".
    pub what: &'static str,
}

/// Damage that a check has found, and the range of keys that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first key that may be affected.
    pub from: Vec<u8>,
    /// The first key after the affected keys; `None` if all following keys are affected.
    pub to: Option<Vec<u8>>,
    /// Description of the damage: where it is, what was found and what was expected.
    pub corrupt: Corrupt,
}

/// The keys that a page may hold: `from <= key < to`.
#[derive(Clone, Copy)]
struct KeySpan<'k> {
    from: &'k [u8],
    to: Option<&'k [u8]>,
}

/// The callbacks that receive a check's results, and the state of the check.
struct Checker<'h> {
    claim: &'h mut dyn FnMut(UsedPages),
    damage: &'h mut dyn FnMut(Damage),
    /// Nesting depth of the table that is being checked.
    depth: usize,
    /// Roots of nested tables that were reached, because a hostile file may refer to one twice.
    roots: &'h mut HashSet<u64>,
    /// Pages and extents written by this transaction or before are skipped.
    since: Option<TxnId>,
    /// Number of distinct keys seen so far.
    keys: u64,
}

impl Checker<'_> {
    fn skips(&self, birth: TxnId) -> bool {
        self.since.is_some_and(|since| birth <= since)
    }
}

impl KeySpan<'_> {
    /// Passes a `Corrupt` error to `damage` and returns `None`; returns all other errors.
    fn report<T>(&self, result: Result<T>, damage: &mut dyn FnMut(Damage)) -> Result<Option<T>> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Error::Corrupt(corrupt)) => {
                damage(Damage {
                    from: self.from.to_vec(),
                    to: self.to.map(<[u8]>::to_vec),
                    corrupt,
                });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn holds(&self, key: &[u8]) -> bool {
        self.from <= key && self.to.is_none_or(|to| key < to)
    }
}

impl Tree {
    /// Reads the whole table, including large values, and checks it: kinds, owners, levels, order, heads,
    /// prefixes, separators, counts, cells that fill their page without overlap, and chunks. Each
    /// page and extent is claimed once; the caller must find pages that are claimed twice or not at all.
    ///
    /// # Errors
    /// `Corrupt` for the first damage found; `Io`.
    ///
    /// # Cost
    /// Every page and chunk is read once.
    pub fn check<R: PageRead>(&self, r: &R, claim: &mut dyn FnMut(UsedPages)) -> Result<()> {
        let mut first = None;
        self.check_each(r, claim, &mut |damage| {
            first.get_or_insert(damage.corrupt);
        })?;
        first.map_or(Ok(()), |corrupt| Err(Error::Corrupt(corrupt)))
    }

    /// As [`check`](Self::check), but continues after damage: each damage is reported with the keys that it affects,
    /// and everything that is not below a damaged page is checked.
    ///
    /// # Errors
    /// `Io`, and other errors except `Corrupt`.
    ///
    /// # Cost
    /// As `check`.
    pub fn check_each<R: PageRead>(
        &self,
        r: &R,
        claim: &mut dyn FnMut(UsedPages),
        damage: &mut dyn FnMut(Damage),
    ) -> Result<()> {
        self.check_from(r, None, claim, damage)
    }

    /// As [`check`](Self::check), for the changes after transaction `since`: a page, value or nested table that was not
    /// written after `since` is skipped with everything below it. Rows and keys are counted only if nothing was
    /// skipped.
    ///
    /// # Errors
    /// As for `check`.
    ///
    /// # Cost
    /// Every page and chunk written after `since` is read once, and so are the long keys in those pages.
    pub fn check_since<R: PageRead>(&self, r: &R, since: TxnId) -> Result<()> {
        let mut first = None;
        self.check_from(r, Some(since), &mut |_| {}, &mut |damage| {
            first.get_or_insert(damage.corrupt);
        })?;
        first.map_or(Ok(()), |corrupt| Err(Error::Corrupt(corrupt)))
    }

    fn check_from<R: PageRead>(
        &self,
        r: &R,
        since: Option<TxnId>,
        claim: &mut dyn FnMut(UsedPages),
        damage: &mut dyn FnMut(Damage),
    ) -> Result<()> {
        let mut roots = HashSet::new();
        let mut checker = Checker {
            claim,
            damage,
            depth: 0,
            roots: &mut roots,
            since,
            keys: 0,
        };
        self.check_all(r, &mut checker)
    }

    fn check_all<R: PageRead>(&self, r: &R, checker: &mut Checker<'_>) -> Result<()> {
        let everything = KeySpan {
            from: &[],
            to: None,
        };
        let rows = match self.height {
            0 => Some(0),
            height => self.check_below(r, &self.root, height - 1, everything, checker)?,
        };
        let damage = &mut *checker.damage;
        if rows.is_some() && self.is_multi() && checker.keys != self.keys {
            let error = damaged("keys of a table", self.root.addr, self.keys, checker.keys);
            everything.report(Err::<(), _>(error), damage)?;
        }
        if let Some(rows) = rows
            && rows != self.rows
        {
            let error = damaged("table root", self.root.addr, self.rows, rows);
            everything.report(Err::<(), _>(error), damage)?;
        }
        Ok(())
    }

    /// Checks a page and everything below it. Returns the number of rows, or `None` if something is damaged or skipped.
    /// A page that several branches refer to fails the check of its keys, because they cannot lie in two spans of keys.
    fn check_below<R: PageRead>(
        &self,
        r: &R,
        ptr: &Ptr,
        level: u8,
        span: KeySpan<'_>,
        checker: &mut Checker<'_>,
    ) -> Result<Option<u64>> {
        if checker.skips(ptr.birth) {
            return Ok(None);
        }
        (checker.claim)(UsedPages {
            addr: ptr.addr,
            pages: 1,
            what: if level == 0 {
                "table leaf"
            } else {
                "table branch"
            },
        });
        let page = r.page(ptr);
        let Some(page) = span.report(page, checker.damage)? else {
            return Ok(None);
        };
        let opened = self.open_checked(r, &page, ptr, level, span);
        let Some(node) = span.report(opened, checker.damage)? else {
            return Ok(None);
        };
        if self.flags & HAS_REFERENCES != 0 {
            span.report(self.check_rests(r, &node, checker), checker.damage)?;
        }
        if level == 0 {
            for index in 0..node.count() {
                let nests = page[FLAGS_AT] & NESTED != 0;
                let checked = self.check_entry(r, &node, index, nests, checker);
                if checked.is_ok() {
                    continue;
                }
                let key = node.key(r, index)?;
                let next = [&key, &[0][..]].concat();
                let only = KeySpan {
                    from: &key,
                    to: Some(&next),
                };
                only.report(checked, checker.damage)?;
            }
            checker.keys += node.count() as u64;
            return span.report(self.leaf_rows(&node, 0..node.count()), checker.damage);
        }
        if level == 1 {
            request_children(r, &node);
        }
        let mut rows = Some(0u64);
        let mut from = span.from.to_vec();
        for index in 0..node.count() {
            let next = if index + 1 < node.count() {
                Some(node.key(r, index + 1)?)
            } else {
                None
            };
            let part = KeySpan {
                from: &from,
                to: next.as_deref().or(span.to),
            };
            let child = part.report(node.child(index), checker.damage)?;
            let found = match &child {
                Some((child, _)) => self.check_below(r, child, level - 1, part, checker)?,
                None => None,
            };
            match (child, found) {
                (Some((_, counted)), Some(found)) => {
                    if found != counted {
                        let error = damaged("rows of a table branch", ptr.addr, counted, found);
                        part.report(Err::<(), _>(error), checker.damage)?;
                    }
                    rows = rows.map(|rows| rows + found);
                }
                _ => rows = None,
            }
            from = next.unwrap_or_default();
        }
        Ok(rows)
    }

    /// Checks everything about a page that needs no other page, except the extents with the rest of its long keys.
    fn open_checked<'p, R: PageRead>(
        &self,
        r: &R,
        page: &'p [u8],
        ptr: &Ptr,
        level: u8,
        span: KeySpan<'_>,
    ) -> Result<Node<'p>> {
        let node = Node::open(page, level, ptr.addr)?;
        self.check_header(page, ptr)?;
        check_cells(&node, page.len())?;
        self.check_keys(r, &node, page.len(), span)?;
        Ok(node)
    }

    /// Checks the extents with the remaining bytes of a page's long keys.
    fn check_rests<R: PageRead>(
        &self,
        r: &R,
        node: &Node<'_>,
        checker: &mut Checker<'_>,
    ) -> Result<()> {
        for rest in node.rests()? {
            let reference = key::reference(&rest, r.page_size(), node.at())?;
            let extent = reference.extent();
            if checker.skips(extent.birth) {
                continue;
            }
            (checker.claim)(UsedPages {
                addr: extent.addr,
                pages: extent.pages,
                what: "long key",
            });
            check_chunks(r, reference, self.id)?;
        }
        Ok(())
    }

    /// Checks the pages and extents to which an entry of a leaf refers.
    fn check_entry<R: PageRead>(
        &self,
        r: &R,
        node: &Node<'_>,
        index: usize,
        nests: bool,
        checker: &mut Checker<'_>,
    ) -> Result<()> {
        let cell = node.cell(index)?;
        let unsaid = cell.payload().nested() && !nests
            || tag::kind(cell.tag) != tag::INLINE && self.flags & HAS_REFERENCES == 0;
        if unsaid {
            let found = "an extent or a nested table";
            return Err(damaged(
                "flags of a table",
                node.at(),
                found,
                "plain values",
            ));
        }
        let begun = match tag::kind(cell.tag) {
            tag::NESTED => inline_table::sequence(cell.payload) > 0,
            tag::ROOT => cell.payload.len() == ROOT_BYTES,
            _ => false,
        };
        if self.is_multi() && begun {
            return Err(damaged("set of values", node.at(), "a sequence", "none"));
        }
        self.check_payload(r, cell.payload(), node.at(), checker)
    }

    fn check_payload<R: PageRead>(
        &self,
        r: &R,
        payload: Payload<'_>,
        leaf_at: u64,
        checker: &mut Checker<'_>,
    ) -> Result<()> {
        match tag::kind(payload.tag) {
            tag::INLINE => Ok(()),
            tag::REFERENCE => {
                let found = value::reference(payload.tag, payload.bytes, r.page_size(), leaf_at)?;
                let Some(reference) = found else {
                    return Ok(());
                };
                let extent = reference.extent();
                if checker.skips(extent.birth) {
                    return Ok(());
                }
                (checker.claim)(UsedPages {
                    addr: extent.addr,
                    pages: extent.pages,
                    what: "large value",
                });
                check_chunks(r, reference, self.id)
            }
            tag::NESTED => {
                if checker.depth >= DEPTH_MAX {
                    return Err(damaged("nested table", leaf_at, checker.depth, DEPTH_MAX));
                }
                checker.depth += 1;
                let checked = inline_table::cells(payload.bytes, leaf_at)?.try_for_each(|cell| {
                    let cell = cell?;
                    let payload = Payload {
                        tag: cell.tag,
                        bytes: cell.payload,
                    };
                    self.check_payload(r, payload, leaf_at, checker)
                });
                debug_assert!(checker.depth > 0, "depths are balanced");
                checker.depth -= 1;
                checked
            }
            _ => {
                let tree =
                    Self::decode_nested_root(payload.bytes, self.id, r.page_size(), leaf_at)?;
                if checker.depth >= DEPTH_MAX || !checker.roots.insert(tree.root.addr) {
                    let found = format!("nested table at {}, again or too deep", tree.root.addr);
                    return Err(damaged(
                        "table leaf",
                        leaf_at,
                        found,
                        "each nested table once",
                    ));
                }
                let mut first = None;
                let mut below = Checker {
                    claim: &mut *checker.claim,
                    damage: &mut |damage| {
                        first.get_or_insert(damage.corrupt);
                    },
                    depth: checker.depth + 1,
                    roots: &mut *checker.roots,
                    since: checker.since,
                    keys: 0,
                };
                tree.check_all(r, &mut below)?;
                first.map_or(Ok(()), |corrupt| Err(Error::Corrupt(corrupt)))
            }
        }
    }

    /// Checks that a page belongs to this table. A page of a running transaction has no header until it is sealed.
    fn check_header(&self, page: &[u8], ptr: &Ptr) -> Result<()> {
        let header = Header::decode(page);
        if header.address == ptr.addr && header.birth == ptr.birth && header.owner != self.id {
            return Err(damaged(
                "table page",
                ptr.addr,
                format!("a page of table {}", header.owner),
                format!("table {}", self.id),
            ));
        }
        let free = match ptr.kind {
            Kind::KvLeaf => NESTED | ASCENDS,
            _ => 0,
        };
        let flags = self.page_flags();
        if page[FLAGS_AT] & !free != flags {
            return Err(damaged(
                "flags of a table page",
                ptr.addr,
                page[FLAGS_AT],
                flags,
            ));
        }
        Ok(())
    }
}

/// Checks that cells do not overlap, that cells and dead bytes together fill the page from the heap on, and that each
/// cell is small enough for the page to be split.
fn check_cells(node: &Node<'_>, page_size: usize) -> Result<()> {
    let cells = (0..node.count()).map(|index| node.cell(index));
    let mut cells: Vec<Cell<'_>> = cells.collect::<Result<_>>()?;
    cells.sort_unstable_by_key(|cell| cell.offset);
    let shape = node.shape();
    let mut end = shape.heap;
    let mut gaps = 0;
    for cell in &cells {
        if cell.offset < end {
            let found = format!("cells that overlap at {}", cell.offset);
            return Err(damaged(
                "table page",
                node.at(),
                found,
                "one after the other",
            ));
        }
        gaps += cell.offset - end;
        end = cell.offset + cell.size;
        let most = crate::page::layout::cell_bytes_max(page_size);
        if cell.size + slot_bytes(node.is_leaf(), page_size) > most {
            return Err(damaged("table cell", node.at(), cell.size, most));
        }
    }
    gaps += page_size - end;
    if gaps != shape.dead {
        return Err(damaged(
            "dead bytes of a table page",
            node.at(),
            shape.dead,
            gaps,
        ));
    }
    Ok(())
}

impl Tree {
    /// Checks that keys ascend inside the span of keys of their page, that their heads are right, and that a key has an
    /// extent exactly if it is too long for the page.
    fn check_keys<R: PageRead>(
        &self,
        r: &R,
        node: &Node<'_>,
        page_size: usize,
        span: KeySpan<'_>,
    ) -> Result<()> {
        let most = key::prefix_bytes_max(page_size);
        if node.prefix().len() > most {
            return Err(damaged(
                "prefix of a table page",
                node.at(),
                node.prefix().len(),
                most,
            ));
        }
        let mut last: Option<Vec<u8>> = None;
        for index in 0..node.count() {
            let cell = node.cell(index)?;
            let (suffix, implied) = (cell.suffix, !node.is_leaf() && index == 0);
            if node.head(index) != head_of(suffix) {
                let found = format!("{:08x}", node.head(index));
                let expected = format!("{:08x}", head_of(suffix));
                return Err(damaged("head of a table key", node.at(), found, expected));
            }
            if implied {
                if suffix.is_empty() && cell.rest.is_empty() {
                    continue;
                }
                let found = format!("{} bytes", suffix.len());
                return Err(damaged(
                    "first key of a table branch",
                    node.at(),
                    found,
                    "none",
                ));
            }
            let stored = (node.prefix().len() + suffix.len(), cell.rest.len());
            let key = node.key(r, index)?;
            let spilled_or_not = key::stored_bytes(page_size, key.len()) == stored
                && (cell.rest.is_empty() || self.flags & HAS_REFERENCES != 0);
            if !spilled_or_not {
                let found = format!("a key of {} bytes with {stored:?} in its cell", key.len());
                let expected = "short keys whole and long ones spilled";
                return Err(damaged("table page", node.at(), found, expected));
            }
            let ascends = last.as_ref().is_none_or(|last| *last < key);
            if !(ascends && span.holds(&key)) {
                let found = format!("entry {index}, a key of {} bytes", key.len());
                let expected = "keys that ascend inside their parent's separators";
                return Err(damaged("order of a table page", node.at(), found, expected));
            }
            last = Some(key);
        }
        Ok(())
    }
}
