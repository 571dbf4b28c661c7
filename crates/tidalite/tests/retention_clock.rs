//! A wall clock that jumps ahead must not make retention delete rows that are not old.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidalite::monitor::Event;
use tidalite::retention::{Budget, Clocks, KeepFrom, Retention};
use tidalite::storage::{LockMemory, MemoryStorage};
use tidalite::{Database, Options, Steps, Timestamp, Tuning};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// A simulated computer whose clocks the test sets.
#[derive(Default)]
struct Computer {
    wall: AtomicI64,
    since_boot: AtomicU64,
    boot: AtomicU64,
}

impl Computer {
    fn new(wall: i64) -> Arc<Self> {
        let own = Self::default();
        own.wall.store(wall, Ordering::Relaxed);
        own.boot.store(1, Ordering::Relaxed);
        Arc::new(own)
    }

    /// Lets time pass: the wall clock and the time since boot advance.
    fn passes(&self, nanos: i64) {
        self.jumps(nanos);
        let nanos = nanos.unsigned_abs();
        self.since_boot.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Changes only the wall clock.
    fn jumps(&self, nanos: i64) {
        self.wall.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Simulates that the computer is off for this time: the wall clock continues, and the time since boot begins
    /// again.
    fn restarts(&self, nanos: i64) {
        self.jumps(nanos);
        self.boot.fetch_add(1, Ordering::Relaxed);
        self.since_boot.store(0, Ordering::Relaxed);
    }

    fn now(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }
}

/// The events received so far.
type Told = Arc<Mutex<Vec<Event>>>;

struct World {
    computer: Arc<Computer>,
    storage: Arc<MemoryStorage>,
    memory: LockMemory,
    told: Told,
}

impl World {
    fn new() -> Self {
        tidalite_testkit::watch();
        Self {
            computer: Computer::new(Timestamp::parse("2014-06-01").unwrap().0),
            storage: Arc::new(MemoryStorage::new()),
            memory: LockMemory::default(),
            told: Told::default(),
        }
    }

    fn options(&self) -> Options {
        let computer = Arc::clone(&self.computer);
        let told = Arc::clone(&self.told);
        Options::new()
            .tuning(Tuning::new().clock(move || Clocks {
                wall_ns: computer.now(),
                since_boot_ns: computer.since_boot.load(Ordering::Relaxed),
                boot: computer.boot.load(Ordering::Relaxed),
            }))
            .on_event(move |event| told.lock().unwrap().push(event.clone()))
    }

    fn open(&self) -> Database {
        self.open_with(self.options())
    }

    fn open_with(&self, options: Options) -> Database {
        let storage = Arc::clone(&self.storage);
        options.open_storage_with(storage, &self.memory).unwrap()
    }

    /// Number of events so far that report the wall clock to be ahead.
    fn told(&self) -> usize {
        let told = self.told.lock().unwrap();
        let ahead = |event: &&Event| matches!(event, Event::ClockAhead { .. });
        told.iter().filter(ahead).count()
    }

    /// Inserts a row for every hour of the last ten days, and a policy that keeps three days.
    fn fill(&self, db: &Database) {
        let now = self.computer.now();
        let mut tx = db.begin_write().unwrap();
        let mut load = tx.series("load").unwrap();
        for hour in 0..240 {
            load.insert(Steps(now - (240 - hour) * HOUR), 1.0).unwrap();
        }
        let policy = Retention {
            keep: Some(Duration::from_secs(3 * 86_400)),
            ..Retention::default()
        };
        tx.set_retention("short", &policy).unwrap();
        tx.commit().unwrap();
    }
}

fn insert(db: &Database, time: i64) {
    let mut tx = db.begin_write().unwrap();
    tx.series("load").unwrap().insert(Steps(time), 2.0).unwrap();
    tx.commit().unwrap();
}

fn rows(db: &Database) -> u64 {
    let snap = db.begin_read().unwrap();
    snap.series("load").unwrap().unwrap().count().unwrap()
}

fn confirmed() -> Budget {
    Budget {
        confirm_clock: true,
        ..Budget::default()
    }
}

#[test]
fn a_wall_clock_that_jumps_ahead_removes_nothing_until_it_is_confirmed() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 168);
    world.computer.jumps(365 * DAY);
    let preview = db.preview_maintenance(&Budget::default()).unwrap();
    assert_eq!(preview.rows, 0);
    assert!(preview.clock_ahead.is_some());
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, rows(&db)), (0, 72));
    let ahead = done.clock_ahead.expect("that rows wait");
    assert_eq!(ahead.wall.0 - ahead.commits.0, 365 * DAY);
    // Commits made meanwhile do not confirm the new time, however many there are. A single event is reported.
    for hour in 0..50 {
        world.computer.passes(HOUR / 10);
        insert(&db, world.computer.now() + hour);
    }
    assert_eq!(world.told(), 1);
    // Five hours have certainly passed, so five rows are too old by the commit clock.
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, rows(&db)), (5, 72 + 50 - 5));
    // Reopening the file or restarting the computer does not confirm the new time either.
    drop(db);
    world.computer.restarts(HOUR);
    let db = world.open();
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 0);
    insert(&db, world.computer.now());
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 0);
    let preview = db.preview_maintenance(&confirmed()).unwrap();
    assert_eq!((preview.rows, rows(&db)), (67, 118));
    let done = db.maintain(&confirmed()).unwrap();
    assert_eq!((done.rows, done.clock_ahead), (67, None));
    assert!(!db.clock().unwrap().is_ahead);
}

