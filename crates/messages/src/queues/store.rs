//! Reads and removes the rows of messages.

use crate::queues::message::{self, Head, QueueMessage};
use crate::queues::options::IDS_MAX;
use crate::queues::parts::{Part, change, damaged, part};
use tidalite_kv::{Cursor, TableReader, Tree, Value};
use tidalite_pager::{PageRead, PageWrite, Result};

/// Reads messages by their ids. Reading consecutive ids needs one step of the cursor each.
pub(crate) struct Messages<'r, R> {
    rows: Cursor<'r, R>,
}

/// The id in the key of a message's row.
pub(crate) fn id_of(key: &[u8]) -> Result<u64> {
    match key.try_into().map(u64::from_be_bytes) {
        Ok(id) if (1..IDS_MAX).contains(&id) => Ok(id),
        _ => Err(damaged("message of a queue", key.escape_ascii(), "an id")),
    }
}

impl<'r, R: PageRead> Messages<'r, R> {
    pub(crate) fn open(root: &Tree, r: &'r R) -> Result<Self> {
        let table: TableReader<'r> = part(root, r, Part::Messages)?;
        Ok(Self {
            rows: table.cursor(r)?,
        })
    }

    fn find(&mut self, id: u64) -> Result<Option<Value<'r>>> {
        let key = id.to_be_bytes();
        let follows = self.rows.is_at_row()
            && self.rows.key() < &key[..]
            && self.rows.next()?
            && *self.rows.key() == key;
        if !follows && !self.rows.seek(&key)? {
            return Ok(None);
        }
        self.rows.value().map(Some)
    }

    /// The head of a message; `None` if it is not stored.
    pub(crate) fn head(&mut self, id: u64) -> Result<Option<Head>> {
        match self.find(id)? {
            Some(value) => message::head_of(id, &value).map(Some),
            None => Ok(None),
        }
    }

    /// The head of a message, which must be stored.
    pub(crate) fn expect(&mut self, id: u64) -> Result<Head> {
        self.head(id)?.ok_or_else(|| missing(id))
    }

    /// A message and its head; `None` if it is not stored.
    pub(crate) fn get(&mut self, id: u64) -> Result<Option<(QueueMessage, Head)>> {
        let Some(value) = self.find(id)? else {
            return Ok(None);
        };
        let message = message::decode(id, &value.bytes()?)?;
        let head = message.head(value.len());
        Ok(Some((message, head)))
    }
}

/// Creates the error for an open id without a message.
#[cold]
pub(crate) fn missing(id: u64) -> tidalite_pager::Error {
    damaged("message of a queue", "none", format!("message {id}"))
}

/// The heads of the messages with these ids, which must be stored.
pub(crate) fn heads<R: PageRead>(root: &Tree, r: &R, ids: &[u64]) -> Result<Vec<(u64, Head)>> {
    let mut messages = Messages::open(root, r)?;
    let mut heads = Vec::with_capacity(ids.len());
    for &id in ids {
        heads.push((id, messages.expect(id)?));
    }
    Ok(heads)
}

/// The ids and heads of at most `limit` messages, beginning with the id `from`.
pub(crate) fn heads_from<R: PageRead>(
    root: &Tree,
    r: &R,
    from: u64,
    limit: usize,
) -> Result<Vec<(u64, Head)>> {
    heads_while(root, r, from, limit, &mut |_| true)
}

/// The ids and heads of at most `limit` messages, beginning with the id `from`, up to the first head that is not
/// wanted.
pub(crate) fn heads_while<R: PageRead>(
    root: &Tree,
    r: &R,
    from: u64,
    limit: usize,
    is_wanted: &mut dyn FnMut(&Head) -> bool,
) -> Result<Vec<(u64, Head)>> {
    let mut rows = part(root, r, Part::Messages)?.cursor(r)?;
    let mut found = Vec::new();
    let mut there = rows.seek_ge(&from.to_be_bytes())?;
    while there && found.len() < limit {
        let id = id_of(rows.key())?;
        let head = message::head_of(id, &rows.value()?)?;
        if !is_wanted(&head) {
            break;
        }
        found.push((id, head));
        there = rows.next()?;
    }
    Ok(found)
}

/// A range with fewer rows than this is removed row by row: removing it as a range would cost about as much.
const RANGE_ROWS_MIN: usize = 16;

/// Removes the rows of messages. The ids must ascend and be stored; runs of consecutive ids are removed as ranges.
pub(crate) fn remove<W: PageWrite>(root: &mut Tree, w: &mut W, ids: &[u64]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    change(root, w, Part::Messages, &mut |w, table| {
        for run in ids.chunk_by(|a, b| a + 1 == *b) {
            if run.len() < RANGE_ROWS_MIN {
                for id in run {
                    table.remove(w, &id.to_be_bytes())?;
                }
            } else {
                let (first, end) = (run[0], run[run.len() - 1] + 1);
                table.remove_range(w, &first.to_be_bytes(), &end.to_be_bytes())?;
            }
        }
        Ok(())
    })
}
