//! Each transaction adds one row to every series. The next transaction reuses the cached series and the write buffer of
//! the previous one, whatever happens in between.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use tidalite::{Column, ColumnType, Database, MergePolicy, Steps, WriteTxn};
use tidalite_testkit::rng::Rng;

/// The expected rows, by series and time.
type Model = BTreeMap<(usize, i64), Vec<u64>>;

struct World {
    rng: Rng,
    model: Model,
    columns: Vec<usize>,
    clock: i64,
}

impl World {
    fn name(series: usize) -> String {
        format!("in.turn.{series}")
    }

    /// Inserts one row into each series. Unless `tidy` is true, some series get no row or a late one.
    fn round(&mut self, txn: &mut WriteTxn, tidy: bool) {
        self.clock += 10;
        for series in 0..self.columns.len() {
            if !tidy && self.rng.one_in(30) {
                continue;
            }
            let late = if !tidy && self.rng.one_in(30) { 25 } else { 0 };
            let mut words = vec![0, (self.rng.u64() % 1000) as f64 as u64];
            words.resize(self.columns[series], 7);
            let mut one = txn.series(&Self::name(series)).unwrap();
            one.insert_row(Steps(self.clock - late), &words).unwrap();
            self.model.insert((series, self.clock - late), words);
        }
    }

    /// Makes another kind of change, which affects the state that the next transaction would reuse.
    fn disturb(&mut self, txn: &mut WriteTxn) {
        let series = self.rng.index(self.columns.len());
        let mut one = txn.series(&World::name(series)).unwrap();
        match self.rng.below(4) {
            0 if self.columns[series] < 5 => {
                let column = Column::new(format!("c{}", self.columns[series]), ColumnType::U64);
                one.add_columns(&[column]).unwrap();
                self.columns[series] += 1;
                for (_, words) in self
                    .model
                    .range_mut((series, i64::MIN)..=(series, i64::MAX))
                {
                    words.push(0);
                }
            }
            1 => {
                let from = self.clock - 40;
                one.delete(Steps(from)..).unwrap();
                self.model
                    .retain(|&(of, time), _| of != series || time < from);
            }
            2 => {
                let merge = [MergePolicy::Replace, MergePolicy::KeepFirst][self.rng.index(2)];
                one.set_merge(merge).unwrap();
                one.set_merge(MergePolicy::Replace).unwrap();
            }
            _ => {
                txn.table("t").unwrap().put(b"key", b"value").unwrap();
            }
        }
    }

    fn compare(&self, db: &Database) {
        let txn = db.begin_read().unwrap();
        let mut found = Model::new();
        for series in 0..self.columns.len() {
            let Some(one) = txn.series(&Self::name(series)).unwrap() else {
                continue;
            };
            one.query(..)
                .for_each(|time, words| {
                    found.insert((series, time), words.to_vec());
                })
                .unwrap();
        }
        assert!(found == self.model, "the rows are those of the model");
    }
}

#[test]
fn round_robin_transactions_inherit_the_order_of_series() {
    tidalite_testkit::watch();
    let dir = std::env::temp_dir().join(format!("tidalite-in-turn-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for seed in 0..8 {
        println!("seed {seed}");
        let path = dir.join(format!("{seed}.tdl"));
        let mut db = Database::open(&path).unwrap();
        let mut rng = Rng::new(seed);
        let series = rng.between(10, 120) as usize;
        let mut world = World {
            rng,
            model: Model::new(),
            columns: vec![2; series],
            clock: 0,
        };
        for _ in 0..120 {
            let before = (world.model.clone(), world.columns.clone());
            let mut txn = db.begin_write().unwrap();
            let rounds = world.rng.below(4);
            for _ in 0..rounds {
                let tidy = world.rng.one_in(2);
                world.round(&mut txn, tidy);
            }
            if world.clock > 0 && world.rng.one_in(4) {
                world.disturb(&mut txn);
            }
            if world.rng.one_in(8) {
                drop(txn);
                (world.model, world.columns) = before;
            } else {
                txn.commit().unwrap();
            }
            if world.rng.one_in(20) {
                world.compare(&db);
            }
            if world.rng.one_in(30) {
                drop(db);
                db = Database::open(&path).unwrap();
            }
        }
        world.compare(&db);
        assert!(db.check().unwrap().is_clean(), "the file is whole");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}
