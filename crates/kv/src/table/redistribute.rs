//! Redistribution: before a full leaf is split, it shares its entries with a neighbour.
//!
//! ```text
//!   [full][....  ]  ──>  [...  ][...  ]              two pages share, if that leaves room in both
//!   [full][full  ]  ──>  [...  ][...  ][...  ]       otherwise two become three
//! ```
//!
//! Leaves of a table that grows at random places are thus about four fifths full instead of two thirds. Only
//! leaves are redistributed: branches are one page in a hundred.

use crate::page::edit::{self, Placed};
use crate::page::entries::{Bias, Entry, Group};
use crate::page::key::{Key, KeyBuf, free_rest};
use crate::page::layout::{PREFIX_AT, Payload, VARINT_BYTES_MAX, child_bytes, slot_bytes};
use crate::page::node::Node;
use crate::table::path::{Path, Step};
use crate::table::sequential::SequentialInserts;
use crate::table::tree::Tree;
use tidalite_pager::{Counters, PageWrite, Ptr, Result};

/// Two leaves share their entries if 1/`REDISTRIBUTE_ROOM_DIV` of a page then stays free in each; otherwise they become
/// three leaves.
const REDISTRIBUTE_ROOM_DIV: usize = 8;

/// Two neighbouring leaves, and the separator between them in their parent.
struct Neighbours {
    left_index: usize,
    left: Ptr,
    right: Ptr,
    separator: KeyBuf,
}

/// A leaf of the group that shares the entries, except the first.
struct NewLeaf {
    separator: KeyBuf,
    ptr: Ptr,
    rows: u64,
}

impl Tree {
    /// Inserts an entry into a full leaf, at the end of a descent path, by redistribution with a neighbour. Returns
    /// false, with nothing changed, if the leaf has no neighbour, or large entries do not divide well. Unless `ascends`
    /// is `No`, the leaf that receives the entry gets the `ASCENDS` mark.
    pub(crate) fn redistribute<W: PageWrite>(
        &mut self,
        w: &mut W,
        path: &Path,
        key: Key<'_>,
        payload: Payload<'_>,
        ascends: SequentialInserts,
    ) -> Result<bool> {
        let Some((parent, above)) = path.steps.split_last() else {
            return Ok(false);
        };
        let (leaf, index) = (&path.leaf, path.index);
        let page_size = w.page_size();
        let Some(pair) = neighbours(w, parent, leaf)? else {
            return Ok(false);
        };
        let left = w.page(&pair.left)?.to_vec();
        let right = w.page(&pair.right)?.to_vec();
        let mut group = self.group(true, page_size);
        let none = Key::plain(&[]);
        group.add_page(&Node::open(&left, 0, pair.left.addr)?, none)?;
        let left_count = group.entries.len();
        group.add_page(&Node::open(&right, 0, pair.right.addr)?, none)?;
        let before = if pair.left == *leaf { 0 } else { left_count };
        let entry = Entry::new(key, payload);
        let new = before + index;
        group.entries.insert(new, entry);

        let Some(cuts) = cuts(&group, page_size) else {
            return Ok(false);
        };
        debug_assert!(cuts.is_sorted_by(|a, b| a < b), "every page gets entries");
        debug_assert!(pair.left.addr != pair.right.addr, "two pages");
        let own_left = w.shadow(&pair.left)?;
        let own_right = w.shadow(&pair.right)?;
        let mut pages = vec![own_left];
        for _ in 1..cuts.len() {
            Counters::bump(&w.counters().pages_split);
            pages.push(self.new_page(w, 0)?);
        }
        pages.push(own_right);
        debug_assert!(pages.len() == cuts.len() + 1, "a page for each part");
        let mut from = 0;
        let mut new_leaves = Vec::with_capacity(cuts.len());
        let mut first_rows = 0;
        let ends = cuts.iter().copied().chain([group.entries.len()]);
        for (place, (ptr, to)) in pages.into_iter().zip(ends).enumerate() {
            let page = w.page_mut(&ptr)?;
            group.write(from..to, 0, page);
            if ascends != SequentialInserts::No && (from..to).contains(&new) {
                edit::mark(page);
            }
            let rows = group.rows(from..to);
            if place == 0 {
                first_rows = rows;
            } else {
                let separator = self.separator(w, &group, from)?;
                new_leaves.push(NewLeaf {
                    separator,
                    ptr,
                    rows,
                });
            }
            from = to;
        }
        let at = parent.ptr.addr;
        debug_assert!(new_leaves.len() == cuts.len(), "a separator for each cut");
        debug_assert!(
            new_leaves
                .iter()
                .fold(first_rows, |sum, leaf| sum.wrapping_add(leaf.rows))
                == group.rows(0..group.entries.len()),
            "no row is lost"
        );
        let bytes = w.page_mut(&parent.ptr)?;
        edit::set_child(bytes, 1, at, pair.left_index, &own_left, first_rows)?;
        if !replace_in_place(bytes, at, pair.left_index, &new_leaves)? {
            self.replace_children(w, parent, above, pair.left_index, &new_leaves)?;
        }
        free_rest(w, &pair.separator.rest, at)?;
        Ok(true)
    }

