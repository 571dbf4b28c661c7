//! Adapter for the port of a published time series engine on LMDB (`lmdb_engine`): a key is a series and a time, and a
//! value begins with a float. Every commit is synced, through a writable map, as in the published engine.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Engine, Reading, Result, Setup, Write, Writing, point_of, touch};
use crate::lmdb_engine::{self, Guid, SEGMENT_POINTS};
use crate::records::Reading as Point;

/// The time series engine on LMDB; its transactions need exclusive access.
pub(crate) struct Segments(Mutex<lmdb_engine::Engine<Point, SEGMENT_POINTS>>);

impl Segments {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let map_bytes = setup.data_bytes * 4 + (8 << 30);
        let engine = lmdb_engine::Engine::open(dir, map_bytes as usize)?;
        Ok(Self(Mutex::new(engine)))
    }
}

impl Engine for Segments {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let engine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = Writer(engine.begin_write()?);
        work(&mut writer)?;
        Ok(writer.0.commit()?)
    }

    fn read(&self, _: Reading<'_>) -> Result<()> {
        Err("series are not read here".into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

struct Writer<'t>(lmdb_engine::WriteTxn<'t, Point, SEGMENT_POINTS>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (series, time) = point_of(key)?;
        // The engine uses the low half of a GUID as its hash, so that half gets random bytes.
        let half = series.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let guid = Guid(std::array::from_fn(|i| half[i % 8]));
        self.0.change_timeseries(guid);
        let (flags, value) = (0, f64::from_bits(touch(value)));
        Ok(self.0.insert(&Point { time, flags, value })?)
    }

    fn get(&mut self, _: &[u8]) -> Result<Option<u64>> {
        Err("series are not read here".into())
    }

    fn delete(&mut self, _: &[u8]) -> Result<bool> {
        Err("the article's engine deletes nothing".into())
    }
}
