//! The series record: one per series; it is decoded before any other data of the series is read.
//!
//! ```text
//! 0         1        2        3         4  8
//! | version | columns| height | pending | 0 | types | states | root | pending links |
//! |   u8    |   u8   |   u8   |   u8    |u32|
//! types   one u8 per column, zeros up to a multiple of 8
//! states   8 B per column: encoder state; a writer may leave zeros
//! root    if height > 0: an entry
//! entry   | link 72 B | statistics: for each column a form and its data |
//!           form 0: | 0 u8 | statistics |     as in leaf/entry.rs, with times since the link's begin
//!           form 1: | 1 u8 |          every value is zero and begin, end, count equal the link's
//!           form 2: | 2 u8 |          every value is null, and the same holds; only if the column has nulls
//! ```
//!
//! At most 8 links are pending, so a record of c columns has at most 15 + 9 c + 9 (72 + 103 c) bytes.

use crate::leaf::layout::is_leaf;
use crate::link::{Entry, LINK_BYTES, Link};
use crate::node::{HEIGHT_MAX, NODE_LINKS_MAX};
use crate::row::Row;
use crate::tree::series_tree::{PENDING_MAX, SeriesTree};
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::short;
use tidalite_codec::{
    Clock, ColumnType, ENCODER_STATE_BYTES, EncoderState, STATS_FIELDS, Stats, last_word,
};
use tidalite_pager::{Kind, Result};

const VERSION: u8 = 2;
const VERSION_AT: usize = 0;
const COLUMNS_AT: usize = VERSION_AT + 1;
const HEIGHT_AT: usize = COLUMNS_AT + 1;
const PENDING_AT: usize = HEIGHT_AT + 1;
const TYPES_AT: usize = PENDING_AT + 5;

const FORM_WHOLE: u8 = 0;
const FORM_ZERO: u8 = 1;
const FORM_NULL: u8 = 2;

fn encode_entry(entry: &Entry, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + LINK_BYTES, 0);
    entry.link.encode(out, at);
    for stats in &entry.stats {
        let (ty, link) = (stats.column_type(), &entry.link);
        // This form is common for the flags column, whose values are nearly always zero.
        if stats.to_bytes() == Stats::of_zeros(ty, link.begin, link.count).to_bytes() {
            out.push(FORM_ZERO);
        } else if ty.null().is_some() && stats.null_count() == link.count {
            out.push(FORM_NULL);
        } else {
            out.push(FORM_WHOLE);
            short::put(&stats.to_fields(&Clock::units(link.begin, link.end)), out);
        }
    }
}

struct Head {
    types: Vec<ColumnType>,
    height: u8,
    pending: usize,
}

/// Decodes the fields of a record one after another; a field beyond the end of the record is damage.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    id: SeriesId,
}

impl<'a> Fields<'a> {
    fn bad(&self, found: String, expected: &str) -> tidalite_pager::Error {
        let what = format!("record of {}", self.id);
        Corrupt::new(what, self.at as u64, found, expected).into()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some(field) = self.bytes.get(self.at..self.at + len) else {
            return Err(self.bad(format!("{} bytes", self.bytes.len()), "a longer record"));
        };
        self.at += len;
        debug_assert!(self.at <= self.bytes.len(), "inside the record");
        Ok(field)
    }

    /// Decodes the fields before the entries, including the number of entries.
    fn head(&mut self) -> Result<Head> {
        let head = self.take(TYPES_AT)?;
        let (columns, height) = (usize::from(head[COLUMNS_AT]), head[HEIGHT_AT]);
        let pending = usize::from(head[PENDING_AT]);
        if head[VERSION_AT] != VERSION || head[PENDING_AT + 1..].iter().any(|&byte| byte != 0) {
            return Err(self.bad(format!("version {}", head[VERSION_AT]), "version 2"));
        }
        if columns > COLUMNS_MAX || height > HEIGHT_MAX || pending > PENDING_MAX {
            let found = format!("{columns} columns, height {height}, {pending} links");
            return Err(self.bad(found, "numbers within the limits"));
        }
        let codes = self.take(columns.next_multiple_of(8))?;
        let types = codes[..columns]
            .iter()
            .map(|&code| ColumnType::from_code(code));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        Ok(Head {
            types,
            height,
            pending,
        })
    }

