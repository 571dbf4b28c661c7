//! Recovery of a table of topics that may have lost parts: everything except the options is rebuilt from the messages.

use crate::topics::expiry;
use crate::topics::key::{TOPIC_LEVELS_MAX, TopicText, levels};
use crate::topics::options::TopicOptions;
use crate::topics::parts::{Part, change, part, row};
use crate::topics::record::{self, SEQUENCES_MAX, counted_bytes};
use crate::topics::state::State;
use crate::topics::terms::{self, SetChanges};
use crate::topics::write::TopicsWriter;
use tidalite_index::{NUMBERS_MAX, RoaringTreemap};
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageWrite, Result};

/// Number of messages that are read before the rows derived from them are written.
const READ_AT_ONCE: usize = if cfg!(test) { 7 } else { 1 << 14 };

/// Greater numbers are treated as damage, because a table with such numbers could soon run out of numbers.
const SANE_ID_MAX: u64 = NUMBERS_MAX / 2;
const SANE_SEQUENCE_MAX: u64 = SEQUENCES_MAX / 2;

/// If the state is lost, the distance between the greatest sequence number found and the first new one. Changes whose
/// messages were replaced or removed later have left no trace, but readers of the feed may know their numbers.
const LOST_SEQUENCES: u64 = 1 << 32;

/// Result of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveredTopics {
    /// Number of messages after the recovery.
    pub messages: u64,
    /// Number of messages that could not be decoded and were removed.
    pub removed: u64,
    /// Whether the options were lost.
    pub has_lost_options: bool,
}

/// A message that was read.
struct Row {
    key: Vec<u8>,
    /// Id, sequence number, and time of the row in the expiry index; `None` for a record that cannot be decoded.
    numbers: Option<(u64, u64, Option<i64>)>,
    bytes: u64,
}

impl<'a, W: PageWrite> TopicsWriter<'a, W> {
    /// Opens a table of topics that may have lost parts, and rebuilds everything that can be rebuilt from the messages.
    /// Messages that cannot be decoded are removed. The feed restarts at a number that no reader has seen, so that all
    /// its readers learn that they must read a snapshot.
    ///
    /// If the options are lost, the table gets the default ones.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// Reads all messages and writes all other parts.
    pub fn recover(root: &'a mut Tree, w: &'a mut W) -> Result<(Self, RecoveredTopics)> {
        let stored = row(root, &*w, Part::Options).and_then(|row| TopicOptions::decode(&row));
        let (options, has_lost_options) = match stored {
            Ok(options) => (options, false),
            Err(Error::Corrupt(_)) => (TopicOptions::default(), true),
            Err(error) => return Err(error),
        };
        if has_lost_options {
            root.insert(w, &Part::Options.key(), &options.encode())?;
        }
        let old = row(root, &*w, Part::State).and_then(|row| State::decode(&row));
        let mut state = State::default();
        let gap = if old.is_ok() { 1 } else { LOST_SEQUENCES };
        if let Ok(old) = old {
            state.sequence = old.sequence.min(SANE_SEQUENCE_MAX);
            state.next_id = old.next_id.min(SANE_ID_MAX);
        }
        for derived in [Part::Ids, Part::Terms, Part::Expiry, Part::Feed] {
            change(root, w, derived, &mut |w, table| table.clear(w))?;
        }
        let mut recovered = RecoveredTopics {
            has_lost_options,
            ..RecoveredTopics::default()
        };
        let (mut seen, mut from) = (RoaringTreemap::new(), Some(Vec::new()));
        // Messages with a duplicate id, or with an id that is too great, get a new id once all ids are known.
        let mut doubles = Vec::new();
        while let Some(key) = from {
            let (rows, next) = read_rows(root, w, &key)?;
            let mut whole = Vec::with_capacity(rows.len());
            for row in rows {
                match row.numbers {
                    Some((id, sequence, filed)) => {
                        state.sequence = state.sequence.max(sequence);
                        state.messages += 1;
                        state.bytes = state.bytes.saturating_add(row.bytes);
                        match id <= SANE_ID_MAX && seen.insert(id) {
                            true => whole.push((id, filed, row.key)),
                            false => doubles.push(row.key),
                        }
                    }
                    None => {
                        recovered.removed += 1;
                        change(root, w, Part::Messages, &mut |w, table| {
                            table.remove(w, &row.key).map(drop)
                        })?;
                    }
                }
            }
            derive(root, w, &whole)?;
            from = next;
        }
        state.next_id = state.next_id.max(seen.max().map_or(0, |id| id + 1));
        renumber(root, w, &mut state, &doubles)?;
        recovered.messages = state.messages;
        state.sequence += gap;
        state.feed_from = state.sequence + 1;
        let mut table = Self {
            root,
            w,
            options,
            state,
        };
        table.apply_parts().put_state()?;
        Ok((table, recovered))
    }
}

