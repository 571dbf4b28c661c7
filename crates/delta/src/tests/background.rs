//! Tests that helper threads encode the rows of a lent log while the transaction continues.

use super::{Leaves, POINT, World, part, visible};
use crate::{BackgroundFlush, EncodingSink, Sink, Slot, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows, RowsRef};
use tidalite_pager::{PageWrite, Result};
use tidalite_testkit::rng::Rng;

/// A value in a row that makes the encoder of these tests panic.
const PANIC: u64 = 0xdead;

/// Encoded rows of these tests; they are not compressed.
#[derive(Default)]
pub(crate) struct PlainRows {
    begun: bool,
    rows: Option<Rows>,
}

impl<W: PageWrite> EncodingSink<W> for Leaves {
    type Encoded = PlainRows;

    fn begin(
        &mut self,
        _: &mut W,
        _: SeriesId,
        _: &[ColumnType],
        held: &mut PlainRows,
    ) -> Result<()> {
        (held.begun, held.rows) = (true, None);
        Ok(())
    }

    fn encode(_: &[ColumnType], rows: RowsRef<'_>, held: &mut PlainRows) {
        assert!(held.begun, "begun by the transaction's thread");
        assert!(rows.is_sorted_unique());
        if rows.column(1).contains(&PANIC) {
            std::panic::panic_any("as it was meant");
        }
        held.rows = Some(rows.to_rows());
    }

    fn link_encoded(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        held: &PlainRows,
    ) -> Result<bool> {
        let rows = held.rows.as_ref().unwrap().view();
        let behind = (series.0, rows.times()[0])..=(series.0, i64::MAX);
        if self.rows.range(behind).next().is_some() {
            return Ok(false);
        }
        self.link(w, series, types, rows)
    }
}

struct Feeder {
    world: World,
    background: BackgroundFlush<PlainRows>,
    threads: usize,
    slots: Vec<Slot>,
    /// Number of times that the log with a series was lent during a push.
    lent_slots: u64,
}

impl Feeder {
    fn new(series: u64, write_buffer_bytes: usize, threads: usize) -> Self {
        let mut world = World::new(4096, write_buffer_bytes);
        let slots = (0..series).map(|i| world.buffer.slot(SeriesId(i * 7), &POINT));
        Self {
            slots: slots.collect(),
            world,
            background: BackgroundFlush::default(),
            threads,
            lent_slots: 0,
        }
    }

    fn put(&mut self, i: usize, time: i64, value: u64) {
        let world = &mut self.world;
        world.truth.insert((i as u64 * 7, time), vec![0, value]);
        if world.buffer.push_point(self.slots[i], time, 0, value) {
            let was_away = world.buffer.is_lent(self.slots[i]);
            let (buffer, leaves) = (&mut world.buffer, &mut world.leaves);
            world
                .delta
                .flush_with(
                    &mut world.pages,
                    buffer,
                    leaves,
                    &mut self.background,
                    self.threads,
                )
                .unwrap();
            let is_lent = world.buffer.is_lent(self.slots[i]);
            self.lent_slots += u64::from(is_lent && !was_away);
        }
    }

    fn finish_background(&mut self) {
        let world = &mut self.world;
        let (buffer, leaves) = (&mut world.buffer, &mut world.leaves);
        world
            .delta
            .finish_background(&mut world.pages, buffer, leaves, &mut self.background)
            .unwrap();
        assert!(!world.buffer.is_lent(self.slots[0]));
    }

    /// Checks that the buffered rows of a series are in no leaf, and that buffer, leaves and delta together hold all
    /// its rows.
    fn read(&mut self, i: usize) {
        self.finish_background();
        let id = i as u64 * 7;
        let world = &mut self.world;
        let buffered = world.buffer.rows(self.slots[i]).to_rows();
        let all = (i64::MIN, i64::MAX);
        let mut seen = visible(
            &world.delta,
            &world.pages,
            &world.leaves.rows,
            id,
            all.0,
            all.1,
        );
        for (row, &time) in buffered.times.iter().enumerate() {
            let words = buffered.columns.iter().map(|column| column[row]).collect();
            seen.insert((id, time), words);
        }
        assert!(seen == part(&world.truth, id, all.0, all.1), "series {id}");
    }

    fn commit(&mut self) -> Work {
        let world = &mut self.world;
        let (buffer, leaves) = (&mut world.buffer, &mut world.leaves);
        let threads = self.threads;
        world
            .delta
            .store_with(
                &mut world.pages,
                buffer,
                leaves,
                &mut self.background,
                threads,
            )
            .unwrap();
        assert!(world.buffer.is_empty());
        let work = world.delta.work();
        world.commit();
        let slots = (0..self.slots.len() as u64).map(|i| SeriesId(i * 7));
        self.slots = slots.map(|id| world.buffer.slot(id, &POINT)).collect();
        work
    }
}

