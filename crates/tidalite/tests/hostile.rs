//! Files with right checksums and wrong content above the pager: the roots, the catalog, the records. Nothing may
//! panic, hang or take memory that the file asks for; what is wrong is damage, or the call is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tidalite::{Database, Durability, Options, Result, Schema, Storage};
use tidalite_pager::Pager;
use tidalite_runs::SERIES_MAX;
use tidalite_testkit::SimDisk;
use tidalite_testkit::rng::Rng;

/// Byte offsets of fields in the app area, see docs/format.md, section 9.1.
const NEXT_SERIES_AT: usize = 8;
const NEXT_TABLE_AT: usize = 16;
const ROUNDS: u64 = 4_000;

fn options() -> Options {
    Options::new()
        .page_size(512)
        .growth_bytes(16 << 10, 64 << 10)
        .staging_bytes(1 << 20)
}

fn sound_image() -> Vec<u8> {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let db = options()
        .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
        .expect("the sound file works");
    for part in 0..20 {
        let mut tx = db.begin_write().expect("the sound file works");
        for name in ["a", "b{x=\"1\"}"] {
            let mut series = tx.series(name).expect("the sound file works");
            for i in 0..if part == 0 { 2_000 } else { 40 } {
                series
                    .insert_point(part * 10_000 + i, 0, i as f64 * 0.25)
                    .expect("the sound file works");
            }
        }
        tx.series_of_guid(*b"sixteen bytes ok", &Schema::point())
            .expect("the sound file works");
        tx.table("t")
            .expect("the sound file works")
            .put(b"key", &[part as u8; 700])
            .expect("the sound file works");
        tx.commit().expect("the sound file works");
    }
    drop(db);
    disk.image()
}

/// The image with its app area changed, under right checksums.
fn with_app(image: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::from_image(image.to_vec()));
    let pager = Pager::open_storage(
        Arc::clone(&disk) as Arc<dyn Storage>,
        &tidalite_pager::Options::default(),
    )
    .expect("the sound file works");
    let txn = pager.begin_write().expect("the sound file works");
    let mut app = txn.app().to_vec();
    change(&mut app);
    txn.commit(&app, Durability::Durable)
        .expect("the sound file works");
    drop(pager);
    disk
}

/// Uses everything that a user would; errors are answers.
fn use_it(disk: &Arc<SimDisk>) {
    let Ok(db) = options().open_storage(Arc::clone(disk) as Arc<dyn Storage>) else {
        return;
    };
    let _ = db.check();
    let _ = db.stat();
    let _ = read(&db);
    let _ = write(&db);
    let _ = db.check();
}

fn read(db: &Database) -> Result<()> {
    let snap = db.begin_read()?;
    for name in snap.tables()? {
        if let Some(table) = snap.table(&name)? {
            table.for_each(|_, _| ())?;
        }
    }
    for info in snap.list("")? {
        if let Some(series) = snap.series_by_id(info.id)? {
            series.all().for_each(|_, _| ())?;
            series.all().aggregate(0)?;
            series.all().windows(1_000, 0, 1)?;
            series.latest()?;
        }
    }
    Ok(())
}

fn write(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("new")?.put(b"k", b"v")?;
    tx.table("t")?.put(b"k", b"v")?;
    tx.series("new")?.insert_point(1, 0, 1.0)?;
    let mut series = tx.series("a")?;
    for i in 0..1_100 {
        series.insert_point(500_000 + i, 0, 1.0)?;
    }
    series.delete(5..1_500)?;
    tx.commit()?;
    Ok(())
}

