//! Reads series (section 8 of docs/format.md): records, tree nodes, leaves, and the extents that leaves share.

use crate::block::{Block, Pointer, kind};
use crate::bytes::{Fields, big, checksum};
use crate::chunk::{COLD_ENCODING, Chunk, VECTOR_ROWS_MAX, no_cold, words};
use crate::cold;
use crate::delta::Row;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::statistics::Statistics;
use std::collections::{BTreeMap, BTreeSet};

const RECORD_VERSION: u8 = 2;
const COLUMNS_MAX: usize = 64;
const HEIGHT_MAX: u8 = 48;
const WAITING_MAX: u8 = 8;
const LEAF_VECTORS_MAX: usize = 16;
const NODE_LINKS_MAX: usize = 64;

/// Leaves begin at addresses that are multiples of this number of bytes.
const LEAF_ALIGNMENT: u64 = 64;

/// Modes of a section (the times, or one column) of a leaf.
const ENCODED: u8 = 0;
const PLAIN: u8 = 1;
const COLD: u8 = 2;

/// The encodings that occurred, each with the number of the type of the words; 0 for times.
pub type Encodings = BTreeSet<(u8, u8)>;

/// A link to a leaf or a node.
#[derive(Clone, Copy, Debug)]
struct Link {
    pointer: Pointer,
    begin: i64,
    end: i64,
    count: u64,
    bytes: u64,
}

impl Link {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let pointer = Pointer::read(fields)?;
        let link = Self {
            pointer: pointer.ok_or_else(|| fields.damaged("a link to nothing"))?,
            begin: fields.i64()?,
            end: fields.i64()?,
            count: fields.u64()?,
            bytes: {
                let _data_transaction = fields.u64()?;
                fields.u64()?
            },
        };
        fields.require(
            link.begin <= link.end && link.count > 0,
            "the span of a link",
        )?;
        Ok(link)
    }
}

/// The rows of a part of a series, stored column by column.
#[derive(Clone, Debug, Default)]
struct Rows {
    times: Vec<i64>,
    columns: Vec<Vec<u64>>,
}

impl Rows {
    fn append(&mut self, more: Self) {
        self.times.extend(more.times);
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            column.extend(more);
        }
    }

    /// Adds columns that were added to the series after these rows were written.
    fn fill(&mut self, types: &[u8]) {
        for kind in types.iter().skip(self.columns.len()) {
            self.columns
                .push(vec![words::fill(*kind); self.times.len()]);
        }
    }
}

/// Reads series, and remembers the address of each leaf.
#[derive(Debug)]
pub struct SeriesReader<'a> {
    image: &'a Image,
    /// Length in bytes of each leaf, including the padding to its alignment, by the address of the leaf.
    leaves: BTreeMap<u64, u64>,
    cold_leaves: usize,
    height: u8,
    encodings: Encodings,
}

impl<'a> SeriesReader<'a> {
    /// Creates a reader that has read nothing yet.
    #[must_use]
    pub fn new(image: &'a Image) -> Self {
        Self {
            image,
            leaves: BTreeMap::new(),
            cold_leaves: 0,
            height: 0,
            encodings: Encodings::new(),
        }
    }

    /// Number of leaves and number of leaves in cold form that were read, and the greatest height of a tree.
    #[must_use]
    pub fn seen(&self) -> (usize, usize, u8) {
        (self.leaves.len(), self.cold_leaves, self.height)
    }

    /// The encodings of the vectors that were read.
    #[must_use]
    pub fn encodings(&self) -> &Encodings {
        &self.encodings
    }

