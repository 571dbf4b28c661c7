//! Random operations on containers of documents.
//!
//! ```text
//! document   random documents, and filters on them
//! append     messages arrive
//! edit       messages are replaced, deleted, restored
//! manage     containers are created, renamed, dropped, restored, maintained, thinned
//! ask        the transaction reads its containers
//! hand_over  messages of the queue go to containers
//! ```

mod append;
mod ask;
mod document;
mod edit;
mod hand_over;
mod manage;

use crate::model::Messages;
use crate::model::messages::DEVICES;
use crate::model::messages::containers::{Containers, options};
use std::sync::Arc;
use tidalite::containers::ContainersMut;
use tidalite::{ErrorKind, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// The table, its model, and the time of the operation.
struct One<'o, 't> {
    table: ContainersMut<'t>,
    all: &'o mut Containers,
    now: i64,
    rng: &'o mut Rng,
}

impl<'o, 't> One<'o, 't> {
    fn open(tx: &'t mut WriteTxn, messages: &'o mut Messages, rng: &'o mut Rng) -> Result<Self> {
        Ok(Self {
            table: tx.containers_with(DEVICES, &options::of_table())?,
            now: messages.now,
            all: Arc::make_mut(messages.containers.get_or_insert_default()),
            rng,
        })
    }
}

/// Maintains the containers to the end.
pub(super) fn maintain(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    One::open(tx, messages, rng)?.maintain_steps(usize::MAX)
}

/// Performs a random operation on the containers.
pub(super) fn work(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    let operation = rng.below(20);
    if operation == 0 {
        hand_over::work(tx, messages, rng)?;
    }
    let mut one = One::open(tx, messages, rng)?;
    match operation {
        0 => {}
        1..=8 => one.append()?,
        9 => one.replace()?,
        10 => one.delete_one()?,
        11 | 12 => one.delete_some()?,
        13 => one.restore_some()?,
        14..=16 => one.manage()?,
        17 => one.thin()?,
        _ => one.maintain()?,
    }
    one.ask()
}

/// The result of a call; `None` if it was refused because of a name, or because there is no container.
fn allowed<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::InvalidName => Ok(None),
            _ => Err(error),
        },
    }
}

impl One<'_, '_> {
    /// The name of a live container.
    fn some_name(&mut self) -> Option<String> {
        let names: Vec<&String> = self.all.live.keys().collect();
        (!names.is_empty()).then(|| (*self.rng.pick(&names)).clone())
    }
}