#[test]
fn counters_that_cannot_be_are_damage() {
    let image = sound_image();
    for (at, value) in [
        (NEXT_SERIES_AT, 0),
        (NEXT_SERIES_AT, (1 << 48) + 1),
        (NEXT_SERIES_AT, u64::MAX),
        (NEXT_TABLE_AT, 0),
        (NEXT_TABLE_AT, 1 << 48),
        (NEXT_TABLE_AT, u64::MAX),
    ] {
        let disk = with_app(&image, |app| {
            app[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        });
        let db = options()
            .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
            .expect("the sound file works");
        assert!(
            db.begin_read().is_err() && db.begin_write().is_err(),
            "{value} at {at}"
        );
        assert!(
            !db.check().expect("the sound file works").is_clean(),
            "{value} at {at}"
        );
    }
}

/// Removed series leave gaps, so a number far beyond the series is no damage; it must not decide how much is read.
#[test]
fn a_far_series_number_costs_nothing() {
    let disk = with_app(&sound_image(), |app| {
        app[NEXT_SERIES_AT..NEXT_SERIES_AT + 8].copy_from_slice(&(1u64 << 45).to_le_bytes());
    });
    let db = options()
        .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
        .expect("the sound file works");
    let before = db.begin_read().expect("a gap is no damage");
    let mut tx = db.begin_write().expect("a gap is no damage");
    let mut series = tx.series("late").expect("numbers are left");
    assert_eq!(series.id().0, 1 << 45);
    series.insert(0_i64, 1.0).expect("the disk has room");
    tx.commit().expect("the disk has room");
    let after = db.begin_read().expect("a gap is no damage");
    let mut changes = 0;
    let told = after.diff(&before, &mut |_| {
        changes += 1;
        Ok(())
    });
    told.expect("nothing is damaged");
    assert_eq!(changes, 2);
    assert!(db.check().expect("the sound file works").is_clean());
}

/// The last number that a series can have, and none after it. (2^48 series are too many to be made.)
#[test]
fn series_are_numbered_up_to_their_limit() {
    let disk = with_app(&sound_image(), |app| {
        app[NEXT_SERIES_AT..NEXT_SERIES_AT + 8].copy_from_slice(&SERIES_MAX.to_le_bytes());
    });
    let opened = || options().open_storage(Arc::clone(&disk) as Arc<dyn Storage>);
    let db = opened().expect("the sound file works");
    let mut tx = db.begin_write().expect("a gap is no damage");
    let mut series = tx.series("last").expect("one number is left");
    assert_eq!(series.id().0, SERIES_MAX);
    // Enough for a leaf, and rows that wait.
    for i in 0..1_500_i64 {
        series.insert_point(i, 0, 0.5).expect("the disk has room");
    }
    tx.commit().expect("the disk has room");
    drop(db);
    let db = opened().expect("what was written is sound");
    let mut tx = db.begin_write().expect("no number is left, and no damage");
    match tx.series("beyond").map(drop) {
        Err(tidalite::Error::Limit { what, found, limit }) => {
            assert!(what.contains("series"), "{what}");
            assert_eq!((found, limit), (SERIES_MAX + 1, SERIES_MAX));
        }
        other => panic!("{other:?}"),
    }
    // Nothing was changed: the transaction goes on.
    let mut series = tx.series("last").expect("it is there");
    series.insert_point(-5, 0, 0.5).expect("the disk has room");
    tx.commit().expect("the disk has room");
    let snap = db.begin_read().expect("no damage");
    let series = snap
        .series("last")
        .expect("no damage")
        .expect("it is there");
    assert_eq!(series.count().expect("no damage"), 1_501);
    assert!(db.check().expect("the sound file works").is_clean());
}

#[test]
fn no_app_area_makes_anything_panic() {
    let image = sound_image();
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        let disk = with_app(&image, |app| match rng.below(8) {
            0 => app.truncate(rng.index(app.len() + 1)),
            1 => app.extend((0..rng.index(200)).map(|i| i as u8)),
            2 => rng.fill(app),
            _ => {
                for _ in 0..=rng.below(3) {
                    let at = rng.index(app.len());
                    app[at] = if rng.one_in(2) {
                        rng.u64() as u8
                    } else {
                        app[at].wrapping_add(1)
                    };
                }
            }
        });
        let used = catch_unwind(AssertUnwindSafe(|| use_it(&disk)));
        assert!(used.is_ok(), "seed {seed} panics");
    }
}
