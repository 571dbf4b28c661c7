//! Iterates over the vectors of a series' tree. A leaf is opened only when its link does not provide the requested
//! information.

use crate::leaf::reader::Leaf;
use crate::link::Link;
use crate::read::lines::Lines;
use crate::tree::leaf_cursor::LeafCursor;
use crate::tree::series_tree::SeriesTree;
use std::cell::Cell;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{as_integers, times_mut};
use tidalite_pager::{Counters, PageRead, Result};

/// Number that stands for the last vector of a leaf that is not opened yet.
const LAST: usize = usize::MAX;

/// A position among the vectors of a tree, and the decoded values of one vector.
pub(crate) struct VectorCursor<'a, R> {
    r: &'a R,
    tree: &'a SeriesTree,
    leaves: LeafCursor<'a, R>,
    /// The link to the current leaf, which is at the position of `leaves`.
    link: Option<Link>,
    leaf: Option<Leaf<'a>>,
    vector: usize,
    words: PooledBuffers,
}

/// Memory into which the times or a column of a vector are decoded. The alignment keeps a store of a whole register
/// within one cache line: a store across two cache lines cannot be forwarded to a load, which would stall the caller.
#[repr(align(64))]
struct Buffer([u64; VECTOR_ROWS]);

impl Buffer {
    const ZERO: Self = Self([0; VECTOR_ROWS]);
}

/// Buffers for the times and columns of one vector, and their state.
struct Decoded {
    /// Address of the leaf and number of the vector that is decoded; address 0 if nothing is decoded.
    of: (u64, usize),
    /// The buffer of the times, then the buffers of the columns.
    buffers: Vec<Buffer>,
    /// For each column, whether its buffer holds values of the vector `of`.
    filled: Vec<bool>,
    /// For each column, the constant value that fills its whole buffer, if any.
    constant: Vec<Option<u64>>,
}

thread_local! {
    /// The buffers of the last cursor that was dropped on this thread. Thousands of short series are read one after
    /// another; allocating fresh memory for each, zeroing it and filling it with the same values cost as much as the
    /// read itself.
    static SPARE: Cell<Decoded> = const { Cell::new(Decoded::EMPTY) };
}

impl Decoded {
    const EMPTY: Self = Self {
        of: (0, 0),
        buffers: Vec::new(),
        filled: Vec::new(),
        constant: Vec::new(),
    };

    /// Buffers without decoded contents; the buffers of constant columns may stay filled from an earlier use.
    fn with_columns(columns: usize) -> Self {
        let mut words = SPARE.replace(Self::EMPTY);
        words.of = (0, 0);
        words.buffers.resize_with(1 + columns, || Buffer::ZERO);
        words.constant.resize(columns, None);
        words.filled.clear();
        words.filled.resize(columns, false);
        words
    }
}

/// Buffers that return to the thread's spare buffers when they are dropped.
struct PooledBuffers(Decoded);

impl Drop for PooledBuffers {
    fn drop(&mut self) {
        let words = std::mem::replace(&mut self.0, Decoded::EMPTY);
        // The thread's spare buffers may already be destroyed when the thread exits.
        let _ = SPARE.try_with(|spare| spare.set(words));
    }
}

impl<'a, R: PageRead> VectorCursor<'a, R> {
    /// Creates a cursor that stands before the first vector.
    pub(crate) fn new(r: &'a R, tree: &'a SeriesTree) -> Self {
        let columns = tree.types.len();
        Self {
            r,
            tree,
            leaves: LeafCursor::new(r, tree),
            link: None,
            leaf: None,
            vector: 0,
            words: PooledBuffers(Decoded::with_columns(columns)),
        }
    }

    /// The first timestamp of the current vector; `None` if the cursor is at no vector.
    pub(crate) fn begin(&mut self) -> Result<Option<i64>> {
        match &self.link {
            None => Ok(None),
            Some(link) if self.vector == 0 => Ok(Some(link.begin)),
            Some(_) => Ok(Some(self.span()?.0)),
        }
    }

    /// The last timestamp of the current vector; `None` if the cursor is at no vector.
    pub(crate) fn end(&mut self) -> Result<Option<i64>> {
        match &self.link {
            None => Ok(None),
            Some(link) if self.vector == LAST => Ok(Some(link.end)),
            Some(_) => Ok(Some(self.span()?.1)),
        }
    }

    /// First and last timestamp of the current vector.
    pub(crate) fn span(&mut self) -> Result<(i64, i64)> {
        let vector = self.open()?;
        let leaf = self.leaf.as_ref();
        Ok(leaf.map_or((0, 0), |leaf| leaf.span(vector)))
    }

    /// Opens the current leaf and returns the number of the current vector, in place of `LAST` for the last one.
    fn open(&mut self) -> Result<usize> {
        if self.leaf.is_none()
            && let Some(link) = &self.link
        {
            let leaf = Leaf::open(self.r, link, &self.tree.types)?;
            if self.vector == LAST {
                self.vector = leaf.vectors() - 1;
            }
            self.leaf = Some(leaf);
        }
        debug_assert!(
            self.leaf
                .as_ref()
                .is_none_or(|leaf| self.vector < leaf.vectors()),
            "a vector of the leaf"
        );
        Ok(self.vector)
    }