    /// Replaces the parent's entry after `left_index` with entries for `new_leaves`; splits the parent if necessary.
    fn replace_children<W: PageWrite>(
        &mut self,
        w: &mut W,
        parent: &Step,
        above: &[Step],
        left_index: usize,
        new_leaves: &[NewLeaf],
    ) -> Result<()> {
        debug_assert!(!new_leaves.is_empty(), "the old neighbour has a successor");
        let copy = w.page_mut(&parent.ptr)?.to_vec();
        let mut group = self.group(false, copy.len());
        let node = Node::open(&copy, 1, parent.ptr.addr)?;
        group.add_page(&node, Key::plain(&[]))?;
        let children: Vec<_> = new_leaves
            .iter()
            .map(|leaf| child_bytes(&leaf.ptr, leaf.rows))
            .collect();
        let entries = new_leaves.iter().zip(&children).map(|(leaf, child)| {
            let payload = Payload {
                tag: 0,
                bytes: child,
            };
            Entry::new(leaf.separator.key(), payload)
        });
        group
            .entries
            .splice(left_index + 1..left_index + 2, entries);
        let count = group.entries.len();
        if group.page_bytes(0..count) <= copy.len() {
            group.write(0..count, 1, w.page_mut(&parent.ptr)?);
            return Ok(());
        }
        let split = self.split(w, &parent.ptr, None, 1, &group, Bias::Balance)?;
        self.propagate_split(w, above.to_vec(), parent.ptr, 2, Some(split), Bias::Balance)
    }
}

/// The leaf to which `parent` leads and the emptier one of its neighbours, in key order; `None` if it has no neighbour.
fn neighbours<W: PageWrite>(w: &W, parent: &Step, leaf: &Ptr) -> Result<Option<Neighbours>> {
    let page = w.page(&parent.ptr)?;
    let node = Node::open(&page, 1, parent.ptr.addr)?;
    let mut best: Option<(usize, usize)> = None;
    for left_index in [parent.index.wrapping_sub(1), parent.index] {
        if left_index.saturating_add(1) >= node.count() {
            continue;
        }
        let other = if left_index == parent.index {
            left_index + 1
        } else {
            left_index
        };
        let other = node.child(other)?.0;
        let (_, live) = edit::fill(&w.page(&other)?, 0, other.addr)?;
        if other.addr != leaf.addr && best.is_none_or(|(least, _)| live < least) {
            best = Some((live, left_index));
        }
    }
    let Some((_, left_index)) = best else {
        return Ok(None);
    };
    Ok(Some(Neighbours {
        left_index,
        left: node.child(left_index)?.0,
        right: node.child(left_index + 1)?.0,
        separator: node.stored_key(left_index + 1)?,
    })
    .filter(|pair| !pair.separator.inline.is_empty()))
}

/// The indexes at which to divide the entries of two leaves plus one new entry: one index for two pages, or two for
/// three pages. `None` if large entries do not divide well.
fn cuts(group: &Group<'_>, page_size: usize) -> Option<Vec<usize>> {
    let room = page_size - PREFIX_AT;
    let sums = group.estimate();
    let total = *sums.last()?;
    let count = group.entries.len();
    if total <= 2 * (room - room / REDISTRIBUTE_ROOM_DIV) {
        let at = group.split_point(page_size, Bias::Balance)?;
        return Some(vec![at]);
    }
    let nearest = |goal: usize| sums.partition_point(|sum| *sum < goal).clamp(1, count - 1);
    let (first, second) = (nearest(total / 3), nearest(2 * total / 3));
    let fits = first < second
        && [0..first, first..second, second..count]
            .into_iter()
            .all(|range| group.page_bytes(range) <= page_size);
    fits.then(|| vec![first, second])
}

/// Replaces the entry after `left_index` in place if there is room; otherwise returns false and changes nothing.
fn replace_in_place(
    page: &mut [u8],
    at: u64,
    left_index: usize,
    new_leaves: &[NewLeaf],
) -> Result<bool> {
    let node = Node::open(page, 1, at)?;
    let shape = node.shape();
    let slots = (new_leaves.len() - 1) * slot_bytes(false, page.len());
    let cells: usize = new_leaves
        .iter()
        .map(|leaf| leaf.separator.inline.len() + leaf.separator.rest.len() + VARINT_BYTES_MAX)
        .sum();
    let prefixed = new_leaves
        .iter()
        .all(|leaf| leaf.separator.inline.starts_with(node.prefix()));
    if !prefixed || shape.heap - shape.slots_end < slots + cells {
        return Ok(false);
    }
    edit::remove(page, 1, at, left_index + 1)?;
    for (place, leaf) in new_leaves.iter().enumerate() {
        let payload = Payload {
            tag: 0,
            bytes: &child_bytes(&leaf.ptr, leaf.rows),
        };
        let index = left_index + 1 + place;
        let placed = edit::try_insert(page, 1, at, index, leaf.separator.key(), payload)?;
        debug_assert_eq!(placed, Placed::Yes, "the room was counted");
    }
    Ok(true)
}
