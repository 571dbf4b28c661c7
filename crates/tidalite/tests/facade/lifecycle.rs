//! Series are created, renamed and removed, and compared with a map. Snapshots of older versions do not change.

use crate::common::{Folder, in_memory, rows_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidalite::maintenance::Change;
use tidalite::monitor::inspect;
use tidalite::retention::Retention;
use tidalite::storage::{LockMemory, MemoryStorage, Storage};
use tidalite::text::guid_dotnet;
use tidalite::{
    Column, ColumnType, Database, ErrorKind, MergePolicy, Options, ReadTxn, Schema, SeriesId,
    Steps, Tuning, Unit,
};
use tidalite_testkit::rng::Rng;

/// Name and rows of each series, by id.
type Model = BTreeMap<u64, (String, BTreeMap<i64, Vec<u64>>)>;

fn compare(snap: &ReadTxn, model: &Model) {
    let listed = snap.list("").unwrap();
    let names: Vec<(u64, String)> = listed
        .iter()
        .map(|info| (info.id.0, info.label()))
        .collect();
    let expected: Vec<(u64, String)> = model
        .iter()
        .map(|(id, (name, _))| (*id, name.clone()))
        .collect();
    assert_eq!(names, expected);
    for (id, (name, rows)) in model {
        let series = snap.series(name).unwrap().unwrap();
        assert_eq!(series.id().0, *id);
        assert_eq!(&rows_of(&series).unwrap(), rows);
    }
}

/// Checks that replacing the rows in the reported ranges turns one version into the other.
fn compare_ranges(snap: &ReadTxn, base: &ReadTxn, new: &Model, old: &Model) {
    let none = BTreeMap::new();
    for id in 0..60 {
        let rows = |model: &Model| {
            model
                .get(&id)
                .map_or(none.clone(), |(_, rows)| rows.clone())
        };
        let (new, mut old) = (rows(new), rows(old));
        let mut end = None;
        for (from, to) in snap.changed_ranges(base, SeriesId(id)).unwrap() {
            assert!(from <= to && end.is_none_or(|end| end < from));
            end = Some(to);
            for (time, row) in old.clone().range(from..=to) {
                assert_ne!(new.get(time), Some(row), "{id} at {time} is alike");
                old.remove(time);
            }
            old.extend(new.range(from..=to).map(|(time, row)| (*time, row.clone())));
        }
        assert_eq!(old, new, "series {id}");
        let exact = snap.changed_ranges(base, SeriesId(id)).unwrap();
        for resolution in [0, 5, 300, u64::MAX] {
            let coarse = snap.changed_ranges_within(base, SeriesId(id), resolution);
            let coarse = coarse.unwrap();
            let apart = |pair: &[(i64, i64)]| {
                pair[0].1 < pair[1].0 && pair[1].0.abs_diff(pair[0].1) > resolution
            };
            assert!(coarse.windows(2).all(apart), "{resolution}: {coarse:?}");
            let holds = |from: i64, to: i64| {
                let holds = |range: &&(i64, i64)| range.0 <= from && to <= range.1;
                coarse.iter().find(holds).is_some()
            };
            for &(from, to) in &exact {
                assert!(holds(from, to), "{resolution}: {coarse:?} of {exact:?}");
            }
        }
    }
}

/// The meta records of a file can be inspected without opening it, and the durable commit before the newest one can be
/// opened. Copying that commit makes the rollback permanent.
#[test]
fn the_commit_before_the_newest_is_looked_at_opened_and_copied() {
    let folder = Folder::new("older");
    let path = folder.file("a.tdl");
    let db = Options::new()
        .tuning(Tuning::new().keep_older(true))
        .open(&path)
        .unwrap();
    for number in 1..=3u8 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        for key in 0..200u8 {
            table.put(&[key], &[number; 500]).unwrap();
        }
        tx.set_user_data(&[number]).unwrap();
        tx.commit().unwrap();
    }
    drop(db);
    let seen = inspect(&path).unwrap();
    let of_newest = |number: usize| {
        let records = seen.records.iter().flat_map(|place| &place.record);
        let mut records = records.filter(|record| record.txn == seen.txns()[number]);
        records.next().unwrap().clone()
    };
    assert_eq!(seen.txns().len(), 2, "{seen:?}");
    assert_eq!((of_newest(0).user, of_newest(1).user), (vec![3], vec![2]));
    let values = |db: &Database| {
        let snap = db.begin_read().unwrap();
        let table = snap.table("t").unwrap().unwrap();
        let mut values = Vec::new();
        table
            .for_each(|_, value| values.push(value.to_vec()))
            .unwrap();
        (snap.txn(), snap.user_data().to_vec(), values)
    };
    let older = Options::new().older_record().open(&path).unwrap();
    assert_eq!(
        values(&older),
        (seen.txns()[1], vec![2], vec![vec![2; 500]; 200])
    );
    assert!(
        matches!(older.begin_write().err(), Some(ref error) if error.kind() == ErrorKind::PermissionDenied)
    );
    assert!(
        matches!(Database::open(&path).err(), Some(ref error) if error.kind() == ErrorKind::Locked)
    );
    older.copy().to(folder.file("back.tdl")).unwrap();
    drop(older);
    let (_, user, newest) = values(&Database::open(&path).unwrap());
    assert_eq!((user, newest), (vec![3], vec![vec![3; 500]; 200]));
    let (_, user, back) = values(&Database::open(folder.file("back.tdl")).unwrap());
    assert_eq!((user, back), (vec![2], vec![vec![2; 500]; 200]));
}

