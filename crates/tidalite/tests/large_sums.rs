//! Sums whose intermediate results exceed the range of floats must still be right: in leaves, in the delta, in windows
//! and in groups, after reopening, in any order.

use std::sync::Arc;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Figure, Grid, Options, Steps};

const MAX: f64 = f64::MAX;

#[test]
fn a_sum_that_passes_the_floats_on_the_way_is_right() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let open = || {
        let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(&storage);
        Options::new()
            .page_size(1024)
            .open_storage(storage)
            .unwrap()
    };
    let db = open();
    let mut tx = db.begin_write().unwrap();
    // The first series has 2,000 rows of one sign, then as many of the other; the second series has the signs reversed.
    for (name, sign) in [(r#"x{n="1"}"#, -1.0), (r#"x{n="2"}"#, 1.0)] {
        let mut series = tx.series(name).unwrap();
        for row in 0..4000i64 {
            let value = if row < 2000 { sign * MAX } else { -sign * MAX };
            series.insert(Steps(row), value).unwrap();
        }
    }
    tx.commit().unwrap();
    let look = |db: &tidalite::Database| {
        let snap = db.begin_read().unwrap();
        for (name, sign) in [(r#"x{n="1"}"#, -1.0), (r#"x{n="2"}"#, 1.0)] {
            let series = snap.series(name).unwrap().unwrap();
            let all = series.query(..).aggregate("value").unwrap();
            assert_eq!((all.sum(), all.mean()), (0.0, Some(0.0)));
            assert_eq!(all.stddev(), Some(MAX));
            assert_eq!(
                series
                    .query(..)
                    .figures(Figure::Mean)
                    .aggregate("value")
                    .unwrap(),
                Some(0.0)
            );
            // The mean of any interval is the mean of its rows.
            for (from, to) in [
                (0, 2000),
                (1, 1999),
                (7, 2033),
                (1990, 3500),
                (0, 3999),
                (2000, 4000),
            ] {
                let part = series
                    .query(Steps(from)..Steps(to))
                    .aggregate("value")
                    .unwrap();
                let first = to.min(2000) - from.min(2000);
                let second = to - from - first;
                let mean = (first - second) as f64 / (to - from) as f64 * sign;
                let found = part.mean().unwrap() / MAX;
                assert!(
                    (found - mean).abs() < 1e-15,
                    "{from} to {to}: {found}, {mean}"
                );
                assert_eq!(
                    part.sum().is_finite(),
                    (first - second).abs() <= 1,
                    "{from} to {to}"
                );
            }
            for window in series.query(..).windows(Steps(1500), "value").unwrap() {
                assert!(window.aggregate.mean().unwrap().abs() <= MAX);
            }
        }
        // The two series cancel each other in every window.
        let both = snap.select("x").unwrap();
        let group = both.query(..);
        let whole = group.aggregate("value").unwrap().unwrap();
        assert_eq!((whole.sum(), whole.stddev()), (0.0, Some(MAX)));
        let grid = Grid::nanos(700);
        for window in group.windows(&grid, "value").unwrap() {
            assert_eq!(
                (window.aggregate.sum(), window.aggregate.mean()),
                (0.0, Some(0.0))
            );
        }
    };
    look(&db);
    assert!(db.check().unwrap().is_clean());
    db.close().unwrap();
    let db = open();
    look(&db);
    // A late row replaces one -MAX with a zero, so the sum becomes MAX. The late row after all others is too small to
    // change the sum.
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series(r#"x{n="1"}"#).unwrap();
    series.insert(Steps(5), 0.0).unwrap();
    series.insert(Steps(4000), 1.0).unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series(r#"x{n="1"}"#).unwrap().unwrap();
    assert_eq!(series.query(..).aggregate("value").unwrap().sum(), MAX);
}
