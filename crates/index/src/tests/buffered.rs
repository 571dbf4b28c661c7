//! Random operations on buffered tables, compared with a `BTreeMap`, with small pages and small blocks.

use crate::parts::{Part, change, part, row};
use crate::runs::state::Runs;
use crate::{BufferedReader, BufferedWriter, FoundValue};
use std::collections::BTreeMap;
use std::ops::Bound;
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let mut key = vec![b'k'; rng.index(3)];
    key.extend_from_slice(&(rng.below(400) as u16).to_be_bytes());
    if rng.one_in(30) {
        key.extend(vec![b'x'; 300]);
    }
    key
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(random_key(rng)),
        _ => Bound::Excluded(random_key(rng)),
    }
}

fn compare<R: PageRead>(table: &BufferedReader<R>, model: &Model, rng: &mut Rng) -> Result<()> {
    assert_eq!(table.count()?, model.len() as u64);
    for _ in 0..20 {
        let key = random_key(rng);
        let found = match table.get(&key)? {
            Some(FoundValue::Row(value)) => Some(value.to_vec()?),
            Some(FoundValue::Run(value)) => Some(value),
            None => None,
        };
        assert_eq!(found.as_ref(), model.get(&key));
    }
    for _ in 0..4 {
        let (start, end) = (bound(rng), bound(rng));
        let inside = |key: &[u8]| {
            let above = match &start {
                Bound::Included(start) => key >= start.as_slice(),
                Bound::Excluded(start) => key > start.as_slice(),
                Bound::Unbounded => true,
            };
            above
                && match &end {
                    Bound::Included(end) => key <= end.as_slice(),
                    Bound::Excluded(end) => key < end.as_slice(),
                    Bound::Unbounded => true,
                }
        };
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = model
            .iter()
            .filter(|(key, _)| inside(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for is_reversed in [false, true] {
            let mut range = table.range(start.clone(), end.clone(), is_reversed)?;
            let mut found = Vec::new();
            while range.step()? {
                found.push((range.key().to_vec(), range.value().unwrap().to_vec()));
            }
            assert!(!range.step()?);
            assert_eq!(found, expected);
            expected.reverse();
        }
    }
    let mut problems = Vec::new();
    table.check(&mut |problem| problems.push(problem))?;
    assert!(problems.is_empty(), "{problems:?}");
    Ok(())
}

fn random_operations(seed: u64) -> Result<()> {
    let rng = &mut Rng::new(seed);
    let mut pages = ScratchPages::new(*rng.pick(&[512, 1024, 4096]));
    let mut root = Tree::new(20);
    let mut table = BufferedWriter::create(&mut root, &mut pages)?;
    let mut model = Model::new();
    let most = *rng.pick(&[3, 30, 200]);
    for _ in 0..40 {
        for _ in 0..1 + rng.below(most) {
            let key = random_key(rng);
            if rng.one_in(4) {
                table.remove(&key)?;
                model.remove(&key);
                assert_eq!(table.buffered(&key), Some(None));
            } else {
                let len = if rng.one_in(40) { 2000 } else { rng.index(40) };
                let value = vec![rng.below(256) as u8; len];
                table.put(&key, &value)?;
                assert_eq!(table.buffered(&key), Some(Some(&value[..])));
                model.insert(key, value);
            }
        }
        table.store(&mut root, &mut pages)?;
        if rng.one_in(10) {
            table.compact(&mut root, &mut pages)?;
            let stat = table.reader(&root, &pages)?.stat()?;
            assert_eq!((stat.rows, stat.runs), (model.len() as u64, 0));
        }
        if rng.one_in(30) {
            table.clear(&mut root, &mut pages)?;
            model.clear();
        }
        if rng.one_in(4) {
            compare(&table.reader(&root, &pages)?, &model, rng)?;
        }
        root.seal(&mut pages)?;
        if rng.one_in(3) {
            pages.commit();
            let snapshot = pages.snapshot();
            compare(&BufferedReader::open(&root, &snapshot)?, &model, rng)?;
            table = BufferedWriter::open(&root, &pages)?;
        }
    }
    compare(&table.reader(&root, &pages)?, &model, rng)?;
    let mut claims = Vec::new();
    root.check(&pages, &mut |used| claims.push((used.addr, used.pages)))?;
    pages.assert_all_claimed(&claims);
    Ok(())
}

#[test]
fn buffered_tables_agree_with_a_map() {
    tidalite_testkit::watch();
    for seed in 0..80 {
        println!("seed {seed}");
        random_operations(seed).unwrap();
    }
}

/// A table in which at least two runs are partly merged into the rows, with its pages, its list of runs and its
/// content.
fn half_merged(rng: &mut Rng) -> Result<(Tree, ScratchPages, Runs, Model)> {
    let mut pages = ScratchPages::new(512);
    let mut root = Tree::new(20);
    let mut table = BufferedWriter::create(&mut root, &mut pages)?;
    let mut model = Model::new();
    loop {
        for _ in 0..20 {
            let key = random_key(rng);
            if rng.one_in(4) {
                table.remove(&key)?;
                model.remove(&key);
            } else {
                let value = rng.u64().to_be_bytes().to_vec();
                table.put(&key, &value)?;
                model.insert(key, value);
            }
        }
        table.store(&mut root, &mut pages)?;
        let runs = Runs::decode(&row(&root, &pages, Part::State)?)?;
        let merged = model.range(..runs.watermark.clone()).count();
        if runs.merging >= 2 && merged > 20 && merged < model.len() - 20 {
            return Ok((root, pages, runs, model));
        }
    }
}

/// All entries, which must be the same in both directions and with `get`.
fn content<R: PageRead>(table: &BufferedReader<R>) -> Result<Model> {
    let mut all = Vec::new();
    for is_reversed in [false, true] {
        let mut range = table.range(Bound::Unbounded, Bound::Unbounded, is_reversed)?;
        let mut found = Model::new();
        while range.step()? {
            let value = range.value().map(<[u8]>::to_vec);
            found.insert(range.key().to_vec(), value.unwrap_or_default());
        }
        all.push(found);
    }
    assert_eq!(all[0], all[1]);
    compare(table, &all[0], &mut Rng::new(1))?;
    Ok(all.remove(0))
}

/// Recovers a table; also returns the defects that were reported.
fn recovered<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<(BufferedWriter, Vec<String>)> {
    let mut problems = Vec::new();
    let mut problem = |problem| problems.push(problem);
    let table = BufferedWriter::recover(root, w, &mut problem)?;
    Ok((table, problems))
}

/// The keys of the rows that contain blocks of a run.
fn blocks_of<R: PageRead>(root: &Tree, r: &R, run: u64) -> Result<Vec<Vec<u8>>> {
    let blocks = part(root, r, Part::Runs)?;
    let mut rows = blocks.cursor(r)?;
    let mut keys = Vec::new();
    let mut there = rows.seek_ge(&run.to_be_bytes())?;
    while there && rows.key().starts_with(&run.to_be_bytes()) {
        keys.push(rows.key().to_vec());
        there = rows.next()?;
    }
    Ok(keys)
}

#[test]
fn lost_blocks_of_runs_bring_back_no_value_that_the_rows_replaced() -> Result<()> {
    tidalite_testkit::watch();
    let mut lost_keys = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let (mut root, mut pages, runs, model) = half_merged(rng)?;
        let run = &runs.list[rng.index(runs.merging)];
        let keys = blocks_of(&root, &pages, run.number)?;
        let lost = rng.pick(&keys).clone();
        change(&mut root, &mut pages, Part::Runs, &mut |w, blocks| {
            blocks.remove(w, &lost)
        })?;
        let (mut table, problems) = recovered(&mut root, &mut pages)?;
        assert!(problems.is_empty(), "{problems:?}");
        let found = content(&table.reader(&root, &pages)?)?;
        let is_merged = |(key, _): &(&Vec<u8>, &Vec<u8>)| **key < runs.watermark;
        assert!(
            found
                .iter()
                .filter(is_merged)
                .eq(model.iter().filter(is_merged)),
            "the rows decide below {:?}",
            runs.watermark
        );
        lost_keys += usize::from(found != model);
        table.compact(&mut root, &mut pages)?;
        assert_eq!(content(&table.reader(&root, &pages)?)?, found);
    }
    assert!(
        lost_keys > 0,
        "some blocks had entries that were not merged"
    );
    Ok(())
}

#[test]
fn rows_that_are_lost_come_back_from_whole_runs() -> Result<()> {
    tidalite_testkit::watch();
    for seed in 0..20 {
        println!("seed {seed}");
        let rng = &mut Rng::new(seed);
        let (mut root, mut pages, runs, model) = half_merged(rng)?;
        let of_runs = {
            let number = runs.list[0].number;
            let first = blocks_of(&root, &pages, number)?[0][8..].to_vec();
            model.range(first..).next().map(|(key, _)| key.clone())
        };
        let lost = of_runs.unwrap_or_default();
        change(&mut root, &mut pages, Part::Main, &mut |w, rows| {
            rows.remove(w, &lost)
        })?;
        let (table, _) = recovered(&mut root, &mut pages)?;
        let found = content(&table.reader(&root, &pages)?)?;
        // The row may be older than all runs.
        let is_lost = (!found.contains_key(&lost)).then_some(&lost);
        let missing = model.keys().filter(|key| !found.contains_key(*key));
        assert!(missing.eq(is_lost));
        if runs.merged == 0 {
            assert_eq!(found, model);
        }
    }
    Ok(())
}

/// Adds rows that no writer creates: `recover` removes and reports them.
#[test]
fn rows_that_do_not_belong_to_a_buffered_table_are_removed() -> Result<()> {
    tidalite_testkit::watch();
    let (root, pages, runs, model) = half_merged(&mut Rng::new(7))?;
    let block = {
        let key = &blocks_of(&root, &pages, runs.list[0].number)?[0];
        let block = part(&root, &pages, Part::Runs)?.get(&pages, key)?;
        (key[8..].to_vec(), block.unwrap().to_vec()?)
    };
    let in_run = |number: u64| [&number.to_be_bytes()[..], &block.0].concat();
    let newest = runs.list[runs.list.len() - 1].number;
    let mut rubbish = Vec::new();
    for (part, key, value) in [
        (Part::Runs, b"short".to_vec(), block.1.clone()),
        (Part::Runs, in_run(newest), b"no block".to_vec()),
        (Part::Runs, in_run(u64::MAX), block.1.clone()),
        (Part::Runs, in_run(1 << 47), block.1.clone()),
        (Part::Runs, in_run(newest + 1), block.1.clone()),
        (
            Part::Runs,
            [in_run(newest), vec![0]].concat(),
            block.1.clone(),
        ),
    ] {
        rubbish.push((vec![part.key().to_vec()], key, value));
    }
    // Nested tables in the rows, in the blocks and in the root.
    for path in [vec![3, 0], vec![4, 0], vec![6, 0], vec![2], vec![9]] {
        let path: Vec<Vec<u8>> = path.iter().map(|part| vec![*part]).collect();
        rubbish.push((path, b"k".to_vec(), b"v".to_vec()));
    }
    rubbish.push((Vec::new(), vec![0], b"options".to_vec()));
    rubbish.push((Vec::new(), b"unknown".to_vec(), b"row".to_vec()));
    for (path, key, value) in rubbish {
        println!("{path:?} {key:?}");
        let (root, mut pages, ..) = half_merged(&mut Rng::new(7))?;
        let mut table = TableWriter::of(root);
        table.at(
            &mut pages,
            &path,
            tidalite_kv::MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, &key, &value),
        )?;
        let mut root = *table.tree().unwrap();
        let (table, problems) = recovered(&mut root, &mut pages)?;
        let is_derived = path.first().is_some_and(|part| *part == [6]);
        assert_eq!(problems.is_empty(), is_derived, "{problems:?}");
        assert_eq!(content(&table.reader(&root, &pages)?)?, model);
    }
    // A value in place of each part.
    for part in [Part::State, Part::Main, Part::Runs, Part::Filters] {
        let (mut root, mut pages, ..) = half_merged(&mut Rng::new(7))?;
        root.remove(&mut pages, &part.key())?;
        root.insert(&mut pages, &part.key(), b"rubbish")?;
        let (table, problems) = recovered(&mut root, &mut pages)?;
        assert!(!problems.is_empty());
        let found = content(&table.reader(&root, &pages)?)?;
        if matches!(part, Part::State | Part::Filters) {
            assert_eq!(found, model);
        }
    }
    Ok(())
}
