//! One block of a set, stored as the value of a table row: the members that are equal in all bits above the lowest 16.
//!
//! ```text
//! 2, 4, ... 16 bytes   the lowest 16 bits of each member, ascending, u16 each: 1 to 8 members
//! otherwise            a bitmap in the portable format of Roaring with one container: 9 members and more
//! ```
//!
//! The two forms cannot be confused: a bitmap with runs takes 11 bytes plus 4 for each run, and other bitmaps take more
//! than 16 bytes.
//!
//! The portable format (<https://github.com/RoaringBitmap/RoaringFormatSpec>) chooses a sorted array, a bitmap or runs,
//! by size. The members of the bitmap are the lowest 32 bits of the numbers. S. Chambi, D. Lemire, O. Kaser, R. Godin,
//! "Better bitmap performance with Roaring bitmaps", Software: Practice and Experience 46 (2016).

use roaring::RoaringBitmap;
use tidalite_base::{Corrupt, get_u16, get_u32};

/// Maximum number of members that are stored without a bitmap.
const PLAIN_MAX: u64 = 8;

/// First bytes of a bitmap without runs. In a bitmap with runs this is the lower half of the first word.
const COOKIE: u32 = 12346;
const COOKIE_RUNS: u32 = 12347;

/// Encodes the members of a container: numbers that differ only in their lowest 16 bits.
pub(crate) fn encode(members: &mut RoaringBitmap) -> Vec<u8> {
    debug_assert!(
        !members.is_empty(),
        "a container without members is not stored"
    );
    debug_assert!(
        members.min().map(|least| least >> 16) == members.max().map(|most| most >> 16),
        "members of one block"
    );
    if members.len() <= PLAIN_MAX {
        return members
            .iter()
            .flat_map(|member| (member as u16).to_le_bytes())
            .collect();
    }
    members.optimize();
    let mut bytes = Vec::with_capacity(members.serialized_size());
    let written = members.serialize_into(&mut bytes);
    debug_assert!(written.is_ok(), "a vector accepts all bytes");
    bytes
}

/// Decodes the container of `block`. Never returns an empty set.
pub(crate) fn decode(block: u32, bytes: &[u8]) -> Result<RoaringBitmap, Corrupt> {
    let base = block << 16;
    if is_plain(bytes) {
        let members = bytes
            .chunks_exact(2)
            .map(|low| base | u32::from(get_u16(low, 0)));
        return match RoaringBitmap::from_sorted_iter(members) {
            Ok(members) if !bytes.is_empty() => Ok(members),
            _ => Err(damaged(block, bytes, "ascending numbers of 2 bytes")),
        };
    }
    // The number of containers is checked before the library allocates memory for them.
    if !has_one_container(bytes) {
        return Err(damaged(block, bytes, "one container"));
    }
    let members = RoaringBitmap::deserialize_from(bytes);
    let members = members.map_err(|error| damaged(block, bytes, &error.to_string()))?;
    if members.serialized_size() != bytes.len()
        || members.len() != count(block, bytes)?
        || members.min().is_none_or(|least| least >> 16 != base >> 16)
    {
        return Err(damaged(block, bytes, "the members of its block"));
    }
    Ok(members)
}

/// Number of members of an encoded container, without decoding it.
pub(crate) fn count(block: u32, bytes: &[u8]) -> Result<u64, Corrupt> {
    if is_plain(bytes) {
        return Ok(bytes.len() as u64 / 2);
    }
    if !has_one_container(bytes) {
        return Err(damaged(block, bytes, "one container"));
    }
    // The fields are: cookie, number of containers or a byte that marks runs, key, number of members minus one.
    let at = if get_u32(bytes, 0) == COOKIE { 10 } else { 7 };
    Ok(u64::from(get_u16(bytes, at)) + 1)
}

fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() <= 2 * PLAIN_MAX as usize && bytes.len().is_multiple_of(2)
}

fn has_one_container(bytes: &[u8]) -> bool {
    // The shortest bitmap has one run.
    bytes.len() >= 15
        && match get_u32(bytes, 0) {
            COOKIE => get_u32(bytes, 4) == 1,
            // There is one container, and it has runs.
            cookie => cookie == COOKIE_RUNS && bytes[4] == 1,
        }
}

#[cold]
fn damaged(block: u32, bytes: &[u8], expected: &str) -> Corrupt {
    let found = format!("{} bytes", bytes.len());
    Corrupt::new(format!("container {block} of postings"), 0, found, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_survive_encoding() {
        let runs: Vec<u32> = (100..9000).chain(20_000..20_100).collect();
        let sets = [
            vec![0],
            vec![65_535],
            (0..8).map(|i| i * 7).collect(),
            (0..9).map(|i| i * 7).collect(),
            (0..4096).map(|i| i * 3).collect(),
            (0..21_000).map(|i| i * 3).collect(),
            (0..65_536).collect(),
            runs,
        ];
        for block in [0, 7, 0xffff, 0x1_0003] {
            for set in &sets {
                let mut members: RoaringBitmap =
                    set.iter().map(|low: &u32| block << 16 | low).collect();
                let bytes = encode(&mut members);
                assert_eq!(count(block, &bytes).ok(), Some(members.len()));
                assert_eq!(decode(block, &bytes).ok(), Some(members));
            }
        }
    }

    #[test]
    fn damaged_containers_are_refused() {
        assert!(decode(0, &[]).is_err() && decode(0, &[1, 0, 1, 0]).is_err());
        assert!(decode(0, &[1, 0, 2]).is_err());
        for set in [
            (0..40).map(|i| i * 3).collect::<Vec<u32>>(),
            (0..4000).collect(),
        ] {
            let mut members: RoaringBitmap = set.into_iter().collect();
            let bytes = encode(&mut members);
            assert!(decode(1, &bytes).is_err(), "another block");
            for at in (0..bytes.len()).filter(|at| *at > 16 || at % 2 == 1) {
                assert!(decode(0, &bytes[..at]).is_err(), "cut at {at}");
            }
            for bit in 0..8 * bytes.len() {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                if let Ok(decoded) = decode(0, &other) {
                    assert_eq!(decoded.len(), members.len(), "bit {bit}");
                }
            }
        }
    }
}