/// The identity is the same for every process that opens the file, and different in a copy of the content.
#[test]
fn a_file_keeps_its_identity() {
    let folder = Folder::new("identity");
    let db = Database::open(folder.file("a.tdl")).unwrap();
    let uuid = db.uuid();
    assert_ne!(uuid, [0; 16]);
    db.copy().to(folder.file("copy.tdl")).unwrap();
    drop(db);
    assert_eq!(inspect(folder.file("a.tdl")).unwrap().uuid, uuid);
    let read_only = Options::new().read_only(true).open(folder.file("a.tdl"));
    assert_eq!(read_only.unwrap().uuid(), uuid);
    assert_ne!(inspect(folder.file("copy.tdl")).unwrap().uuid, uuid);
}

#[test]
fn series_come_change_their_name_and_go() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let options = Options::new()
            .page_size(512)
            .tuning(Tuning::new().write_buffer_bytes(64 << 10));
        let db = in_memory(&options);
        let (mut model, mut given_out) = (Model::new(), 0);
        let mut held: Option<(ReadTxn, Model)> = None;
        for _ in 0..30 {
            let mut tx = db.begin_write().unwrap();
            let before = (model.clone(), given_out);
            let savepoint = rng.one_in(3).then(|| tx.savepoint().unwrap());
            for _ in 0..rng.below(12) {
                let name = format!("s{}", rng.below(20));
                let known = model
                    .iter()
                    .find(|(_, (own, _))| *own == name)
                    .map(|(id, _)| *id);
                match rng.below(6) {
                    0 => {
                        assert_eq!(tx.remove_series(&name).unwrap(), known.is_some());
                        known.map(|id| model.remove(&id));
                    }
                    1 => {
                        let Some(id) = model.keys().nth(rng.below(20) as usize).copied() else {
                            continue;
                        };
                        let renamed = tx.rename_series(SeriesId(id), &name);
                        match known {
                            Some(other) if other != id => {
                                assert!(
                                    matches!(renamed, Err(ref error) if error.kind() == ErrorKind::InvalidName),
                                    "{renamed:?}"
                                );
                            }
                            _ => {
                                renamed.unwrap();
                                model.get_mut(&id).unwrap().0 = name;
                            }
                        }
                    }
                    _ => {
                        let mut series = tx.series(&name).unwrap();
                        let id = series.id().0;
                        let rows = match known {
                            Some(known) => {
                                assert_eq!(id, known);
                                &mut model.get_mut(&id).unwrap().1
                            }
                            None => {
                                assert_eq!(id, given_out, "a number is given out once");
                                given_out += 1;
                                &mut model.entry(id).or_insert((name, BTreeMap::new())).1
                            }
                        };
                        let start = rng.below(3000) as i64;
                        for time in start..start + rng.below(1500) as i64 {
                            series.insert_point(Steps(time), 7, time as f64).unwrap();
                            rows.insert(time, vec![7, (time as f64).to_bits()]);
                        }
                    }
                }
            }
            if let Some(savepoint) = savepoint
                && rng.one_in(3)
            {
                tx.rollback_to(&savepoint).unwrap();
                (model, given_out) = before.clone();
            }
            if rng.one_in(8) {
                drop(tx);
                (model, given_out) = before;
            } else {
                tx.commit().unwrap();
            }
            let report = db.check().unwrap();
            assert!(report.is_clean(), "{report:?}");
            let snap = db.begin_read().unwrap();
            compare(&snap, &model);
            if let Some((base, old)) = &held {
                compare(base, old);
                compare_ranges(&snap, base, &model, old);
                compare_ranges(base, &snap, old, &model);
            }
            if rng.one_in(3) {
                held = Some((snap, model.clone()));
            }
        }
    }
}