    fn expect_end(&self) -> Result<()> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        Err(self.bad(format!("{} bytes", self.bytes.len()), "a shorter record"))
    }

    /// Skips an entry: a link and its statistics.
    fn skip_entry(&mut self, columns: usize) -> Result<()> {
        self.take(LINK_BYTES)?;
        for _ in 0..columns {
            if self.take(1)?[0] == FORM_WHOLE {
                self.statistics()?;
            }
        }
        Ok(())
    }

    /// The numbers of statistics that are stored in form 0 (all numbers, not a constant).
    fn statistics(&mut self) -> Result<[u64; STATS_FIELDS]> {
        let Some((numbers, end)) = short::get(self.bytes, self.at) else {
            let found = format!("{} bytes", self.bytes.len());
            return Err(self.bad(found, "0 to 8 bytes for each number of statistics"));
        };
        self.at = end;
        Ok(numbers)
    }

    /// Statistics of the rows below a link, stored in form 0 (all numbers, not a constant).
    fn stats(&mut self, ty: ColumnType, link: &Link) -> Result<Stats> {
        let numbers = self.statistics()?;
        let clock = Clock::units(link.begin, link.end);
        Ok(Stats::from_fields(ty, link.count, &numbers, &clock)?)
    }

    fn link(&mut self, of_kind: fn(Kind) -> bool, after: Option<i64>) -> Result<Link> {
        let link = Link::decode(self.take(LINK_BYTES)?, 0);
        let behind = after.is_none_or(|after| after < link.begin);
        if !of_kind(link.ptr.kind) || !behind || link.count == 0 || link.end < link.begin {
            return Err(self.bad(format!("{link:?}"), "a link behind those before it"));
        }
        Ok(link)
    }

    /// Decodes the next link, which must be the last of the record, and returns the last row below this link.
    fn last_row(&mut self, types: &[ColumnType], of_kind: fn(Kind) -> bool) -> Result<Row> {
        let link = self.link(of_kind, None)?;
        let mut words = Vec::with_capacity(types.len());
        for &ty in types {
            words.push(match self.take(1)?[0] {
                FORM_WHOLE => last_word(ty, &self.statistics()?),
                FORM_ZERO => 0,
                FORM_NULL if ty.null().is_some() => ty.fill(),
                other => return Err(self.bad(format!("form {other}"), "0, 1 or 2")),
            });
        }
        Ok(Row {
            time: link.end,
            words,
        })
    }

    fn entry(
        &mut self,
        types: &[ColumnType],
        of_kind: fn(Kind) -> bool,
        after: Option<i64>,
    ) -> Result<Entry> {
        let link = self.link(of_kind, after)?;
        let mut stats = Vec::with_capacity(types.len());
        for &ty in types {
            let own = match self.take(1)?[0] {
                FORM_WHOLE => self.stats(ty, &link)?,
                FORM_ZERO => Stats::of_zeros(ty, link.begin, link.count),
                FORM_NULL if ty.null().is_some() => Stats::of_fill(ty, link.begin, link.count),
                other => return Err(self.bad(format!("form {other}"), "0, 1 or 2")),
            };
            stats.push(own);
        }
        Ok(Entry { link, stats })
    }
}

