//! Prints the rates of a queue in a file of the system's directory for temporary files, without and with durable commits:
//! `cargo run --release -p tidalite-messages --example queue_speed`. This example is for a quick look; it is not a
//! benchmark.

#![expect(clippy::print_stdout, reason = "it prints its results")]
#![expect(clippy::unwrap_used, reason = "an example may panic")]

use std::path::PathBuf;
use std::time::{Duration, Instant};
use tidalite_kv::Tree;
use tidalite_messages::{
    GroupStart, LeaseLimits, NewMessage, QueueOptions, QueueReader, QueueWriter,
};
use tidalite_pager::{Durability, Options, Pager, Result, WriteTxn};

/// Messages of each measurement, in batches of 1,000.
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

fn main() {
    measure(&["default"], 0, false);
    measure(&["default"], 0, true);
    measure(&["default"], 2000, false);
    measure(&["default"], 50_000, false);
    measure(&["a", "b", "c"], 0, false);
}
