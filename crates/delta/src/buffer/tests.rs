use crate::buffer::group::{Group, Grouped};
use crate::buffer::write_buffer::{Ready, Slot, WriteBuffer};
use crate::limits::LEAF_ROWS;
use std::collections::BTreeMap;
use tidalite_base::SeriesId;
use tidalite_codec::ColumnType;
use tidalite_codec::Rows;
use tidalite_codec::RowsRef;
use tidalite_testkit::rng::Rng;

const POINT: [ColumnType; 2] = [ColumnType::I64, ColumnType::F64];

type Model = BTreeMap<(u64, i64), Vec<u64>>;

/// Removes the rows that are ready to flush from the write buffer and inserts them into a map, as `Delta` would flush
/// them into leaves.
fn drain(buffer: &mut WriteBuffer, model: &mut Model, everything: bool) {
    let put = |model: &mut Model, series: SeriesId, rows: RowsRef<'_>| {
        for (i, &time) in rows.times().iter().enumerate() {
            let words = (0..rows.column_count())
                .map(|c| rows.column(c)[i])
                .collect();
            model.insert((series.0, time), words);
        }
    };
    if !everything {
        match buffer.ready() {
            Ready::Nothing => return,
            Ready::Leaf(layout) => {
                buffer.with_leaf(layout, |series, _, rows| {
                    assert!(rows.is_sorted_unique() && rows.len() >= LEAF_ROWS);
                    put(model, series, rows);
                });
                buffer.leaf_linked(layout);
                return;
            }
            Ready::RoundRobin(_) | Ready::Budget => {}
        }
    }
    let everything = everything || buffer.remainder().buffered_bytes > buffer.budget_bytes() / 2;
    let layouts: Vec<usize> = buffer.layouts().map(|(layout, _)| layout).collect();
    for layout in layouts {
        let mut before = None;
        let group = |group: Group<'_>| {
            assert!(before < Some(group.series), "groups come in order");
            before = Some(group.series);
            assert!(group.rows.is_sorted_unique());
            let taken = if everything {
                group.rows.len()
            } else {
                group.rows.len() / 1024 * 1024
            };
            put(model, group.series, group.rows.slice(0..taken));
            Ok(taken)
        };
        buffer.group(layout, true, group).unwrap();
    }
    buffer.grouped();
}

#[test]
fn flushed_rows_are_the_newest_of_each_time() {
    for seed in 0..60u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let budget = [2_000, 60_000, 1_500_000][rng.index(3)];
        let mut buffer = WriteBuffer::new(budget);
        let layouts: [&[ColumnType]; 3] = [&POINT, &[], &[ColumnType::U64; 3]];
        let series = 1 + rng.below(200);
        let (mut out, mut model) = (Model::new(), Model::new());
        let mut next = 0i64;
        let steps = 40 + rng.below(400);
        for step in 0..steps {
            let id = SeriesId(rng.below(series) * 7 % 211);
            let types = layouts[(id.0 % 3) as usize];
            let slot = buffer.slot(id, types);
            let bulk = rng.one_in(4);
            for _ in 0..if bulk { rng.below(3_000) } else { 1 } {
                next += 1;
                let time = if rng.one_in(50) {
                    rng.between(0, next)
                } else {
                    next
                };
                let words: Vec<u64> = (0..types.len())
                    .map(|i| {
                        if i == 0 && seed % 2 == 0 {
                            5
                        } else {
                            step + i as u64
                        }
                    })
                    .collect();
                model.insert((id.0, time), words.clone());
                let ready = if types.len() == 2 {
                    buffer.push_point(slot, time, words[0], words[1])
                } else {
                    buffer.push(slot, time, &words)
                };
                if ready {
                    drain(&mut buffer, &mut out, false);
                }
            }
            if rng.one_in(6) {
                let mut rows = Rows::new(types.len());
                for _ in 0..rng.below(500) {
                    let time = rng.between(-50, next);
                    let words = vec![step; types.len()];
                    model.insert((id.0, time), words.clone());
                    rows.push_row(time, &words);
                }
                let mut from = 0;
                while from < rows.len() {
                    from += buffer.append(slot, rows.slice(from..rows.len()));
                    drain(&mut buffer, &mut out, false);
                }
            }
            if rng.one_in(9) {
                let (from, to) = (rng.between(0, next), rng.between(0, next));
                let had: Vec<i64> = buffer.rows(slot).between(from, to).times().to_vec();
                assert_eq!(buffer.delete(slot, from, to), had.len() as u64);
                for time in had {
                    // If the map already has a row of this time, the buffer may repeat a row that was flushed
                    // earlier, as it may with leaves.
                    match out.get(&(id.0, time)) {
                        Some(words) => model.insert((id.0, time), words.clone()),
                        None => model.remove(&(id.0, time)),
                    };
                }
                assert!(buffer.rows(slot).between(from, to).is_empty());
            }
            assert!(
                buffer.bytes() < budget * 2 + 40_000,
                "seed {seed}: {}",
                buffer.bytes()
            );
        }
        drain(&mut buffer, &mut out, true);
        assert!(buffer.is_empty());
        assert_eq!(out, model, "seed {seed}");
        buffer.reset();
        assert!(buffer.find(SeriesId(0)).is_none());
    }
}

