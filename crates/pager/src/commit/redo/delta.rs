//! Encodes a page as its difference from another page (the base), usually the page of which it is a changed copy.
//!
//! ```text
//! step:  literal length | literal bytes | copied length | copy source, relative to the end of the previous step's copy
//!        varint         |               | varint        | zigzag varint (absent when nothing is copied)
//! ```
//!
//! Steps follow until the page is full. An entry inserted into a slotted page moves the slots behind it, and a change
//! of a meta record moves whole lists. Copies may therefore come from anywhere in the base. The encoder looks for a
//! copy at or shortly after the continuation of the previous step, then at the same offset as in the new page, then a
//! few bytes beside the continuation, and only then through a hash table of the base. Nothing is compressed: the aim is
//! to fit a commit into a block, in a quarter of a microsecond a page.
//!
//! Invariants
//! 1. For any two pages of one length, `decode` restores the new page from the base and the output of
//!    `Encoder::encode`. For any other input `decode` terminates, reads nothing out of bounds and returns `None` or a
//!    page of the requested length.

use tidalite_base::limits::PAGE_SIZE_MAX;
use tidalite_base::varint;

/// Number of bytes that are compared at once.
const LINE: usize = 64;
/// Minimum length in bytes of a copy; a shorter copy is not worth the bytes of its step.
const COPY_MIN: usize = 8;
/// Binary logarithm of the number of entries in the hash table of the base page.
const TABLE_BITS: u32 = 10;
/// Distance in bytes of the positions of the base page that are entered in the hash table.
const STRIDE: usize = 8;
/// Maximum distance in bytes at which the encoder searches for the end of a change. It finds the end of longer
/// changes through the hash table.
const FIELD_BYTES: usize = 48;
/// Value of an empty entry of the hash table.
const NOWHERE: u16 = u16::MAX;
const _: () = assert!(PAGE_SIZE_MAX / STRIDE < NOWHERE as usize);

/// Encoder of pages as steps that turn a base page into the new page. Its memory is reused from page to page.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// Hash table of the base page: for each hash of eight bytes, the last position with these bytes, in units of
    /// eight bytes.
    table: Box<[u16; 1 << TABLE_BITS]>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            table: Box::new([NOWHERE; 1 << TABLE_BITS]),
        }
    }
}

fn place(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS)) as usize
}

/// Whether two blocks of bytes are equal. Compares without a branch for each word, so that the compiler can use
/// vector instructions.
fn are_same(a: &[u8; LINE], b: &[u8; LINE]) -> bool {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let differs = words.fold(0, |differs, (a, b)| {
        differs | (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b))
    });
    differs == 0
}

