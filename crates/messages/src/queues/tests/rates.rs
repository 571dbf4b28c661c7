//! Complexity by counters, and rates of a release build (`cargo test --release -- --ignored --nocapture rates`).

use crate::queues::groups::GroupStart;
use crate::queues::lease::LeaseLimits;
use crate::queues::message::NewMessage;
use crate::queues::options::QueueOptions;
use crate::queues::read::QueueReader;
use crate::queues::tests::table::Table;
use crate::queues::writer::QueueWriter;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidalite_kv::Tree;
use tidalite_pager::{Durability, Options, PageRead, Pager, Result, WriteTxn};

/// Messages of the rates, in batches of 1,000.
const MESSAGES: u64 = 500_000;
const BATCH: usize = 1000;

/// A queue in a file, each call of which is one durable commit; and the time of the calls without and with the commits.
struct File {
    pager: Pager,
    root: Tree,
    path: PathBuf,
    spent: [Duration; 2],
}

impl File {
    fn new() -> Self {
        let name = format!("tidalite-queue-{}.tdl", std::process::id());
        let path = std::env::temp_dir().join(name);
        let pager = Pager::open(&path, &Options::default()).unwrap();
        let mut root = Tree::new(30);
        let mut txn = pager.begin_write().unwrap();
        drop(QueueWriter::create(&mut root, &mut txn, QueueOptions::default()).unwrap());
        root.seal(&mut txn).unwrap();
        txn.commit(&root.encode(), Durability::Durable).unwrap();
        Self {
            pager,
            root,
            path,
            spent: [Duration::ZERO; 2],
        }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut QueueWriter<'_, WriteTxn>) -> Result<T>) -> T {
        let begun = Instant::now();
        let mut txn = self.pager.begin_write().unwrap();
        let mut queue = QueueWriter::open(&mut self.root, &mut txn).unwrap();
        let done = call(&mut queue).unwrap();
        self.root.seal(&mut txn).unwrap();
        self.spent[0] += begun.elapsed();
        txn.commit(&self.root.encode(), Durability::Durable)
            .unwrap();
        self.spent[1] += begun.elapsed();
        done
    }

