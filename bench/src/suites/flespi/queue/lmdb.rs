//! A queue in LMDB: ready messages by id, and leased messages by id with their deadlines. A lease moves rows from the
//! ready to the leased messages, and an acknowledgement deletes them. Both kinds are in the unnamed table; the first
//! byte of a key distinguishes them.
//!
//! Leases that have lapsed are not found; an index of deadlines would cost the peer more.

use std::path::Path;

use super::face::{Delivered, Job, Queue};
use crate::engine::Result;
use crate::lmdb_engine::lmdb::Env;

const READY: u8 = b'r';
const LEASED: u8 = b'w';

/// An environment of LMDB with its default durability, as for `Promise::Synced`.
pub(super) struct Lmdb {
    env: Env,
    next: u64,
    commits: u64,
}

impl Lmdb {
    pub(super) fn open(dir: &Path, data_bytes: u64) -> Result<Self> {
        let map_bytes = data_bytes * 4 + (1 << 30);
        Ok(Self {
            env: Env::open_with(dir, map_bytes as usize, 0)?,
            next: 1,
            commits: 0,
        })
    }
}

fn key(state: u8, id: u64) -> [u8; 9] {
    let mut key = [state; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}

impl Queue for Lmdb {
    fn push(&mut self, jobs: &[Job]) -> Result<()> {
        let mut txn = self.env.begin(true)?;
        for job in jobs {
            txn.put(&key(READY, self.next), &job.payload)?;
            self.next += 1;
        }
        txn.commit()?;
        self.commits += 1;
        Ok(())
    }

    fn lease(&mut self, _: usize, limit: usize) -> Result<Vec<Delivered>> {
        let mut txn = self.env.begin(true)?;
        let mut found = Vec::with_capacity(limit);
        {
            let mut cursor = txn.cursor()?;
            let mut entry = cursor.seek(&[READY])?;
            while let Some((key, payload)) = entry.filter(|(key, _)| key[0] == READY)
                && found.len() < limit
            {
                let id = key[1..].try_into().map(u64::from_be_bytes)?;
                found.push((id, payload.to_vec()));
                entry = cursor.next()?;
            }
        }
        // The row contains the deadline, and the payload, which a second delivery would need.
        let mut row = vec![0; 8];
        for (id, payload) in &found {
            txn.delete(&key(READY, *id))?;
            row.truncate(8);
            row.extend_from_slice(payload);
            txn.put(&key(LEASED, *id), &row)?;
        }
        txn.commit()?;
        self.commits += 1;
        Ok(found)
    }

    fn ack(&mut self, _: usize, ids: &[u64]) -> Result<()> {
        let mut txn = self.env.begin(true)?;
        for id in ids {
            // This returns an error if the message is not leased.
            txn.delete(&key(LEASED, *id))?;
        }
        txn.commit()?;
        self.commits += 1;
        Ok(())
    }

    fn left(&self) -> Result<u64> {
        Ok(self.env.begin(false)?.entries()?)
    }

    /// A commit writes its meta page through a descriptor with `O_DSYNC`.
    fn silent_syncs(&self) -> u64 {
        self.commits
    }
}
