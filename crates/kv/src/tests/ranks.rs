//! Compares pairs with a sorted list: ranks, division into parts, and the values of many keys at once.

use super::pairs::{Pair, at, pair};
use crate::Tree;
use tidalite_pager::PageRead;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Checks ranks, positions, parts, and lookups of many keys. `all` holds the pairs of the table.
pub(super) fn ranks(
    rng: &mut Rng,
    tree: &Tree,
    pages: &ScratchPages,
    all: &[Pair],
    (key, value): (&[u8], &[u8]),
) {
    let below = all.partition_point(|pair| (&pair.0[..], &pair.1[..]) < (key, value));
    assert_eq!(tree.rank_pair(pages, key, value).unwrap(), below as u64);
    let mut cursor = tree.pair_cursor(pages);
    for rank in [0, all.len(), rng.index(all.len() + 1), below] {
        assert_eq!(cursor.select(rank as u64).unwrap(), rank < all.len());
        assert_eq!(at(&cursor).as_ref(), all.get(rank));
        assert_eq!(cursor.eof(), rank >= all.len());
        let of_key = |pair: &Pair| all.partition_point(|other| other.0 < pair.0);
        cursor.select_key(rank as u64).unwrap();
        let first = all.get(rank).map(of_key);
        assert_eq!(at(&cursor).as_ref(), first.map(|first| &all[first]));
    }
    let of_key = all.partition_point(|pair| pair.0.as_slice() < key);
    let nth = rng.index(5);
    let there = all.get(of_key + nth).filter(|pair| pair.0 == key);
    let found = cursor.select_value(key, nth as u64).unwrap();
    assert_eq!(found, there.is_some());
    let behind = all.partition_point(|pair| pair.0.as_slice() <= key);
    assert_eq!(at(&cursor).as_ref(), there.or(all.get(behind)));

    let mut keys: Vec<Vec<u8>> = (0..rng.index(40))
        .map(|_| pair(rng, pages.page_size()).0)
        .collect();
    keys.push(key.to_vec());
    let mut found = vec![None; keys.len()];
    tree.values_of_many(pages, &keys, |place, values| {
        let Some(values) = values else { return Ok(()) };
        let (mut own, rank) = (Vec::new(), values.rank(pages, value)?);
        values.each(pages, |value| {
            own.push(value.to_vec());
            own.len() < 1000
        })?;
        assert_eq!(own.len() as u64, values.len());
        let below = own.partition_point(|other| other.as_slice() < value);
        assert_eq!(rank, below as u64);
        found[place] = Some(own);
        Ok(())
    })
    .unwrap();
    for (key, found) in keys.iter().zip(found) {
        let own = all.iter().filter(|pair| pair.0 == *key);
        let own: Vec<_> = own.map(|pair| pair.1.clone()).collect();
        assert_eq!(found.unwrap_or_default(), own);
    }

    let (from, parts) = (rng.index(all.len() + 1), 1 + rng.index(9));
    let to = from + rng.index(all.len() - from + 1);
    let cuts = tree
        .split_pairs(pages, (from as u64, to as u64), parts)
        .unwrap();
    assert_eq!(cuts.len(), parts.min(to - from).saturating_sub(1));
    let places = cuts.iter().map(|cut| all.binary_search(cut).unwrap());
    let places: Vec<usize> = [from].into_iter().chain(places).chain([to]).collect();
    for part in places.windows(2) {
        let rows = (to - from) / parts;
        assert!(from == to || part[1] - part[0] <= rows + 1, "{places:?}");
    }
}
