//! A write transaction looks up rows of its own series while it changes them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{MergePolicy, Options, Row, SeriesMut, Steps, Tuning};
use tidalite_testkit::rng::Rng;

type Model = Vec<(i64, u64)>;

fn row_of((time, number): (i64, u64)) -> Row {
    let words = vec![7, number];
    Row { time, words }
}

fn compare(series: &mut SeriesMut<'_>, model: &Model, rng: &mut Rng) {
    let last = |behind: usize| behind.checked_sub(1).map(|last| row_of(model[last]));
    assert_eq!(series.latest().unwrap(), last(model.len()));
    let known = (!model.is_empty()).then(|| model[rng.index(model.len().max(1))].0);
    for t in [
        known.unwrap_or(0),
        rng.between(-50, 3050),
        i64::MIN,
        i64::MAX,
    ] {
        let behind = model.partition_point(|(time, _)| *time <= t);
        let found = last(behind);
        assert_eq!(series.search(Steps(t)).unwrap(), found, "search of {t}");
        let exact = found.filter(|row| row.time == t);
        assert_eq!(series.at(Steps(t)).unwrap(), exact, "at {t}");
    }
}

#[test]
fn searches_between_changes_equal_a_sorted_list() {
    for seed in 0..40 {
        println!("seed {seed}");
        tidalite_testkit::watch();
        let mut rng = Rng::new(seed);
        let options = Options::new()
            .page_size(1024)
            .tuning(Tuning::new().write_buffer_bytes(1 << 16));
        let db = options
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let merge = *rng.pick(&[MergePolicy::Replace, MergePolicy::KeepAll]);
        let (mut model, mut number): (Model, u64) = (Vec::new(), 0);
        for _ in 0..rng.between(2, 6) {
            let mut tx = db.begin_write().unwrap();
            let mut series = tx.open_series("a").merge(merge).open().unwrap();
            for _ in 0..rng.between(1, 30) {
                let ascending = rng.one_in(2);
                for _ in 0..rng.below(400) {
                    let time = match (ascending, model.last()) {
                        (true, Some((last, _))) if *last < 3000 => last + 1,
                        _ => rng.between(0, 3000),
                    };
                    number += 1;
                    series.insert_row(Steps(time), &[7, number]).unwrap();
                    if merge == MergePolicy::Replace {
                        model.retain(|(other, _)| *other != time);
                    }
                    let place = model.partition_point(|(other, _)| *other <= time);
                    model.insert(place, (time, number));
                    if rng.one_in(40) {
                        compare(&mut series, &model, &mut rng);
                    }
                }
                if rng.one_in(4) {
                    let from = rng.between(0, 3000);
                    let to = from + rng.between(0, 100);
                    let inside = |time: i64| from <= time && time < to;
                    let gone = model.iter().filter(|(time, _)| inside(*time)).count();
                    assert_eq!(series.delete(Steps(from)..Steps(to)).unwrap(), gone as u64);
                    model.retain(|(time, _)| !inside(*time));
                }
                compare(&mut series, &model, &mut rng);
            }
            assert_eq!(series.view().unwrap().count().unwrap(), model.len() as u64);
            tx.commit().unwrap();
        }
    }
}
