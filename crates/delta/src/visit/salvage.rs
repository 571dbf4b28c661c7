//! Salvages rows from a damaged delta: reads the runs around damage, and finds blocks and tail pages that no readable
//! page refers to.

use crate::delta::Delta;
use crate::key::{KEY_BYTES, Key};
use crate::limits::{BLOCK_BYTES_MAX, LAYOUTS_MAX};
use crate::record::Record;
use crate::run::block::{Block, encoded_len};
use crate::run::descriptor::Run;
use crate::run::directory::{END_OF_BLOCKS, Entry, decode_entry};
use crate::run::tail;
use crate::visit::damage::{DeltaDamage, Hit};
use std::collections::{BTreeSet, HashSet};
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_kv::{PageVisitor, Tree, VisitedPage};
use tidalite_pager::{Candidate, Error, Kind, PageRead, Ptr, Result};

/// A block of a run that was found by its header, not through a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneBlock {
    /// Pointer to the block.
    pub ptr: Ptr,
    /// Owner id of the run's directory.
    pub owner: u64,
    /// Class (number in the delta) of the layout of the block.
    pub class: u32,
    /// Number of columns of the rows in the block.
    pub columns: usize,
    /// Number of rows in the block.
    pub rows: usize,
    first: Key,
}

/// Verifies and decodes the block whose header was found by a search.
///
/// # Errors
/// `Corrupt` if there is no valid block; `Io`.
pub fn lone_block<R: PageRead>(r: &R, found: &Candidate, room: u64) -> Result<LoneBlock> {
    let addr = found.header.address;
    let most = room.min(BLOCK_BYTES_MAX as u64) as usize;
    let len = encoded_len(&r.bytes(addr, most)?)
        .ok_or_else(|| Corrupt::new("run block", addr, "no length", "a whole block"))?;
    let mut lone = LoneBlock {
        ptr: found.ptr(len),
        owner: found.header.owner,
        class: 0,
        columns: 0,
        rows: 0,
        first: Key::MIN,
    };
    lone.ptr.kind = Kind::RunBlock;
    let block = read_alone(r, &lone.ptr)?;
    lone.class = block.class;
    lone.columns = block.rows.columns.len();
    lone.rows = block.len();
    lone.first = block.key(0);
    Ok(lone)
}

/// Reads a block without knowing its layout. Decoding needs only the number of columns, which the block contains.
fn read_alone<R: PageRead>(r: &R, ptr: &Ptr) -> Result<Block> {
    let bytes = r.block(ptr)?;
    let (class, columns) = Block::layout(&bytes);
    drop(bytes);
    if class as usize >= LAYOUTS_MAX {
        let found = format!("class {class}");
        return Err(Corrupt::new("run block", ptr.addr, found, "a known layout").into());
    }
    let mut layouts: Vec<Box<[ColumnType]>> = vec![Box::default(); class as usize + 1];
    layouts[class as usize] = vec![ColumnType::U64; columns].into();
    let mut block = Block::default();
    block.read(r, ptr, &layouts, true)?;
    Ok(block)
}

