//! Random operations, compared with the model.

use super::script::{Model, ModelMessage, is_expired, protects};
use super::{Table, decode};
use crate::containers::append::{Append, AppendOutcome};
use crate::containers::cursor::MessageQuery;
use crate::containers::document::Document;
use crate::containers::edit::DeleteRange;
use crate::containers::maintain::ContainersMaintenance;
use crate::containers::message::{ContainerMessage, StoredMessage};
use crate::containers::options::{
    ContainerOptions, ContainerOverflow, ContainerTableOptions, OnDuplicate,
};
use crate::containers::restore::RestoreRange;
use crate::containers::value::FieldValue;
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

const NAMES: [&str; 6] = ["car", "car/1", "car/2", "bus", "ä", "z"];
const FIELDS: [&str; 6] = ["speed", "x", "y", "text", "hot", "keep"];

fn random_document(rng: &mut Rng) -> Document {
    let mut document = Document::default();
    for _ in 0..rng.below(5) {
        let value = match rng.below(5) {
            0 => FieldValue::Bool(rng.one_in(2)),
            1 => FieldValue::Float(rng.below(1000) as f64 / 10.0),
            2 => FieldValue::Text("long".repeat(rng.index(60))),
            3 => FieldValue::Null,
            _ => FieldValue::Integer(rng.below(300).into()),
        };
        document.set(rng.pick::<&str>(&FIELDS), value);
    }
    if rng.one_in(6) {
        document.set("keep", FieldValue::Bool(true));
    }
    document
}

fn random_options(rng: &mut Rng) -> ContainerOptions {
    ContainerOptions {
        on_duplicate: *rng.pick(&[
            OnDuplicate::KeepFirst,
            OnDuplicate::Replace,
            OnDuplicate::KeepAll,
            OnDuplicate::Merge,
        ]),
        overflow: *rng.pick(&[ContainerOverflow::Reject, ContainerOverflow::DropOldest]),
        ttl: rng
            .pick(&[None, None, Some(200), Some(1000), Some(0)])
            .map(Duration::from_nanos),
        keep_deleted: Duration::from_nanos(*rng.pick(&[0, 300, 3000, 3000])),
        messages_max: *rng.pick(&[None, None, Some(30), Some(8)]),
        bytes_max: *rng.pick(&[None, None, Some(3000), Some(150)]),
        protect: rng.one_in(2).then(|| "keep".to_owned()),
    }
}

