//! A port of a published time series engine on LMDB, and its write transaction: for each series there is one buffer
//! with a modified segment, kept until the commit, in a map whose hash is the low half of the GUID.
//!
//! A buffer holds one whole segment of its series and covers an interval of time. Appends
//! go to the last segment, which stays in its buffer; an insert elsewhere stores the buffer and
//! loads the segment that covers its time. A full segment passes its last point on to the
//! next segment, and so on to the end, so that all segments but the last are always full.

#![expect(unsafe_code, reason = "buffers live in an arena owned by the engine")]

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::ptr::NonNull;

use super::arena::Arena;
use super::cursor::{Place, SeriesCursor, floor_segment};
use super::key::{self, Guid, GuidMap};
use super::lmdb::{Env, Result, Txn};
use super::segment::{Point, Segment};

/// The engine: an LMDB environment in a directory, with points of type `P` and `N` points per segment.
pub(crate) struct Engine<P: Point, const N: usize> {
    env: Env,
    /// The memory of the buffers, kept between transactions so that a commit does not free gigabytes.
    arena: RefCell<Arena<Segment<P, N>>>,
    writing: Cell<bool>,
}

impl<P: Point, const N: usize> Engine<P, N> {
    /// Opens or creates the engine in the existing directory `dir`.
    pub(crate) fn open(dir: &Path, map_bytes: usize) -> Result<Self> {
        Ok(Self {
            env: Env::open(dir, map_bytes)?,
            arena: RefCell::new(Arena::new()),
            writing: Cell::new(false),
        })
    }

    /// Allocates the buffers for this many series in advance, and touches their memory.
    pub(crate) fn reserve(&self, series: usize) {
        self.arena.borrow_mut().reserve(series);
    }

    /// Begins a write transaction.
    ///
    /// # Panics
    /// If another write transaction of this engine exists.
    pub(crate) fn begin_write(&self) -> Result<WriteTxn<'_, P, N>> {
        assert!(!self.writing.replace(true), "one writer at a time");
        // SAFETY: the places were used only by earlier transactions, which have ended.
        unsafe { self.arena.borrow_mut().recycle() };
        let alone = Alone(&self.writing);
        let txn = self.env.begin(true)?;
        let (map, infos) = (GuidMap::default(), Vec::new());
        Ok(WriteTxn {
            txn,
            engine: self,
            alone,
            map,
            infos,
            current: 0,
        })
    }

    /// Begins a read transaction, which sees the newest commit.
    pub(crate) fn begin_read(&self) -> Result<ReadTxn<'_>> {
        Ok(ReadTxn(self.env.begin(false)?))
    }
}

/// A read transaction, which is a snapshot.
pub(crate) struct ReadTxn<'e>(Txn<'e>);

impl ReadTxn<'_> {
    /// Opens a cursor over `series`.
    pub(crate) fn open_timeseries<P: Point>(&self, series: Guid) -> Result<SeriesCursor<'_, P>> {
        SeriesCursor::new(self.0.cursor()?, series)
    }
}

/// Marks the engine as having a writer while this value exists.
struct Alone<'e>(&'e Cell<bool>);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// State of one series in a write transaction.
///
/// Invariants: (1) `buffer`, if present, holds the segment for `from <= t < until`, where
/// `None` means no bound; it is empty only if the whole series is; (2) `stored` is the key under
/// which this segment is stored, if it is; (3) `changes > 0` if it differs from the stored segment.
struct Info<P, const N: usize> {
    id: Guid,
    buffer: Option<NonNull<Segment<P, N>>>,
    changes: usize,
    stored: Option<i64>,
    from: Option<i64>,
    until: Option<i64>,
}

impl<P: Point, const N: usize> Info<P, N> {
    #[inline]
    fn segment(&mut self) -> Option<&mut Segment<P, N>> {
        // SAFETY: the place was taken for this series alone, and the arena outlives the transaction.
        self.buffer.map(|buffer| unsafe { &mut *buffer.as_ptr() })
    }

    fn covers(&self, time: i64) -> bool {
        self.buffer.is_some()
            && self.from.is_none_or(|from| from <= time)
            && self.until.is_none_or(|until| time < until)
    }