/// Returns the number of bytes at the beginning in which `a` and `b` agree.
fn common(a: &[u8], b: &[u8]) -> usize {
    let lines = a.as_chunks::<LINE>().0.iter().zip(b.as_chunks::<LINE>().0);
    let mut same = LINE * lines.take_while(|(a, b)| are_same(a, b)).count();
    let words = a[same..].as_chunks::<8>().0.iter();
    for (a, b) in words.zip(b[same..].as_chunks::<8>().0) {
        let differs = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differs != 0 {
            return same + differs.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

fn put_step(out: &mut Vec<u8>, literal: &[u8], copied: usize, moved: i64) {
    debug_assert!(copied > 0 || !literal.is_empty(), "an empty step");
    varint::push(out, literal.len() as u64);
    out.extend_from_slice(literal);
    varint::push(out, copied as u64);
    if copied > 0 {
        varint::push(out, (moved << 1 ^ moved >> 63) as u64);
    }
}

impl Encoder {
    fn learn(&mut self, base: &[u8]) {
        self.table.fill(NOWHERE);
        for (number, bytes) in base.as_chunks::<STRIDE>().0.iter().enumerate() {
            self.table[place(u64::from_le_bytes(*bytes))] = number as u16;
        }
    }

    /// Returns a position of the base page where a copy of `bytes` may begin, according to the hash table.
    fn look_up(&self, bytes: &[u8]) -> Option<usize> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?);
        let found = self.table[place(word)];
        (found != NOWHERE).then_some(usize::from(found) * STRIDE)
    }

    /// Appends the steps that turn `base` into `new`, a page of the same length.
    pub(super) fn encode(&mut self, new: &[u8], base: &[u8], out: &mut Vec<u8>) {
        assert_eq!(new.len(), base.len(), "a page and its base");
        // At positions below `barren`, a copy from the expected position has already been ruled out.
        let (mut knows_base, mut barren) = (false, 0);
        // The pending literal begins at `from`. Byte `at` of the new page is expected at `here` of the base page. The
        // copy of the next step is stored relative to `next`.
        let (mut from, mut at, mut here, mut next) = (0, 0, 0usize, 0usize);
        while at < new.len() {
            let (mut copied, mut source) = (0, here);
            if at >= barren {
                let expected = &base[here.min(base.len())..];
                copied = common(&new[at..], expected);
                let whole = at + copied == new.len();
                if copied < COPY_MIN && !(whole && copied > 0) {
                    // Usually only a field has changed, and the following bytes are at their old position.
                    if let Some(skipped) = resumes(&new[at..], expected) {
                        (at, here) = (at + skipped, here + skipped);
                        continue;
                    }
                    if let Some((skipped, to)) = moved((new, at), (base, here)) {
                        (at, here) = (at + skipped, to);
                        continue;
                    }
                    (copied, barren) = (0, at + FIELD_BYTES);
                }
            }
            if copied == 0 {
                if !knows_base {
                    self.learn(base);
                    knows_base = true;
                }
                if let Some(found) = self.look_up(&new[at..]) {
                    source = found;
                    copied = common(&new[at..], &base[source..]);
                }
                if copied < COPY_MIN {
                    (at, here) = (at + 1, here + 1);
                    continue;
                }
                // The hash table has only every eighth position, so the copy may begin a few bytes earlier.
                while at > from && source > 0 && new[at - 1] == base[source - 1] {
                    (at, source, copied) = (at - 1, source - 1, copied + 1);
                }
            }
            put_step(out, &new[from..at], copied, source as i64 - next as i64);
            debug_assert!(
                copied >= COPY_MIN || at + copied == new.len(),
                "a copy that is longer than its bytes"
            );
            debug_assert_eq!(
                new[at..at + copied],
                base[source..source + copied],
                "a copy of other bytes"
            );
            at += copied;
            here = source + copied;
            (from, next, barren) = (at, here, 0);
        }
        assert!(from <= new.len(), "the steps end with the page");
        if from < new.len() {
            put_step(out, &new[from..], 0, 0);
        }
    }
}

/// Returns the eight bytes that begin at offset `at`.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether two pages have the same eight bytes at the given positions.
fn meet(a: (&[u8], usize), b: (&[u8], usize)) -> bool {
    word(a.0, a.1).is_some_and(|word_of_a| word(b.0, b.1) == Some(word_of_a))
}

/// Returns the number of bytes after which both pages again have the same eight bytes, if it is less than
/// `FIELD_BYTES`.
fn resumes(a: &[u8], b: &[u8]) -> Option<usize> {
    (1..FIELD_BYTES).find(|by| meet((a, *by), (b, *by)))
}

/// Like `resumes`, for bytes that were moved; also returns their position in the base page. An insertion or removal
/// moves the following bytes by a few bytes. Where the moved region ends, as the slots of a page do before its
/// entries, the following bytes are at their old offset.
fn moved((new, at): (&[u8], usize), (base, here): (&[u8], usize)) -> Option<(usize, usize)> {
    if at != here {
        let home = |by: &usize| meet((new, at + by), (base, at + by));
        if let Some(by) = (0..FIELD_BYTES).find(home) {
            return Some((by, at + by));
        }
    }
    (1..FIELD_BYTES).find_map(|by| {
        if meet((new, at + by), (base, here)) {
            Some((by, here))
        } else {
            meet((new, at), (base, here + by)).then_some((0, here + by))
        }
    })
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// Decodes the page that `steps` describe relative to `base`. Returns `None` if they do not yield a page of the same
/// length.
pub(super) fn decode(mut steps: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let (mut page, mut next) = (Vec::with_capacity(base.len()), 0usize);
    while page.len() < base.len() {
        let literal = take_varint(&mut steps)?;
        page.extend_from_slice(take(&mut steps, literal)?);
        let copied = usize::try_from(take_varint(&mut steps)?).ok()?;
        if copied == 0 {
            if literal == 0 {
                return None;
            }
            continue;
        }
        let moved = take_varint(&mut steps)?;
        let moved = (moved >> 1) as i64 ^ -((moved & 1) as i64);
        let source = usize::try_from((next as i64).checked_add(moved)?).ok()?;
        let end = source.checked_add(copied)?;
        page.extend_from_slice(base.get(source..end)?);
        next = end;
    }
    (page.len() == base.len() && steps.is_empty()).then_some(page)
}

#[cfg(test)]
mod tests {
    use crate::commit::redo::delta::{Encoder, decode};

    struct Random(u64);

    impl Random {
        fn below(&mut self, below: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) as usize % below
        }
        fn bytes(&mut self, len: usize) -> Vec<u8> {
            (0..len).map(|_| self.below(256) as u8).collect()
        }
    }

    fn round_trip(new: &[u8], base: &[u8]) -> usize {
        let mut steps = Vec::new();
        Encoder::default().encode(new, base, &mut steps);
        assert_eq!(decode(&steps, base).as_deref(), Some(new));
        steps.len()
    }

    #[test]
    fn a_page_like_its_base_costs_nothing_and_one_of_zeros_little() {
        let page = Random(1).bytes(4096);
        assert!(round_trip(&page, &page) <= 5);
        assert!(round_trip(&[0; 4096], &page) <= 4096 + 8);
        assert!(round_trip(&[0; 4096], &[0; 4096]) <= 5);
        let mut few = vec![0; 4096];
        few[1000..1040].copy_from_slice(&page[..40]);
        assert!(round_trip(&few, &[0; 4096]) < 60);
    }

    /// The test inserts an entry into a page whose slots grow from the beginning and whose entries grow from the end,
    /// and removes an entry from a list. In both cases the moved bytes must be copied.
    #[test]
    fn what_has_moved_is_copied() {
        let base = Random(2).bytes(4096);
        let mut new = base.clone();
        new.copy_within(200..800, 206);
        new[200..206].fill(7);
        new[2000..2024].fill(9);
        assert!(round_trip(&new, &base) < 80, "{}", round_trip(&new, &base));
        let mut less = base.clone();
        less.copy_within(532.., 500);
        less[4064..].fill(0);
        assert!(
            round_trip(&less, &base) < 60,
            "{}",
            round_trip(&less, &base)
        );
    }

    /// The test inserts a slot among slots with similar values, and its entry before the existing entries. The bytes
    /// after the slots and after the entries stay in place and must be copied.
    #[test]
    fn what_stays_behind_what_has_moved_is_copied() {
        let mut base = vec![0; 4096];
        for slot in 0..200 {
            let value = 4096 - 12 * (slot as u16 * 7 % 200 + 1);
            base[64 + 2 * slot..][..2].copy_from_slice(&value.to_le_bytes());
        }
        let entries = Random(5).bytes(2400);
        base[1696..].copy_from_slice(&entries);
        let mut new = base.clone();
        new.copy_within(164..464, 166);
        new[164..166].copy_from_slice(&1684u16.to_le_bytes());
        new[1684..1696].copy_from_slice(&entries[1200..1212]);
        new[8..16].copy_from_slice(&entries[..8]);
        let len = round_trip(&new, &base);
        assert!(len < 44, "{len}");
    }

    #[test]
    fn any_two_pages() {
        let mut random = Random(3);
        for round in 0..if cfg!(miri) { 20 } else { 3000 } {
            let len = [512, 4096, 1, 7, 9, 100][random.below(6)];
            let base = random.bytes(len);
            let mut new = if round % 3 == 0 {
                vec![0; len]
            } else {
                base.clone()
            };
            for _ in 0..random.below(20) {
                let (from, to) = (random.below(len), random.below(len));
                let count = random.below(len - from.max(to)) + 1;
                match random.below(3) {
                    0 => new.copy_within(from..from + count, to),
                    1 => new[from..from + count.min(12)].fill(random.below(256) as u8),
                    _ => new[to..to + count].copy_from_slice(&base[from..from + count]),
                }
            }
            round_trip(&new, &base);
        }
    }

    #[test]
    fn rubbish_is_refused_or_makes_a_page() {
        let mut random = Random(4);
        let base = random.bytes(512);
        let mut new = base.clone();
        new.copy_within(100..300, 90);
        let mut steps = Vec::new();
        Encoder::default().encode(&new, &base, &mut steps);
        for len in 0..steps.len() {
            assert_eq!(decode(&steps[..len], &base), None, "cut to {len}");
        }
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            let mut damaged = steps.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = random.below(256) as u8;
            }
            assert!(decode(&damaged, &base).is_none_or(|page| page.len() == 512));
        }
        assert_eq!(
            decode(&[0, 0, 0, 0], &base),
            None,
            "steps that lead nowhere"
        );
    }
}