/// Passes the rows of a block that was found by its header to `f`, series by series.
///
/// # Errors
/// `Corrupt`, `Io`, and errors of `f`.
pub fn block_rows<R: PageRead>(
    r: &R,
    block: &LoneBlock,
    f: &mut dyn FnMut(SeriesId, RowsRef<'_>) -> Result<()>,
) -> Result<()> {
    each_series(&read_alone(r, &block.ptr)?, None, f)
}

/// Passes the rows of a tail page to `f`, series by series; `layouts` come from the record of the delta, or are
/// reconstructed from other data.
///
/// # Errors
/// `Corrupt`, `Io`, and errors of `f`.
pub fn tail_rows<R: PageRead>(
    r: &R,
    tail: &Ptr,
    layouts: &[Box<[ColumnType]>],
    f: &mut dyn FnMut(SeriesId, RowsRef<'_>) -> Result<()>,
) -> Result<()> {
    for piece in tail::pieces(r, tail, layouts)? {
        f(piece.series, piece.rows.view())?;
    }
    Ok(())
}

/// Returns the layouts in the record of a delta; the index of a layout is its class.
///
/// # Errors
/// `Corrupt`, `Io`.
pub fn layouts_of<R: PageRead>(r: &R, record: &Ptr) -> Result<Vec<Box<[ColumnType]>>> {
    Ok(Record::read(r, record)?.layouts)
}

fn each_series(
    block: &Block,
    after: Option<Key>,
    f: &mut dyn FnMut(SeriesId, RowsRef<'_>) -> Result<()>,
) -> Result<()> {
    let mut at = after
        .and_then(|after| after.next())
        .map_or(0, |next| block.lower_bound(&next));
    while at < block.len() {
        let series = SeriesId(block.series[at]);
        let end = block.series_end(at, series).max(at + 1);
        let rows = block.rows.slice(at..end);
        // The rows of a forged block may be out of order; such rows are skipped.
        if rows.is_sorted() {
            f(series, rows)?;
        }
        at = end;
    }
    Ok(())
}

/// Collects the readable leaf pages of a run's directory, and the unreadable pages.
#[derive(Default)]
struct Leaves {
    reached: Vec<(Ptr, Span)>,
    lost: Vec<(Span, Corrupt)>,
}

/// Key range of a directory page: the first key, and the first key after the page.
type Span = (Vec<u8>, Option<Vec<u8>>);

fn span_of(page: &VisitedPage<'_>) -> Span {
    (page.from.to_vec(), page.to.map(<[u8]>::to_vec))
}

impl PageVisitor for Leaves {
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool> {
        if page.level == 0 {
            self.reached.push((page.ptr, span_of(page)));
        }
        Ok(page.level > 0)
    }

    fn damaged(&mut self, page: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()> {
        self.lost.push((span_of(page), corrupt));
        Ok(())
    }
}

impl Delta {
    /// Passes every readable row of the delta to `f`, the oldest first, and calls `damage` for each damage that it
    /// meets. Blocks that a damaged directory page no longer lists are taken from `lone`, the blocks that were found
    /// by their headers.
    ///
    /// # Errors
    /// `Io`, and errors of `f`.
    pub fn salvage<R: PageRead>(
        &self,
        r: &R,
        lone: &[LoneBlock],
        f: &mut dyn FnMut(SeriesId, RowsRef<'_>) -> Result<()>,
        damage: &mut dyn FnMut(DeltaDamage),
    ) -> Result<()> {
        let mut runs: Vec<_> = self.live_runs(0).collect();
        runs.reverse();
        for (run, after) in runs {
            for ptr in blocks_of(r, (run, after), lone, damage)? {
                match read_alone(r, &ptr.0) {
                    Ok(block) => each_series(&block, after, f)?,
                    Err(Error::Corrupt(corrupt)) => {
                        damage(Hit::of(run, after, ptr.1, ptr.2).with(corrupt));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        match tail_rows(r, &self.tail, &self.layouts, f) {
            Err(Error::Corrupt(corrupt)) => {
                damage(Hit::All.with(corrupt));
                Ok(())
            }
            other => other,
        }
    }
}

/// Returns the blocks of a run with their first and last keys. Blocks that an unreadable directory page listed are
/// taken from `lone`; the last key of such a block is unknown, so its first key is used instead.
fn blocks_of<R: PageRead>(
    r: &R,
    (run, after): (&Run, Option<Key>),
    lone: &[LoneBlock],
    damage: &mut dyn FnMut(DeltaDamage),
) -> Result<Vec<(Ptr, Key, Key)>> {
    let mut leaves = Leaves::default();
    run.directory.walk(r, &mut leaves)?;
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for (leaf, span) in std::mem::take(&mut leaves.reached) {
        let entries = entries_of(r, &leaf);
        match entries {
            Ok(entries) => {
                for entry in entries {
                    known.insert(entry.ptr.addr);
                    found.push((entry.ptr, entry.first, entry.last));
                }
            }
            Err(Error::Corrupt(corrupt)) => leaves.lost.push((span, corrupt)),
            Err(error) => return Err(error),
        }
    }
    let firsts: BTreeSet<Key> = found.iter().map(|(_, first, _)| *first).collect();
    for (span, corrupt) in leaves.lost {
        damage(hidden(run, after, &span, &firsts).with(corrupt));
        let (from, to) = span;
        for block in lone {
            let key = block.first.encode();
            let inside =
                from.as_slice() <= &key[..] && to.as_deref().is_none_or(|to| &key[..] < to);
            if block.owner == run.directory.id() && inside && known.insert(block.ptr.addr) {
                found.push((block.ptr, block.first, block.first));
            }
        }
    }
    Ok(found)
}

/// Returns the rows of the blocks that an unreadable directory page listed. Their keys lie in `span` or after it, but
/// before the first key of the next known block.
fn hidden(run: &Run, after: Option<Key>, (from, to): &Span, firsts: &BTreeSet<Key>) -> Hit {
    if from.as_slice() >= &END_OF_BLOCKS.encode()[..] {
        return Hit::Nothing;
    }
    // A separator in a directory page may be shorter than a key; it stands for the smallest key with this prefix.
    let key_of = |bytes: &[u8]| {
        let mut key = [0; KEY_BYTES];
        let len = bytes.len().min(KEY_BYTES);
        key[..len].copy_from_slice(&bytes[..len]);
        Key::decode(&key)
    };
    let first = key_of(from).unwrap_or(Key::MIN).max(run.first);
    let next = to
        .as_deref()
        .and_then(key_of)
        .and_then(|to| firsts.range(to..).next());
    let last = next.map_or(run.last, Key::before).max(first);
    Hit::of(run, after, first, last)
}

fn entries_of<R: PageRead>(r: &R, leaf: &Ptr) -> Result<Vec<Entry>> {
    let tree = Tree::of_leaf(r, leaf)?;
    let mut entries = Vec::new();
    let mut cursor = tree.cursor(r);
    let mut there = cursor.first()?;
    while there {
        let value = cursor.inline_value()?.unwrap_or_default();
        let Some(entry) = decode_entry(cursor.key(), value, &tree)? else {
            break;
        };
        entries.push(entry);
        there = cursor.next()?;
    }
    Ok(entries)
}

impl Delta {
    /// Calls `f(series, from, to)` with ranges of rows by which this version of the delta may differ from the version
    /// `base`. The ranges contain every row that only one of the versions has, and may contain other rows. Runs that
    /// both versions share are not read.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, and errors of `f`.
    ///
    /// # Cost
    /// Reads the tail pages, and the blocks of the runs that only one of the two versions has.
    pub fn changed_since<R: PageRead>(
        &self,
        r: &R,
        base: &Self,
        base_r: &R,
        f: &mut dyn FnMut(SeriesId, i64, i64) -> Result<()>,
    ) -> Result<()> {
        self.only_here(r, base, f)?;
        base.only_here(base_r, self, f)
    }

    fn only_here<R: PageRead>(
        &self,
        r: &R,
        other: &Self,
        f: &mut dyn FnMut(SeriesId, i64, i64) -> Result<()>,
    ) -> Result<()> {
        let mut show = |series: SeriesId, rows: RowsRef<'_>| match rows.times() {
            [first, .., last] => f(series, *first, *last),
            [only] => f(series, *only, *only),
            [] => Ok(()),
        };
        for (run, after) in self.live_runs(0) {
            let same = |(known, seen): (&Run, Option<Key>)| {
                known.directory == run.directory && seen == after
            };
            if other.live_runs(0).any(same) {
                continue;
            }
            let mut lost = None;
            for (ptr, _, _) in blocks_of(r, (run, after), &[], &mut |damage| {
                lost = Some(damage.corrupt)
            })? {
                each_series(&read_alone(r, &ptr)?, after, &mut show)?;
            }
            if let Some(corrupt) = lost {
                return Err(corrupt.into());
            }
        }
        if self.tail != other.tail {
            tail_rows(r, &self.tail, &self.layouts, &mut show)?;
        }
        Ok(())
    }
}