#[test]
fn a_month_without_commits_is_no_jump_while_the_computer_runs() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    drop(db);
    world.computer.passes(30 * DAY);
    let db = world.open();
    assert!(!db.clock().unwrap().is_ahead);
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, world.told()), (240, 0));
}

#[test]
fn after_a_restart_a_long_pause_is_confirmed_once() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    drop(db);
    // A pause of half an hour over a restart is accepted without confirmation.
    world.computer.restarts(HOUR / 2);
    let db = world.open();
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 169);
    drop(db);
    world.computer.restarts(30 * DAY);
    let db = world.open();
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, done.clock_ahead.is_some()), (0, true));
    db.confirm_clock().unwrap();
    world.computer.passes(10 * DAY);
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, done.clock_ahead), (71, None));
}

#[test]
fn a_wall_clock_that_jumps_back_removes_less_and_its_return_is_confirmed() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    world.computer.jumps(-5 * DAY);
    assert_eq!(db.preview_maintenance(&Budget::default()).unwrap().rows, 48);
    // If no commit was made while the clock was wrong, setting it right does not count as a jump.
    world.computer.jumps(5 * DAY);
    assert!(!db.clock().unwrap().is_ahead);
    world.computer.jumps(-5 * DAY);
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 48);
    world.computer.jumps(5 * DAY);
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, done.clock_ahead.is_some()), (0, true));
    assert_eq!(db.maintain(&confirmed()).unwrap().rows, 120);
}

#[test]
fn a_corrected_wall_clock_needs_no_confirmation() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    world.computer.jumps(100 * DAY);
    insert(&db, world.computer.now());
    assert!(db.clock().unwrap().is_ahead);
    world.computer.jumps(-100 * DAY);
    assert!(!db.clock().unwrap().is_ahead);
    insert(&db, world.computer.now());
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 168);
}

