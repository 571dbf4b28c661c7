//! Reads the delta (section 7 of docs/format.md): rows of series that are in no leaf yet, in the tail page and the
//! runs.

use crate::block::{Pointer, kind};
use crate::bytes::{Fields, big, index, unzigzag};
use crate::chunk::{Chunk, no_cold, words};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::table::{Tree, Value};
use std::collections::BTreeMap;

const LAYOUTS_MAX: usize = 256;
const COLUMNS_MAX: usize = 64;
const TIERS_MAX: usize = 8;
const RUNS_MAX: usize = 31;
const INPUTS_MAX: usize = 16;
const SERIES_END: u64 = 1 << 48;

/// A row of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Timestamp, as a number of steps of the series' unit of time.
    pub time: i64,
    /// One word for each column.
    pub words: Vec<u64>,
}

/// Key by which the rows of a run are sorted: class, series, time.
type Key = (usize, u64, i64);

/// The rows of the tail page or of one run, by series; the times of a series do not descend.
type Place = BTreeMap<u64, Vec<Row>>;

/// All rows of the delta.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// The rows of the tail page and of each run, the newest first.
    places: Vec<Place>,
}

/// A run, as the record of the delta describes it.
struct Run {
    directory: Tree,
    rows: u64,
    bytes: u64,
    from: Key,
    to: Key,
    times: (i64, i64),
}

fn read_key(fields: &mut Fields<'_>) -> Result<Key> {
    let class = index(big(fields.take(4)?));
    let series = big(fields.take(8)?);
    let time = big(fields.take(8)?) ^ 1 << 63;
    fields.require(series < SERIES_END, "the number of a series")?;
    Ok((class, series, time.cast_signed()))
}