    /// Stores the buffer if it was changed; under a new key if the first time of the segment has changed.
    fn flush(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        if self.changes == 0 {
            return Ok(());
        }
        let (id, stored) = (self.id, self.stored);
        let Some(segment) = self.segment() else {
            return Ok(());
        };
        let Some(first) = segment.front().map(Point::time) else {
            return Ok(());
        };
        if let Some(old) = stored.filter(|old| *old != first) {
            txn.delete(&key::encode(id, old))?;
        }
        txn.put(&key::encode(id, first), segment.bytes())?;
        self.stored = Some(first);
        self.changes = 0;
        Ok(())
    }

    /// Loads the segment for `time` into the buffer.
    fn load(&mut self, txn: &Txn<'_>, time: i64) -> Result<()> {
        let found = floor_segment::<P>(&mut txn.cursor()?, self.id, time)?;
        let Some(segment) = self.segment() else {
            return Ok(());
        };
        segment.clear();
        let Some(Place {
            points,
            key,
            is_first,
            next,
        }) = found
        else {
            (self.stored, self.from, self.until) = (None, None, None);
            return Ok(());
        };
        segment.load(points);
        self.stored = Some(key);
        self.from = (!is_first).then_some(key);
        self.until = next;
        Ok(())
    }
}

/// The write transaction of an engine, of which there is only one at a time. Dropping it without a commit rolls it
/// back.
pub(crate) struct WriteTxn<'e, P: Point, const N: usize> {
    txn: Txn<'e>,
    engine: &'e Engine<P, N>,
    alone: Alone<'e>,
    map: GuidMap<u32>,
    infos: Vec<Info<P, N>>,
    current: usize,
}

impl<P: Point, const N: usize> WriteTxn<'_, P, N> {
    /// Selects the series to which the following calls apply.
    #[inline]
    pub(crate) fn change_timeseries(&mut self, series: Guid) {
        self.current = match self.map.get(&series) {
            Some(slot) => *slot as usize,
            None => self.add(series),
        };
    }

    #[cold]
    fn add(&mut self, id: Guid) -> usize {
        let slot = self.infos.len();
        let (from, until) = (None, None);
        self.infos.push(Info {
            id,
            buffer: None,
            changes: 0,
            stored: None,
            from,
            until,
        });
        self.map.insert(id, slot as u32);
        slot
    }

    /// Inserts a point at any time, or overwrites the point at the same time.
    ///
    /// # Panics
    /// If it is called before the first [`WriteTxn::change_timeseries`].
    #[inline]
    pub(crate) fn insert(&mut self, point: &P) -> Result<()> {
        let info = &mut self.infos[self.current];
        if info.until.is_none()
            && let Some(segment) = info.segment()
            && segment.append(point)
        {
            info.changes += 1;
            return Ok(());
        }
        self.insert_slowly(point)
    }

    #[cold]
    fn insert_slowly(&mut self, point: &P) -> Result<()> {
        let info = &mut self.infos[self.current];
        if !info.covers(point.time()) {
            info.flush(&mut self.txn)?;
            if info.buffer.is_none() {
                info.buffer = Some(self.engine.arena.borrow_mut().take());
            }
            info.load(&self.txn, point.time())?;
        }
        let mut rest = Some(*point);
        while let Some(point) = rest {
            let Some(segment) = info.segment() else {
                return Ok(());
            };
            rest = segment.insert(&point);
            info.changes += 1;
            let Some(overflow) = rest else { break };
            // The segment is full, so it is stored, and the point that did not fit goes to the next segment.
            info.flush(&mut self.txn)?;
            match info.until {
                Some(next) => info.load(&self.txn, next)?,
                None => {
                    if let Some(segment) = info.segment() {
                        segment.clear();
                    }
                    info.stored = None;
                }
            }
            info.from = Some(overflow.time());
        }
        Ok(())
    }

    /// Stores the buffer of the current series, and returns a cursor over the whole series.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the programs read after the commit")
    )]
    pub(crate) fn read_current(&mut self) -> Result<SeriesCursor<'_, P>> {
        let info = &mut self.infos[self.current];
        info.flush(&mut self.txn)?;
        SeriesCursor::new(self.txn.cursor()?, info.id)
    }

    /// Stores all buffers, commits the transaction and syncs it to the disk.
    pub(crate) fn commit(mut self) -> Result<()> {
        for info in &mut self.infos {
            info.flush(&mut self.txn)?;
        }
        drop(self.alone);
        self.txn.commit()
    }
}