#[test]
fn a_series_reads_its_own_rows_and_goes_on() {
    let mut buffer = WriteBuffer::default();
    let (a, b) = (
        buffer.slot(SeriesId(1), &POINT),
        buffer.slot(SeriesId(2), &POINT),
    );
    for i in 0..10 {
        let _ = buffer.push_point(a, i, 0, 100 + i as u64);
        let _ = buffer.push_point(b, i, 0, 200 + i as u64);
    }
    let _ = buffer.push_point(a, 3, 0, 7);
    assert_eq!(buffer.rows(a).times(), (0..10).collect::<Vec<i64>>());
    assert_eq!(buffer.rows(a).column(1)[3], 7);
    let _ = buffer.push_point(a, i64::MIN, 1, 8);
    let _ = buffer.push_point(a, i64::MAX, 1, 9);
    assert_eq!(buffer.len(), 22);
    let rows = buffer.rows(a);
    assert_eq!(
        (rows.len(), rows.times()[0], rows.column(0)[0]),
        (12, i64::MIN, 1)
    );
    assert_eq!(buffer.delete(a, i64::MIN, 4), 6);
    assert_eq!(buffer.rows(a).len(), 6);
    assert_eq!(buffer.rows(b).len(), 10);
    assert!(buffer.has_rows(b));
    assert_eq!(buffer.delete(b, i64::MIN, i64::MAX), 10);
    assert!(!buffer.has_rows(b));
    assert!(!buffer.is_empty());
    // The log keeps the room of rows that have moved to overlays: they do not count.
    assert_eq!(buffer.delete(a, i64::MIN, i64::MAX), 6);
    assert!(buffer.is_empty());
}

#[test]
fn a_series_that_keeps_all_rows_needs_an_overlay_only_for_late_rows() {
    let mut buffer = WriteBuffer::default();
    let slot = buffer.slot(SeriesId(1), &POINT);
    buffer.keep_all(slot, true);
    for round in 0..2 {
        for i in 0..5 {
            let _ = buffer.push_point(slot, i, 0, 100 + i as u64);
        }
        assert!(buffer.overlays.is_empty(), "round {round}");
        buffer.use_overlay(slot);
        let _ = buffer.push_point(slot, 3, 0, 7);
        let rows = buffer.rows(slot);
        assert_eq!(rows.times(), [0, 1, 2, 3, 3, 4]);
        assert_eq!(rows.column(1), [100, 101, 102, 103, 7, 104]);
        buffer.forget_rows();
    }
    // Rows that arrived before are in an overlay, and keep one row a time.
    buffer.keep_all(slot, false);
    for value in [1, 2] {
        let _ = buffer.push_point(slot, 0, 0, value);
    }
    buffer.keep_all(slot, true);
    let _ = buffer.push_point(slot, 0, 0, 3);
    assert_eq!(buffer.rows(slot).column(1), [2, 3]);
    // An overlay without rows changes as well.
    assert_eq!(buffer.delete(slot, 0, 0), 2);
    for (keeps_all, rows) in [(false, 1), (true, 2), (false, 1)] {
        buffer.keep_all(slot, keeps_all);
        for value in [1, 2] {
            let _ = buffer.push_point(slot, 5, 0, value);
        }
        assert_eq!(buffer.rows(slot).len(), rows);
        assert_eq!(buffer.delete(slot, 5, 5), rows as u64);
    }
}

