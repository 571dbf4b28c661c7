//! Recovery of deleted messages and idempotency keys: decodable ones are kept.

use crate::containers::deletion::Deletion;
use crate::containers::keys::{container_of, deletion_key, seen_time, split_trash};
use crate::containers::message::{StoredMessage, counted_bytes};
use crate::containers::options::COUNT_MAX;
use crate::containers::parts::{Part, part};
use crate::containers::recovery::{Containers, ContainersRecovery, Fields};
use crate::containers::seen;
use crate::containers::write::ContainersWriter;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tidalite_pager::{PageWrite, Result};
use tidalite_time::Timestamp;

/// Greater numbers are treated as damage, because a table with such numbers could soon run out of numbers.
const SANE_DELETION_MAX: u64 = COUNT_MAX / 2;

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Counts the deleted messages, and removes undecodable ones.
    pub(crate) fn recover_deletions(
        &mut self,
        now: i64,
        containers: &Containers,
        fields: &mut Fields,
        recovery: &mut ContainersRecovery,
    ) -> Result<BTreeMap<(u32, u64), Deletion>> {
        let mut found: BTreeMap<(u32, u64), Deletion> = BTreeMap::new();
        let mut wrong = Vec::new();
        {
            let w = &*self.w;
            let old = part(self.root, w, Part::Deletions)?;
            let mut rows = part(self.root, w, Part::Trash)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let decoded = split_trash(rows.key()).and_then(|(deletion, key)| {
                    let value = rows.value()?;
                    let message = StoredMessage::decode(key, &value.bytes()?)?;
                    Ok((deletion, message, value.len()))
                });
                let decoded = decoded.ok().filter(|(deletion, message, _)| {
                    *deletion < SANE_DELETION_MAX
                        && containers.is_known(message.key.container)
                        && fields.accept(&message.document)
                });
                let Some((number, message, len)) = decoded else {
                    wrong.push(rows.key().to_vec());
                    there = rows.next()?;
                    continue;
                };
                let place = (message.key.container, number);
                let deletion = match found.entry(place) {
                    Entry::Occupied(found) => found.into_mut(),
                    Entry::Vacant(new) => {
                        let row = old.get(w, &deletion_key(place.0, number))?;
                        let row = match &row {
                            Some(row) => Deletion::decode(number, &row.bytes()?).ok(),
                            None => None,
                        };
                        let keep = containers.keep_deleted_ns(place.0, &self.options.defaults);
                        let free_at = Timestamp(now.saturating_add(keep));
                        new.insert(Deletion {
                            number,
                            deleted_at: row.map_or(Timestamp(now), |row| row.deleted_at),
                            free_at: row.map_or(free_at, |row| row.free_at),
                            messages: 0,
                            bytes: 0,
                        })
                    }
                };
                deletion.messages += 1;
                deletion.bytes += counted_bytes(len);
                there = rows.next()?;
            }
        }
        recovery.removed += wrong.len() as u64;
        self.remove_keys(Part::Trash, &wrong)?;
        Ok(found)
    }

    /// Keeps idempotency keys that can be decoded, and writes the rows of their times again.
    pub(crate) fn recover_seen(&mut self, containers: &Containers) -> Result<()> {
        let (mut wrong, mut times) = (Vec::new(), Vec::new());
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Seen)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let key = rows.key();
                let time = rows.value().and_then(|value| seen::decode(&value.bytes()?));
                match (container_of(key), time) {
                    (Ok(number), Ok(time)) if containers.is_known(number) => {
                        times.push(seen_time(time, number, &key[4..]));
                    }
                    _ => wrong.push(key.to_vec()),
                }
                there = rows.next()?;
            }
        }
        self.remove_keys(Part::Seen, &wrong)?;
        times.sort_unstable();
        self.write_anew(
            Part::SeenTimes,
            times.into_iter().map(|row| (row, Vec::new())),
        )
    }
}
