//! The content of a table of containers as rows of the ledger.
//!
//! ```text
//! D                   numbers of the next container and the next deletion
//! C container         name, times of the drop, options, totals, rules of thinning, latest values
//! K container key     time of an idempotency key
//! X container number  times of a deletion
//! M container number  time tie: message; the number is 0, or one more than the number of the deletion
//! ```

use super::table::{Container, Containers, Deletion, Dropped, Stored};
use crate::model::messages::row::{Fields, Row, key};
use crate::model::pairs::Pairs;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::containers::Document;

/// Kinds of rows.
const KINDS: [u8; 5] = *b"DCKXM";

fn json(document: &Document) -> Vec<u8> {
    document.to_json().unwrap_or_default().into_bytes()
}

fn document(fields: &mut Fields<'_>) -> Document {
    let text = fields.text();
    Document::from_json(&text).unwrap_or_default()
}

/// Adds the rows of a table of containers.
pub(crate) fn put_rows(containers: &Containers, rows: &mut Pairs) {
    let next = Row::default().word(containers.next_container.into());
    rows.insert(key(b'D', &[]), next.word(containers.next_deletion).0);
    for (name, container) in &containers.live {
        put_container(name, container, (None, 0), rows);
    }
    for dropped in &containers.dropped {
        let times = (Some(dropped.dropped_at), dropped.free_at);
        put_container(&dropped.name, &dropped.container, times, rows);
    }
}

fn put_container(
    name: &str,
    container: &Container,
    (dropped_at, free_at): (Option<i64>, i64),
    rows: &mut Pairs,
) {
    let number = container.number.to_be_bytes();
    let row = Row::default()
        .bytes(Some(name.as_bytes()))
        .optional(dropped_at)
        .time(free_at);
    let row = row.word(container.own.map_or(0, |own| own as u64 + 1));
    let row = (container.totals.iter()).fold(row.time(container.created), |row, n| row.word(*n));
    let (rules, done) = match &container.thinning {
        Some((rules, done)) => (*rules as u64 + 1, &done[..]),
        None => (0, &[][..]),
    };
    let row = row.word(rules).word(done.len() as u64);
    let row = done.iter().fold(row, |row, time| row.time(*time));
    let latest = container.latest.iter();
    let row = latest.fold(row, |row, (field, (time, value))| {
        let mut one = Document::default();
        one.set(field, value.clone());
        row.time(*time).bytes(Some(&json(&one)))
    });
    rows.insert(key(b'C', &[&number]), row.0);
    for (seen, time) in &container.seen {
        rows.insert(key(b'K', &[&number, seen]), Row::default().time(*time).0);
    }
    put_messages(container, 0, &container.messages, rows);
    for (deletion, found) in &container.deletions {
        let row = Row::default().time(found.deleted_at).time(found.free_at);
        rows.insert(key(b'X', &[&number, &deletion.to_be_bytes()]), row.0);
        put_messages(container, deletion + 1, &found.messages, rows);
    }
}

fn put_messages(
    container: &Container,
    of: u64,
    messages: &BTreeMap<(i64, u32), Stored>,
    rows: &mut Pairs,
) {
    let number = container.number.to_be_bytes();
    for ((time, tie), message) in messages {
        let row = Row::default()
            .time(message.received)
            .word(message.is_protected.into())
            .word(message.stands_for.into())
            .bytes(Some(&json(&message.document)));
        let (of, time, tie) = (of.to_be_bytes(), time.to_be_bytes(), tie.to_be_bytes());
        rows.insert(key(b'M', &[&number, &of, &time, &tie]), row.0);
    }
}

fn message_of(fields: &mut Fields<'_>) -> Stored {
    Stored {
        received: fields.time(),
        is_protected: fields.word() > 0,
        stands_for: fields.word() as u32,
        document: document(fields),
    }
}

/// A container with its name and the times of its drop, without its messages.
fn container_of(fields: &mut Fields<'_>, number: u32) -> (String, Option<i64>, i64, Container) {
    let (name, dropped_at, free_at) = (fields.text(), fields.optional(), fields.time());
    let mut container = Container {
        number,
        own: (fields.word() as usize).checked_sub(1),
        created: fields.time(),
        ..Container::default()
    };
    container.totals.fill_with(|| fields.word());
    let rules = (fields.word() as usize).checked_sub(1);
    let done = (0..fields.word()).map(|_| fields.time()).collect();
    container.thinning = rules.map(|rules| (rules, done));
    while !fields.is_empty() {
        let (time, one) = (fields.time(), document(fields));
        for (field, value) in one.iter() {
            let latest = (time, value.clone());
            container.latest.insert(field.to_owned(), latest);
        }
    }
    (name, dropped_at, free_at, container)
}

fn number_of(rest: &mut &[u8]) -> u64 {
    let Some((number, tail)) = rest.split_first_chunk() else {
        return 0;
    };
    *rest = tail;
    u64::from_be_bytes(*number)
}

/// The content of a table of containers; `None` if there are no rows of it.
pub(crate) fn add_rows(rows: &Pairs) -> Option<Arc<Containers>> {
    let mut all = Containers::default();
    let next = &mut Fields(rows.get(&key(b'D', &[]))?);
    all.next_container = next.word() as u32;
    all.next_deletion = next.word();
    let mut found: BTreeMap<u32, (String, Option<i64>, i64, Container)> = BTreeMap::new();
    for kind in KINDS {
        for (key, value) in rows.range(vec![kind]..vec![kind + 1]) {
            let Some((number, mut rest)) = key[1..].split_first_chunk() else {
                continue;
            };
            let (number, fields) = (u32::from_be_bytes(*number), &mut Fields(value));
            if kind == b'C' {
                found.insert(number, container_of(fields, number));
                continue;
            }
            let Some((_, _, _, container)) = found.get_mut(&number) else {
                continue;
            };
            if kind == b'K' {
                container.seen.insert(rest.to_vec(), fields.time());
                continue;
            }
            let of = number_of(&mut rest);
            if kind == b'X' {
                let deletion = Deletion {
                    deleted_at: fields.time(),
                    free_at: fields.time(),
                    messages: BTreeMap::new(),
                };
                container.deletions.insert(of, deletion);
                continue;
            }
            let time = number_of(&mut rest) as i64;
            let tie = rest.first_chunk().map_or(0, |tie| u32::from_be_bytes(*tie));
            let messages = match of.checked_sub(1) {
                None => Some(&mut container.messages),
                Some(of) => container.deletions.get_mut(&of).map(|of| &mut of.messages),
            };
            if let Some(messages) = messages {
                messages.insert((time, tie), message_of(fields));
            }
        }
    }
    for (name, dropped_at, free_at, container) in found.into_values() {
        match dropped_at {
            None => drop(all.live.insert(name, container)),
            Some(dropped_at) => all.dropped.push(Dropped {
                name,
                dropped_at,
                free_at,
                container,
            }),
        }
    }
    all.sort_dropped();
    Some(Arc::new(all))
}