#[test]
fn a_copy_and_another_handle_do_not_believe_it_either() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    db.maintain(&Budget::default()).unwrap();
    world.computer.jumps(100 * DAY);
    insert(&db, world.computer.now());
    let other = world.open();
    assert!(other.clock().unwrap().is_ahead);
    let path = std::env::temp_dir().join(format!("tidalite-clock-{}.tdl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    db.copy().to(&path).unwrap();
    // The copy is opened with the system's clock, which is years later.
    let copy = Database::open(&path).unwrap();
    assert!(copy.clock().unwrap().is_ahead);
    // The salvaged file is opened with the system's clock, too.
    let saved = path.with_extension("saved");
    let _ = std::fs::remove_file(&saved);
    drop(copy);
    tidalite::maintenance::Salvage::of(&path)
        .to(&saved)
        .unwrap();
    let rescued = Database::open(&saved).unwrap();
    assert!(rescued.clock().unwrap().is_ahead);
    assert!(rescued.maintain(&Budget::default()).unwrap().rows <= 1);
    drop(rescued);
    std::fs::remove_file(&saved).unwrap();
    let _ = std::fs::remove_file(path.with_extension("saved-lock"));
    let copy = Database::open(&path).unwrap();
    // At most the row that was just about to become too old is removed.
    assert!(copy.maintain(&Budget::default()).unwrap().rows <= 1);
    drop(copy);
    std::fs::remove_file(&path).unwrap();
    let _ = std::fs::remove_file(path.with_extension("tdl-lock"));
}

#[test]
fn a_commit_that_changes_nothing_still_makes_none() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    let before = db.begin_read().unwrap().txn();
    world.computer.passes(DAY);
    db.begin_write().unwrap().commit().unwrap();
    assert_eq!(db.begin_read().unwrap().txn(), before);
}

#[test]
fn the_thread_reports_once_and_waits() {
    let world = World::new();
    let db = world.open();
    world.fill(&db);
    world.computer.jumps(100 * DAY);
    drop(db);
    let db = world.open_with(
        world
            .options()
            .maintain_every(Duration::from_millis(2), Budget::default()),
    );
    let began = std::time::Instant::now();
    // Rows that are too old by the commit clock are removed; the others wait for the confirmation.
    while rows(&db) > 72 || world.told() == 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", rows(&db));
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(40));
    // The thread reports the jump once, and its commit, which notices the jump itself, may report it once more.
    assert!(world.told() <= 2, "{}", world.told());
    assert_eq!(rows(&db), 72);
    db.confirm_clock().unwrap();
    while rows(&db) > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", rows(&db));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(db.take_maintenance_error().is_none());
}

#[test]
fn ages_count_from_the_newest_row_where_the_policy_says_so() {
    let world = World::new();
    let db = world.open();
    let old = Timestamp::parse("2013-01-01").unwrap().0;
    let mut tx = db.begin_write().unwrap();
    for (name, begin) in [("old", old), ("older", old - 100 * DAY)] {
        let mut series = tx.series(name).unwrap();
        for day in 0..100 {
            series.insert(Steps(begin + day * DAY), 1.0).unwrap();
        }
    }
    let policy = Retention {
        keep: Some(Duration::from_secs(30 * 86_400)),
        keep_from: KeepFrom::Newest,
        ..Retention::default()
    };
    tx.set_retention("archive", &policy).unwrap();
    tx.commit().unwrap();
    let stored = db.begin_read().unwrap().retentions().unwrap();
    assert_eq!(stored, [("archive".to_owned(), policy)]);
    world.computer.jumps(1000 * DAY);
    let preview = db.preview_maintenance(&Budget::default()).unwrap();
    let shown = preview.removals.iter();
    let shown: Vec<_> = shown
        .map(|gone| (gone.series.label(), gone.rows, gone.from, gone.to))
        .collect();
    let older = old - 100 * DAY;
    assert_eq!(
        shown,
        [
            ("old".to_owned(), 69, old, old + 68 * DAY),
            ("older".to_owned(), 69, older, older + 68 * DAY)
        ]
    );
    let done = db.maintain(&Budget::default()).unwrap();
    assert_eq!((done.rows, done.series, done.clock_ahead), (138, 2, None));
    assert_eq!(db.maintain(&Budget::default()).unwrap().rows, 0);
    let without = Retention {
        bytes: Some(1),
        keep_from: KeepFrom::Newest,
        ..Retention::default()
    };
    let mut tx = db.begin_write().unwrap();
    assert!(tx.set_retention("none", &without).is_err());
}
