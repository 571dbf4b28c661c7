//! Stores several series in a real file, while a monitor checks the write protocol: commits of all durabilities,
//! rollbacks, long-lived snapshots, reopening. Everything is checked after each commit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows};
use tidalite_kv::{TREE_BYTES, Tree, UsedPages};
use tidalite_pager::{
    Durability, MemoryStorage, Options, PageRead, PageWrite, Pager, Snapshot, Storage,
};
use tidalite_series::{Check, Packer, SeriesTree, View};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const SERIES: usize = 6;
const TYPES: [ColumnType; 2] = [ColumnType::I64, ColumnType::F64];

type Model = Vec<BTreeMap<i64, [u64; 2]>>;

/// Contents of the application area in the commit record: the roots of the table of series records and of the extents
/// table.
#[derive(Clone, Copy)]
struct Roots {
    records: Tree,
    extents: Tree,
}

impl Roots {
    fn read(app: &[u8]) -> Self {
        if app.is_empty() {
            return Self {
                records: Tree::new(1),
                extents: Tree::new(2),
            };
        }
        Self {
            records: Tree::decode(&app[..TREE_BYTES]).unwrap(),
            extents: Tree::decode(&app[TREE_BYTES..]).unwrap(),
        }
    }

    fn app(&self) -> Vec<u8> {
        [self.records.encode(), self.extents.encode()].concat()
    }

    fn tree<R: PageRead>(&self, r: &R, id: usize) -> SeriesTree {
        let tree = match self.records.get(r, &(id as u64).to_be_bytes()).unwrap() {
            Some(record) => SeriesTree::decode(SeriesId(id as u64), &record.to_vec().unwrap()),
            None => SeriesTree::new(SeriesId(id as u64), &TYPES),
        };
        tree.unwrap().with_fanout(4)
    }
}

fn rows_of(model: &BTreeMap<i64, [u64; 2]>) -> Rows {
    let mut rows = Rows::new(2);
    for (&time, words) in model {
        rows.push_row(time, words);
    }
    rows
}

fn assert_content(snapshot: &Snapshot, model: &Model) {
    let roots = Roots::read(snapshot.app());
    let none = Rows::new(2);
    for (id, model) in model.iter().enumerate() {
        let tree = roots.tree(snapshot, id);
        let mut found = Rows::new(2);
        let view = View::new(snapshot, &tree, none.view());
        view.for_each_vector(i64::MIN, i64::MAX, &[0, 1], |vector| {
            found.times.extend_from_slice(vector.times());
            found.columns[0].extend_from_slice(vector.words(0));
            found.columns[1].extend_from_slice(vector.words(1));
        })
        .unwrap();
        assert_eq!(found, rows_of(model), "series {id}");
    }
}

fn assert_clean(pager: &Pager) {
    let mut check = pager.begin_check().unwrap();
    let mut claims: Vec<UsedPages> = Vec::new();
    let mut series = Check::new();
    let roots = Roots::read(check.snapshot().app());
    let mut claim = |claim: UsedPages| claims.push(claim);
    roots.records.check(check.snapshot(), &mut claim).unwrap();
    roots.extents.check(check.snapshot(), &mut claim).unwrap();
    for id in 0..SERIES {
        series
            .tree(
                check.snapshot(),
                &roots.tree(check.snapshot(), id),
                &mut claim,
            )
            .unwrap();
    }
    let report = series
        .extents(check.snapshot(), &roots.extents, &mut claim)
        .unwrap();
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    for claim in claims {
        check.claim(claim.addr, claim.pages, claim.what);
    }
    let report = check.finish();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

fn change(rng: &mut Rng, model: &mut Model, roots: &mut Roots, txn: &mut impl PageWrite) {
    let mut packer = Packer::new(roots.extents);
    for _ in 0..rng.between(1, 4) {
        let id = rng.index(SERIES);
        let mut tree = roots.tree(txn, id);
        let rows = &mut model[id];
        let last = rows.keys().next_back().copied().unwrap_or(0);
        if rng.one_in(5) {
            let from = rng.between(0, last);
            let to = from + rng.between(0, last / 2);
            tree.delete(txn, &mut packer, from, to).unwrap();
            rows.retain(|&time, _| time < from || time > to);
        } else {
            let mut new = Rows::new(2);
            let mut time = if rng.one_in(3) {
                rng.between(0, last)
            } else {
                last
            };
            for _ in 0..*rng.pick(&[1, 100, 1024, 3000]) {
                time += rng.between(1, 20);
                let words = [0, (rng.below(500) as f64 / 10.0).to_bits()];
                new.push_row(time, &words);
                rows.insert(time, words);
            }
            tree.link(txn, &mut packer, new.view()).unwrap();
        }
        let record = tree.save(txn, &mut packer).unwrap();
        roots
            .records
            .insert(txn, &(id as u64).to_be_bytes(), &record)
            .unwrap();
    }
    roots.extents = packer.finish(txn).unwrap();
    roots.records.seal(txn).unwrap();
}

#[test]
fn commits_snapshots_and_reopening_keep_every_row() {
    for seed in 1..=6 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let storage: Arc<dyn Storage> = Monitor::new(Arc::new(MemoryStorage::new()));
        let options = Options {
            page_size: *rng.pick(&[512, 4096]),
            ..Options::default()
        };
        let mut pager = Pager::open_storage(Arc::clone(&storage), &options).unwrap();
        let mut model: Model = vec![BTreeMap::new(); SERIES];
        let mut readers: Vec<(Snapshot, Model)> = Vec::new();
        for round in 0..60 {
            let mut txn = pager.begin_write().unwrap();
            let mut roots = Roots::read(txn.app());
            let mut next = model.clone();
            change(&mut rng, &mut next, &mut roots, &mut txn);
            if rng.one_in(6) {
                drop(txn);
            } else {
                let durability = if rng.one_in(3) {
                    Durability::None
                } else {
                    Durability::Durable
                };
                txn.commit(&roots.app(), durability).unwrap();
                model = next;
            }
            assert_content(&pager.begin_read().unwrap(), &model);
            assert_clean(&pager);
            if rng.one_in(5) {
                readers.push((pager.begin_read().unwrap(), model.clone()));
            }
            if readers.len() > 4 {
                let (snapshot, model) = readers.swap_remove(rng.index(readers.len()));
                assert_content(&snapshot, &model);
            }
            if round % 20 == 19 {
                for (snapshot, model) in readers.drain(..) {
                    assert_content(&snapshot, &model);
                }
                // Makes the unsynced commits durable before the file is closed and opened again.
                let txn = pager.begin_write().unwrap();
                let app = txn.app().to_vec();
                txn.commit(&app, Durability::Durable).unwrap();
                drop(pager);
                pager = Pager::open_storage(Arc::clone(&storage), &options).unwrap();
                assert_content(&pager.begin_read().unwrap(), &model);
                assert_clean(&pager);
            }
        }
    }
}