    /// Reads all rows to which the record of a series leads; `types` are the types of the words, from the schema.
    ///
    /// # Errors
    /// If a part of the series is damaged, or stored statistics differ from the rows.
    pub fn rows(&mut self, series: u64, record: &[u8], types: &[u8]) -> Result<Vec<Row>> {
        let mut fields = Fields::new(record, 0);
        let version = fields.u8()?;
        if version != RECORD_VERSION {
            let value = u64::from(version);
            let field = "version of a series record";
            return Err(Error::Unknown { field, value });
        }
        let columns = usize::from(fields.u8()?);
        let height = fields.u8()?;
        let waiting = fields.u8()?;
        fields.skip(4)?;
        fields.require(
            columns <= COLUMNS_MAX && height <= HEIGHT_MAX && waiting <= WAITING_MAX,
            "the head of a series record",
        )?;
        let own_types = fields.take(columns.next_multiple_of(8))?;
        fields.require(
            types.starts_with(&own_types[..columns]),
            "the types of a series record",
        )?;
        fields.skip(8 * columns)?;
        let own_types = &own_types[..columns];
        self.height = self.height.max(height);
        let mut rows = Rows {
            times: Vec::new(),
            columns: vec![Vec::new(); columns],
        };
        if height > 0 {
            let found = self.entry(&mut fields, series, own_types, height)?;
            rows.append(found);
        }
        for _ in 0..waiting {
            let found = self.entry(&mut fields, series, own_types, 0)?;
            let ascends = rows.times.last() < found.times.first();
            fields.require(ascends, "waiting links do not ascend")?;
            rows.append(found);
        }
        fields.require(fields.left() == 0, "a series record goes on")?;
        rows.fill(types);
        let row = |(row, time): (usize, &i64)| Row {
            time: *time,
            words: rows.columns.iter().map(|column| column[row]).collect(),
        };
        Ok(rows.times.iter().enumerate().map(row).collect())
    }

    /// Reads an entry of a series record: a link, and the statistics of each column.
    fn entry(
        &mut self,
        fields: &mut Fields<'_>,
        series: u64,
        types: &[u8],
        level: u8,
    ) -> Result<Rows> {
        let link = Link::read(fields)?;
        let rows = self.below(&link, series, types, level)?;
        for (kind, column) in types.iter().zip(&rows.columns) {
            let holds = match fields.u8()? {
                0 => Statistics::read_short(fields, *kind, link.count, link.begin, 1)?
                    .describe(&rows.times, column),
                1 => column.iter().all(|word| *word == 0),
                2 => column.iter().all(|word| Some(*word) == words::null(*kind)),
                _ => false,
            };
            fields.require(holds, "the statistics of a series record")?;
        }
        Ok(rows)
    }

    /// Reads the rows below a link, in all columns of `types`.
    fn below(&mut self, link: &Link, series: u64, types: &[u8], level: u8) -> Result<Rows> {
        let before: u64 = self.leaves.values().sum();
        let mut rows = if level == 0 {
            self.leaf(link, series, types)?
        } else {
            self.node(link, series, types, level)?
        };
        let bytes = self.leaves.values().sum::<u64>() - before;
        let holds = rows.times.first() == Some(&link.begin)
            && rows.times.last() == Some(&link.end)
            && rows.times.len() as u64 == link.count
            && bytes == link.bytes;
        if !holds {
            let address = link.pointer.address;
            return Err(Error::damaged(address, "span, count or bytes of a link"));
        }
        rows.fill(types);
        Ok(rows)
    }

    fn node(&mut self, link: &Link, series: u64, types: &[u8], level: u8) -> Result<Rows> {
        let spine = self.image.block_of(&link.pointer, kind::SERIES_NODE)?;
        let mut fields = spine.fields()?;
        let own_level = fields.u8()?;
        let count = usize::from(fields.u8()?);
        let columns = fields.u16()?;
        fields.skip(4)?;
        fields.require(
            own_level == level && spine.header.owner == series,
            "level and owner of a node",
        )?;
        fields.require(
            (1..=NODE_LINKS_MAX).contains(&count) && columns <= types.len(),
            "links and columns of a node",
        )?;
        let mut at = link.pointer.address + link.pointer.length as u64;
        let mut statistics = Vec::new();
        for kind in &types[..columns] {
            let pointer = Pointer::read(&mut fields)?;
            let pointer = pointer.ok_or_else(|| fields.damaged("a node without statistics"))?;
            fields.require(pointer.address == at, "the place of statistics")?;
            at += pointer.length as u64;
            statistics.push(self.node_statistics(&pointer, series, *kind, count)?);
        }
        let mut rows = Rows {
            times: Vec::new(),
            columns: vec![Vec::new(); columns],
        };
        for number in 0..count {
            let link = Link::read(&mut fields)?;
            let ascends = rows.times.last().is_none_or(|last| *last < link.begin);
            fields.require(ascends, "links of a node do not ascend")?;
            let below = self.below(&link, series, &types[..columns], level - 1)?;
            for (column, statistics) in below.columns.iter().zip(&statistics) {
                fields.require(
                    statistics[number].describe(&below.times, column),
                    "the statistics of a node",
                )?;
            }
            rows.append(below);
        }
        fields.require(fields.left() == 0, "a node goes on")?;
        Ok(rows)
    }