    fn print(&mut self, what: &str, count: u64) {
        let [work, all] = std::mem::take(&mut self.spent)
            .map(|spent| format!("{:.0}", count as f64 / spent.as_secs_f64()));
        println!("  {what}: {work} messages/s, {all} with durable commits");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

fn measure(groups: &[&str], keys: u64, in_pieces: bool) {
    let count = groups.len();
    println!("{count} groups, {keys} ordering keys, acks in pieces: {in_pieces}");
    let mut file = File::new();
    for group in groups {
        file.call(|queue| queue.create_group(group, GroupStart::Oldest, 0));
    }
    file.spent = Default::default();
    let payload = [7; 100];
    for batch in 0..MESSAGES / BATCH as u64 {
        let of_batch: Vec<[u8; 8]> = (0..BATCH as u64)
            .map(|i| ((batch * 7919 + i) % keys.max(1)).to_be_bytes())
            .collect();
        let messages: Vec<NewMessage<'_>> = of_batch
            .iter()
            .map(|key| NewMessage {
                key: (keys > 0).then_some(&key[..]),
                ..NewMessage::new(&payload)
            })
            .collect();
        file.call(|queue| queue.push_many(&messages, 0));
    }
    file.print("push", MESSAGES);
    for group in groups {
        let (mut done, mut kept) = (0, Vec::new());
        while done < MESSAGES {
            let limits = LeaseLimits::messages(BATCH);
            let found = file.call(|queue| queue.lease(group, "one", 1000, limits, 1));
            assert!(!found.is_empty());
            done += found.len() as u64;
            let mut ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
            if in_pieces {
                // Every third message is acknowledged with the next batch.
                let (now, later): (Vec<u64>, Vec<u64>) = ids.iter().partition(|id| *id % 3 > 0);
                ids = [std::mem::replace(&mut kept, later), now].concat();
            }
            file.call(|queue| queue.ack(group, "one", &ids, 1));
        }
        file.call(|queue| queue.ack(group, "one", &kept, 1));
        file.print(&format!("lease and ack {group}"), MESSAGES);
    }
    let reader = file.pager.begin_read().unwrap();
    let queue = QueueReader::open(&file.root, &reader).unwrap();
    assert_eq!(queue.stat().unwrap().messages, 0);
}

#[test]
#[ignore = "measures rates"]
fn rates() {
    measure(&["default"], 0, false);
    measure(&["default"], 0, true);
    measure(&["default"], 2000, false);
    measure(&["default"], 50_000, false);
    measure(&["a", "b", "c"], 0, false);
}

/// A queue with many messages that wait behind one, many that are delayed, and 100 that are ready.
fn crowded(messages: u64) -> Table {
    let mut table = Table::new(4096, QueueOptions::default());
    let mut pushed = 0;
    while pushed < messages {
        let waiting = NewMessage {
            key: Some(b"same"),
            ..NewMessage::new(&[1; 50])
        };
        let delayed = NewMessage {
            not_before: Some(i64::MAX),
            expires: Some(i64::MAX),
            ..NewMessage::new(&[1; 50])
        };
        table.write().push_many(&[waiting; 1000], 0).unwrap();
        table.write().push_many(&[delayed; 1000], 0).unwrap();
        pushed += 2000;
    }
    let ready = [NewMessage::new(b"ready"); 100];
    table.write().push_many(&ready, 0).unwrap();
    table.commit();
    table
}

/// Number of pages that a call reads.
fn pages_read(table: &mut Table, call: impl FnOnce(&mut Table)) -> u64 {
    let before = table.pages.counters().pages_read.load(Relaxed);
    call(table);
    table.pages.counters().pages_read.load(Relaxed) - before
}

#[test]
fn calls_do_not_visit_messages_that_wait() {
    tidalite_testkit::watch();
    let mut counts = Vec::new();
    for messages in [4000, 80_000] {
        let mut table = crowded(messages);
        let mut ids = Vec::new();
        let lease = pages_read(&mut table, |table| {
            let limits = LeaseLimits::messages(101);
            let found = table
                .write()
                .lease("default", "one", 10, limits, 1)
                .unwrap();
            ids = found.iter().map(|found| found.message.id).collect();
        });
        assert_eq!(ids.len(), 101);
        let ack = pages_read(&mut table, |table| {
            table.write().ack("default", "one", &ids[1..], 1).unwrap();
        });
        let empty = pages_read(&mut table, |table| {
            let limits = LeaseLimits::messages(100);
            let found = table
                .write()
                .lease("default", "two", 10, limits, 1)
                .unwrap();
            assert!(found.is_empty());
        });
        let stat = pages_read(&mut table, |table| {
            let reader = table.read();
            reader.group_stat("default").unwrap();
            reader.stat().unwrap();
        });
        counts.push([lease, ack, empty, stat]);
    }
    println!("{counts:?}");
    for (few, many) in counts[0].iter().zip(counts[1]) {
        // The tables are one or two levels higher.
        assert!(many <= few * 3, "{counts:?}");
    }
    assert!(counts[1][2] < 60 && counts[1][3] < 30, "{counts:?}");
}

/// Acknowledged messages leave nothing behind, in whatever order they are acknowledged.
#[test]
fn a_queue_does_not_grow_with_acknowledged_messages() {
    tidalite_testkit::watch();
    let mut table = Table::new(4096, QueueOptions::default());
    let mut pages = Vec::new();
    for round in 0..300 {
        let new = [NewMessage::new(&[1; 40]); 100];
        table.write().push_many(&new, round).unwrap();
        let limits = LeaseLimits::messages(100);
        let found = table
            .write()
            .lease("default", "one", 10, limits, round)
            .unwrap();
        let mut ids: Vec<u64> = found.iter().map(|found| found.message.id).collect();
        ids.sort_by_key(|id| id % 7);
        for ids in ids.chunks(9) {
            table.write().ack("default", "one", ids, round).unwrap();
        }
        table.commit();
        pages.push(table.pages.live_pages());
    }
    assert_eq!(table.read().stat().unwrap().messages, 0);
    assert!(pages[299] <= pages[2], "{pages:?}");
    table.assert_whole();
}