#[test]
fn lent_rows_are_read_overwritten_and_never_lost() {
    let mut away = 0;
    for seed in 0..12u64 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let series = [270, 400, 60][seed as usize % 3];
        let budget = [1 << 28, 12 << 20, 4 << 20][rng.index(3)];
        let mut feeder = Feeder::new(series, budget, 1 + rng.index(3));
        let mut now = 0;
        for _ in 0..rng.between(1, 3) {
            for _ in 0..rng.between(1, 4) {
                let rounds = rng.between(1, 1300);
                for _ in 0..rounds {
                    now += 1;
                    for i in 0..series as usize {
                        feeder.put(i, now * 10, (now as u64) << 16 | i as u64);
                    }
                }
                let i = rng.index(series as usize);
                match rng.below(5) {
                    0 => feeder.read(i),
                    // Pushes late rows: some belong among lent rows, some among rows that became leaves long ago.
                    1 => {
                        for _ in 0..rng.between(1, 30) {
                            let time = (now - rng.between(0, 1500)) * 10 + rng.between(0, 1);
                            feeder.put(i, time, rng.u64() | 1 << 40);
                        }
                    }
                    2 => {
                        for row in 0..rng.between(1, 5000) {
                            feeder.put(i, now * 10 + row % 9, 1 << 41 | row as u64);
                        }
                    }
                    3 => feeder.finish_background(),
                    _ => {}
                }
            }
            feeder.commit();
            feeder.read(rng.index(series as usize));
        }
        feeder.commit();
        feeder.world.check();
        for i in 0..series as usize {
            feeder.read(i);
        }
        away += feeder.lent_slots;
    }
    println!("{away} times rows were away");
    assert!(away > 10, "{away}");
}

#[test]
fn lent_rows_count_towards_the_budget() {
    // The memory budget is such that a flush takes two thirds of the rows.
    let mut feeder = Feeder::new(256, 256 * 1024 * 24 + 256 * 1024 * 8, 1);
    let mut most = 0;
    for now in 0..5000 {
        for i in 0..256 {
            feeder.put(i, now, now as u64);
            let buffer = &feeder.world.buffer;
            most = most.max(buffer.bytes() + buffer.lent_bytes);
        }
    }
    let budget = feeder.world.buffer.budget_bytes();
    println!("{most} bytes of {budget}");
    assert!(most <= budget + 4096 * 24, "{most} bytes of {budget}");
    assert!(feeder.lent_slots >= 4);
    feeder.commit();
    feeder.read(77);
}

#[test]
fn a_panic_of_a_thread_is_one_of_the_transaction() {
    for threads in [1, 3] {
        for (series, at) in [(0usize, 5i64), (299, 1000)] {
            let mut feeder = Feeder::new(300, 1 << 28, threads);
            let caught = catch_unwind(AssertUnwindSafe(|| {
                for now in 0..1500 {
                    for i in 0..300 {
                        let odd = i == series && now == at;
                        feeder.put(i, now, if odd { PANIC } else { now as u64 });
                    }
                }
                feeder.finish_background();
            }));
            assert!(caught.is_err());
            // In this test the helper threads have already finished when the transaction is dropped.
            drop(feeder);
        }
    }
    // The transaction is dropped while the threads work and before their results are collected.
    let mut feeder = Feeder::new(300, 1 << 28, 2);
    for now in 0..1024 {
        for i in 0..300 {
            feeder.put(i, now, now as u64);
        }
    }
    assert!(feeder.lent_slots == 1 && feeder.world.buffer.is_lent(feeder.slots[3]));
    drop(feeder);
}

#[test]
fn helpers_encode_rows_that_are_enough_for_a_leaf() {
    for (rows, lent) in [(300, 0), (700, 1)] {
        let mut feeder = Feeder::new(300, 1 << 28, 2);
        // The rows do not arrive in round-robin order, so they are encoded just before the commit.
        for i in 0..300 {
            for time in 0..rows {
                feeder.put(i, time, 1);
            }
        }
        assert_eq!(feeder.lent_slots, 0);
        let work = feeder.commit();
        assert_eq!((work.logs_lent, work.runs_written), (lent, 1 - lent));
        for i in [0, 150, 299] {
            feeder.read(i);
        }
    }
}

#[test]
fn rows_held_back_are_older_than_rows_added_since() {
    let mut feeder = Feeder::new(300, 1 << 28, 2);
    // One series has more rows than the others; its additional rows do not fill a vector and stay in the write
    // buffer.
    for time in 1..=10 {
        feeder.put(5, time, 1);
    }
    for round in 0..1030 {
        for i in 0..300 {
            feeder.put(i, 100 + round, round as u64);
        }
    }
    assert!(feeder.lent_slots == 1 && feeder.world.buffer.is_lent(feeder.slots[5]));
    // Three lent rows are overwritten, one new row lies among them, and another lies among the rows of leaves.
    for (time, value) in [(100 + 1020, 7), (100 + 1021, 8), (100 + 1020, 9), (50, 10)] {
        feeder.put(5, time, value);
    }
    feeder.put(6, 100 + 1029, 11);
    let rows = feeder.world.buffer.len();
    feeder.finish_background();
    assert_eq!(feeder.world.buffer.len(), rows + 10, "held back");
    for i in [4, 5, 6] {
        feeder.read(i);
    }
    feeder.commit();
    for i in 0..300 {
        feeder.read(i);
    }
}
