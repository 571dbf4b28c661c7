//! The peer's side of the suite `harlinn`: the time series engine of a published article, on LMDB.

use std::path::Path;

use super::digest::{Digest, Record, Touch};
use super::plan::{Plan, Result, Writer, write_all};
use super::side::{Side, Total, guids};
use crate::lmdb_engine::{Engine, Guid, SEGMENT_POINTS, SeriesCursor, WriteTxn};
use crate::records::Source;

/// The engine on LMDB, and the GUIDs of the engine's series.
pub(crate) struct Lmdb<P: Record> {
    engine: Engine<P, SEGMENT_POINTS>,
    ids: Vec<Guid>,
}

impl<P: Record> Lmdb<P> {
    /// Calls `f` for every series with the same cursor, in one read transaction.
    fn pass(&self, mut f: impl FnMut(&mut SeriesCursor<'_, P>) -> Result<()>) -> Result<()> {
        let txn = self.engine.begin_read()?;
        let Some(first) = self.ids.first() else {
            return Ok(());
        };
        let mut cursor = txn.open_timeseries(*first)?;
        for id in &self.ids {
            cursor.change_timeseries(*id);
            f(&mut cursor)?;
        }
        Ok(())
    }
}

impl<P: Record> Side<P> for Lmdb<P> {
    fn open(dir: &Path, plan: &Plan) -> Result<Self> {
        let ids = guids(plan.series).into_iter().map(Guid).collect();
        Ok(Self {
            engine: Engine::open(dir, plan.map_bytes() as usize)?,
            ids,
        })
    }

    fn prepare(&self, plan: &Plan) {
        self.engine.reserve(plan.series);
    }

    fn write(&self, plan: &Plan, source: &mut impl Source<P>) -> Result<()> {
        let mut writer = LmdbWriter {
            txn: self.engine.begin_write()?,
            ids: &self.ids,
        };
        write_all(plan, source, &mut writer)?;
        Ok(writer.txn.commit()?)
    }

    fn read(&self, _: &Plan) -> Result<Digest> {
        let mut touch = Touch::default();
        self.pass(|cursor| {
            cursor.for_each_segment(|points| touch.rows(points))?;
            touch.end_series();
            Ok(())
        })?;
        Ok(touch.finish())
    }

    fn for_each(&self, _: &Plan) -> Result<Total> {
        let mut total = Total::default();
        self.pass(|cursor| {
            let mut sum = total.sum;
            total.rows += cursor.for_each(|point| sum += point.float())? as u64;
            total.sum = sum;
            Ok(())
        })?;
        Ok(total)
    }

    /// Sums every point with eight accumulators, because the engine stores no aggregates.
    fn sum(&self, _: &Plan) -> Result<Total> {
        let mut total = Total::default();
        self.pass(|cursor| {
            let mut sums = [0.0; 8];
            cursor.for_each_segment(|points| {
                let (eights, rest) = points.as_chunks::<8>();
                for eight in eights {
                    for (sum, point) in sums.iter_mut().zip(eight) {
                        *sum += point.float();
                    }
                }
                for (sum, point) in sums.iter_mut().zip(rest) {
                    *sum += point.float();
                }
                total.rows += points.len() as u64;
            })?;
            total.sum += sums.iter().sum::<f64>();
            Ok(())
        })?;
        Ok(total)
    }
}

struct LmdbWriter<'e, P: Record> {
    txn: WriteTxn<'e, P, SEGMENT_POINTS>,
    ids: &'e [Guid],
}

impl<P: Record> Writer<P> for LmdbWriter<'_, P> {
    #[inline]
    fn batch(&mut self, series: usize, records: impl Iterator<Item = P>) -> Result<()> {
        self.txn.change_timeseries(self.ids[series]);
        for record in records {
            self.txn.insert(&record)?;
        }
        Ok(())
    }
}
