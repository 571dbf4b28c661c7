//! The state that all processes of a run share: the disks, the contents so far, and the code that commits a
//! transaction.

use super::history::{History, Made, user_of};
use super::open::lock;
use crate::model::Model;
use crate::workload::messages::maintain_all;
use crate::workload::{Shape, chance, durability, operations, pins};
use std::sync::{Arc, Mutex};
use tidalite::{Database, Durability, Ticket};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, Note, SimDisk};

/// The state that all processes of a run share.
pub(super) struct World {
    pub(super) disk: Arc<SimDisk>,
    /// The second disk, which holds large values.
    pub(super) second: Option<Arc<SimDisk>>,
    pub(super) history: Mutex<History>,
    pub(super) shape: Shape,
    pub(super) page_size: usize,
    pub(super) flush_threads: usize,
}

/// A commit that is not acknowledged yet.
pub(super) struct Waiting {
    number: u64,
    ticket: Ticket,
}

impl World {
    /// Sets a fault on one of the disks, or clears the faults of all disks.
    pub(super) fn set_fault(&self, fault: Option<Fault>, rng: &mut Rng) {
        let other = self.second.as_ref();
        match (fault, other) {
            (Some(fault), Some(second)) if rng.one_in(3) => second.set_fault(Some(fault)),
            (Some(fault), _) => self.disk.set_fault(Some(fault)),
            (None, _) => {
                self.disk.set_fault(None);
                other.inspect(|second| second.set_fault(None));
            }
        }
    }

    pub(super) fn fault_hit(&self) -> bool {
        let second = self.second.as_ref();
        self.disk.fault_hit() || second.is_some_and(|second| second.fault_hit())
    }

    /// Kills the process: it dies without closing anything.
    pub(super) fn kill(&self) {
        self.disk.kill();
        if let Some(second) = &self.second {
            second.kill();
        }
    }

    pub(super) fn note(&self, note: Note) {
        self.disk.mark(note.encode());
    }

    /// Notes in the recording that a commit of this content begins; if the commit gets a meta record, the content may
    /// be found from now on.
    pub(super) fn begin(
        &self,
        user: Option<u64>,
        model: Arc<Model>,
        made: Made,
        recorded: bool,
    ) -> u64 {
        let mut history = lock(&self.history);
        let number = history.next();
        history.add(user.unwrap_or(number), model, made);
        drop(history);
        self.note(Note::Begun(number));
        if recorded {
            self.note(Note::Recorded(number));
        }
        number
    }

    /// Commits one transaction based on the newest commit; returns `None` if the writer lock is taken or the
    /// transaction was rolled back. During the transaction, awaits the commit `due`.
    pub(super) fn commit(
        &self,
        db: &Database,
        rng: &mut Rng,
        shape: &Shape,
        due: Option<&Waiting>,
    ) -> tidalite::Result<Option<(Waiting, Durability)>> {
        let Some(mut tx) = db.try_begin_write()? else {
            return Ok(None);
        };
        let user = user_of(tx.user_data());
        let mut model = {
            let history = lock(&self.history);
            let base = history.of_user(user).expect("built on what is known");
            Model::clone(&history.content(base).model)
        };
        operations(&mut tx, &mut model, rng, shape)?;
        if let Some(due) = due {
            self.settle(db, due)?;
            operations(&mut tx, &mut model, rng, shape)?;
        }
        if chance(rng, shape.rollback_one_in) {
            return Ok(None);
        }
        let durability = match pins(&mut tx, &mut model, rng, shape)? {
            true => Durability::Durable,
            false => durability(rng, shape),
        };
        let number = lock(&self.history).next();
        tx.set_user_data(&number.to_le_bytes())?;
        let recorded = durability != Durability::None;
        let work = tx.delta_work();
        let made = Made {
            leaves: work.rows_encoded_by_helpers > 0,
            blocks: work.rows_in_blocks > 0,
        };
        let begun = self.begin(None, Arc::new(model), made, recorded);
        assert_eq!(number, begun, "nobody else has the turn");
        let ticket = tx.commit_ticket(durability)?;
        lock(&self.history).stands_on(number);
        if durability == Durability::Lazy {
            self.note(Note::Lazy(number));
        }
        Ok(Some((Waiting { number, ticket }, durability)))
    }

    /// Maintains all messages, if there are any, in one durable commit.
    pub(super) fn maintain_messages(&self, db: &Database, rng: &mut Rng) -> tidalite::Result<()> {
        let mut tx = db.begin_write()?;
        let mut model = {
            let history = lock(&self.history);
            let base = history.of_user(user_of(tx.user_data()));
            Model::clone(&history.content(base.expect("built on what is known")).model)
        };
        if !model.messages.exist() {
            return Ok(());
        }
        maintain_all(&mut tx, &mut model, rng)?;
        let number = lock(&self.history).next();
        tx.set_user_data(&number.to_le_bytes())?;
        self.begin(None, Arc::new(model), Made::default(), true);
        let ticket = tx.commit_ticket(Durability::Durable)?;
        lock(&self.history).stands_on(number);
        self.settle(db, &Waiting { number, ticket })
    }

    /// Waits until a commit is durable, and notes this in the recording.
    pub(super) fn settle(&self, db: &Database, waiting: &Waiting) -> tidalite::Result<()> {
        // Waiting for a commit of durability `None` writes a meta record.
        self.note(Note::Recorded(waiting.number));
        waiting.ticket.wait()?;
        let shown = db.begin_read()?.txn();
        assert!(
            shown >= waiting.ticket.info().txn,
            "a durable commit is not shown"
        );
        self.note(Note::Durable(waiting.number));
        Ok(())
    }
}

/// The shape of transactions that run while another commit waits: without pins, because a pin would wait for its own
/// flush.
pub(super) fn inside(shape: &Shape) -> Shape {
    Shape {
        pin_one_in: 0,
        none_one_in: 0,
        ..*shape
    }
}