impl Run {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let _number = fields.u64()?;
        let directory = Tree::read(fields)?;
        let rows = fields.u64()?;
        let bytes = fields.u64()?;
        let (_oldest, _newest) = (fields.u64()?, fields.u64()?);
        Ok(Self {
            directory,
            rows,
            bytes,
            from: read_key(fields)?,
            to: read_key(fields)?,
            times: (fields.i64()?, fields.i64()?),
        })
    }

    /// Reads the rows of all blocks of the run, in the order of their keys.
    fn rows(&self, image: &Image, layouts: &[Vec<u8>]) -> Result<Vec<(Key, Row)>> {
        let mut rows: Vec<(Key, Row)> = Vec::new();
        let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
        let mut extents = Vec::new();
        for (key, value) in self.directory.rows(image)?.rows {
            let Value::Bytes(value) = value else {
                return Err(Error::damaged(0, "a nested table in a directory"));
            };
            let mut fields = Fields::new(&value, 0);
            let mut key_fields = Fields::new(&key, 0);
            fields.require(key.len() == 20, "the key of a directory")?;
            if key[..4] == [0xff; 4] {
                let pages = fields.u64()?;
                let _birth = fields.u64()?;
                extents.push((big(&key[4..12]), pages, fields.u64()?));
                continue;
            }
            let first = read_key(&mut key_fields)?;
            let [address, length, checksum, birth, series, time, count] = fields.short_numbers()?;
            fields.require(fields.left() == 0, "an entry of a directory goes on")?;
            let pointer = Pointer {
                address,
                length: index(length),
                kind: kind::RUN_BLOCK,
                checksum,
                birth,
            };
            let block = self.block(image, &pointer, layouts)?;
            let last = (
                first.0,
                first.1.wrapping_add(series),
                first.2.wrapping_add(unzigzag(time).cast_signed()),
            );
            let same = block.first().map(|(key, _)| *key) == Some(first)
                && block.last().map(|(key, _)| *key) == Some(last)
                && block.len() as u64 == count;
            fields.require(same, "the block of a directory")?;
            blocks.insert(address, length);
            rows.extend(block);
        }
        self.check(&rows, layouts)?;
        // Checks that each block of the run lies in an extent of the run, and that each extent has as many blocks as
        // its entry says.
        let mut in_extents = 0;
        for (address, pages, count) in extents {
            let bytes = pages.saturating_mul(image.page_bytes() as u64);
            let end = address.saturating_add(bytes);
            let inside = blocks.range(address..end);
            let inside = inside.filter(|(at, length)| **at + **length <= end).count() as u64;
            if count == 0 || inside != count {
                return Err(Error::damaged(address, "the blocks of an extent of a run"));
            }
            in_extents += inside;
        }
        if in_extents != blocks.len() as u64 {
            return Err(Error::damaged(0, "a block outside the extents of its run"));
        }
        Ok(rows)
    }

    fn check(&self, rows: &[(Key, Row)], layouts: &[Vec<u8>]) -> Result<()> {
        let bytes = rows.iter().map(|((class, ..), _)| {
            let columns = layouts.get(*class).map_or(0, Vec::len);
            16 + 8 * columns as u64
        });
        let bounded = rows.iter().all(|(key, row)| {
            (self.from..=self.to).contains(key) && (self.times.0..=self.times.1).contains(&row.time)
        });
        let holds = rows.len() as u64 == self.rows
            && bytes.sum::<u64>() == self.bytes
            && rows.windows(2).all(|pair| pair[0].0 <= pair[1].0)
            && bounded;
        if holds {
            Ok(())
        } else {
            Err(Error::damaged(0, "the rows of a run"))
        }
    }

    fn block(
        &self,
        image: &Image,
        pointer: &Pointer,
        layouts: &[Vec<u8>],
    ) -> Result<Vec<(Key, Row)>> {
        let block = image.block_of(pointer, kind::RUN_BLOCK)?;
        let address = pointer.address;
        let mut fields = block.fields()?;
        let count = fields.u16()?;
        let columns = usize::from(fields.u8()?);
        let shift_bytes = usize::from(fields.u8()?);
        let class = fields.u32()?;
        let layout = layouts.get(class);
        fields.require(
            address.is_multiple_of(8) && block.header.owner == self.directory.id,
            "place and owner of a block of a run",
        )?;
        fields.require(
            layout.is_some_and(|layout| layout.len() == columns),
            "the class of a block",
        )?;
        let parts = 2 + columns;
        let lengths = (0..parts).map(|_| fields.u16());
        let lengths: Vec<usize> = lengths.collect::<Result<_>>()?;
        let chunks = (0..parts).map(|_| Chunk::read(&mut fields));
        let chunks: Vec<Chunk> = chunks.collect::<Result<_>>()?;
        let mut shifts = Fields::new(fields.take(shift_bytes)?, address);
        let mut decoded = Vec::new();
        for (chunk, length) in chunks.iter().zip(lengths) {
            let payload = fields.take(length)?;
            decoded.push(chunk.decode(payload, count, address, &no_cold)?);
        }
        fields.require(fields.left() == 0, "a block of a run goes on")?;

        let mut rows: Vec<(Key, Row)> = Vec::new();
        let mut shift: u64 = 0;
        for row in 0..count {
            let series = decoded[0][row];
            let begins = row > 0 && decoded[0][row - 1] != series;
            if begins && shift_bytes > 0 {
                let length = usize::from(shifts.u8()?);
                shifts.require(length <= 8, "the length of a shift")?;
                let more = crate::bytes::little(shifts.take(length)?);
                shift = shift.wrapping_add(unzigzag(more));
            }
            let time = decoded[1][row].wrapping_add(shift).cast_signed();
            let words = decoded[2..].iter().map(|column| column[row]).collect();
            rows.push(((class, series, time), Row { time, words }));
        }
        shifts.require(shifts.left() == 0, "the shifts go on")?;
        Ok(rows)
    }
}

/// Adds a row to the rows of its series.
fn add(place: &mut Place, (key, row): (Key, Row)) {
    place.entry(key.1).or_default().push(row);
}

impl Delta {
    /// Reads the delta, starting from the 96 bytes of its root.
    ///
    /// # Errors
    /// If a part of the delta is damaged.
    pub fn read(image: &Image, root: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(root, 0);
        let tail = Pointer::read(&mut fields)?;
        let record = Pointer::read(&mut fields)?;
        let tail_rows = fields.u64()?;
        let run_rows = fields.u64()?;
        let mut delta = Self::default();
        let Some(record) = record else {
            fields.require(tail.is_none() && tail_rows == 0, "a tail without a record")?;
            return Ok(delta);
        };
        let record = image.block_of(&record, kind::DELTA_RECORD)?;
        let mut body = record.fields()?;
        let _highest = body.u64()?;
        let layout_count = body.u16()?;
        let tiers = usize::from(body.u8()?);
        body.require(
            layout_count <= LAYOUTS_MAX && tiers <= TIERS_MAX,
            "the record of the delta",
        )?;
        let mut layouts = Vec::new();
        for _ in 0..layout_count {
            let columns = usize::from(body.u8()?);
            let types = body.take(columns)?.to_vec();
            let known = types.iter().all(|kind| words::exists(*kind));
            body.require(columns <= COLUMNS_MAX && known, "a layout of the delta")?;
            layouts.push(types);
        }
        if let Some(tail) = tail {
            delta
                .places
                .push(read_tail(image, &tail, tail_rows, &layouts)?);
        }
        let mut counted = 0;
        for _ in 0..tiers {
            counted += delta.read_tier(image, &mut body, &layouts)?;
        }
        body.require(body.left() == 0, "the record of the delta goes on")?;
        fields.require(counted == run_rows, "the rows of all runs")?;
        Ok(delta)
    }