#[test]
fn one_ascending_series_stays_in_the_cache() {
    let mut buffer = WriteBuffer::default();
    let slot = buffer.slot(SeriesId(1), &POINT);
    let (mut linked, mut greatest) = (0, 0);
    for i in 0..200_000i64 {
        if buffer.push_point(slot, i, 0, i as u64)
            && let Ready::Leaf(layout) = buffer.ready()
        {
            linked += buffer.with_leaf(layout, |_, _, rows| rows.len());
            buffer.leaf_linked(layout);
        }
        greatest = greatest.max(buffer.len());
    }
    assert!(greatest <= LEAF_ROWS, "{greatest}");
    assert_eq!(linked + buffer.len(), 200_000);
}

/// Pushes a point on the fast path; returns false if the fast path refuses it.
fn easily(buffer: &mut WriteBuffer, slot: Slot, time: i64, [flags, value]: [u64; 2]) -> bool {
    let log = &mut buffer.logs[slot.layout as usize];
    log.append_point(slot.index, time, flags, value)
}

/// The fast path requires constant flags and a varying value. Each way to push a row is tested with a row at which
/// the flags or the value begin to vary.
#[test]
fn a_row_is_pushed_the_easy_way_only_while_the_flags_are_constant() {
    for odd_way in 0..3 {
        let mut buffer = WriteBuffer::default();
        let slot = buffer.slot(SeriesId(1), &POINT);
        assert!(!easily(&mut buffer, slot, 0, [0, 1]), "no batch is open");
        let mut model = Model::new();
        let mut easy = 0;
        for i in 0..3000i64 {
            let words = [if i == 2000 { 5 } else { 0 }, 7 + i as u64];
            model.insert((1, i), words.to_vec());
            if easily(&mut buffer, slot, i, words) {
                assert!(i != 2000);
                easy += 1;
            } else if i != 2000 || odd_way == 0 {
                assert!(!buffer.push_point(slot, i, words[0], words[1]));
            } else if odd_way == 1 {
                assert!(!buffer.push(slot, i, &words));
            } else {
                let columns = [&words[..1], &words[1..]];
                let rows = RowsRef::new(std::slice::from_ref(&i), &columns);
                assert_eq!(buffer.append(slot, rows), 1);
            }
            if i == 1500 {
                let other = buffer.slot(SeriesId(2), &POINT);
                assert!(!buffer.push_point(other, i, 0, 3));
                model.insert((2, i), vec![0, 3]);
                assert!(
                    !easily(&mut buffer, slot, i, [0, 4]),
                    "another batch is open"
                );
            }
        }
        assert!((1900..2000).contains(&easy), "{easy} rows were easy");
        let mut found = Model::new();
        drain(&mut buffer, &mut found, true);
        assert!(found == model, "way {odd_way}");
    }
}

/// Pushes one point for each of many series in turn, once per round of `rounds`, and flushes rows that are ready.
/// Returns the number of flushes.
fn feed(
    buffer: &mut WriteBuffer,
    slots: &[Slot],
    rounds: std::ops::Range<i64>,
    mut row: impl FnMut(usize, i64) -> (i64, u64),
    (model, out): (&mut Model, &mut Model),
) -> usize {
    let mut flush_count = 0;
    for round in rounds {
        for (i, &slot) in slots.iter().enumerate() {
            let (time, flags) = row(i, round);
            let value = (i as u64) << 32 | round as u64;
            model.insert((buffer.series(slot).0, time), vec![flags, value]);
            if buffer.push_point(slot, time, flags, value) {
                flush_count += usize::from(buffer.ready() != Ready::Nothing);
                drain(buffer, out, false);
            }
        }
    }
    flush_count
}