#[test]
fn a_diff_reports_created_renamed_and_removed_series() {
    let db: Database = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    for name in ["gone", "renamed", "stays"] {
        tx.series(name).unwrap().insert(Steps(1), 1.0).unwrap();
    }
    tx.commit().unwrap();
    let base = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    assert!(tx.remove_series("gone").unwrap());
    let id = tx.series("renamed").unwrap().id();
    tx.rename_series(id, "new_name").unwrap();
    tx.series("empty").unwrap();
    tx.commit().unwrap();
    let mut told = Vec::new();
    let snap = db.begin_read().unwrap();
    snap.diff(&base, &mut |change| {
        told.push(match change {
            Change::SeriesCreated(info) => format!("+{}", info.label()),
            Change::SeriesRemoved(info) => format!("-{}", info.label()),
            Change::SeriesRenamed { before, after } => {
                format!("{}>{}", before.label(), after.label())
            }
            other => format!("{other:?}"),
        });
        Ok(())
    })
    .unwrap();
    assert_eq!(told, ["-gone", "renamed>new_name", "+empty"]);
}

#[test]
fn a_diff_reports_annotations_and_policies() {
    let db: Database = in_memory(&Options::new());
    let keep = |days: u64| Retention {
        keep: Some(Duration::from_secs(days * 86_400)),
        ..Retention::default()
    };
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    series.annotate("unit", "m/s").unwrap();
    series.annotate("owner", "Kim").unwrap();
    series.annotate("place", "mast").unwrap();
    let mut series = tx.series("b").unwrap();
    series.annotate("unit", "K").unwrap();
    tx.series("gone").unwrap().annotate("unit", "V").unwrap();
    tx.set_retention("raw", &keep(1)).unwrap();
    tx.set_retention("all", &keep(7)).unwrap();
    tx.set_retention("old", &keep(9)).unwrap();
    tx.commit().unwrap();
    let base = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    series.annotate("owner", "Lee").unwrap();
    assert!(series.remove_annotation("place").unwrap());
    let mut series = tx.series("b").unwrap();
    series.set_merge(MergePolicy::KeepFirst).unwrap();
    let cores = Column::nullable("cores", ColumnType::U64);
    series.add_columns(&[cores]).unwrap();
    assert!(tx.remove_series("gone").unwrap());
    tx.series("new").unwrap().annotate("unit", "s").unwrap();
    tx.set_retention("raw", &keep(2)).unwrap();
    tx.set_retention("new", &keep(3)).unwrap();
    assert!(tx.remove_retention("old").unwrap());
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let days = |policy: Option<&Retention>| {
        policy.map_or(0, |policy| policy.keep.unwrap().as_secs() / 86_400)
    };
    let mut told = Vec::new();
    let mut tell = |change: Change<'_>| {
        told.push(match change {
            Change::SeriesCreated(info) => format!("+{}", info.label()),
            Change::SeriesRemoved(info) => format!("-{}", info.label()),
            Change::SeriesChanged { before, after } => format!(
                "{} {} to {}, {} columns",
                after.label(),
                before.merge.name(),
                after.merge.name(),
                after.schema.columns.len()
            ),
            Change::Annotation {
                series,
                key,
                before,
                after,
            } => format!("{} {key}: {before:?} {after:?}", series.label()),
            Change::Retention {
                name,
                before,
                after,
            } => format!("{name}: {} {}", days(before), days(after)),
            other => format!("{other:?}"),
        });
        Ok(())
    };
    snap.diff(&base, &mut tell).unwrap();
    snap.diff(&snap, &mut tell).unwrap();
    let expected = [
        "new: 0 3",
        "old: 9 0",
        "raw: 1 2",
        "a owner: Some(\"Kim\") Some(\"Lee\")",
        "a place: Some(\"mast\") None",
        "b replace to keep-first, 3 columns",
        "-gone",
        "+new",
        "new unit: None Some(\"s\")",
    ];
    assert_eq!(told, expected);
}

