//! Compares a series on pages in memory with a sorted map.

mod added;
#[cfg(feature = "cold")]
mod cold;
mod damage;
mod directory;
mod edges;
mod encoded;
mod limits;
mod matching;
mod model;
mod open_leaf;
mod structure;

use crate::tree::walk::Step;
use crate::{Check, Cooling, KeptHot, Link, Packer, Report, SeriesTree, View, Window, WindowGrid};
use std::collections::BTreeMap;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Parts, Rows, RowsRef, Stats};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_testkit::ScratchPages;

pub(super) struct World {
    pub(super) pages: ScratchPages,
    pub(super) tree: SeriesTree,
    pub(super) table: Tree,
    pub(super) fanout: usize,
    /// The rows that the tree should contain, by time.
    pub(super) model: BTreeMap<i64, Vec<u64>>,
    pub(super) late: Rows,
}

impl World {
    pub(super) fn new(page_size: usize, fanout: usize, types: &[ColumnType]) -> Self {
        Self {
            pages: ScratchPages::new(page_size),
            tree: SeriesTree::new(SeriesId(7), types)
                .unwrap()
                .with_fanout(fanout),
            table: Tree::new(3),
            fanout,
            model: BTreeMap::new(),
            late: Rows::new(types.len()),
        }
    }

    /// Runs one transaction; afterwards decodes the tree from its record.
    pub(super) fn transact(
        &mut self,
        change: impl FnOnce(&mut SeriesTree, &mut ScratchPages, &mut Packer),
    ) {
        let mut packer = Packer::new(self.table);
        change(&mut self.tree, &mut self.pages, &mut packer);
        let record = self.tree.save(&mut self.pages, &mut packer).unwrap();
        self.table = packer.finish(&mut self.pages).unwrap();
        self.pages.commit();
        let id = self.tree.id();
        self.tree = SeriesTree::decode(id, &record)
            .unwrap()
            .with_fanout(self.fanout);
    }

    pub(super) fn link(&mut self, rows: RowsRef<'_>) {
        self.transact(|tree, pages, packer| tree.link(pages, packer, rows).unwrap());
        self.note(rows);
    }

    pub(super) fn note(&mut self, rows: RowsRef<'_>) {
        for (i, &time) in rows.times().iter().enumerate() {
            let words = (0..rows.column_count())
                .map(|c| rows.column(c)[i])
                .collect();
            self.model.insert(time, words);
        }
    }

    pub(super) fn delete(&mut self, from: i64, to: i64) {
        let mut deleted = 0;
        self.transact(|tree, pages, packer| {
            deleted = tree.delete(pages, packer, from, to).unwrap();
        });
        let before = self.model.len();
        self.model.retain(|&time, _| time < from || time > to);
        assert_eq!(deleted, (before - self.model.len()) as u64, "rows deleted");
    }

    /// Runs one step of rewriting leaves before time `before` in cold form; returns the result of the step.
    pub(super) fn cool(&mut self, before: i64, rows_left: u64) -> Cooling {
        let mut step = Cooling {
            rows_left,
            ..Cooling::default()
        };
        let (mut more, mut kept) = (false, KeptHot::new());
        self.transact(|tree, pages, packer| {
            more = tree
                .cool(pages, packer, before, &mut step, &mut kept)
                .unwrap();
        });
        let warm = self
            .tree
            .has_warm_leaves(&self.pages, before, &KeptHot::new())
            .unwrap();
        assert_eq!(warm, more, "before {before}: {step:?}");
        step
    }

    pub(super) fn view(&self) -> View<'_, ScratchPages> {
        View::new(&self.pages, &self.tree, self.late.view())
    }

    /// The rows that readers should see: the model merged with the late rows.
    pub(super) fn rows(&self) -> Rows {
        let columns = self.tree.types().len();
        let mut rows = Rows::with_capacity(columns, self.model.len());
        for (&time, words) in &self.model {
            rows.push_row(time, words);
        }
        Rows::merge_newest(rows.view(), self.late.view())
    }

    /// Checks the whole series, and that every page in use is reached exactly once.
    pub(super) fn check(&self) -> Report {
        let mut claims = Vec::new();
        let mut claim = |claim: tidalite_kv::UsedPages| claims.push((claim.addr, claim.pages));
        self.table.check(&self.pages, &mut claim).unwrap();
        let report = self.report(&mut claim);
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(report.rows, self.model.len() as u64);
        assert_eq!(self.tree.count(), report.rows);
        let span = self.model.keys().next().zip(self.model.keys().next_back());
        assert_eq!(self.tree.span(), span.map(|(a, b)| (*a, *b)));
        self.pages.assert_all_claimed(&claims);
        let found = self.count_links();
        assert_eq!(found, (report.leaves, report.nodes, report.live_bytes));
        report
    }

    /// Number of leaves, number of nodes, and length in bytes of the leaves.
    pub(super) fn count_links(&self) -> (u64, u64, u64) {
        let (mut leaves, mut nodes, mut bytes) = (0, 0, 0);
        let count = |level, link: &Link| {
            if level == 0 {
                (leaves, bytes) = (leaves + 1, bytes + link.bytes);
            } else {
                nodes += 1;
            }
            Step::Descend
        };
        assert!(!self.tree.any_link(&self.pages, count).unwrap());
        (leaves, nodes, bytes)
    }

    pub(super) fn report(&self, claim: &mut dyn FnMut(tidalite_kv::UsedPages)) -> Report {
        let mut check = Check::new();
        check.tree(&self.pages, &self.tree, claim).unwrap();
        check.extents(&self.pages, &self.table, claim).unwrap()
    }
}

impl<R: PageRead> View<'_, R> {
    /// All statistics of a column over the rows `from ..= to`.
    pub(super) fn aggregate(&self, from: i64, to: i64, column: usize) -> Result<Stats> {
        let whole = self.summary(from, to, column, Parts::ALL, &[])?;
        Ok(whole.map_or(Stats::empty(self.tree.types[column]), |whole| whole.stats))
    }

    /// All statistics of a column for each window of a grid with rows in `from ..= to`.
    pub(super) fn windows(
        &self,
        from: i64,
        to: i64,
        width: i64,
        origin: i64,
        column: usize,
        mut f: impl FnMut(Window),
    ) -> Result<()> {
        let grid = WindowGrid::Even { width, origin };
        self.windows_of(
            (from, to),
            grid,
            (&[column], Parts::ALL),
            &[],
            |_, window| f(window),
        )
    }
}

/// Rows of the default schema, with values that ascend regularly and flags 0.
pub(super) fn ramp(begin: i64, step: i64, rows: usize) -> Rows {
    let mut out = Rows::with_capacity(2, rows);
    for i in 0..rows as i64 {
        let value = (begin / step.max(1) + i) as f64 * 0.5;
        out.push_row(begin + i * step, &[0, value.to_bits()]);
    }
    out
}

pub(super) const POINT: [ColumnType; 2] = [ColumnType::I64, ColumnType::F64];