struct Run {
    table: Table,
    model: Model,
    rng: Rng,
    now: i64,
    /// Number of times that each kind of event has happened.
    counts: BTreeMap<&'static str, u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let options = ContainerTableOptions {
            idempotency_window: rng
                .pick(&[None, Some(150), Some(1000)])
                .map(Duration::from_nanos),
            defaults: random_options(&mut rng),
            ..ContainerTableOptions::default()
        };
        let model = Model::new(options.defaults.clone(), options.window_ns());
        let page_size = *rng.pick(&[512, 1024, 4096]);
        Self {
            table: Table::new(page_size, options),
            model,
            rng,
            now: 0,
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str, times: usize) {
        *self.counts.entry(what).or_default() += times as u64;
    }

    fn some_name(&mut self) -> Option<String> {
        let names: Vec<String> = self.model.containers.keys().cloned().collect();
        (!names.is_empty()).then(|| self.rng.pick(&names).clone())
    }

    fn append(&mut self) {
        let rng = &mut self.rng;
        let count_max = if rng.one_in(5) { 40 } else { 5 };
        let count = 1 + rng.index(count_max);
        let documents: Vec<Document> = (0..count).map(|_| random_document(rng)).collect();
        let keys: Vec<Vec<u8>> = (0..count).map(|_| vec![rng.below(20) as u8]).collect();
        let base = self.now;
        let items: Vec<Append<'_>> = (0..count)
            .map(|at| Append {
                container: rng.pick::<&str>(&NAMES),
                time: Timestamp(match rng.below(4) {
                    0 => base - rng.below(400) as i64,
                    1 => base + rng.below(3) as i64,
                    _ => base - rng.below(20) as i64,
                }),
                document: &documents[at],
                idempotency_key: rng.one_in(4).then_some(&keys[at][..]),
            })
            .collect();
        let appended = self.table.writer().append_batch(self.now, &items).unwrap();
        self.model.append(&self.table, self.now, &items, &appended);
        for outcome in &appended.outcomes {
            let what = match outcome {
                AppendOutcome::Stored { key } if key.tie > 0 => "stored beside another",
                AppendOutcome::Stored { .. } => "stored",
                AppendOutcome::Replaced { .. } => "replaced by an append",
                AppendOutcome::Merged { .. } => "merged",
                AppendOutcome::Ignored => "ignored",
                AppendOutcome::Repeated => "repeated",
                AppendOutcome::NotStored => "not stored",
                AppendOutcome::Rejected(_) => "rejected",
            };
            self.count(what, 1);
        }
        self.count("made room", appended.expired.len());
        self.count("rotated by an append", appended.rotated.len());
    }

    /// A random time and tie, usually of an existing message.
    fn some_key(&mut self, name: &str) -> (i64, u32) {
        let keys: Vec<_> = self.model.containers[name]
            .messages
            .keys()
            .copied()
            .collect();
        match keys.is_empty() || self.rng.one_in(8) {
            true => (
                self.now - self.rng.below(50) as i64,
                self.rng.below(2) as u32,
            ),
            false => *self.rng.pick(&keys),
        }
    }

    /// Whether a message is visible.
    fn is_there(&self, name: &str, key: (i64, u32)) -> bool {
        let found = self.model.containers[name].messages.get(&key);
        let options = self.model.options(name);
        found.is_some_and(|found| !is_expired(&options, key.0, found.is_protected, self.now))
    }

    fn same(&self, stored: &StoredMessage, message: &ModelMessage) -> bool {
        let names = self.table.names();
        decode(&names, &stored.document) == message.document
            && stored.received.0 == message.received
            && stored.is_protected == message.is_protected
    }

    fn replace(&mut self) {
        let Some(name) = self.some_name() else {
            return;
        };
        let key = self.some_key(&name);
        let document = random_document(&mut self.rng);
        let now = self.now;
        let found = self
            .table
            .writer()
            .replace_message(now, &name, key, &document);
        let was_there = self.is_there(&name, key);
        match found {
            Err(Error::Limit { .. }) => {
                assert!(was_there);
                self.count("no room to replace", 1);
            }
            Err(error) => panic!("{error}"),
            Ok(None) => assert!(!was_there),
            Ok(Some(old)) => {
                self.model.learn(&self.table);
                let options = self.model.options(&name);
                let container = self.model.containers.get_mut(&name).unwrap();
                let new = ModelMessage {
                    is_protected: protects(&options, &document) == Some(true),
                    received: now,
                    document,
                };
                container.set_latest(key.0, &new.document);
                let before = container.messages.insert(key, new).unwrap();
                assert!(was_there && self.same(&old, &before));
                self.count("replaced", 1);
            }
        }
    }

    fn delete_one(&mut self) {
        let Some(name) = self.some_name() else {
            return;
        };
        let key = self.some_key(&name);
        let was_there = self.is_there(&name, key);
        let found = self.table.writer().delete_message(self.now, &name, key);
        match found.unwrap() {
            None => assert!(!was_there, "{name} {key:?}"),
            Some(found) => {
                assert!(was_there);
                let old = self.model.containers[&name].messages[&key].clone();
                assert!(self.same(&found, &old));
                self.forget(&name, &[key]);
                self.count("deleted", 1);
            }
        }
    }

    /// Moves messages of the model to a deletion.
    fn forget(&mut self, name: &str, keys: &[(i64, u32)]) {
        let keep = self.model.options(name).keep_deleted_ns();
        let deletions = self.table.reader().deletions(name, self.now, None, 1);
        let container = self.model.containers.get_mut(name).unwrap();
        let mut gone = BTreeMap::new();
        for key in keys {
            gone.insert(*key, container.messages.remove(key).unwrap());
        }
        if keep > 0 && !keys.is_empty() {
            let deletion = deletions.unwrap()[0];
            assert_eq!(deletion.messages, keys.len() as u64);
            assert_eq!(deletion.free_at, Timestamp(self.now + keep));
            let row = (self.now, self.now + keep, gone);
            assert!(container.deletions.insert(deletion.number, row).is_none());
        }
    }

    fn delete_some(&mut self) {
        let Some(name) = self.some_name() else {
            return;
        };
        let from = self.now - self.rng.below(300) as i64;
        let mut range = DeleteRange {
            from: Timestamp(from),
            to: Timestamp(from + self.rng.below(200) as i64),
            after: None,
            examined_max: 1 + self.rng.below(12),
            dry_run: self.rng.one_in(4),
        };
        let odd = self.rng.one_in(2);
        let mut picked = 0;
        let mut expected = Vec::new();
        for key in self.model.containers[&name].messages.keys() {
            let is_in = (range.from.0..=range.to.0).contains(&key.0) && self.is_there(&name, *key);
            if is_in && (!odd || key.0 % 2 != 0) {
                expected.push(*key);
            }
        }
        loop {
            let mut keys = Vec::new();
            let mut select = |message: &ContainerMessage<'_>| {
                let is_picked = !odd || message.key.time.0 % 2 != 0;
                if is_picked {
                    keys.push((message.key.time.0, message.key.tie));
                }
                Ok(is_picked)
            };
            let mut writer = self.table.writer();
            let deleted = writer
                .delete_messages(self.now, &name, &range, &mut select)
                .unwrap();
            assert_eq!(deleted.messages, keys.len() as u64);
            assert!(deleted.examined <= range.examined_max);
            assert_eq!(keys, expected[picked..picked + keys.len()]);
            picked += keys.len();
            if !range.dry_run {
                self.forget(&name, &keys);
            }
            range.after = deleted.next;
            if range.after.is_none() {
                break;
            }
        }
        assert_eq!(picked, expected.len());
        self.count("deleted by range", picked);
    }

    fn restore_some(&mut self) {
        let Some(name) = self.some_name() else {
            return;
        };
        let (now, options) = (self.now, self.model.options(&name));
        let mut range = RestoreRange {
            from: Timestamp(now - self.rng.below(800) as i64),
            deleted_from: Timestamp(now - self.rng.below(2000) as i64),
            examined_max: 1 + self.rng.below(10),
            ..RestoreRange::default()
        };
        // All messages that could be restored, in the order in which they are read.
        let mut expected = Vec::new();
        for (number, (deleted_at, free_at, messages)) in
            self.model.containers[&name].deletions.iter().rev()
        {
            if *deleted_at >= range.deleted_from.0 && *free_at > now {
                let messages = messages.iter().filter(|(key, _)| key.0 >= range.from.0);
                expected.extend(messages.map(|(key, message)| (*number, *key, message.clone())));
            }
        }
        let mut restored = Vec::new();
        let mut skipped = 0;
        loop {
            let step = self
                .table
                .writer()
                .restore_messages(now, &name, &range)
                .unwrap();
            restored.extend(step.messages);
            skipped += step.skipped;
            range.after = step.next;
            if range.after.is_none() {
                break;
            }
        }
        assert_eq!(restored.len() + skipped as usize, expected.len());
        self.count("restored", restored.len());
        self.count("not restored", skipped as usize);
        let mut restored = restored.into_iter().peekable();
        for (deletion, key, message) in expected {
            let container = self.model.containers.get_mut(&name).unwrap();
            let is_taken = container.messages.contains_key(&key);
            let new_key = match is_taken {
                false => Some(key),
                true if options.on_duplicate == OnDuplicate::KeepAll => {
                    Some((key.0, container.last_of(key.0).unwrap().0.1 + 1))
                }
                true => None,
            };
            let expired = is_expired(&options, key.0, message.is_protected, now);
            let Some(new_key) = new_key.filter(|_| !expired) else {
                continue;
            };
            container.messages.insert(new_key, message.clone());
            let row = container.deletions.get_mut(&deletion).unwrap();
            row.2.remove(&key);
            if row.2.is_empty() {
                container.deletions.remove(&deletion);
            }
            let found = restored.next().unwrap();
            assert_eq!(super::key_of(&found), new_key);
            assert!(self.same(&found, &message));
        }
        assert!(restored.next().is_none());
    }

    fn manage(&mut self) {
        let now = self.now;
        match self.rng.below(6) {
            0 => {
                let Some(name) = self.some_name() else {
                    return;
                };
                let keep = self.model.options(&name).keep_deleted_ns();
                let dropped = self.table.writer().drop_container(now, &name).unwrap();
                let container = self.model.containers.remove(&name).unwrap();
                assert_eq!(dropped.messages, container.messages.len() as u64);
                assert_eq!(dropped.free_at, (keep > 0).then_some(Timestamp(now + keep)));
                if keep > 0 {
                    self.model.dropped.push((name, now + keep, container));
                }
            }
            1 => {
                let dropped = &self.model.dropped;
                let name = match dropped.last() {
                    Some((name, ..)) if self.rng.one_in(2) => name.clone(),
                    _ => self.rng.pick(&NAMES).to_string(),
                };
                let to = match self.rng.one_in(2) {
                    true => name.clone(),
                    false => self.rng.pick(&NAMES).to_string(),
                };
                let (name, to) = (name.as_str(), to.as_str());
                let found = self.table.writer().restore_container(now, name, to);
                let last = dropped
                    .iter()
                    .rposition(|(other, free_at, _)| other == name && *free_at > now);
                match (last, self.model.containers.contains_key(to)) {
                    (Some(last), false) => {
                        let (_, _, container) = self.model.dropped.remove(last);
                        assert_eq!(found.unwrap(), container.number);
                        self.model.containers.insert(to.to_owned(), container);
                        self.count("restored containers", 1);
                    }
                    _ => assert!(matches!(found, Err(Error::Refused { .. }))),
                }
            }
            2 => {
                let Some(name) = self.some_name() else {
                    return;
                };
                let to = *self.rng.pick(&NAMES);
                let found = self.table.writer().rename(&name, to);
                match self.model.containers.contains_key(to) {
                    true => assert!(matches!(found, Err(Error::Refused { .. }))),
                    false => {
                        found.unwrap();
                        let container = self.model.containers.remove(&name).unwrap();
                        self.model.containers.insert(to.to_owned(), container);
                    }
                }
            }
            3 => {
                let mut options = self.table.reader().options().clone();
                options.defaults = random_options(&mut self.rng);
                self.model.defaults = options.defaults.clone();
                self.table.writer().set_table_options(options).unwrap();
            }
            _ => {
                let Some(name) = self.some_name() else {
                    return;
                };
                let own = self.rng.one_in(2).then(|| random_options(&mut self.rng));
                self.table.writer().set_options(&name, own.clone()).unwrap();
                self.model.containers.get_mut(&name).unwrap().own = own;
            }
        }
    }

    fn maintain(&mut self) {
        let (now, budget) = (self.now, 1 + self.rng.below(60));
        let ends = self.rng.one_in(2);
        loop {
            let mut removed = Vec::new();
            let was_due = self.table.reader().is_maintenance_due(now).unwrap();
            let done = self
                .table
                .writer()
                .maintain(now, budget, &mut |message| {
                    removed.push(message.clone());
                    Ok(())
                })
                .unwrap();
            assert!(was_due || done == ContainersMaintenance::default());
            assert!(done.more || !self.table.reader().is_maintenance_due(now).unwrap());
            assert_eq!(done.expired + done.rotated, removed.len() as u64);
            let spans: u64 = done.removed.iter().map(|span| span.messages).sum();
            assert_eq!(spans, removed.len() as u64);
            self.model.remove(&removed, now);
            self.count("expired", done.expired as usize);
            self.count("rotated", done.rotated as usize);
            self.count("freed", done.freed_messages as usize);
            self.count("freed containers", done.freed_containers.len());
            self.count("forgotten keys", done.forgotten_keys as usize);
            for (number, _) in &done.freed_containers {
                let dropped = &mut self.model.dropped;
                let at = dropped.iter().position(|row| row.2.number == *number);
                let (_, free_at, _) = dropped.remove(at.unwrap());
                assert!(free_at <= now);
            }
            if !done.more || !ends {
                self.forget_free(!done.more);
                break;
            }
        }
    }

    /// After all maintenance is done, no row is due.
    fn forget_free(&mut self, is_done: bool) {
        let now = self.now;
        if !is_done {
            return;
        }
        for (_, free_at, _) in &self.model.dropped {
            assert!(*free_at > now);
        }
        let names: Vec<String> = self.model.containers.keys().cloned().collect();
        for name in names {
            let options = self.model.options(&name);
            let (messages, bytes) = self.model.unprotected(&name);
            let rotates = options.overflow == ContainerOverflow::DropOldest;
            assert!(!rotates || !options.is_over(messages, bytes), "{name}");
            let container = self.model.containers.get_mut(&name).unwrap();
            container.deletions.retain(|_, row| row.1 > now);
            for (key, message) in &container.messages {
                assert!(!is_expired(&options, key.0, message.is_protected, now));
            }
        }
    }

    /// Compares all readable state.
    fn compare(&mut self) {
        let reader = self.table.reader();
        let listed = reader.list("", None, usize::MAX).unwrap();
        let listed: Vec<_> = listed.iter().map(|info| &info.name).collect();
        assert_eq!(listed, self.model.containers.keys().collect::<Vec<_>>());
        let mut dropped: Vec<_> = self.model.dropped.iter().collect();
        dropped.retain(|row| row.1 > self.now);
        dropped.sort_by_key(|row| (&row.0, row.2.number));
        let found = reader.dropped("", self.now, None, usize::MAX).unwrap();
        let found: Vec<_> = found.iter().map(|row| row.number).collect();
        let expected: Vec<_> = dropped.iter().map(|row| row.2.number).collect();
        assert_eq!(found, expected);
        for (name, container) in &self.model.containers {
            let info = reader.container(name).unwrap().unwrap();
            let options = self.model.options(name);
            assert_eq!((info.number, &info.options), (container.number, &options));
            assert_eq!(info.messages, container.messages.len() as u64);
            let first = container.messages.keys().next().map(|key| Timestamp(key.0));
            let last = container
                .messages
                .keys()
                .next_back()
                .map(|key| Timestamp(key.0));
            assert_eq!((info.oldest, info.newest), (first, last));
            let mut expected: Vec<_> = container.messages.iter().collect();
            expected.retain(|(key, message)| {
                !is_expired(&options, key.0, message.is_protected, self.now)
            });
            for reverse in [false, true] {
                let query = MessageQuery {
                    reverse,
                    ..MessageQuery::default()
                };
                let mut cursor = reader.messages(name, &query, self.now).unwrap();
                for (key, message) in &expected {
                    let found = cursor.next().unwrap().unwrap();
                    assert_eq!((found.key.time.0, found.key.tie), **key, "{name}");
                    assert!(self.same(&found.to_stored(), message), "{name} {key:?}");
                }
                assert!(cursor.next().unwrap().is_none());
                expected.reverse();
            }
            let latest = reader.latest(name).unwrap();
            let latest: BTreeMap<_, _> = latest
                .into_iter()
                .map(|value| (value.field, (value.time.0, value.value)))
                .collect();
            assert_eq!(latest, container.latest, "{name}");
            let deletions = reader.deletions(name, self.now, None, usize::MAX).unwrap();
            let alive = container.deletions.iter().rev();
            let alive: Vec<_> = alive.filter(|row| row.1.1 > self.now).collect();
            assert_eq!(deletions.len(), alive.len());
            for (found, (number, row)) in deletions.iter().zip(alive) {
                assert_eq!(
                    (found.number, found.messages),
                    (*number, row.2.len() as u64)
                );
            }
        }
    }

    fn run(&mut self, steps: u64) {
        for step in 0..steps {
            self.now += 1 + self.rng.below(25) as i64;
            match self.rng.below(20) {
                0..=6 => self.append(),
                7 => self.replace(),
                8 => self.delete_one(),
                9 | 10 => self.delete_some(),
                11..=13 => self.restore_some(),
                14..=17 => self.manage(),
                _ => self.maintain(),
            }
            if step % 7 == 0 {
                self.table.commit();
            }
            if step % 20 == 0 {
                self.compare();
                self.table.assert_whole();
            }
        }
        self.compare();
        self.table.assert_whole();
    }
}

#[test]
fn random_operations_equal_the_model() {
    tidalite_testkit::watch();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..60 {
        let mut run = Run::new(seed);
        run.run(200);
        for (what, count) in run.counts {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{counts:?}");
    assert_eq!(counts.len(), 22, "{counts:?}");
    assert!(counts.values().all(|count| *count >= 10), "{counts:?}");
}
