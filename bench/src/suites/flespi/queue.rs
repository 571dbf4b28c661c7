//! The part `queue`: messages of 100 bytes pushed, leased and acknowledged in durable transactions.
//!
//! | case | |
//! |---|---|
//! | `queue-push` | messages/s, 1,000 in a durable transaction |
//! | `queue-bytes` | file bytes per message, with all messages in the queue |
//! | `queue-lease-ack` | messages/s: 1,000 leased in one durable transaction, and acknowledged in the next one |
//! | `queue-one-push`, `queue-one-lease-ack` | the same with a single message in each transaction |
//! | `queue-scattered-...` | every third message is acknowledged with the batch after its own (ours only) |
//! | `queue-keys-...` | a twentieth as many ordering keys as messages: one message of a key is leased at a time (ours only) |
//! | `queue-groups-...` | two groups of consumers, each of which gets every message; deliveries/s (ours only) |
//!
//! A latency of `...-lease-ack` includes both transactions. The queues of the peers ([`lmdb`], [`sqlite`]) are simple:
//! they have no redelivery, no delivery counts, no groups and no ordering keys.
//!
//! Each delivery is checked: its payload belongs to its message, no message is delivered twice, and the messages of a
//! key (or all messages, if there are no keys) are delivered in the order of the pushes. At the end the queue must be
//! empty.

mod face;
mod lmdb;
mod ours;
mod sqlite;

use std::path::Path;

use face::{Job, PAYLOAD_BYTES, Queue};

use crate::args::Options;
use crate::contest::{Contest, takes_part};
use crate::engine::{Kind, LMDB, Result, TIDALITE};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// Number of messages in a transaction.
const BATCH: u64 = 1000;
/// Maximum bytes of a message in a file.
const MESSAGE_BYTES: u64 = 500;
/// Maximum number of messages in cases with one message in each transaction.
const SINGLES_MAX: u64 = 5000;

/// SQLite with a table of jobs.
const SQLITE: Kind = Kind {
    name: "sqlite",
    ours: false,
    open: |_, _| Err("a queue".into()),
};

fn open(kind: Kind, dir: &Path, groups: usize, data_bytes: u64) -> Result<Box<dyn Queue>> {
    Ok(match kind.name {
        name if name == TIDALITE.name => Box::new(ours::Ours::open(dir, groups)?),
        name if name == LMDB.name => Box::new(lmdb::Lmdb::open(dir, data_bytes)?),
        name if name == SQLITE.name => Box::new(sqlite::Sqlite::open(dir, data_bytes)?),
        name => return Err(format!("{name} is no queue").into()),
    })
}

/// Parameters of a group of cases.
#[derive(Clone, Copy)]
struct Plan {
    /// Part of the names of the cases.
    name: &'static str,
    messages: u64,
    /// Number of messages in a transaction.
    each: u64,
    /// Number of ordering keys; 0 for none.
    keys: u64,
    groups: usize,
    is_scattered: bool,
    has_peers: bool,
}

/// Runs the part.
pub(super) fn run(options: &Options, round: usize, contest: &mut Contest) -> Result<()> {
    let messages = options.messages;
    let batches = Plan {
        name: "",
        messages,
        each: BATCH,
        keys: 0,
        groups: 1,
        is_scattered: false,
        has_peers: true,
    };
    let alone = Plan {
        has_peers: false,
        ..batches
    };
    let plans = [
        batches,
        Plan {
            name: "one-",
            messages: (messages / 100).clamp(1, SINGLES_MAX),
            each: 1,
            ..batches
        },
        Plan {
            name: "scattered-",
            is_scattered: true,
            ..alone
        },
        Plan {
            name: "keys-",
            keys: (messages / 20).max(1),
            ..alone
        },
        Plan {
            name: "groups-",
            groups: 2,
            ..alone
        },
    ];
    let mut peers = Vec::new();
    for kind in [LMDB, SQLITE] {
        if takes_part(kind.name, &options.peers)? {
            peers.push(kind);
        }
    }
    for plan in plans {
        let mut kinds = vec![TIDALITE];
        if plan.has_peers {
            kinds.extend(&peers);
        }
        let count = kinds.len();
        kinds.rotate_left(round % count);
        for kind in kinds {
            one(kind, plan, options, contest)
                .map_err(|error| format!("queue-{}: {}: {error}", plan.name, kind.name))?;
        }
    }
    Ok(())
}

fn job(n: u64, plan: Plan) -> Job {
    let mut payload = [7; PAYLOAD_BYTES];
    payload[..8].copy_from_slice(&n.to_le_bytes());
    let key = (plan.keys > 0).then(|| key_of(n, plan).to_be_bytes());
    Job { payload, key }
}

