//! Files with valid checksums but wrong content above the pager: the roots, the catalog, the records. No call may
//! panic, hang, or allocate as much memory as the file asks for. It must report damage or refuse.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tidalite::storage::Storage;
use tidalite::{Database, Durability, Options, Result, Schema, Steps, Tuning};
use tidalite_delta::SERIES_MAX;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Pager};
use tidalite_testkit::SimDisk;
use tidalite_testkit::rng::Rng;

/// Byte offsets of fields in the app area, from docs/format.md, section 9.1.
const NEXT_SERIES_AT: usize = 8;
const NEXT_TABLE_AT: usize = 16;
/// Byte offset of the list of table roots in the app area, where each entry is a table's number and its root; then the
/// lengths of such an entry and of the root of a nested table (docs/format.md, section 5).
const TABLE_ROOTS_AT: usize = 800;
const TABLE_ROOT_BYTES: usize = 72;
const NESTED_ROOT_BYTES: usize = 28;
const ROUNDS: u64 = 4_000;

fn options() -> Options {
    Options::new().page_size(512).tuning(
        Tuning::new()
            .growth_bytes(16 << 10, 64 << 10)
            .write_buffer_bytes(1 << 20),
    )
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
                    .insert_point(Steps(part * 10_000 + i), 0, i as f64 * 0.25)
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

/// Makes a disk with this image, except that `change` was applied to the app area. All checksums are valid.
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

/// Makes every kind of call that a user would make. Errors are acceptable.
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
            series.query(..).for_each(|_, _| ())?;
            series.query(..).aggregate(0)?;
            series.query(..).windows(Steps(1_000), 1)?;
            series.latest()?;
        }
    }
    Ok(())
}

fn write(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("new")?.put(b"k", b"v")?;
    tx.table("t")?.put(b"k", b"v")?;
    tx.series("new")?.insert_point(Steps(1), 0, 1.0)?;
    let mut series = tx.series("a")?;
    for i in 0..1_100 {
        series.insert_point(Steps(500_000 + i), 0, 1.0)?;
    }
    series.delete(Steps(5)..Steps(1_500))?;
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

/// A series id far beyond the others is not damage, because removed series leave gaps. Reads must not scan all ids up
/// to it.
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
    series.insert(Steps(0), 1.0).expect("the disk has room");
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

/// The last possible series id can be used, and the next series is refused with a limit error. The test sets the
/// counter in the file because 2^48 series are too many to create.
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
    // There are enough rows for a leaf, and some that stay in the delta.
    for i in 0..1_500_i64 {
        series
            .insert_point(Steps(i), 0, 0.5)
            .expect("the disk has room");
    }
    tx.commit().expect("the disk has room");
    drop(db);
    let db = opened().expect("what was written is sound");
    let mut tx = db.begin_write().expect("no number is left, and no damage");
    match tx.series("beyond").map(drop) {
        Err(error) => {
            assert!(error.to_string().contains("series"), "{error}");
            assert_eq!(error.limit(), Some((SERIES_MAX + 1, SERIES_MAX)));
        }
        other => panic!("{other:?}"),
    }
    // The refused call changed nothing, so the transaction can continue.
    let mut series = tx.series("last").expect("it is there");
    series
        .insert_point(Steps(-5), 0, 0.5)
        .expect("the disk has room");
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

/// A page in which two keys refer to one nested table is damaged, and this is reported. If each of forty tables inside
/// one another did so, a walk over all 2^40 paths would never end.
#[test]
fn a_nested_table_with_two_references_is_reported() {
    let disk = Arc::new(SimDisk::from_image(sound_image()));
    let db = options()
        .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
        .expect("the sound file works");
    db.pin("before").expect("the sound file works");
    let mut tx = db.begin_write().expect("the sound file works");
    tx.table("topics").expect("the sound file works");
    tx.commit().expect("the sound file works");
    // The table already existed before this transaction, so the commit stores its new root in the app area.
    let mut tx = db.begin_write().expect("the sound file works");
    for topic in [b"a", b"b"] {
        let mut table = tx.table("topics").expect("the sound file works");
        let mut topic = table.nested(topic);
        for row in 0..100u32 {
            topic
                .put(&row.to_be_bytes(), &[7; 20])
                .expect("the sound file works");
        }
    }
    tx.commit().expect("the sound file works");
    drop(db);

    let pager = Pager::open_storage(
        Arc::clone(&disk) as Arc<dyn Storage>,
        &tidalite_pager::Options::default(),
    )
    .expect("the sound file works");
    let mut txn = pager.begin_write().expect("the sound file works");
    let mut app = txn.app().to_vec();
    let roots = (TABLE_ROOTS_AT..app.len()).step_by(TABLE_ROOT_BYTES);
    let (at, leaf) = roots
        .filter_map(|at| Some((at + 8, Tree::decode(app.get(at + 8..)?).ok()?.root())))
        .find(|(_, root)| {
            let page = txn.page(root).expect("the sound file works");
            root_in(&page, b'a').is_some() && root_in(&page, b'b').is_some()
        })
        .expect("the table of topics is small");
    let leaf = txn.shadow(&leaf).expect("the sound file works");
    let page = txn.page_mut(&leaf).expect("the sound file works");
    let (a, b) = (root_in(page, b'a'), root_in(page, b'b'));
    let (a, b) = (a.expect("a topic"), b.expect("a topic"));
    page.copy_within(a..a + NESTED_ROOT_BYTES, b);
    let leaf = txn.seal_page(&leaf).expect("the sound file works");
    leaf.encode(&mut app, at);
    txn.commit(&app, Durability::Durable)
        .expect("the sound file works");
    drop(pager);

    let db = options()
        .open_storage(Arc::clone(&disk) as Arc<dyn Storage>)
        .expect("it opens");
    let snap = db.begin_read().expect("it opens");
    let told = |result: Result<()>| {
        let error = result.expect_err("two ways to one table").to_string();
        assert!(error.contains("a second pointer to it"), "{error}");
    };
    let copy = std::env::temp_dir().join(format!("tidalite-two-ways-{}", std::process::id()));
    told(snap.copy().to(&copy).map(drop));
    assert!(!copy.exists());
    let before = db.begin_read_at("before").expect("it is pinned");
    told(snap.diff(&before, &mut |_| Ok(())));
    assert!(!db.check().expect("it is checked").is_clean());
}

/// Finds the root of the table nested under a one-byte key in a leaf page. The root follows the length of the key, the
/// tag and the key.
fn root_in(page: &[u8], key: u8) -> Option<usize> {
    let cell = [1, (NESTED_ROOT_BYTES as u8) << 2 | 3, key];
    let at = page.windows(cell.len()).position(|bytes| bytes == cell)?;
    (at + cell.len() + NESTED_ROOT_BYTES <= page.len()).then_some(at + cell.len())
}