    fn node_statistics(
        &self,
        pointer: &Pointer,
        series: u64,
        kind: u8,
        count: usize,
    ) -> Result<Vec<Statistics>> {
        let block = self.image.block_of(pointer, kind::NODE_STATISTICS)?;
        let mut fields = block.fields()?;
        let statistics = (0..count).map(|_| Statistics::read(&mut fields));
        let statistics: Vec<Statistics> = statistics.collect::<Result<_>>()?;
        fields.require(
            fields.left() == 0
                && block.header.owner == series
                && statistics.iter().all(|own| own.kind == kind),
            "the statistics of a node",
        )?;
        Ok(statistics)
    }

    fn leaf(&mut self, link: &Link, series: u64, types: &[u8]) -> Result<Rows> {
        let pointer = &link.pointer;
        let is_cold = pointer.kind == kind::COLD_LEAF;
        let block = if is_cold {
            self.image.block(pointer)?
        } else {
            self.image.block_of(pointer, kind::SERIES_LEAF)?
        };
        let leaf = LeafHead::read(&block)?;
        let mut fields = Fields::new(&block.bytes, pointer.address);
        fields.require(
            block.header.owner == series
                && block.header.flags == 0
                && pointer.address.is_multiple_of(LEAF_ALIGNMENT)
                && leaf.directory_bytes == pointer.length
                && leaf.sections.len() <= types.len() + 1,
            "the head of a leaf",
        )?;
        let data_at = pointer.address + pointer.length as u64;
        let data = self.image.bytes_at(data_at, leaf.data_bytes)?;
        let bytes = (pointer.length + leaf.data_bytes) as u64;
        let bytes = bytes.next_multiple_of(LEAF_ALIGNMENT);
        let repeated = self.leaves.insert(pointer.address, bytes).is_some();
        fields.require(!repeated, "a leaf occurs twice")?;
        self.cold_leaves += usize::from(is_cold);

        fields.skip(64 + 8 * leaf.sections.len())?;
        let mut payloads = Fields::new(&data, pointer.address);
        let [times, columns @ ..] = &leaf.sections[..] else {
            return Err(block.damaged("a leaf without times"));
        };
        let mut own = Fields::new(fields.take(times.directory_bytes)?, pointer.address);
        let mut own_payloads = Fields::new(payloads.take(times.payload_bytes)?, pointer.address);
        let vectors = leaf.times(
            times,
            is_cold,
            &mut own,
            &mut own_payloads,
            &mut self.encodings,
        )?;
        let mut rows = Rows {
            times: vectors.concat(),
            columns: Vec::new(),
        };
        for (section, kind) in columns.iter().zip(types) {
            fields.require(section.kind == *kind, "the type of a column of a leaf")?;
            let directory = fields.take(section.directory_bytes)?;
            let mut own = Fields::new(directory, pointer.address);
            let payload = payloads.take(section.payload_bytes)?;
            let mut own_payloads = Fields::new(payload, pointer.address);
            let stepped = times.mode == PLAIN;
            rows.columns.push(column(
                section,
                is_cold,
                stepped,
                &vectors,
                &mut own,
                &mut own_payloads,
                &mut self.encodings,
            )?);
        }
        fields.require(
            fields.left() == 0 && payloads.left() == 0,
            "a leaf with more than its sections",
        )?;
        fields.require(
            rows.times.len() == leaf.rows
                && rows.times.first() == Some(&leaf.begin)
                && rows.times.last() == Some(&leaf.end)
                && rows.times.is_sorted(),
            "the times of a leaf",
        )?;
        Ok(rows)
    }

