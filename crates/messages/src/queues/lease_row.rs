//! The rows of leases: one for each call that leased messages, as long as some of them are still leased.
//!
//! ```text
//! 0  u32   number of messages that the lease still holds
//! 4  bytes name of the consumer
//! ```

use crate::queues::keys;
use crate::queues::options::CONSUMER_NAME_BYTES_MAX;
use crate::queues::parts::{Part, change, damaged, part};
use std::collections::BTreeMap;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) left: u32,
    pub(crate) consumer: Box<[u8]>,
}

impl Lease {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&self.left.to_le_bytes()[..], &self.consumer].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first_chunk::<4>() {
            Some((left, consumer))
                if *left != [0; 4] && consumer.len() <= CONSUMER_NAME_BYTES_MAX =>
            {
                Ok(Self {
                    left: u32::from_le_bytes(*left),
                    consumer: consumer.into(),
                })
            }
            _ => Err(damaged("lease of a queue", bytes.escape_ascii(), "a lease")),
        }
    }
}

/// The leases of a group that a call reads and changes.
pub(crate) struct Leases {
    group: u32,
    loaded: BTreeMap<u64, (Option<Lease>, bool)>,
}

impl Leases {
    pub(crate) fn new(group: u32) -> Self {
        Self {
            group,
            loaded: BTreeMap::new(),
        }
    }

    fn load<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        number: u64,
    ) -> Result<&mut (Option<Lease>, bool)> {
        use std::collections::btree_map::Entry;
        match self.loaded.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let key = keys::pair(self.group, number);
                let lease = match part(root, r, Part::Leases)?.get(r, &key)? {
                    Some(value) => Some(Lease::decode(&value.bytes()?)?),
                    None => None,
                };
                Ok(entry.insert((lease, false)))
            }
        }
    }

    /// Whether a consumer holds the lease.
    pub(crate) fn is_held_by<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        number: u64,
        consumer: &[u8],
    ) -> Result<bool> {
        let (lease, _) = self.load(root, r, number)?;
        Ok(lease
            .as_ref()
            .is_some_and(|lease| *lease.consumer == *consumer))
    }

    /// Adds a new lease that holds no messages yet.
    pub(crate) fn begin(&mut self, number: u64, consumer: &[u8]) {
        let lease = Lease {
            left: 0,
            consumer: consumer.into(),
        };
        self.loaded.insert(number, (Some(lease), true));
    }

    /// Changes the number of messages that a lease holds by `change`, which may be negative.
    pub(crate) fn count<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        number: u64,
        change: i32,
    ) -> Result<()> {
        let (lease, is_changed) = self.load(root, r, number)?;
        let Some(lease) = lease else {
            return Err(damaged(
                "lease of a queue",
                "none",
                format!("lease {number}"),
            ));
        };
        lease.left = lease.left.saturating_add_signed(change);
        *is_changed = true;
        Ok(())
    }

    pub(crate) fn store<W: PageWrite>(&self, root: &mut Tree, w: &mut W) -> Result<()> {
        if !self.loaded.values().any(|(_, is_changed)| *is_changed) {
            return Ok(());
        }
        change(root, w, Part::Leases, &mut |w, table| {
            for (number, (lease, is_changed)) in &self.loaded {
                let key = keys::pair(self.group, *number);
                match lease {
                    Some(lease) if *is_changed && lease.left > 0 => {
                        table.insert(w, &key, &lease.encode())?
                    }
                    _ if *is_changed => table.remove(w, &key)?,
                    _ => false,
                };
            }
            Ok(())
        })
    }
}