#[test]
fn series_fed_in_turn_are_handed_over_when_their_vectors_are_whole() {
    let mut buffer = WriteBuffer::default();
    let slots: Vec<Slot> = (0..300)
        .map(|i| buffer.slot(SeriesId(i * 2), &POINT))
        .collect();
    let (mut model, mut out) = (Model::new(), Model::new());
    let in_order = |_: usize, round: i64| (round * 10, 0);
    let maps = (&mut model, &mut out);
    assert_eq!(feed(&mut buffer, &slots, 0..2100, in_order, maps), 2);
    // The whole vectors were flushed, and the rows that remain are recognised as rounds again.
    assert_eq!(buffer.len(), 300 * (2100 - 2048));
    assert!(buffer.logs[0].round_robin.is_active());
    assert!(buffer.has_rows(slots[7]));
    // A second row of a series within a round ends round-robin mode, which is detected again later. The buffer then
    // holds the rows of 52 rounds and the second row.
    let between = |_: usize, round: i64| (round * 10 + 5, 0);
    let maps = (&mut model, &mut out);
    let again = feed(&mut buffer, &slots[7..8], 2099..2100, between, maps);
    assert!(again == 0 && !buffer.logs[0].round_robin.is_active());
    let maps = (&mut model, &mut out);
    assert_eq!(feed(&mut buffer, &slots, 2100..3100, in_order, maps), 1);
    assert!(buffer.logs[0].round_robin.is_active());
    assert_eq!(buffer.len(), 300 * (3100 - 3072) + 1);
    // One row arrives out of time order. From then on, rows wait until the memory budget is used up.
    let late = |i: usize, round: i64| {
        (
            if i == 9 && round == 3200 {
                5
            } else {
                round * 10
            },
            0,
        )
    };
    let maps = (&mut model, &mut out);
    assert_eq!(feed(&mut buffer, &slots, 3100..6200, late, maps), 1);
    assert_eq!(buffer.len(), 300 * (6200 - 4096) + 1);
    drain(&mut buffer, &mut out, true);
    assert!(buffer.is_empty() && out == model);
    // After a reset, round-robin order must be detected anew.
    buffer.reset();
    let slots: Vec<Slot> = (0..300)
        .map(|i| buffer.slot(SeriesId(i * 2), &POINT))
        .collect();
    let maps = (&mut model, &mut out);
    assert_eq!(feed(&mut buffer, &slots, 7000..8100, in_order, maps), 1);
}

#[test]
fn calls_between_rounds_lose_no_row() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut buffer = WriteBuffer::new([300_000, 3_000_000, 1 << 28][rng.index(3)]);
        let series = rng.between(16, 90);
        let slots: Vec<Slot> = (0..series as u64)
            .map(|i| buffer.slot(SeriesId(i), &POINT))
            .collect();
        let (mut model, mut out) = (Model::new(), Model::new());
        let mut round = 0;
        let mut in_rounds = 0;
        for _ in 0..rng.between(3, 12) {
            let rounds = round..round + rng.between(1, 600);
            round = rounds.end;
            // In some runs of the test the flags begin to vary; in others the times are repeated.
            let (odd, same) = (rng.one_in(3), rng.one_in(5));
            let row = |i: usize, round: i64| {
                let flags = u64::from(odd && round % 50 == 7 && i % 9 == 2);
                (if same { 5 } else { round * 10 }, flags)
            };
            feed(&mut buffer, &slots, rounds, row, (&mut model, &mut out));
            in_rounds += u64::from(buffer.logs[0].round_robin.is_active());
            let slot = *rng.pick(&slots);
            let id = buffer.series(slot).0;
            match rng.below(6) {
                0 => {
                    let before = buffer.len();
                    let rows = buffer.rows(slot).to_rows();
                    assert!(rows.view().is_sorted_unique());
                    for (i, &time) in rows.times.iter().enumerate() {
                        let words = [rows.columns[0][i], rows.columns[1][i]];
                        assert_eq!(model[&(id, time)], words, "{id}: {time}");
                    }
                    assert!(buffer.len() <= before && (rows.is_empty() || buffer.has_rows(slot)));
                }
                1 => {
                    let buffered = buffer.rows(slot).times().to_vec();
                    assert_eq!(buffer.delete(slot, 0, i64::MAX), buffered.len() as u64);
                    assert!(!buffer.has_rows(slot));
                    for time in buffered {
                        match out.get(&(id, time)) {
                            Some(words) => model.insert((id, time), words.clone()),
                            None => model.remove(&(id, time)),
                        };
                    }
                }
                2 => {
                    let times = [round * 10 + 1, round * 10 + 2];
                    let columns = [&[3, 3][..], &[4, 5]];
                    assert_eq!(buffer.append(slot, RowsRef::new(&times, &columns)), 2);
                    model.insert((id, times[0]), vec![3, 4]);
                    model.insert((id, times[1]), vec![3, 5]);
                }
                3 => {
                    // Pushes one row for each series in turn, each with a call of `append`.
                    round += 1;
                    for &slot in &slots {
                        let rows = RowsRef::new(std::slice::from_ref(&round), &[&[0], &[9]]);
                        assert_eq!(buffer.append(slot, rows), 1);
                        model.insert((buffer.series(slot).0, round), vec![0, 9]);
                    }
                }
                4 => drain(&mut buffer, &mut out, true),
                _ => {
                    let other = SeriesId(1000 + rng.below(3));
                    let other = buffer.slot(other, &POINT);
                    let key = (buffer.series(other).0, round);
                    model.insert(key, vec![7, 8]);
                    let _ = buffer.push(other, round, &[7, 8]);
                }
            }
        }
        drain(&mut buffer, &mut out, true);
        assert!(out == model, "seed {seed}");
        println!("  {in_rounds} times in rounds");
    }
}

