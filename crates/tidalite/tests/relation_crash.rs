//! Relations on a simulated disk: after a power cut at any moment the file has one of the committed states, with all indexes,
//! and at least the last one whose commit was acknowledged.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::relation::{Cell, Column, ColumnType, Index, KeyBounds, RelationMut, Schema};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, Options, Tuning};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Op, Replay, SimDisk};

const COMMITS: u64 = 24;

fn options(log_bytes: u64) -> Options {
    let tuning = Tuning::new().log_bytes(log_bytes);
    Options::new().page_size(512).tuning(tuning)
}

fn schema() -> Schema {
    Schema::new()
        .column(Column::new("id", ColumnType::I64))
        .column(Column::new("name", ColumnType::Text))
        .primary_key(["id"])
        .index(Index::new("by_name", ["name"]).unique())
}

/// The columns of the schema, and all rows; `None` before the relation was created.
type State = Option<(Vec<String>, Vec<Vec<Cell>>)>;

fn state_of(db: &Database) -> State {
    let snap = db.begin_read().unwrap();
    let relation = snap.relation("r").unwrap()?;
    let columns = relation
        .schema()
        .columns()
        .iter()
        .map(|one| one.name.clone());
    let mut rows = relation.rows(KeyBounds::all()).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push(row.to_cells().unwrap());
    }
    Some((columns.collect(), found))
}

fn change(rng: &mut Rng, relation: &mut RelationMut<'_>, commit: u64) {
    for _ in 0..6 {
        let columns = relation.schema().columns().len();
        let mut row = vec![
            Cell::I64(rng.below(40) as i64),
            Cell::from(format!("name {}", rng.below(60))),
        ];
        row.resize(columns, Cell::Null);
        let key = relation.view().unwrap().row_key(&row[..1]).unwrap();
        match rng.below(4) {
            0 => drop(relation.remove(&key).unwrap()),
            _ => drop(relation.upsert(&row)),
        }
    }
    let name = format!("added {commit}");
    match rng.below(6) {
        0 => relation
            .add_column(Column::new(name, ColumnType::I64).default(7_i64))
            .unwrap(),
        1 => drop(relation.drop_column(&format!("added {}", commit - 3))),
        2 => relation
            .create_index(Index::new(name, ["name", "id"]))
            .unwrap(),
        3 => drop(
            relation
                .drop_index(&format!("added {}", commit - 2))
                .unwrap(),
        ),
        _ => {}
    }
}

fn run(seed: u64, log_bytes: u64) -> (u64, usize) {
    let rng = &mut Rng::new(seed);
    let disk = Arc::new(SimDisk::new());
    let db = options(log_bytes).open_storage(disk.clone()).unwrap();
    disk.mark(0);
    let mut states = vec![state_of(&db)];
    for commit in 1..=COMMITS {
        let mut tx = db.begin_write().unwrap();
        match tx.relation_mut("r").unwrap() {
            Some(mut relation) => change(rng, &mut relation, commit + 3),
            None => drop(tx.create_relation("r", &schema()).unwrap()),
        }
        if rng.one_in(10) {
            tx.rename_table("r", "r").unwrap();
        }
        tx.commit_with(*rng.pick(&[Durability::Durable, Durability::OneFlush]))
            .unwrap();
        disk.mark(commit);
        states.push(state_of(&db));
    }
    drop(db);
    let recording = disk.recording();
    let mut replay = Replay::new(&recording);
    let (mut acknowledged, mut images, mut is_open) = (0, 0, false);
    for op in &recording.ops {
        replay.step(op);
        if let Op::Mark(commit) = op {
            (acknowledged, is_open) = (*commit, true);
        }
        if !is_open {
            continue;
        }
        for image in [
            replay.killed(),
            replay.power_cut(rng),
            replay.power_cut(rng),
        ] {
            images += 1;
            let storage = Arc::new(MemoryStorage::from_image(image));
            let db = options(log_bytes).open_storage(storage).unwrap();
            let report = db.check().unwrap();
            assert!(report.is_clean(), "seed {seed}: {report:?}");
            let found = state_of(&db);
            let known = states.iter().skip(acknowledged as usize).take(2);
            assert!(
                known.into_iter().any(|state| *state == found),
                "seed {seed}: another state after commit {acknowledged}"
            );
        }
    }
    (acknowledged, images)
}

#[test]
fn a_power_cut_leaves_a_committed_state() {
    tidalite_testkit::watch();
    for seed in 0..6 {
        println!("seed {seed}");
        let (commits, images) = run(seed, if seed % 2 == 0 { 0 } else { 1 << 16 });
        assert!(commits == COMMITS && images > 200, "{commits} {images}");
    }
}
