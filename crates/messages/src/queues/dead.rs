//! Dead letters: making them ready again, and dropping them.

use crate::queues::answer::Answered;
use crate::queues::mark::Phase;
use crate::queues::options::{BATCH_MAX, check_limit};
use crate::queues::store::{Messages, missing};
use crate::queues::writer::QueueWriter;
use tidalite_pager::{PageWrite, Result};

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Makes dead letters of a group ready again, as if they had never been delivered. A message with an ordering key
    /// waits if another message with this key is ready, delayed or leased. Returns for each id `Done`, or `Unknown` if
    /// it is not a dead letter.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; `Limit` for more than [`BATCH_MAX`] ids. `DiskFull`, `Io`; a damaged
    /// page.
    pub fn requeue_dead(&mut self, group: &str, ids: &[u64], now: i64) -> Result<Vec<Answered>> {
        self.change_dead(group, ids, true, now)
    }

    /// Drops dead letters of a group. Returns for each id `Done`, or `Unknown` if it is not a dead letter.
    ///
    /// # Errors
    /// As for `requeue_dead`.
    pub fn drop_dead(&mut self, group: &str, ids: &[u64], now: i64) -> Result<Vec<Answered>> {
        self.change_dead(group, ids, false, now)
    }

    fn change_dead(
        &mut self,
        group: &str,
        ids: &[u64],
        requeues: bool,
        now: i64,
    ) -> Result<Vec<Answered>> {
        check_limit("ids of a batch", ids.len(), BATCH_MAX)?;
        let (row, mut edit) = self.edit(group)?;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&at| ids[at]);
        let mut answers = vec![Answered::Unknown; ids.len()];
        let mut finished = Vec::new();
        let mut messages = Messages::open(self.root, &*self.w)?;
        for at in order {
            let id = ids[at];
            if id >= self.state.next_id {
                break; // This id and all that follow were never pushed.
            }
            let (root, r) = (&*self.root, &*self.w);
            let Some(mark) = edit.marks.get(root, r, id)? else {
                continue;
            };
            if mark.phase != Phase::Dead {
                continue;
            }
            let head = messages.head(id)?.ok_or_else(|| missing(id))?;
            if requeues {
                edit.requeue(root, r, id, mark, &head, now)?;
            } else {
                edit.finish(root, r, id, mark, head.lane)?;
                finished.push((id, head));
            }
            answers[at] = Answered::Done;
        }
        self.store(row, edit, now)?;
        if !finished.is_empty() {
            self.delete_unneeded(&finished)?;
        }
        Ok(answers)
    }
}