    /// Compares the extents table with the leaves of all series that were read.
    ///
    /// # Errors
    /// If an extent has other leaves than the table says, or a leaf lies in no extent.
    pub fn check_extents(&self, extents: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let mut found = 0;
        for (key, value) in extents {
            let mut fields = Fields::new(value, 0);
            let pages = fields.u64()?;
            let _birth = fields.u64()?;
            let (live, used) = (fields.u64()?, fields.u64()?);
            let _last_time = fields.i64()?;
            let address = big(key);
            let bytes = pages.saturating_mul(self.image.page_bytes() as u64);
            let inside = self.leaves.range(address..address.saturating_add(bytes));
            let lengths: Vec<u64> = inside.map(|(_, bytes)| *bytes).collect();
            found += lengths.len();
            let sum = lengths.iter().sum::<u64>();
            fields.require(
                key.len() == 8 && fields.left() == 0 && live > 0 && sum == live && used <= bytes,
                "the leaves of an extent",
            )?;
        }
        if found == self.leaves.len() {
            Ok(())
        } else {
            Err(Error::damaged(0, "a leaf outside of all extents"))
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Section {
    mode: u8,
    kind: u8,
    directory_bytes: usize,
    payload_bytes: usize,
}

struct LeafHead {
    rows: usize,
    vectors: usize,
    directory_bytes: usize,
    data_bytes: usize,
    begin: i64,
    end: i64,
    /// The sections of the leaf: first the times, then each column.
    sections: Vec<Section>,
}

impl LeafHead {
    fn read(block: &Block) -> Result<Self> {
        let mut fields = block.fields()?;
        let rows = fields.u32()?;
        let vectors = usize::from(fields.u8()?);
        let columns = usize::from(fields.u8()?);
        fields.skip(2)?;
        let directory_bytes = fields.u32()?;
        let data_bytes = fields.u32()?;
        let begin = fields.i64()?;
        let end = fields.i64()?;
        fields.require(
            (1..=LEAF_VECTORS_MAX).contains(&vectors) && columns <= COLUMNS_MAX,
            "vectors and columns of a leaf",
        )?;
        let sections = (0..=columns).map(|_| {
            Ok(Section {
                mode: fields.u8()?,
                kind: fields.u8()?,
                directory_bytes: fields.u16()?,
                payload_bytes: fields.u32()?,
            })
        });
        let sections = sections.collect::<Result<_>>()?;
        Ok(Self {
            rows,
            vectors,
            directory_bytes,
            data_bytes,
            begin,
            end,
            sections,
        })
    }

    /// Decodes the times of each vector of a leaf.
    fn times(
        &self,
        section: &Section,
        is_cold: bool,
        own: &mut Fields<'_>,
        payloads: &mut Fields<'_>,
        encodings: &mut Encodings,
    ) -> Result<Vec<Vec<i64>>> {
        let mut vectors = Vec::new();
        if section.mode == PLAIN {
            let step = own.u64()?.cast_signed();
            let full = (self.vectors - 1) * VECTOR_ROWS_MAX;
            own.require(
                own.left() == 0
                    && payloads.left() == 0
                    && (full + 1..=full + VECTOR_ROWS_MAX).contains(&self.rows)
                    && (step != 0 || self.vectors == 1),
                "the step of a leaf",
            )?;
            for begin in (0..self.rows).step_by(VECTOR_ROWS_MAX) {
                let end = self.rows.min(begin + VECTOR_ROWS_MAX);
                let time = |row: usize| self.begin.wrapping_add(step.wrapping_mul(row as i64));
                vectors.push((begin..end).map(time).collect());
            }
            return Ok(vectors);
        }
        let model = model(section, is_cold, own, payloads)?;
        let pairs = pairs(self.vectors, own)?;
        let mut before = self.begin;
        for (entry_bytes, payload_bytes) in pairs {
            let mut entry = Fields::new(own.take(entry_bytes)?, 0);
            let [gap, span, missing] = entry.short_numbers()?;
            entry.require(missing < VECTOR_ROWS_MAX as u64, "the rows of a vector")?;
            let rows = VECTOR_ROWS_MAX - missing as usize;
            let (words, encoding) = vector(&mut entry, payload_bytes, payloads, rows, model)?;
            encodings.insert((encoding, 0));
            let times: Vec<i64> = words.into_iter().map(u64::cast_signed).collect();
            let begin = before.wrapping_add(gap.cast_signed());
            before = begin.wrapping_add(span.cast_signed());
            entry.require(
                times.first() == Some(&begin) && times.last() == Some(&before),
                "begin and end of a vector",
            )?;
            vectors.push(times);
        }
        own.require(
            own.left() == 0 && payloads.left() == 0,
            "the section of times",
        )?;
        Ok(vectors)
    }
}

/// Decodes the words of a column of a leaf.
fn column(
    section: &Section,
    is_cold: bool,
    stepped: bool,
    vectors: &[Vec<i64>],
    own: &mut Fields<'_>,
    payloads: &mut Fields<'_>,
    encodings: &mut Encodings,
) -> Result<Vec<u64>> {
    let mut column = Vec::new();
    if section.mode == PLAIN {
        let word = own.u64()?;
        column = vec![word; vectors.iter().map(Vec::len).sum()];
    } else {
        let model = model(section, is_cold, own, payloads)?;
        let pairs = pairs(vectors.len(), own)?;
        for (times, (entry_bytes, payload_bytes)) in vectors.iter().zip(pairs) {
            let mut entry = Fields::new(own.take(entry_bytes)?, 0);
            // In a leaf with a constant step, times in statistics are stored as row numbers.
            let begin = times.first().copied().unwrap_or(0);
            let step = match times[..] {
                [first, second, ..] if stepped => second.wrapping_sub(first),
                _ => 1,
            };
            let (kind, count) = (section.kind, times.len() as u64);
            let statistics = Statistics::read_short(&mut entry, kind, count, begin, step)?;
            let (words, encoding) =
                vector(&mut entry, payload_bytes, payloads, times.len(), model)?;
            encodings.insert((encoding, kind));
            own.require(
                statistics.describe(times, &words),
                "the statistics of a vector",
            )?;
            column.extend(words);
        }
    }
    own.require(own.left() == 0 && payloads.left() == 0, "a section goes on")?;
    Ok(column)
}

/// The model of a section in cold form (mode 2), which is the first payload of the section.
fn model<'a>(
    section: &Section,
    is_cold: bool,
    own: &mut Fields<'_>,
    payloads: &mut Fields<'a>,
) -> Result<Option<&'a [u8]>> {
    match section.mode {
        ENCODED => Ok(None),
        COLD if is_cold => {
            let sum = own.u64()?;
            let bytes = own.u32()?;
            let model = payloads.take(bytes)?;
            own.require(checksum(model) == sum, "the checksum of a model")?;
            Ok(Some(model))
        }
        _ => Err(own.damaged("the mode of a section")),
    }
}

/// Reads the length in bytes of the directory entry and of the payload of each vector.
fn pairs(vectors: usize, own: &mut Fields<'_>) -> Result<Vec<(usize, usize)>> {
    let pair = |_| Ok((usize::from(own.u8()?), own.u16()?));
    (0..vectors).map(pair).collect()
}

/// Reads the end of a directory entry, a chunk and a checksum, and decodes the vector that they describe. Returns the
/// words and the code of the encoding.
fn vector(
    entry: &mut Fields<'_>,
    payload_bytes: usize,
    payloads: &mut Fields<'_>,
    rows: usize,
    model: Option<&[u8]>,
) -> Result<(Vec<u64>, u8)> {
    let chunk = Chunk::read(entry)?;
    let payload = payloads.take(payload_bytes)?;
    if payload_bytes > 0 {
        let sum = entry.u64()?;
        entry.require(sum == checksum(payload), "the checksum of a payload")?;
    }
    entry.require(entry.left() == 0, "an entry of a leaf goes on")?;
    entry.require(
        chunk.encoding != COLD_ENCODING || model.is_some(),
        "encoding 13 without a model",
    )?;
    let words = match model {
        Some(model) => chunk.decode(payload, rows, 0, &|page, rows| {
            cold::decode(model, page, rows)
        }),
        None => chunk.decode(payload, rows, 0, &no_cold),
    };
    Ok((words?, chunk.encoding))
}
