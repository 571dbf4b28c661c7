//! A random operation on the bucket or one of its uploads.

use super::bucket::{OPTIONS, One};
use super::upload;
use crate::model::Messages;
use crate::model::messages::FILES;
use std::sync::Arc;
use tidalite::{Result, WriteTxn};
use tidalite_testkit::rng::Rng;

fn open<'o, 't>(
    tx: &'t mut WriteTxn,
    messages: &'o mut Messages,
    rng: &'o mut Rng,
) -> Result<One<'o, 't>> {
    Ok(One {
        table: tx.bucket_with(FILES, &OPTIONS)?,
        now: messages.now,
        bucket: Arc::make_mut(messages.bucket.get_or_insert_default()),
        rng,
    })
}

/// Maintains the bucket to the end.
pub(super) fn maintain(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    open(tx, messages, rng)?.maintain()
}

/// Performs a random operation on the bucket.
pub(super) fn work(tx: &mut WriteTxn, messages: &mut Messages, rng: &mut Rng) -> Result<()> {
    let mut one = open(tx, messages, rng)?;
    match one.rng.below(16) {
        0..=3 => one.put()?,
        4..=5 => one.delete()?,
        6 => one.copy()?,
        7 => one.rename()?,
        8 => one.change()?,
        9 => one.abandon()?,
        10 => one.maintain()?,
        _ => upload::work(&mut one)?,
    }
    one.ask()
}