#[test]
fn guids_in_the_order_of_dotnet_and_series_without_a_name() {
    let db = in_memory(&Options::new());
    // The bytes of this array are new Guid("00112233-4455-6677-8899-aabbccddeeff").ToByteArray() in .NET.
    let dotnet = [
        0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee,
        0xff,
    ];
    let guid = guid_dotnet(dotnet);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_of_guid(guid, &Schema::point()).unwrap();
    series.insert(Steps(0), 1.0).unwrap();
    let id = series.id();
    assert_eq!(
        series.info().label(),
        "00112233-4455-6677-8899-aabbccddeeff"
    );
    tx.rename_series(id, "with.name").unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    assert_eq!(snap.series("with.name").unwrap().unwrap().id(), id);
    assert_eq!(snap.series_of_guid(&guid).unwrap().unwrap().id(), id);
    let mut tx = db.begin_write().unwrap();
    assert!(tx.remove_series("with.name").unwrap());
    assert!(!tx.remove_series_by_id(id).unwrap());
    tx.commit().unwrap();
    assert!(
        db.begin_read()
            .unwrap()
            .series_of_guid(&guid)
            .unwrap()
            .is_none()
    );
    assert!(db.check().unwrap().is_clean());
}

/// A transaction reuses the series that the previous one opened, unless another writer has changed the catalog
/// meanwhile.
#[test]
fn cached_series_follow_the_catalog() {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let memory = LockMemory::new();
    let open = || {
        Options::new()
            .open_storage_with(Arc::clone(&storage), &memory)
            .unwrap()
    };
    let (ours, other) = (open(), open());
    let count = |db: &Database, name: &str| {
        let snap = db.begin_read().unwrap();
        snap.series(name).unwrap().map(|s| s.count().unwrap())
    };
    let insert = |db: &Database, name: &str, time: i64| {
        let mut txn = db.begin_write().unwrap();
        let mut series = txn.series(name).unwrap();
        series.insert(Steps(time), 1.0).unwrap();
        let id = series.id();
        txn.commit().unwrap();
        id
    };
    let first = insert(&ours, "a", 1);
    assert_eq!(insert(&ours, "a", 2), first);
    // Another handle, like another process, renames the series and adds rows.
    let mut txn = other.begin_write().unwrap();
    txn.rename_series(first, "b").unwrap();
    txn.commit().unwrap();
    insert(&other, "b", 3);
    assert_ne!(insert(&ours, "a", 4), first);
    assert_eq!(insert(&ours, "b", 5), first);
    assert_eq!((count(&ours, "a"), count(&ours, "b")), (Some(1), Some(4)));
    // A rolled-back transaction had opened series that never existed in the file.
    let mut txn = ours.begin_write().unwrap();
    let gone = txn.series("c").unwrap().id();
    txn.rename_series(first, "d").unwrap();
    drop(txn);
    assert_eq!(insert(&ours, "b", 6), first);
    let schema = Schema::new(Unit::Seconds, [("level", ColumnType::I64)]);
    let mut txn = ours.begin_write().unwrap();
    let level = txn.series_with("level", &schema).unwrap().id();
    assert_eq!(level, gone, "numbers of nothing are given out again");
    txn.series_by_id(level)
        .unwrap()
        .insert_row(Steps(7), &[7])
        .unwrap();
    txn.commit().unwrap();
    // Another handle adds columns.
    let mut txn = ours.begin_write().unwrap();
    txn.series_by_id(level)
        .unwrap()
        .insert_row(Steps(8), &[8])
        .unwrap();
    txn.commit().unwrap();
    let mut txn = other.begin_write().unwrap();
    let added = [Column::nullable("flow", ColumnType::F64)];
    txn.series("level").unwrap().add_columns(&added).unwrap();
    txn.commit().unwrap();
    let mut txn = ours.begin_write().unwrap();
    let mut series = txn.series_by_id(level).unwrap();
    assert!(series.insert_row(Steps(9), &[9]).is_err());
    series.insert_row(Steps(9), &[9, 0.5f64.to_bits()]).unwrap();
    assert_eq!(series.view().unwrap().count().unwrap(), 3);
    // The series is removed and created again within one transaction.
    assert!(txn.remove_series("b").unwrap());
    assert_ne!(txn.series("b").unwrap().id(), first);
    assert!(txn.series_by_id(first).is_err());
    txn.commit().unwrap();
    assert!(ours.begin_write().unwrap().series_by_id(first).is_err());
    assert!(ours.check().unwrap().is_clean());
}
