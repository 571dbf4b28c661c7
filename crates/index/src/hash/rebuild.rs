//! Rebuilds the index of a hash table from its records, even after some of its pages were lost.

use crate::hash::buffer::Buffer;
use crate::hash::entry::RECORDS_MAX;
use crate::hash::options::HashOptions;
use crate::hash::record::{self, Kind};
use crate::hash::settle::DEAD;
use crate::hash::state::State;
use crate::hash::write::HashWriter;
use crate::parts::{Part, change, part, row};
use crate::postings::sets;
use roaring::RoaringTreemap;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

impl HashWriter {
    /// Whether the options of a hash table can be read. They cannot be rebuilt from other rows.
    #[must_use]
    pub fn can_recover<R: PageRead>(root: &Tree, r: &R) -> bool {
        let options = row(root, r, Part::Options);
        options.is_ok_and(|options| HashOptions::decode(&options).is_ok())
    }

    /// Opens a hash table that may have lost parts, and rebuilds everything that can be rebuilt from the records.
    /// Records that cannot be decoded are removed. If the record of a removal or replacement is lost, the older record
    /// becomes valid again, unless it was already marked as dead.
    ///
    /// # Errors
    /// `Corrupt` if the options are lost; as for `store`.
    pub fn recover<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<Self> {
        let options = HashOptions::decode(&row(root, &*w, Part::Options)?)?;
        let state = row(root, &*w, Part::State).and_then(|row| State::decode(&row));
        // The remaining part of the set of dead records prevents replaced records from becoming valid again.
        let dead = part(root, &*w, Part::Sets).and_then(|sets| sets::get(&sets, &*w, DEAD));
        remove_all_but_records(root, w)?;
        remove_stale_records(root, w, &options, &dead.unwrap_or_default())?;
        let next_record = state.map_or(0, |state| state.next_record);
        let state = State {
            next_record,
            ..State::default()
        };
        let mut table = Self::with(options, state);
        table.rebuild(root, w)?;
        table.buffer.reset(table.state.next_record);
        Ok(table)
    }

    /// Rebuilds the index from the records.
    ///
    /// # Errors
    /// As for `store`; `Corrupt` for a row of the record store that does not hold a record.
    pub fn rebuild<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        self.store(root, w)?;
        for stale in [Part::Main, Part::Runs, Part::Filters, Part::Sets] {
            change(root, w, stale, &mut |w, table| table.clear(w))?;
        }
        self.state = State {
            next_record: self.state.next_record,
            ..State::default()
        };
        let mut from = 0;
        loop {
            let mut batch = Buffer::new(from);
            let mut numbers = Vec::new();
            {
                let records = part(root, &*w, Part::Records)?;
                let mut rows = records.cursor(&*w)?;
                let mut there = rows.seek_ge(&u64::to_be_bytes(from))?;
                while there && !batch.is_full() {
                    let number = record::number_of(rows.key())?;
                    let value = rows.value()?;
                    let bytes = record::start_of(number, &value)?;
                    let parts = checked(number, &bytes, &self.options)?;
                    // The index depends only on the key.
                    batch.push(&self.options, parts.kind, parts.key, &[]);
                    numbers.push(number);
                    from = number + 1;
                    there = rows.next()?;
                }
            }
            if batch.is_empty() {
                break;
            }
            let entries = batch.entries_of(&numbers);
            self.index(root, w, &entries)?;
        }
        self.state.next_record = self.state.next_record.max(from);
        self.put_state(root, w)
    }
}

/// Removes all rows of the root table except the options and the records.
fn remove_all_but_records<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<()> {
    let mut stale = Vec::new();
    {
        let mut rows = root.cursor(&*w);
        let mut there = rows.first()?;
        while there {
            let stays = match rows.is_nested() {
                true => rows.key() == Part::Records.key(),
                false => rows.key() == Part::Options.key(),
            };
            if !stays {
                stale.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    for key in stale {
        root.remove(w, &key)?;
    }
    Ok(())
}

/// Removes rows of the record store that are not records of a table with these options, and dead records.
///
/// Dead removals are kept: they may apply to older records whose part of the set of dead records is lost.
fn remove_stale_records<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    options: &HashOptions,
    dead: &RoaringTreemap,
) -> Result<()> {
    let mut stale = Vec::new();
    {
        let records = part(root, &*w, Part::Records)?;
        let mut rows = records.cursor(&*w)?;
        let mut there = rows.first()?;
        while there {
            let is_kept = match (rows.is_nested(), record::number_of(rows.key())) {
                (false, Ok(number)) => {
                    let value = rows.value()?;
                    let bytes = record::start_of(number, &value)?;
                    let parts = checked(number, &bytes, options);
                    parts.is_ok_and(|parts| parts.kind != Kind::Set || !dead.contains(number))
                }
                _ => false,
            };
            if !is_kept {
                stale.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    change(root, w, Part::Records, &mut |w, records| {
        for key in &stale {
            records.remove(w, key)?;
        }
        Ok(())
    })
}

/// Decodes the kind and the key of a record; an error if a table with these options cannot have such a record.
fn checked<'b>(number: u64, bytes: &'b [u8], options: &HashOptions) -> Result<record::Parts<'b>> {
    let parts = record::decode(number, bytes)?;
    if number >= RECORDS_MAX {
        return Err(record::damaged(number, "a number of 2^46 or more"));
    }
    if parts.kind == Kind::RemoveOne && !options.duplicates {
        return Err(record::damaged(number, "a removal of one duplicate"));
    }
    match options.check_key(parts.key) {
        Ok(()) => Ok(parts),
        Err(error) => Err(record::damaged(number, error)),
    }
}