    pub(crate) fn is_before(&self) -> bool {
        self.leaves.is_before()
    }

    /// Moves to the last vector that begins at or before time `t`, or before the first vector if all begin later.
    pub(crate) fn seek(&mut self, t: i64) -> Result<()> {
        let moved = self.leaves.seek(t);
        self.leaf_changed(0);
        moved?;
        self.open()?;
        if let Some(leaf) = &self.leaf {
            self.vector = leaf.vector_at(t);
        }
        Ok(())
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if self.link.is_some() {
            let vector = self.open()?;
            if let Some(leaf) = &self.leaf
                && vector + 1 < leaf.vectors()
            {
                self.vector = vector + 1;
                return Ok(());
            }
        }
        let moved = self.leaves.next();
        self.leaf_changed(0);
        moved
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        if self.link.is_some() {
            let vector = self.open()?;
            if vector > 0 {
                self.vector = vector - 1;
                return Ok(());
            }
        }
        let moved = self.leaves.previous();
        self.leaf_changed(LAST);
        moved
    }

    pub(crate) fn go_before(&mut self) {
        self.leaves = LeafCursor::new(self.r, self.tree);
        self.leaf_changed(0);
    }

    pub(crate) fn go_after(&mut self) {
        self.leaves.go_after();
        self.leaf_changed(0);
    }

    /// Takes over the link after `leaves` has moved to another leaf; `vector` is the number of the vector there.
    fn leaf_changed(&mut self, vector: usize) {
        self.link = self.leaves.link();
        (self.leaf, self.vector) = (None, vector);
    }

    /// Decodes the times and the `wanted` columns of the current vector, unless they are decoded already. Returns the
    /// number of rows.
    pub(crate) fn load(&mut self, wanted: &[bool]) -> Result<usize> {
        let v = self.open()?;
        let Some(leaf) = &self.leaf else {
            return Ok(0);
        };
        debug_assert_eq!(wanted.len(), self.tree.types.len(), "every column");
        let rows = leaf.rows_of(v);
        let of = (self.link.as_ref().map_or(0, |link| link.ptr.addr), v);
        let words = &mut self.words.0;
        if words.of != of {
            Counters::bump(&self.r.counters().vectors_decoded);
            words.of = (0, 0); // after an error before the times are decoded, nothing counts as decoded
            words.filled.fill(false);
            leaf.times(self.r, v, times_mut(&mut words.buffers[0].0[..rows]))?;
            words.of = of;
        }
        for (c, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            if words.filled[c] {
                continue;
            }
            let column = &mut words.buffers[1 + c].0;
            match leaf.constant(c) {
                Some(word) if words.constant[c] == Some(word) => {}
                Some(word) => {
                    column.fill(word);
                    words.constant[c] = Some(word);
                }
                None => {
                    words.constant[c] = None;
                    leaf.column(self.r, v, c, &mut column[..rows])?;
                }
            }
            words.filled[c] = true;
        }
        Ok(rows)
    }

    /// True if the times and all columns of the current vector are lines, which `lines` then describes. Advances to the
    /// last vector of the leaf in which the lines continue and that ends at or before time `to`, and returns the end of
    /// that vector; `None` if there are no lines.
    pub(crate) fn load_lines(&mut self, lines: &mut Lines, to: i64) -> Result<Option<i64>> {
        let v = self.open()?;
        let Some(leaf) = &self.leaf else {
            return Ok(None);
        };
        lines.clear();
        let Some(times) = leaf.time_line(self.r, v)? else {
            return Ok(None);
        };
        let Some(words) = times.words() else {
            return Ok(None);
        };
        lines.push(words);
        for c in 0..self.tree.types.len() {
            let line = leaf.line(self.r, v, c)?;
            let Some(words) = line.and_then(|line| line.words()) else {
                return Ok(None);
            };
            lines.push(words);
        }
        Counters::bump(&self.r.counters().vectors_decoded);
        let mut rows = leaf.rows_of(v);
        let (_, mut end) = leaf.span(v);
        for next in v + 1..leaf.vectors() {
            let (begin, next_end) = leaf.span(next);
            if next_end > to || !leaf.lines_continue(next) {
                break;
            }
            // The time span in the directory must agree with the lines, or the directory is damaged.
            let own = leaf.rows_of(next);
            let [first, last] = [0, own - 1].map(|row| times.word(rows + row) as i64);
            if (first, last) != (begin, next_end) {
                break;
            }
            self.vector = next;
            rows += own;
            end = next_end;
        }
        debug_assert!(self.vector < leaf.vectors(), "a vector of the leaf");
        lines.begin(rows);
        Ok(Some(end))
    }

    /// The decoded times of the current vector.
    #[inline]
    pub(crate) fn times(&self, rows: usize) -> &[i64] {
        debug_assert!(self.words.0.of.0 != 0, "a vector is decoded");
        as_integers(&self.words.0.buffers[0].0[..rows])
    }

    /// The decoded values of a wanted column of the current vector.
    #[inline]
    pub(crate) fn words(&self, c: usize, rows: usize) -> &[u64] {
        debug_assert!(self.words.0.filled[c], "the column is decoded");
        &self.words.0.buffers[1 + c].0[..rows]
    }
}
