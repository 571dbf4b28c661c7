//! The four blocks of meta records, and the protocol by which a meta record is rewritten in them.

use super::layout::meta_at;
use super::meta::Meta;
use super::superblock::read_block;
use crate::error::{Error, Result};
use tidalite_disk::storage::Storage;

/// Protocol by which a writer rewrites the meta record that it takes over from another writer. The protocol ensures
/// that one copy of an acknowledged meta record is on the medium at every moment, however many processes are killed
/// and syncs fail.
///
/// Round c first writes copy `c & 1` with the number c, and after a sync the other copy. So if two copies have
/// different numbers, the one with the higher number may not be on the medium yet, and is written again first. If both
/// copies have the same number c, the second copy of round c, `1 - (c & 1)`, may not be on the medium yet, and is the
/// first to be written in round c + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confirmation {
    /// The number of this round, which both copies of the meta record get.
    pub(crate) number: u16,
    /// The copy (0 or 1) that is written first.
    pub(crate) first: usize,
}

impl Confirmation {
    /// Returns the confirmation that follows if the two copies of a meta record have the confirmation numbers `a` and
    /// `b`.
    pub(crate) fn after([a, b]: [u16; 2]) -> Self {
        if a == b {
            let number = a.wrapping_add(1);
            return Self {
                number,
                first: usize::from(number & 1),
            };
        }
        let a_is_newer = a.wrapping_sub(b) < 1 << 15;
        let (number, first) = if a_is_newer { (a, 0) } else { (b, 1) };
        Self { number, first }
    }

    /// Returns the number for a damaged copy that is rewritten while the other copy is intact. It is the next number
    /// whose round begins with the rewritten copy.
    pub(crate) fn of_healed(copy: usize, sound: u16) -> u16 {
        assert!(copy < 2, "there are two copies");
        let next = sound.wrapping_add(1);
        if usize::from(next & 1) == copy {
            next
        } else {
            next.wrapping_add(1)
        }
    }
}

/// The decoded contents of the four meta blocks.
#[derive(Debug)]
pub(crate) struct MetaBlocks {
    /// The meta record in each block, or the error of reading the block, indexed by pair and copy.
    pub(crate) copies: [[Result<Meta>; 2]; 2],
}

impl MetaBlocks {
    pub(crate) fn load(storage: &dyn Storage, uuid: &[u8; 16]) -> Self {
        let copies = [0, 1].map(|pair| {
            [0, 1].map(|copy| {
                let at = meta_at(pair, copy);
                read_block(storage, at).and_then(|block| Meta::decode(&block, at, uuid))
            })
        });
        Self { copies }
    }

    /// Returns the confirmation numbers of the two copies of a meta record. For a damaged copy, the number of
    /// `record` is returned.
    pub(crate) fn confirmations(&self, record: &Meta) -> [u16; 2] {
        self.copies[record.pair()]
            .each_ref()
            .map(|copy| match copy {
                Ok(meta) if meta.is_copy_of(record) => meta.confirmations,
                _ => record.confirmations,
            })
    }

    /// Returns the meta record of a pair that both opening and healing use, if any copy is valid.
    pub(crate) fn best(&self, pair: usize) -> Option<&Meta> {
        let valid = self.copies[pair].iter().flatten();
        valid.max_by_key(|meta| (meta.txn, meta.sequence))
    }

    /// Returns the newest meta record with a valid copy, and the newest meta record in the other pair of blocks.
    ///
    /// # Errors
    /// Returns an error if there is no valid copy, and also if a pair has no valid copy and one of its copies could
    /// not be read: that copy may be the newest meta record, and skipping it would lose acknowledged commits because
    /// of a possibly transient error.
    pub(crate) fn newest(&self) -> Result<(Meta, Option<Meta>)> {
        for copies in &self.copies {
            let unread = |copy: &&Result<Meta>| copy.as_ref().is_err_and(Error::is_io);
            if let Some(Err(error)) = copies.iter().find(unread)
                && copies.iter().all(Result::is_err)
            {
                return Err(error.clone());
            }
        }
        let best = |pair| self.best(pair).cloned();
        match (best(0), best(1)) {
            (Some(a), Some(b)) if (a.txn, a.sequence) >= (b.txn, b.sequence) => Ok((a, Some(b))),
            (a, Some(b)) => Ok((b, a)),
            (Some(a), None) => Ok((a, None)),
            (None, None) => match &self.copies[0][0] {
                Err(error) => Err(error.clone()),
                Ok(_) => unreachable!("a valid copy would have been found"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::commit::heal::heal_metas;
    use crate::format::layout::HEAD_BYTES;
    use crate::format::meta::Meta;
    use crate::format::meta_blocks::{Confirmation, MetaBlocks};
    use tidalite_disk::storage::MemoryStorage;

    /// This library never writes two different copies with the same sequence number, but a damaged file may contain
    /// them. Opening and healing must then choose the same copy.
    #[test]
    fn healing_writes_the_record_that_opening_goes_by() {
        let record = |sequence, pages| Meta {
            sequence,
            ..Meta::first([7; 16], pages, 0)
        };
        for pages in [[48, 0], [0, 48]] {
            let [a, b] = pages.map(|pages| record(pages / 24, pages));
            let pair = record(2, 48).pair();
            let copies = [[Ok(a.clone()), Ok(b.clone())], [Ok(a), Ok(b)]];
            let mut blocks = MetaBlocks { copies };
            let (newest, _) = blocks.newest().unwrap();
            assert_eq!(newest.pages, 48);
            heal_metas(
                &MemoryStorage::from_image(vec![0; HEAD_BYTES as usize]),
                &mut blocks,
                &newest,
            )
            .unwrap();
            assert_eq!(blocks.newest().unwrap().0.pages, 48);
            for copy in blocks.copies[pair].iter().flatten() {
                assert!(copy.is_copy_of(&newest), "{copy:?}");
            }
        }
    }

    /// After any sequence of killed processes, the copy that is written next must be the only copy that may not be on
    /// the medium yet.
    #[test]
    fn the_copy_in_flight_is_always_written_first() {
        for start in [0u16, 1, 2, 0x7ffe, 0x7fff, 0xfffe, 0xffff] {
            for copy in [0, 1] {
                // Simulates a damaged copy that was rewritten while the other copy was intact, and that may not be on
                // the medium yet.
                let mut found = [start; 2];
                found[copy] = Confirmation::of_healed(copy, start);
                assert_eq!(Confirmation::after(found).first, copy);
            }
            let round = Confirmation::after([start, start]);
            let mut found = [start; 2];
            found[round.first] = round.number;
            let again = Confirmation::after(found);
            assert_eq!(again, round, "interrupted after its first write");
            let next = Confirmation::after([round.number; 2]);
            assert_eq!(
                next.first,
                1 - round.first,
                "interrupted after its second write"
            );
        }
    }
}
