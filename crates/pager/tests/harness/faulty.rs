//! A process on a disk that may fail. Its steps are commits of every kind, tickets, pins, readers, compaction and
//! images of the file. It notes the acknowledged commits, and continues after each error.
//!
//! The process has one thread and makes the same calls for the same steps, so that each call in turn can be made to
//! fail. The only exception is the background flusher, if the process has one.

use super::exact::{Exact, is_poisoned};
use crate::toy::{SLOTS, app, apply, beyond, changes, id_of, options, problems, read, root_of};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidalite_pager::{
    Durability, Error, LockMemory, Pager, Parked, Result, Snapshot, Ticket, WriteTxn,
};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{FaultKind, SimDisk};

/// A step of a process.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Commit(Durability),
    /// A commit with few changes.
    Small(Durability),
    /// A commit that is not waited for.
    Ticket(Durability),
    /// Waits for the oldest ticket.
    Wait,
    /// A commit followed by another transaction of the same writer, which is rolled back.
    GoOn(Durability),
    /// A commit of a transaction of which a part was rolled back before.
    Savepoint(Durability),
    RollBack,
    Sync,
    Checkpoint,
    /// Makes a commit, and pins it with this name.
    Pin(&'static str),
    Unpin(&'static str),
    Hold,
    HoldEvictable,
    Park,
    Unpark,
    /// Reads all open snapshots, and the newest commit.
    Read,
    LetGo,
    /// Moves the data that lies in the second half of the file.
    Compact(Durability),
    /// Makes an image of the file, during which a commit is made.
    Image,
    Check,
    /// Sleeps long enough for the background flusher to run.
    Doze,
}

/// A process that has the file open, with the readers and tickets of its steps and the model of its commits.
pub struct Process {
    pub disk: Arc<SimDisk>,
    pub memory: LockMemory,
    pub pager: Pager,
    pub exact: Exact,
    pub seed: u64,
    /// Number of operations of the disk before the process opened the file.
    pub first_op: usize,
    pub readers: Vec<(u64, Snapshot)>,
    pub parked: Option<(u64, Parked)>,
    pub tickets: Vec<(u64, Ticket)>,
    pub evicted: Arc<Mutex<BTreeSet<u64>>>,
    pub failures: Vec<Error>,
    pub images: u64,
    pub kind: FaultKind,
    pub forever: bool,
}

impl Process {
    /// Makes the next commit, with changes that `fill` makes to the newest commit. Returns the number and the result
    /// of the commit. `pins`: a name, and whether to pin or unpin it. `flushes`: whether the call may lead a flush.
    /// If that flush fails, the call returns an error although the commit was made; otherwise an error means that the
    /// commit was not made.
    fn commit<T>(
        &mut self,
        (durability, flushes): (Durability, bool),
        pins: Option<(&'static str, bool)>,
        fill: impl FnOnce(&mut WriteTxn, &mut Rng, u64) -> Result<Filled>,
        commit: impl FnOnce(WriteTxn, &[u8], Durability) -> Result<T>,
    ) -> Result<(u64, T)> {
        let mut txn = self.pager.begin_write()?;
        let (base, id) = (id_of(txn.app()), self.exact.next());
        assert_eq!(base, self.exact.newest(), "the newest commit is built on");
        let mut rng = Rng::new(mix(self.seed ^ mix(id)));
        let (root, changed) = fill(&mut txn, &mut rng, id)?;
        let mut version = self.exact.versions[&base].clone().with(&changed);
        let mut durability = durability;
        match pins {
            Some((name, true)) => {
                txn.pin(name)?;
                version.pins.insert(name.to_owned(), id);
                durability = Durability::Durable;
            }
            Some((name, false)) => {
                let was = version.pins.remove(name).is_some();
                assert_eq!(txn.unpin(name)?, was, "whether there is a pin");
            }
            None => {}
        }
        self.exact.versions.insert(id, version);
        let done = commit(txn, &app(&root, id), durability);
        let (whole, maybe) = match &done {
            Ok(_) => (true, true),
            Err(_) if !flushes => (false, false),
            Err(_) => {
                let reader = self.pager.begin_read();
                let shown = reader.is_ok_and(|reader| id_of(reader.app()) == id);
                (shown, is_poisoned(&self.memory.image()))
            }
        };
        let version = self.exact.version(id);
        version.whole = whole;
        version.recorded = (whole || maybe) && durability != Durability::None;
        Ok((id, done?))
    }

    fn ticket(
        &mut self,
        durability: Durability,
        pins: Option<(&'static str, bool)>,
        fill: impl FnOnce(&mut WriteTxn, &mut Rng, u64) -> Result<Filled>,
    ) -> Result<(u64, Ticket)> {
        let commit = |txn: WriteTxn, app: &[u8], durability| txn.commit_ticket(app, durability);
        // The call for a lazy commit leads a flush if too many bytes are not durable yet.
        let flushes = durability == Durability::Lazy && pins.is_none();
        let (id, ticket) = self.commit((durability, flushes), pins, fill, commit)?;
        if pins.is_none() && !matches!(durability, Durability::Durable | Durability::OneFlush) {
            self.exact.acknowledge(id, durability);
        }
        Ok((id, ticket))
    }

    /// Makes a commit, and waits for it if its durability is `Durable` or `OneFlush`.
    fn whole(
        &mut self,
        durability: Durability,
        pins: Option<(&'static str, bool)>,
        fill: impl FnOnce(&mut WriteTxn, &mut Rng, u64) -> Result<Filled>,
    ) -> Result<()> {
        let (id, ticket) = self.ticket(durability, pins, fill)?;
        if pins.is_some() || matches!(durability, Durability::Durable | Durability::OneFlush) {
            ticket.wait()?;
            self.exact.acknowledge(id, Durability::Durable);
        }
        Ok(())
    }

    pub fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Commit(durability) => self.whole(durability, None, random),
            Step::Small(durability) => self.whole(durability, None, |txn, rng, id| {
                let changes = vec![(rng.index(SLOTS), id), (rng.index(SLOTS), id)];
                let root = root_of(txn.app());
                Ok((apply(txn, &root, &changes)?, changes))
            }),
            Step::Ticket(durability) => {
                let ticket = self.ticket(durability, None, random)?;
                self.tickets.push(ticket);
                Ok(())
            }
            Step::Wait => {
                if self.tickets.is_empty() {
                    return Ok(());
                }
                self.exact.may_be_recorded();
                let (id, ticket) = self.tickets.remove(0);
                ticket.wait()?;
                self.exact.acknowledge(id, Durability::Durable);
                Ok(())
            }
            Step::GoOn(durability) => {
                let commit =
                    |txn: WriteTxn, app: &[u8], durability| txn.checkpoint(app, durability);
                let (id, (_, next)) = self.commit((durability, true), None, random, commit)?;
                assert_eq!(id_of(next.app()), id, "it goes on from its own commit");
                self.exact.acknowledge(id, durability);
                Ok(())
            }
            Step::Savepoint(durability) => self.whole(durability, None, |txn, rng, id| {
                let filled = random(txn, rng, id)?;
                let savepoint = txn.savepoint()?;
                let more = changes(rng, id + 1_000_000);
                apply(txn, &filled.0, &more)?;
                txn.rollback_to(&savepoint)?;
                Ok(filled)
            }),
            Step::RollBack => {
                let mut txn = self.pager.begin_write()?;
                let mut rng = Rng::new(mix(self.seed));
                random(&mut txn, &mut rng, 1_000_000).map(drop)
            }
            Step::Sync | Step::Checkpoint => {
                self.exact.may_be_recorded();
                let newest = self.exact.newest();
                match step {
                    Step::Sync => self.pager.sync()?,
                    _ => self.pager.checkpoint()?,
                };
                self.exact.acknowledge(newest, Durability::Durable);
                Ok(())
            }
            Step::Pin(name) => self.whole(Durability::Lazy, Some((name, true)), random),
            Step::Unpin(name) => self.whole(Durability::Durable, Some((name, false)), random),
            Step::Hold => self.hold(Pager::begin_read),
            Step::HoldEvictable => self.hold(Pager::begin_read_evictable),
            Step::Park => {
                self.hold(Pager::begin_read)?;
                self.parked = self.readers.pop().map(|(id, reader)| (id, reader.park()));
                Ok(())
            }
            Step::Unpark => {
                let Some((id, parked)) = self.parked.take() else {
                    return Ok(());
                };
                let txn = parked.txn().0;
                match parked.unpark() {
                    Ok(reader) => self.readers.push((id, reader)),
                    Err(error) => self.expect_evicted(txn, error)?,
                }
                Ok(())
            }
            Step::Read => self.read(),
            Step::LetGo => {
                self.readers.clear();
                Ok(())
            }
            Step::Compact(durability) => self.whole(durability, None, |txn, _, _| {
                let boundary = txn.file_pages() / 2 * options().page_size as u64;
                txn.compact(boundary);
                let root = root_of(txn.app());
                let moved = beyond(txn, &root, boundary)?;
                Ok((apply(txn, &root, &moved)?, moved))
            }),
            Step::Image => self.image(),
            Step::Doze => {
                std::thread::sleep(Duration::from_millis(3));
                Ok(())
            }
            Step::Check => {
                let struck = self.disk.fault_hit() && !self.forever;
                let found = problems(&self.pager)?;
                // If all reads fail since the fault, the check lists unreadable blocks among the problems. These
                // problems show no bug of the pager, so the assertion accepts them.
                let unread = self.disk.fault_hit() && !struck && self.kind == FaultKind::ReadFails;
                // After a failed write of a meta record, the content of its meta blocks is undefined.
                let poisoned = is_poisoned(&self.memory.image());
                let known = |problem: &String| poisoned && problem.starts_with("meta ");
                assert!(unread || found.iter().all(known), "{found:?}");
                Ok(())
            }
        }
    }

    fn hold(&mut self, begin: impl FnOnce(&Pager) -> Result<Snapshot>) -> Result<()> {
        let reader = begin(&self.pager)?;
        self.readers.push((id_of(reader.app()), reader));
        Ok(())
    }

    fn expect_evicted(&self, txn: u64, error: Error) -> Result<()> {
        let evicted = self.evicted.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Error::Evicted { .. } => {
                assert!(evicted.contains(&txn), "{txn} is gone, and nobody took it");
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Asserts that open snapshots are unchanged, and that the newest visible commit is at least as new as the
    /// acknowledged commits.
    pub fn read(&mut self) -> Result<()> {
        let reader = self.pager.begin_read()?;
        let id = id_of(reader.app());
        let known = self.exact.versions.get(&id).is_some_and(|seen| seen.whole);
        assert!(known && id >= self.exact.shown, "{id} is shown");
        let newest = [(id, reader)];
        for (id, reader) in self.readers.iter().chain(&newest) {
            match read(reader, &root_of(reader.app()), &mut |_, _| {}) {
                Ok(found) => assert_eq!(found, self.exact.versions[id].content, "commit {id}"),
                Err(error) => self.expect_evicted(reader.txn().0, error)?,
            }
        }
        Ok(())
    }

    /// Makes an image of the file. A commit that is made meanwhile must not be in the image.
    fn image(&mut self) -> Result<()> {
        let (pager, mut bytes) = (self.pager.clone(), Vec::new());
        self.exact.may_be_recorded();
        let (shown, newest, mut meanwhile) = (self.exact.shown, self.exact.newest(), None);
        let copied = pager.copy_image(&mut bytes, &mut |_, _, _| {
            if meanwhile.is_none() {
                meanwhile = Some(self.whole(Durability::Lazy, None, random));
            }
            Ok(())
        });
        if copied.is_ok() {
            let disk = Arc::new(SimDisk::from_image(bytes));
            let opened = Pager::open_storage(disk, &options()).expect("an image opens");
            let copied = self.exact.judge(&opened, shown).expect("the image");
            assert!(copied <= newest, "{copied} came later");
            self.images += 1;
        }
        copied.map(drop).and(meanwhile.unwrap_or(Ok(())))
    }
}

/// The pointer to the new root, and the changes made.
type Filled = (tidalite_pager::Ptr, Vec<(usize, u64)>);

fn random(txn: &mut WriteTxn, rng: &mut Rng, id: u64) -> Result<Filled> {
    let changes = changes(rng, id);
    let root = root_of(txn.app());
    Ok((apply(txn, &root, &changes)?, changes))
}