impl SeriesTree {
    pub(crate) fn encode(&self) -> Vec<u8> {
        assert!(
            self.pending.len() <= PENDING_MAX,
            "flushed before it is encoded"
        );
        assert!(self.height <= HEIGHT_MAX, "height of a tree");
        self.assert_invariants();
        let mut out = vec![0; TYPES_AT + self.types.len().next_multiple_of(8)];
        out[VERSION_AT] = VERSION;
        out[COLUMNS_AT] = self.types.len() as u8;
        out[HEIGHT_AT] = self.height;
        out[PENDING_AT] = self.pending.len() as u8;
        for (c, ty) in self.types.iter().enumerate() {
            out[TYPES_AT + c] = ty.code();
        }
        // The encoder state of the times is not stored: the next encoder finds it again by one search for the best
        // encoding.
        for state in &self.states[..self.types.len()] {
            out.extend_from_slice(&state.to_bytes());
        }
        for entry in self.tops() {
            encode_entry(entry, &mut out);
        }
        out
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record; the error's address is the offset inside the record.
    pub fn decode(id: SeriesId, bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields { bytes, at: 0, id };
        let head = fields.head()?;
        let (types, height) = (head.types, head.height);
        let mut states = Vec::with_capacity(types.len() + 1);
        for _ in 0..types.len() {
            let mut state = [0; ENCODER_STATE_BYTES];
            state.copy_from_slice(fields.take(ENCODER_STATE_BYTES)?);
            states.push(EncoderState::from_bytes(state));
        }
        states.push(EncoderState::default());
        let mut after = None;
        let mut root = None;
        if height > 0 {
            let entry = fields.entry(&types, |kind| kind == Kind::SeriesNode, after)?;
            after = Some(entry.link.end);
            root = Some(entry);
        }
        let mut pending = Vec::with_capacity(head.pending);
        for _ in 0..head.pending {
            let entry = fields.entry(&types, is_leaf, after)?;
            after = Some(entry.link.end);
            pending.push(entry);
        }
        fields.expect_end()?;
        let tree = Self {
            id,
            types,
            states,
            height,
            root,
            pending,
            open: None,
            fanout: NODE_LINKS_MAX,
        };
        if cfg!(debug_assertions) {
            tree.assert_invariants();
        }
        Ok(tree)
    }

    /// The last row of the tree with this record, or `None` if the tree has no rows. Equals
    /// [`last_row`](Self::last_row) after `decode`, with values for the columns `types`, of which the last may have
    /// been added later. Decodes only the values of the record's last entry.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record, or the columns differ.
    pub fn last_row_of(id: SeriesId, bytes: &[u8], types: &[ColumnType]) -> Result<Option<Row>> {
        let mut fields = Fields { bytes, at: 0, id };
        let head = fields.head()?;
        let Some(added) = types.strip_prefix(&head.types[..]) else {
            return Err(fields.bad(format!("{:?}", head.types), "the columns of the series"));
        };
        fields.take(head.types.len() * ENCODER_STATE_BYTES)?;
        let tops = usize::from(head.height > 0) + head.pending;
        if tops == 0 {
            fields.expect_end()?;
            return Ok(None);
        }
        for _ in 1..tops {
            fields.skip_entry(head.types.len())?;
        }
        let of_kind = match head.pending {
            0 => |kind| kind == Kind::SeriesNode,
            _ => is_leaf,
        };
        let mut row = fields.last_row(&head.types, of_kind)?;
        fields.expect_end()?;
        row.words.extend(added.iter().map(|ty| ty.fill()));
        debug_assert_eq!(row.words.len(), types.len(), "a value per column");
        Ok(Some(row))
    }

    /// Adds columns after the existing ones: in existing rows their value is null, or zero in a column without nulls.
    ///
    /// # Errors
    /// `Limit` with more than 64 columns.
    pub fn with_added(mut self, types: &[ColumnType]) -> Result<Self> {
        debug_assert!(self.open.is_none(), "columns are added after `close_leaf`");
        let columns = self.types.len() + types.len();
        if columns > COLUMNS_MAX {
            return Err(tidalite_pager::Error::Limit {
                what: "columns of a series",
                found: columns as u64,
                limit: COLUMNS_MAX as u64,
            });
        }
        for &ty in types {
            // The encoder state of the times stays the last of the states.
            self.states
                .insert(self.types.len(), EncoderState::default());
            self.types.push(ty);
            for entry in self.root.iter_mut().chain(&mut self.pending) {
                let link = &entry.link;
                entry.stats.push(Stats::of_fill(ty, link.begin, link.count));
            }
        }
        self.assert_invariants();
        Ok(self)
    }

    /// True if the tree has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none() && self.pending.is_empty() && self.open.is_none()
    }
}
