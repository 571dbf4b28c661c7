//! Reads the messages that topics have before a batch changes them; decodes only their first fields.

use crate::topics::batch::Batch;
use crate::topics::record::{self, Head, head_in};
use std::cmp::Ordering;
use tidalite_kv::TableWriter;
use tidalite_pager::{PageWrite, Result};

/// Maximum number of rows that are stepped over before the next key is found with a descent: if the last key was near
/// the one before, and if it was not.
const STEPS_FAR: u32 = 8;
const STEPS_NEAR: u32 = 2;

/// The message that a topic has before a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub(super) head: Head,
    pub(super) record_len: u64,
}

/// Reads the old messages of some changes, in the order of the changes.
pub(super) fn read_old<W: PageWrite>(
    w: &W,
    table: &TableWriter,
    batch: &Batch,
    range: std::ops::Range<usize>,
    old: &mut Vec<Option<Old>>,
) -> Result<()> {
    old.clear();
    let Some(tree) = table.tree() else {
        // An inline table has only a few rows.
        for key in batch.keys_of(range) {
            old.push(match table.get(w, key)? {
                Some(record) => Some(Old {
                    head: record::decode_head(&record)?,
                    record_len: record.len() as u64,
                }),
                None => None,
            });
        }
        return Ok(());
    };
    // Topics of one publisher are neighbours, so the next key is often only a few rows away. A descent costs about as
    // much as twenty steps.
    let mut rows = tree.cursor(w);
    let (mut steps_max, mut is_past_end) = (0, false);
    for key in batch.keys_of(range) {
        if is_past_end {
            old.push(None);
            continue;
        }
        let mut steps = 0;
        let mut order = match rows.is_at_row() {
            true => rows.key().cmp(key),
            false => Ordering::Less,
        };
        while order.is_lt() && steps < steps_max && rows.next()? {
            order = rows.key().cmp(key);
            steps += 1;
        }
        steps_max = STEPS_FAR;
        if order.is_lt() {
            steps_max = STEPS_NEAR;
            order = match rows.seek_ge(key)? {
                true => rows.key().cmp(key),
                false => Ordering::Greater,
            };
            is_past_end = !rows.is_at_row();
        }
        old.push(match order {
            Ordering::Equal => {
                let inline = rows.value_slice();
                let (head, record_len) = match inline {
                    Some(record) => (record::decode_head(record)?, record.len() as u64),
                    None => {
                        let value = rows.value()?;
                        (head_in(&value)?, value.len())
                    }
                };
                Some(Old { head, record_len })
            }
            _ => None,
        });
    }
    Ok(())
}

/// Time of the row in the expiry index for a message that replaces `old`. The old row is kept if it is not too late.
pub(super) fn filed(expires: Option<i64>, old: Option<&Old>) -> Option<i64> {
    let expires = expires?;
    match old.and_then(|old| old.head.filed) {
        Some(filed) if filed <= expires => Some(filed),
        _ => Some(expires),
    }
}