#[test]
fn one_row_per_series_and_commit_is_flushed_unchanged() {
    let (mut together, mut resumed) = (0, 0);
    for seed in 0..40u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut buffer = WriteBuffer::default();
        let series = rng.between(2, 200) as u64;
        let disturbed = rng.one_in(2);
        for commit in 0..12i64 {
            let mut model = Model::new();
            resumed += u64::from(buffer.logs.iter().any(|log| log.round_robin.is_active()));
            for one in 0..series {
                let mut rows = 1;
                if disturbed && rng.one_in(100) {
                    rows = rng.below(100);
                }
                for row in 0..rows as i64 {
                    // Some rows are out of time order or have the time of an earlier row.
                    let time = commit * 1000 + if rng.one_in(4) { -row } else { row };
                    let slot = buffer.slot(SeriesId(one * 5), &POINT);
                    let _ = buffer.push_point(slot, time, 0, rng.u64());
                    let words = buffer.logs[0].columns.iter();
                    let last = buffer.logs[0].rows() - 1;
                    let words = words.map(|column| match column.constant {
                        true => column.value,
                        false => column.words[last],
                    });
                    model.insert((one * 5, time), words.collect());
                }
            }
            let mut found = Model::new();
            let mut keep = |series: u64, rows: RowsRef<'_>, row: usize| {
                let words = (0..rows.column_count()).map(|c| rows.column(c)[row]);
                let before = found.insert((series, rows.times()[row]), words.collect());
                assert!(before.is_none(), "each time once");
            };
            let mut last = None;
            let most = 1 + rng.index(70);
            buffer
                .group_all(0, true, most, |grouped| match grouped {
                    Grouped::One(Group { series, rows }) => {
                        assert!(last < Some(series.0), "groups come in order");
                        last = Some(series.0);
                        (0..rows.len()).for_each(|row| keep(series.0, rows, row));
                        Ok(rows.len())
                    }
                    Grouped::Few { series, rows } => {
                        together += 1;
                        assert!(series.is_sorted() && last < series.first().copied());
                        assert!(series.chunk_by(|a, b| a == b).all(|own| own.len() <= most));
                        last = series.last().copied().or(last);
                        assert_eq!(series.len(), rows.len());
                        (0..rows.len()).for_each(|row| keep(series[row], rows, row));
                        Ok(rows.len())
                    }
                })
                .unwrap();
            buffer.grouped();
            assert_eq!(found, model, "commit {commit}");
            assert!(buffer.is_empty());
            match rng.one_in(6) {
                true => buffer.reset(),
                false => buffer.forget_rows(),
            }
        }
    }
    println!("{together} times together, rounds of {resumed} commits were expected");
    assert!(together > 400 && resumed > 100);
}
