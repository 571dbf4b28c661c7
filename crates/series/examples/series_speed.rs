//! Throughput of one series over pages in memory, in million rows per second: the best of several short runs. `cargo
//! run --release -p tidalite-series --example series_speed`

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::hint::black_box;
use std::time::Instant;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Parts, Rows};
use tidalite_kv::Tree;
use tidalite_pager::Result;
use tidalite_series::{Packer, SeriesTree, View, WindowGrid};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

const ROWS: usize = 1 << 20;

fn rate(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = 0.0f64;
    for _ in 0..15 {
        let clock = Instant::now();
        work()?;
        best = best.max(ROWS as f64 / clock.elapsed().as_secs_f64() / 1e6);
    }
    Ok(best)
}

/// Creates rows: regular times and a ramp of values, or if `hard`, times with jitter and a random walk with two
/// decimals.
fn rows(hard: bool) -> Rows {
    let mut rng = Rng::new(1);
    let mut rows = Rows::with_capacity(2, ROWS);
    let mut walk = 0;
    for i in 0..ROWS as i64 {
        walk += if hard { rng.between(-50, 50) } else { 50 };
        let jitter = if hard { rng.between(0, 999) * 1000 } else { 0 };
        let value = walk as f64 / 100.0;
        rows.push_row(i * 1_000_000_000 + jitter, &[0, value.to_bits()]);
    }
    rows
}

fn linked(rows: &Rows) -> Result<(ScratchPages, SeriesTree)> {
    let mut pages = ScratchPages::new(4096);
    let mut packer = Packer::new(Tree::new(1));
    let mut tree = SeriesTree::new(SeriesId(1), &[ColumnType::I64, ColumnType::F64])?;
    tree.link(&mut pages, &mut packer, rows.view())?;
    tree.save(&mut pages, &mut packer)?;
    packer.finish(&mut pages)?;
    Ok((pages, tree))
}

fn main() -> Result<()> {
    for (name, rows) in [("ramp", rows(false)), ("hard", rows(true))] {
        let link = rate(|| linked(&rows).map(drop))?;
        let (pages, tree) = linked(&rows)?;
        let none = Rows::new(2);
        let view = View::new(&pages, &tree, none.view());
        let bytes = tree.stored_bytes() as f64 / ROWS as f64;
        println!("{name}: link {link:.0}, {bytes:.3} bytes a row");
        for columns in [&[0, 1][..], &[1], &[]] {
            let scan = rate(|| {
                let count = view.for_each_vector(i64::MIN, i64::MAX, columns, |vector| {
                    black_box(vector.times()[0]);
                });
                count.map(|rows| drop(black_box(rows.to_string())))
            })?;
            println!("{name}: scan of columns {columns:?} {scan:.0}");
        }
        let cursor = rate(|| {
            let mut cursor = view.cursor();
            let mut all = 0;
            while cursor.next()? {
                all ^= cursor.word(1).unwrap_or(0);
            }
            black_box(all);
            Ok(())
        })?;
        println!("{name}: cursor {cursor:.0}");
        for width in [60, 3600, 86_400] {
            let windows = rate(|| {
                let width = width * 1_000_000_000;
                let grid = WindowGrid::Even { width, origin: 0 };
                let all = (i64::MIN, i64::MAX);
                view.windows_of(all, grid, (&[1], Parts::ALL), &[], |_, window| {
                    black_box(window.stats.count());
                })
            })?;
            println!("{name}: windows of {width} rows {windows:.0}");
        }
    }
    Ok(())
}
