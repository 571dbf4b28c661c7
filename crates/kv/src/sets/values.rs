//! Reads the values of keys of a table of sets without a cursor: values of many keys at once, and ranks of pairs.

use crate::cursor::select::cuts;
use crate::error::unexpected;
use crate::nested::table_reader::TableReader;
use crate::page::layout::tag;
use crate::page::overflow::PageSlice;
use crate::table::get_many::FoundRow;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, Result};

/// The values of one key of a table of sets, read in place.
pub struct Values<'r>(ValuesRepr<'r>);

enum ValuesRepr<'r> {
    One(PageSlice<'r>),
    Set(TableReader<'r>),
}

impl<'r> Values<'r> {
    fn of<R: PageRead>(r: &R, row: FoundRow<'r>, id: u64) -> Result<Self> {
        let FoundRow {
            page,
            tag,
            range,
            at,
        } = row;
        match tag::kind(tag) {
            tag::INLINE => Ok(Self(ValuesRepr::One(PageSlice::new(page, range)))),
            tag::REFERENCE => Err(unexpected("a value in an extent", "a set of values")),
            _ => Ok(Self(ValuesRepr::Set(TableReader::of_payload(
                r,
                &page,
                (tag, range),
                id,
                at,
            )?))),
        }
    }

    /// Number of values. Reads no page.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a key without values is not there"
    )]
    pub fn len(&self) -> u64 {
        match &self.0 {
            ValuesRepr::One(_) => 1,
            ValuesRepr::Set(set) => set.len(),
        }
    }

    /// Number of values of the set below `value`. Costs one page per level of the set.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn rank<R: PageRead>(&self, r: &R, value: &[u8]) -> Result<u64> {
        match &self.0 {
            ValuesRepr::One(one) => Ok(u64::from(**one < *value)),
            ValuesRepr::Set(set) => set.rank(r, value),
        }
    }

    /// Passes the values of the set in order to `take`, until `take` returns false.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn each<R: PageRead>(&self, r: &R, mut take: impl FnMut(&[u8]) -> bool) -> Result<()> {
        match &self.0 {
            ValuesRepr::One(one) => {
                take(one);
                Ok(())
            }
            ValuesRepr::Set(set) => set.each_key(r, take),
        }
    }
}

impl Tree {
    /// The values of a key of a table of sets; `None` if the key does not exist.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One page per level of the table; a set that has pages of its own is not read.
    pub fn values<'r, R: PageRead>(&self, r: &'r R, key: &[u8]) -> Result<Option<Values<'r>>> {
        let row = self.find_row(r, key)?;
        row.map(|row| Values::of(r, row, self.id)).transpose()
    }

    /// Passes the values of many keys of a table of sets to `found`, in the order of the keys, each with the
    /// index of its key. Cost: as `get_many`; a set that has pages of its own is not read.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; errors of `found`.
    pub fn values_of_many<'r, R: PageRead, K: AsRef<[u8]>>(
        &self,
        r: &'r R,
        keys: &[K],
        mut found: impl FnMut(usize, Option<Values<'r>>) -> Result<()>,
    ) -> Result<()> {
        self.find_many(r, keys, |place, row| {
            let values = row.map(|row| Values::of(r, row, self.id)).transpose()?;
            found(place, values)
        })
    }

    /// Number of pairs of a table of sets below the pair (`key`, `value`).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// Two descents in the table, and one in the set of the key.
    pub fn rank_pair<R: PageRead>(&self, r: &R, key: &[u8], value: &[u8]) -> Result<u64> {
        let below = self.rank(r, key)?;
        let Some(values) = self.values(r, key)? else {
            return Ok(below);
        };
        // The row counts in a hostile file may overflow.
        Ok(below.wrapping_add(values.rank(r, value)?))
    }

    /// Divides the pairs of a table of sets from one rank up to another into `parts` of equal size, to within one pair.
    /// Returns the first pair of each part except the first part; there are fewer parts if there are not enough pairs.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// One descent per part, and one in the set of the key found.
    pub fn split_pairs<R: PageRead>(
        &self,
        r: &R,
        (from, to): (u64, u64),
        parts: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut cursor = self.pair_cursor(r);
        for rank in cuts(from, to.min(self.len()), parts) {
            if !cursor.select(rank)? {
                continue;
            }
            let (key, value) = (cursor.key(), cursor.value());
            let ascends = |(last_key, last_value): &(Vec<u8>, Vec<u8>)| {
                (last_key.as_slice(), last_value.as_slice()) < (key, value)
            };
            if pairs.last().is_none_or(ascends) {
                pairs.push((key.to_vec(), value.to_vec()));
            }
        }
        Ok(pairs)
    }
}