/// Reads some messages, beginning at a key; returns them and the key at which to continue.
fn read_rows<W: PageWrite>(root: &Tree, w: &W, from: &[u8]) -> Result<(Vec<Row>, Option<Vec<u8>>)> {
    let mut text = TopicText::default();
    let mut found = Vec::new();
    let mut rows = part(root, w, Part::Messages)?.cursor(w)?;
    let mut there = rows.seek_ge(from)?;
    while there {
        if found.len() >= READ_AT_ONCE {
            return Ok((found, Some(rows.key().to_vec())));
        }
        let (key, value) = (rows.key(), rows.value()?);
        let record = value.bytes()?;
        let decoded = text
            .of_key(key)
            .and_then(|topic| record::decode(topic, &record));
        let head = decoded.and_then(|_| record::decode_head(&record)).ok();
        let head = head.filter(|head| {
            let counts = (1..=SANE_SEQUENCE_MAX).contains(&head.sequence);
            counts && levels(key) <= TOPIC_LEVELS_MAX && record.len() > head.len
        });
        found.push(Row {
            key: key.to_vec(),
            numbers: head.map(|head| (head.id, head.sequence, head.filed)),
            bytes: head.map_or(0, |head| counted_bytes(key, value.len(), &head)),
        });
        there = rows.next()?;
    }
    Ok((found, None))
}

/// Assigns new ids to messages.
fn renumber<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    state: &mut State,
    keys: &[Vec<u8>],
) -> Result<()> {
    for keys in keys.chunks(READ_AT_ONCE) {
        let mut whole = Vec::with_capacity(keys.len());
        change(root, w, Part::Messages, &mut |w, table| {
            for key in keys {
                let Some(record) = table.get(w, key)? else {
                    continue;
                };
                let (id, filed) = (state.next_id, record::decode_head(&record)?.filed);
                state.next_id += 1;
                table.insert(w, key, &record::renumbered(&record, id, filed)?)?;
                whole.push((id, filed, key.clone()));
            }
            Ok(())
        })?;
        derive(root, w, &whole)?;
    }
    Ok(())
}

/// Writes the rows that are derived from messages. Each item is the id, the time of the row in the expiry index, and
/// the key.
fn derive<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    messages: &[(u64, Option<i64>, Vec<u8>)],
) -> Result<()> {
    let mut sets = SetChanges::default();
    change(root, w, Part::Ids, &mut |w, table| {
        for (id, _, key) in messages {
            table.insert(w, &id.to_be_bytes(), key)?;
            terms::of_key(key, &mut |term| sets.add(term, *id, true));
        }
        Ok(())
    })?;
    change(root, w, Part::Terms, &mut |w, table| sets.apply(w, table))?;
    if messages.iter().all(|(_, filed, _)| filed.is_none()) {
        return Ok(());
    }
    change(root, w, Part::Expiry, &mut |w, table| {
        for (id, filed, _) in messages {
            if let Some(filed) = filed {
                table.insert(w, &expiry::row_of(*filed, *id), &[])?;
            }
        }
        Ok(())
    })
}