    /// Adds the runs of a tier (runs of about one size), the newest first; returns the total number of rows in these
    /// runs.
    fn read_tier(
        &mut self,
        image: &Image,
        body: &mut Fields<'_>,
        layouts: &[Vec<u8>],
    ) -> Result<u64> {
        let runs = usize::from(body.u8()?);
        let inputs = usize::from(body.u8()?);
        let outputs = usize::from(body.u8()?);
        body.require(
            runs <= RUNS_MAX && inputs <= INPUTS_MAX.min(runs) && outputs <= 1,
            "a tier of the delta",
        )?;
        body.require(outputs == 0 || inputs > 0, "an output without inputs")?;
        let described = (0..runs).map(|_| Run::read(body));
        let described: Vec<Run> = described.collect::<Result<_>>()?;
        let mut watermark = None;
        if inputs > 0 {
            let (_merged, _whole) = (body.u64()?, body.u64()?);
            let known = body.u8()?;
            // If there is no watermark, the 20 bytes have no meaning.
            let mut key = Fields::new(body.take(20)?, 0);
            if known == 1 {
                watermark = Some(read_key(&mut key)?);
            }
        }
        let mut counted = 0;
        let mut places = Vec::new();
        for (number, run) in described.iter().enumerate() {
            counted += run.rows;
            let mut place = Place::new();
            for row in run.rows(image, layouts)? {
                if number >= inputs || watermark.is_none_or(|mark| row.0 > mark) {
                    add(&mut place, row);
                }
            }
            places.push(place);
        }
        if outputs == 1 {
            // The output of the merge is as old as its inputs, but contains keys that the remaining parts of the inputs
            // do not contain.
            let output = Run::read(body)?;
            counted += output.rows;
            let mut place = Place::new();
            for row in output.rows(image, layouts)? {
                let below = watermark.is_some_and(|mark| row.0 <= mark);
                body.require(below, "the output of a merge beyond its watermark")?;
                add(&mut place, row);
            }
            places.insert(0, place);
        }
        self.places.extend(places.into_iter().rev());
        Ok(counted)
    }

    /// All rows of a series: the rows `leaves` from its leaves, in which rows of the delta with the same times replace
    /// them.
    #[must_use]
    pub fn over(&self, series: u64, leaves: Vec<Row>) -> Vec<Row> {
        let mut by_time: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
        let own = self.places.iter().filter_map(|place| place.get(&series));
        for rows in own.chain([&leaves]) {
            let mut place: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
            for row in rows {
                place.entry(row.time).or_default().push(row.clone());
            }
            for (time, rows) in place {
                by_time.entry(time).or_insert(rows);
            }
        }
        by_time.into_values().flatten().collect()
    }

    /// True if the delta has rows of this series.
    #[must_use]
    pub fn has(&self, series: u64) -> bool {
        self.places.iter().any(|place| place.contains_key(&series))
    }

    /// Number of parts of the delta that hold rows: the tail page and the runs.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places.len()
    }
}

fn read_tail(image: &Image, tail: &Pointer, count: u64, layouts: &[Vec<u8>]) -> Result<Place> {
    let block = image.block_of(tail, kind::TAIL)?;
    let mut fields = block.fields()?;
    let rows = fields.u32()?;
    let used = fields.u32()?;
    fields.require(rows as u64 == count, "the rows of the tail page")?;
    let mut place = Place::new();
    for _ in 0..rows {
        let first = fields.u64()?;
        let series = first & (SERIES_END - 1);
        let class = index(first >> 48 & 0x7fff);
        let time = fields.i64()?;
        let layout = layouts.get(class);
        let layout = layout.ok_or_else(|| fields.damaged("the class of a row"))?;
        let words = (0..layout.len()).map(|_| fields.u64());
        let words = words.collect::<Result<_>>()?;
        let rows = place.entry(series).or_default();
        if first >> 63 == 1 {
            let before = rows.last().map(|row: &Row| row.time);
            fields.require(before == Some(time), "a row that joins no other")?;
        } else {
            rows.retain(|row| row.time != time);
        }
        rows.push(Row { time, words });
    }
    fields.require(fields.position() == used, "the bytes of the tail page")?;
    for rows in place.values_mut() {
        rows.sort_by_key(|row| row.time);
    }
    Ok(place)
}
