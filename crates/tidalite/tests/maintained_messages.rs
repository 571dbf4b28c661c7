//! `Database::maintain` maintains topics, queues, buckets and containers, too.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::container_check::copy_rows;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tidalite::containers::{Append, ContainerOptions, ContainerTableOptions, Document};
use tidalite::objects::{ObjectAttributes, ObjectCondition};
use tidalite::queue::{NewMessage, QueueOptions};
use tidalite::retention::{Budget, Clocks, Maintained, Retention};
use tidalite::storage::MemoryStorage;
use tidalite::topics::Message;
use tidalite::{Database, ErrorKind, Options, Steps, TableLayout, Timestamp, Tuning, WriteTxn};

/// Key of the index of topics by their ids, in a table of topics.
const IDS: u8 = 3;
const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_700_000_000 * SECOND;

/// A database in memory, with a wall clock that a test moves.
struct World {
    db: Database,
    wall: Arc<AtomicI64>,
    since_boot: Arc<AtomicI64>,
}

impl World {
    fn new() -> Self {
        Self::with(Options::new())
    }

    fn with(options: Options) -> Self {
        tidalite_testkit::watch();
        let wall = Arc::new(AtomicI64::new(START));
        let since_boot = Arc::new(AtomicI64::new(0));
        let own = (Arc::clone(&wall), Arc::clone(&since_boot));
        let clocks = move || Clocks {
            wall_ns: own.0.load(Ordering::Relaxed),
            since_boot_ns: own.1.load(Ordering::Relaxed).unsigned_abs(),
            boot: 1,
        };
        let options = options.tuning(Tuning::new().clock(clocks).log_bytes(0));
        let db = options.open_storage(Arc::new(MemoryStorage::new()));
        Self {
            db: db.unwrap(),
            wall,
            since_boot,
        }
    }

    fn passes(&self, seconds: i64) {
        self.jumps(seconds);
        self.since_boot
            .fetch_add(seconds * SECOND, Ordering::Relaxed);
    }

    /// Changes the wall clock alone.
    fn jumps(&self, seconds: i64) {
        self.wall.fetch_add(seconds * SECOND, Ordering::Relaxed);
    }

    fn maintain(&self) -> Maintained {
        self.db.maintain(&ample()).unwrap()
    }

    fn commits(&self) -> u64 {
        self.db.begin_read().unwrap().txn().0
    }
}

/// A budget that is not used up on a busy machine.
fn ample() -> Budget {
    Budget {
        time: Duration::from_secs(600),
        ..Budget::default()
    }
}

fn after(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp(START + seconds * SECOND))
}

/// Publishes messages that expire after ten seconds.
fn publish(db: &Database, table: &str, count: usize) {
    let names: Vec<String> = (0..count).map(|i| format!("hall/{i}")).collect();
    let mut tx = db.begin_write().unwrap();
    let mut topics = tx.topics(table).unwrap();
    for name in &names {
        let message = Message {
            expires: after(10),
            ..Message::new(name, b"21.5")
        };
        topics.publish(&message, true).unwrap();
    }
    tx.commit().unwrap();
}

fn topics_in(db: &Database, table: &str) -> u64 {
    let snap = db.begin_read().unwrap();
    let topics = snap.topics(table).unwrap().unwrap();
    topics.stat().unwrap().messages
}