/// The ordering key of message `n`, which must have one.
fn key_of(n: u64, plan: Plan) -> u64 {
    // Neighbouring messages in a batch have different keys, and the order of the keys differs from batch to batch.
    (n / BATCH * 7919 + n) % plan.keys
}

fn one(kind: Kind, plan: Plan, options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    let data_bytes = plan.messages * MESSAGE_BYTES;
    os::expect_disk(dir.path(), data_bytes * 2 + (64 << 20))
        .map_err(|short| format!("{short}: use --messages"))?;
    os::settle(dir.path())?;
    os::touch_memory(data_bytes, data_bytes / 2);
    let mut queue = open(kind, dir.path(), plan.groups, data_bytes)?;
    let case = |name: &str| format!("queue-{}{name}", plan.name);

    let (mut latencies, silent) = (Latencies::default(), queue.silent_syncs());
    let meter = Meter::start(dir.path());
    for from in (0..plan.messages).step_by(plan.each as usize) {
        let jobs: Vec<Job> = (from..(from + plan.each).min(plan.messages))
            .map(|n| job(n, plan))
            .collect();
        latencies.time(|| queue.push(&jobs))?;
    }
    let silent = queue.silent_syncs() - silent;
    let sample = meter.finish(plan.messages, silent, latencies);
    contest.add(&case("push"), "messages/s", false, kind, sample);
    if plan.each > 1 {
        let bytes = os::disk_used(dir.path())? as f64 / plan.messages as f64;
        contest.add(
            &case("bytes"),
            "bytes/message",
            true,
            kind,
            Sample::of(bytes),
        );
    }

    let (mut latencies, silent) = (Latencies::default(), queue.silent_syncs());
    let mut checks: Vec<Check> = (0..plan.groups).map(|_| Check::new(plan)).collect();
    let meter = Meter::start(dir.path());
    for (group, check) in checks.iter_mut().enumerate() {
        let mut kept = Vec::new();
        while check.delivered < plan.messages {
            latencies.time(|| -> Result<()> {
                let found = queue.lease(group, plan.each as usize)?;
                if found.is_empty() {
                    return Err(format!("{} messages were delivered", check.delivered).into());
                }
                let mut ids = std::mem::take(&mut kept);
                for (id, payload) in &found {
                    check.take(payload)?;
                    // Ids are assigned without gaps, so a third of each batch is retained.
                    match plan.is_scattered && id.is_multiple_of(3) {
                        true => kept.push(*id),
                        false => ids.push(*id),
                    }
                }
                queue.ack(group, &ids)
            })?;
        }
        if !kept.is_empty() {
            queue.ack(group, &kept)?;
        }
    }
    let silent = queue.silent_syncs() - silent;
    let deliveries = plan.messages * plan.groups as u64;
    let sample = meter.finish(deliveries, silent, latencies);
    contest.add(&case("lease-ack"), "messages/s", false, kind, sample);
    for group in 0..plan.groups {
        if !queue.lease(group, 1)?.is_empty() {
            return Err("a message is ready that was acknowledged".into());
        }
    }
    match queue.left()? {
        0 => Ok(()),
        left => Err(format!("{left} messages are left").into()),
    }
}

/// Checks the deliveries to a group.
struct Check {
    plan: Plan,
    delivered: u64,
    /// Whether each message was delivered.
    seen: Vec<bool>,
    /// Lowest number that the next message of each key may have; a single entry if there are no keys.
    next: Vec<u64>,
}

impl Check {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            delivered: 0,
            seen: vec![false; plan.messages as usize],
            next: vec![0; plan.keys.max(1) as usize],
        }
    }

    fn take(&mut self, payload: &[u8]) -> Result<()> {
        let number = payload.first_chunk().map(|n| u64::from_le_bytes(*n));
        let Some(n) = number.filter(|n| *n < self.plan.messages) else {
            return Err(format!("a payload begins with {number:?}").into());
        };
        if *payload != job(n, self.plan).payload {
            return Err(format!("message {n} has another payload").into());
        }
        if std::mem::replace(&mut self.seen[n as usize], true) {
            return Err(format!("message {n} was delivered twice").into());
        }
        let key = match self.plan.keys {
            0 => 0,
            _ => key_of(n, self.plan),
        };
        let next = &mut self.next[key as usize];
        if n < *next {
            return Err(format!("message {n} comes after message {}", *next - 1).into());
        }
        *next = n + 1;
        self.delivered += 1;
        Ok(())
    }
}
