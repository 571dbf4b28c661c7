//! Recovery of tables that have lost rows or whole parts.

use super::Table;
use super::damage::{TABLES, full, put, rows};
use crate::containers::options::ContainerTableOptions;
use crate::containers::parts::Part;
use crate::containers::recovery::ContainersRecovery;
use crate::containers::write::ContainersWriter;
use tidalite_testkit::rng::Rng;

fn recover(table: &mut Table) -> ContainersRecovery {
    let Table { root, pages } = table;
    let (_, found) = ContainersWriter::recover(root, pages, 100).unwrap();
    table.assert_whole();
    found
}

fn lose(table: &mut Table, of: Part) {
    let Table { root, pages } = table;
    root.remove(pages, &of.key()).unwrap();
}

/// The rows that a recovery does not change if nothing is lost.
fn all_rows(table: &Table) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    TABLES.iter().map(|of| rows(table, *of)).collect()
}

#[test]
fn a_whole_table_stays_as_it_is() {
    let mut table = full();
    let (before, state) = (all_rows(&table), table.reader().state);
    let found = recover(&mut table);
    assert_eq!(
        (found.removed, found.made_anew, found.fields_made_anew),
        (0, 0, 0)
    );
    let after = all_rows(&table);
    for (at, of) in TABLES.iter().enumerate() {
        assert!(before[at] == after[at] || *of == Part::Containers, "{of:?}");
    }
    assert_eq!(table.reader().state, state);
}

#[test]
fn lost_parts_are_built_again() {
    tidalite_testkit::watch();
    for of in [
        Part::Numbers,
        Part::Due,
        Part::SeenTimes,
        Part::FieldNames,
        Part::Fields,
        Part::Latest,
    ] {
        let mut table = full();
        let before = rows(&table, of);
        lose(&mut table, of);
        let found = recover(&mut table);
        assert_eq!((found.removed, found.made_anew), (0, 0), "{of:?}");
        if of == Part::Latest {
            // Values that only deleted messages had are lost, but in this table the newest messages exist.
            assert_eq!(rows(&table, of).len(), before.len());
        } else {
            assert_eq!(rows(&table, of), before, "{of:?}");
        }
    }
    let mut table = full();
    let state = table.reader().state;
    lose(&mut table, Part::State);
    recover(&mut table);
    assert_eq!(table.reader().state, state);
}

#[test]
fn lost_records_are_made_anew() {
    let mut table = full();
    let before = table.times("a", 100);
    lose(&mut table, Part::Containers);
    let found = recover(&mut table);
    assert_eq!((found.made_anew, found.containers), (3, 3));
    assert_eq!(table.times("a", 100), before);
    lose(&mut table, Part::Containers);
    lose(&mut table, Part::Numbers);
    recover(&mut table);
    let names = table.reader().list("recovered-", None, 9).unwrap();
    assert_eq!(names.len(), 3);
    assert_eq!(table.times("recovered-0", 100), before);
    lose(&mut table, Part::Fields);
    lose(&mut table, Part::FieldNames);
    let found = recover(&mut table);
    assert_eq!(found.fields_made_anew, 3);
    assert_eq!(table.reader().field_number("field-0").unwrap(), Some(0));
    // The table remains usable.
    table.append(100, "recovered-0", 99, &[("field-0", 5), ("other", 6)]);
    table.assert_whole();
}

/// After damage to any row, a recovery yields a table without problems.
#[test]
fn any_damage_is_mended() {
    tidalite_testkit::watch();
    let seed = 3;
    let rng = &mut Rng::new(seed);
    for round in 0..400 {
        let mut table = full();
        for _ in 0..1 + rng.below(4) {
            let of = *rng.pick(&TABLES);
            let all = rows(&table, of);
            let Some((mut key, mut value)) = (!all.is_empty()).then(|| rng.pick(&all).clone())
            else {
                continue;
            };
            println!("seed {seed} round {round}: {of:?} {}", key.escape_ascii());
            match rng.below(4) {
                0 => put(&mut table, of, &key, None),
                1 => {
                    value.truncate(rng.index(value.len() + 1));
                    put(&mut table, of, &key, Some(&value));
                }
                2 => {
                    let at = rng.index(key.len());
                    key[at] ^= 1 << rng.below(8);
                    put(&mut table, of, &key, Some(&value));
                }
                _ => {
                    if !value.is_empty() {
                        let at = rng.index(value.len());
                        value[at] ^= 1 << rng.below(8);
                        put(&mut table, of, &key, Some(&value));
                    }
                }
            }
        }
        recover(&mut table);
    }
}

#[test]
fn without_options_a_table_gets_the_default_ones() {
    let mut table = full();
    lose(&mut table, Part::Options);
    let Table { root, pages } = &mut table;
    let (containers, recovery) = ContainersWriter::recover(root, pages, 0).unwrap();
    assert!(recovery.has_lost_options);
    assert_eq!(*containers.options(), ContainerTableOptions::default());
}