/// One table of each kind, with three messages or objects that end after ten seconds, and one that stays.
fn fill(db: &Database) {
    publish(db, "broker", 3);
    let mut tx = db.begin_write().unwrap();
    let stays = Message::new("stays", b"x");
    tx.topics("broker").unwrap().publish(&stays, true).unwrap();
    let mut queue = tx.queue("jobs").unwrap();
    for _ in 0..3 {
        let message = NewMessage {
            expires: after(10),
            ..NewMessage::new(b"job")
        };
        queue.push(&message).unwrap();
    }
    queue.push(&NewMessage::new(b"stays")).unwrap();
    let aging = QueueOptions {
        retention: Some(Duration::from_secs(10)),
        ..QueueOptions::default()
    };
    let mut queue = tx.queue_with("aging", &aging).unwrap();
    queue.push(&NewMessage::new(b"job")).unwrap();
    let mut bucket = tx.bucket("files").unwrap();
    for i in 0..4 {
        let attributes = ObjectAttributes {
            expires: after(10).filter(|_| i < 3),
            ..ObjectAttributes::default()
        };
        let always = ObjectCondition::default();
        let name = format!("video/{i}");
        let put = bucket.put(&name, b"frames", attributes, &always).unwrap();
        assert!(put.done().is_some());
    }
    let defaults = ContainerOptions {
        ttl: Some(Duration::from_secs(10)),
        ..ContainerOptions::default()
    };
    let options = ContainerTableOptions {
        defaults,
        ..ContainerTableOptions::default()
    };
    let mut devices = tx.containers_with("devices", &options).unwrap();
    let document = Document::from_json(r#"{"level": 7}"#).unwrap();
    for second in [0, 1, 2, 60] {
        let time = Timestamp(START + second * SECOND);
        let message = Append::new("pump", time, &document);
        devices.append(&message).unwrap();
    }
    tx.commit().unwrap();
}

#[test]
fn one_call_maintains_tables_of_every_kind() {
    let world = World::new();
    fill(&world.db);
    assert_eq!(world.maintain(), Maintained::default());
    world.passes(20);
    let done = world.maintain();
    let messages = done.messages;
    assert_eq!((messages.tables, messages.messages), (5, 3 + 3 + 1 + 3));
    assert_eq!((messages.objects, messages.commits), (3, 1));
    assert_eq!((done.commits, done.more), (0, false));
    let snap = world.db.begin_read().unwrap();
    assert_eq!(topics_in(&world.db, "broker"), 1);
    let jobs = snap.queue("jobs").unwrap().unwrap();
    assert_eq!(jobs.stat().unwrap().messages, 1);
    let files = snap.bucket("files").unwrap().unwrap();
    assert_eq!(files.stat().unwrap().objects, 1);
    let devices = snap.containers("devices").unwrap().unwrap();
    assert_eq!(devices.stat().unwrap().messages, 1);
    let series = devices.series_name("pump").unwrap();
    let numbers = snap.series(&series).unwrap().unwrap();
    assert_eq!(numbers.query(..).count().unwrap(), 1, "the series follows");
    drop(snap);
    let before = world.commits();
    assert_eq!(world.maintain(), Maintained::default());
    assert_eq!(world.commits(), before, "no work, no commit");
    let checked = world.db.check().unwrap();
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
}

#[test]
fn without_work_nobody_waits_for_a_writer() {
    let world = World::new();
    fill(&world.db);
    let _writer = world.db.begin_write().unwrap();
    assert_eq!(world.maintain(), Maintained::default());
}

#[test]
fn the_time_of_the_budget_counts() {
    let world = World::new();
    fill(&world.db);
    let budget = Budget {
        now: after(20),
        ..ample()
    };
    let done = world.db.maintain(&budget).unwrap();
    assert_eq!(done.messages.tables, 5, "the clocks say that it is earlier");
}

#[test]
fn calls_without_much_time_take_turns() {
    let world = World::new();
    for table in ["a", "b", "c"] {
        publish(&world.db, table, 3000);
    }
    world.passes(20);
    let none = Budget {
        time: Duration::ZERO,
        ..Budget::default()
    };
    let done = world.db.maintain(&none).unwrap();
    assert_eq!((done.more, done.messages.commits), (true, 0));
    let little = Budget {
        time: Duration::from_nanos(1),
        ..Budget::default()
    };
    let mut left = Vec::new();
    loop {
        let done = world.db.maintain(&little).unwrap();
        left.push(["a", "b", "c"].map(|table| topics_in(&world.db, table)));
        assert_eq!((done.messages.commits, done.messages.tables), (1, 1));
        if !done.more {
            break;
        }
    }
    assert_eq!(left[0], [2000, 3000, 3000]);
    assert_eq!(left[2], [2000, 2000, 2000]);
    assert_eq!(left[5], [1000, 1000, 1000]);
    assert_eq!((left.len(), left[8]), (9, [0, 0, 0]));
}

/// Creates a table of topics whose options cannot be read, so that it cannot be opened.
fn without_options(tx: &mut WriteTxn, name: &str) {
    let layout = TableLayout::Topics;
    let mut table = tx.create_raw_table(name, layout, ("", "")).unwrap();
    table.put(&[0], b"nonsense").unwrap();
}

/// Copies the topics of a database without the index of topics by their ids, which is read only when a message is removed.
fn without_ids(from: &Database, tx: &mut WriteTxn, name: &str) {
    let snap = from.begin_read().unwrap();
    let from = snap.raw_table(name).unwrap().unwrap();
    let layout = TableLayout::Topics;
    let mut to = tx.create_raw_table(name, layout, ("", "")).unwrap();
    copy_rows(&from, &mut to);
    to.nested(&[IDS]).clear().unwrap();
}

#[test]
fn damaged_tables_do_not_stop_anything_else() {
    let world = World::new();
    let db = &world.db;
    for table in ["a", "c", "e"] {
        publish(db, table, 3);
    }
    let sound = World::new();
    publish(&sound.db, "d", 3);
    let mut tx = db.begin_write().unwrap();
    without_options(&mut tx, "b");
    without_ids(&sound.db, &mut tx, "d");
    let policy = Retention {
        keep: Some(Duration::from_secs(10)),
        ..Retention::default()
    };
    tx.set_retention("short", &policy).unwrap();
    let mut series = tx.series("load").unwrap();
    for second in [0, 30] {
        let time = Timestamp(START + second * SECOND);
        series.insert(time, 1.0).unwrap();
    }
    tx.commit().unwrap();
    world.passes(30);
    let done = world.maintain();
    let failed: Vec<&str> = done.failed.iter().map(|one| one.table.as_str()).collect();
    assert_eq!(failed, ["b", "d"]);
    assert!(done.failed.iter().all(|one| one.kind == ErrorKind::Damaged));
    assert_eq!((done.messages.tables, done.messages.commits), (3, 1));
    assert_eq!((done.rows, done.more), (1, false));
    for table in ["a", "c", "e"] {
        assert_eq!(topics_in(db, table), 0, "{table}");
    }
    assert_eq!(topics_in(db, "d"), 3, "rolled back alone");
    let done = world.maintain();
    assert_eq!((done.failed.len(), done.messages.commits), (2, 0));
}

#[test]
fn many_tables_share_commits() {
    let world = World::new();
    let mut tx = world.db.begin_write().unwrap();
    for tenant in 0..100 {
        let message = Message {
            expires: after(10),
            ..Message::new("state", b"on")
        };
        let mut topics = tx.topics(&format!("tenant {tenant}")).unwrap();
        topics.publish(&message, true).unwrap();
    }
    tx.commit().unwrap();
    world.passes(20);
    let done = world.maintain().messages;
    assert_eq!((done.tables, done.messages, done.commits), (100, 100, 2));
}

#[test]
fn the_background_thread_tells_of_a_damaged_table() {
    let options = Options::new().maintain_every(Duration::from_millis(5), Budget::default());
    let world = World::with(options);
    publish(&world.db, "b", 3);
    let mut tx = world.db.begin_write().unwrap();
    without_options(&mut tx, "a");
    tx.commit().unwrap();
    world.passes(20);
    let began = Instant::now();
    while topics_in(&world.db, "b") > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "never removed");
        std::thread::sleep(Duration::from_millis(5));
    }
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "never told");
        if let Some(error) = world.db.take_maintenance_error() {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn messages_are_removed_before_rows_are_removed_for_a_cap() {
    let world = World::new();
    let db = &world.db;
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("load").unwrap();
    for step in 0..100_000 {
        let value =
            f64::from_bits(0x3ff0_0000_0000_0000 | (step as u64).wrapping_mul(0x9e37_79b9_7f4a));
        series.insert(Steps(step), value).unwrap();
    }
    tx.commit().unwrap();
    let stat = db.stat().unwrap();
    let used = (stat.pages_total - stat.pages_free - stat.pages_pending) * 4096;
    publish(db, "broker", 20_000);
    let mut tx = db.begin_write().unwrap();
    let policy = Retention {
        bytes: Some(used + (64 << 10)),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).unwrap();
    tx.commit().unwrap();
    world.passes(20);
    // No row is removed in the calls that leave messages, either.
    let little = Budget {
        time: Duration::from_nanos(1),
        ..Budget::default()
    };
    let mut removed = 0;
    loop {
        let done = db.maintain(&little).unwrap();
        removed += done.messages.messages;
        assert_eq!(done.rows, 0);
        if !done.more {
            break;
        }
    }
    assert_eq!(removed, 20_000);
}

#[test]
fn a_wall_clock_that_jumps_ahead_removes_nothing() {
    let world = World::new();
    fill(&world.db);
    world.jumps(86_400 * 365);
    let done = world.maintain();
    assert_eq!(done.messages.tables, 0);
    assert!(done.clock_ahead.is_some(), "work waits for the clock");
    // A message that is due by both clocks is removed, and the others still wait.
    let mut tx = world.db.begin_write().unwrap();
    let old = Message {
        expires: after(-10),
        ..Message::new("old", b"x")
    };
    let mut topics = tx.topics("broker").unwrap();
    topics.set(&old, Timestamp(START - 20 * SECOND)).unwrap();
    tx.commit().unwrap();
    let done = world.maintain();
    assert_eq!((done.messages.tables, done.messages.messages), (1, 1));
    assert!(done.clock_ahead.is_some(), "the others still wait");
    let confirmed = Budget {
        confirm_clock: true,
        ..ample()
    };
    let done = world.db.maintain(&confirmed).unwrap();
    assert_eq!(done.messages.tables, 5);
}

#[test]
fn the_background_thread_maintains_messages() {
    let budget = Budget::default();
    let options = Options::new().maintain_every(Duration::from_millis(5), budget);
    let world = World::with(options);
    publish(&world.db, "broker", 10);
    assert_eq!(topics_in(&world.db, "broker"), 10);
    world.passes(20);
    let began = Instant::now();
    while topics_in(&world.db, "broker") > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "never removed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(world.db.take_maintenance_error().is_none());
}
