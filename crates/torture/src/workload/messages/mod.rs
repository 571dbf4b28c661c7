//! Random operations on topics, a queue, a bucket and containers. The result of each call is compared with the model.
//!
//! ```text
//! topics  publish in batches, remove, purge
//! queue   push, lease, take, answers, dead letters, groups
//! bucket  bucket_work: put, copy, rename, delete, maintain
//! containers/  append, replace, delete, restore, drop, maintain, thin
//! upload  uploads over several transactions
//! ```

mod bucket;
mod bucket_work;
mod containers;
mod queue;
mod topics;
mod upload;

use crate::model::clock::UNIT;
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS, LEDGER, rows_of};
use crate::model::{Messages, Model, clock};
use tidalite::{Result, WriteTxn};
use tidalite_testkit::rng::Rng;

pub(crate) use bucket::OPTIONS as BUCKET_OPTIONS;

/// Number of units of a day.
const DAY: i64 = 8_640_000;
/// One in this many operations takes place a day after the previous one, so that all leases have lapsed by then.
const DAY_ONE_IN: u64 = 60;

/// Performs a random operation on the topics, the queue, the bucket or the containers, and stores the facts that the
/// database does not report about them in a table.
pub(super) fn work(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let units = match rng.one_in(DAY_ONE_IN) {
        true => DAY + 1,
        false => rng.between(0, 6),
    };
    next.messages.now += units * UNIT;
    let now = next.messages.now;
    clock::set(now);
    // A day may have passed since the newest commit although no commit says so.
    tx.confirm_clock();
    assert_eq!(tx.clock().now().0, now, "the clock of the thread");
    if rng.one_in(60) {
        drop_one(tx, &mut next.messages, rng)?;
    } else {
        match rng.below(14) {
            0..=2 => topics::work(tx, &mut next.messages, rng)?,
            3..=6 => queue::work(tx, &mut next.messages, rng)?,
            7..=10 => containers::work(tx, &mut next.messages, rng)?,
            _ => bucket_work::work(tx, &mut next.messages, rng)?,
        }
    }
    keep(tx, next)
}

/// Maintains everything that exists, to the end.
pub(crate) fn maintain_all(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    clock::set(next.messages.now);
    tx.confirm_clock();
    if next.messages.queue.is_some() {
        queue::maintain(tx, &mut next.messages, rng)?;
    }
    if next.messages.bucket.is_some() {
        bucket_work::maintain(tx, &mut next.messages, rng)?;
    }
    if next.messages.containers.is_some() {
        containers::maintain(tx, &mut next.messages, rng)?;
    }
    keep(tx, next)
}

fn drop_one(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    if rng.one_in(4) {
        let there = messages.containers.take().is_some();
        assert_eq!(
            tx.drop_containers(DEVICES)?,
            there,
            "drop tells whether it was"
        );
        return Ok(());
    }
    let (name, there) = match rng.below(3) {
        0 => (BROKER, messages.topics.take().is_some()),
        1 => (JOBS, messages.queue.take().is_some()),
        _ => (FILES, messages.bucket.take().is_some()),
    };
    assert_eq!(tx.drop_table(name)?, there, "drop tells whether it was");
    Ok(())
}

/// Makes the rows of the ledger equal to the model.
fn keep(tx: &mut WriteTxn, next: &mut Model) -> Result<()> {
    let rows = rows_of(&next.messages);
    let stored = next.tables.entry(LEDGER.to_owned()).or_default();
    let mut table = tx.table(LEDGER)?;
    for key in stored.keys().filter(|key| !rows.contains_key(*key)) {
        assert!(table.remove(key)?, "a row of the ledger is missing");
    }
    for (key, value) in &rows {
        if stored.get(key) != Some(value) {
            table.put(key, value)?;
        }
    }
    *stored = rows;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::work;
    use crate::model::messages::answers;
    use crate::model::{Model, digest_of, model_of};
    use crate::workload::script::small_steps;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use tidalite::storage::MemoryStorage;
    use tidalite_testkit::rng::Rng;

    /// Number of commits of each seed.
    const COMMITS: u64 = 400;

    /// Every content equals the model, and the model that is read from the database continues the workload.
    #[test]
    fn messages_equal_the_model_that_is_read_again() {
        tidalite_testkit::watch();
        let mut kinds = BTreeSet::new();
        for seed in 0..4 {
            let db = small_steps()
                .page_size(512)
                .open_storage(Arc::new(MemoryStorage::new()))
                .unwrap();
            let (mut model, mut rng) = (Model::default(), Rng::new(seed));
            for commit in 0..COMMITS {
                let mut tx = db.begin_write().unwrap();
                let mut next = model.clone();
                for _ in 0..=rng.below(4) {
                    work(&mut tx, &mut next, &mut rng).unwrap();
                }
                if rng.one_in(8) {
                    continue;
                }
                tx.commit().unwrap();
                model = next;
                let found = model_of(&db.begin_read().unwrap()).unwrap();
                let differs = model.differs(&found);
                assert_eq!(differs, "", "seed {seed}, commit {commit}");
                let lines = answers(&db.begin_read().unwrap()).unwrap();
                let known = model.messages.expected();
                let differs = lines.iter().zip(&known).find(|(line, known)| line != known);
                assert_eq!(differs, None, "seed {seed}, commit {commit}");
                kinds.extend(model.messages.containers.iter().flat_map(|all| all.kinds()));
                let digest = digest_of(&db).unwrap();
                assert_eq!(digest, model.digest(), "seed {seed}, commit {commit}");
                assert_eq!(digest, found.digest(), "seed {seed}, commit {commit}");
                if rng.one_in(4) {
                    model = found;
                }
                if commit % 40 == 0 {
                    let report = db.check().unwrap();
                    assert!(report.is_clean(), "seed {seed}: {report:?}");
                }
            }
        }
        assert_eq!(kinds.len(), 8, "only {kinds:?} have occurred in containers");
    }
}
