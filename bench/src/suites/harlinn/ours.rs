//! Tidalite's side of the suite `harlinn`, only through the public API.
//!
//! The programs identify series by GUID, like the programs of the published article. The write loop opens each series
//! once and then switches to the series by id, which is the library's equivalent of the article's `ChangeTimeseries`.

use std::path::Path;

use tidalite::{
    ColumnType, Database, Options, Schema, Series, SeriesId, SeriesMut, Steps, Unit, Vector,
    WriteTxn,
};

use super::digest::{Digest, Record, Touch};
use super::plan::{Plan, Result, Writer, write_all};
use super::side::{Side, Total, guids};
use crate::records::{Reading, Source, Trade};

/// A record that Tidalite can store and return as columns.
pub(crate) trait Columns: Record {
    /// Index of the column with the float.
    const FLOAT: usize;
    /// The schema: columns after the time, which is counted in ticks of 100 ns since year 1.
    fn schema() -> Schema;
    /// Inserts one record with the call for a single record.
    fn insert(&self, series: &mut SeriesMut<'_>) -> tidalite::Result<()>;
    /// Adds every column of a vector to a digest.
    fn touch(vector: &Vector<'_>, touch: &mut Touch);
}

impl Columns for Reading {
    const FLOAT: usize = 1;

    fn schema() -> Schema {
        Schema {
            unit: Unit::Ticks,
            ..Schema::point()
        }
    }

    #[inline]
    fn insert(&self, series: &mut SeriesMut<'_>) -> tidalite::Result<()> {
        series.insert_point(Steps(self.time), self.flags, self.value)
    }

    #[inline]
    fn touch(vector: &Vector<'_>, touch: &mut Touch) {
        touch.times(vector.times());
        touch.words(vector.words(0));
        touch.floats(vector.f64(1));
    }
}

impl Columns for Trade {
    const FLOAT: usize = 2;

    fn schema() -> Schema {
        let (word, float, fixed) = (ColumnType::U64, ColumnType::F64, ColumnType::I64);
        Schema::new(
            Unit::Ticks,
            [
                ("bid", word),
                ("offer", word),
                ("volume", float),
                ("price", fixed),
            ],
        )
    }

    #[inline]
    fn insert(&self, series: &mut SeriesMut<'_>) -> tidalite::Result<()> {
        let words = [
            self.bid,
            self.offer,
            self.volume.to_bits(),
            self.price as u64,
        ];
        series.insert_row(Steps(self.time), &words)
    }

    #[inline]
    fn touch(vector: &Vector<'_>, touch: &mut Touch) {
        touch.times(vector.times());
        touch.words(vector.words(0));
        touch.words(vector.words(1));
        touch.floats(vector.f64(2));
        touch.words(vector.words(3));
    }
}

/// A Tidalite database, and the GUIDs of its series.
pub(crate) struct Tidalite {
    db: Database,
    guids: Vec<[u8; 16]>,
}

impl Tidalite {
    /// Calls `f` with every series, in one read transaction.
    fn pass(&self, mut f: impl FnMut(Series<'_>) -> Result<()>) -> Result<()> {
        let txn = self.db.begin_read()?;
        for guid in &self.guids {
            let series = txn.series_of_guid(guid)?.ok_or("a series is missing")?;
            f(series)?;
        }
        Ok(())
    }
}

impl<P: Columns> Side<P> for Tidalite {
    fn open(dir: &Path, plan: &Plan) -> Result<Self> {
        Ok(Self {
            db: Options::new()
                .flush_threads(plan.sealing)
                .open(dir.join("harlinn.tdl"))?,
            guids: guids(plan.series),
        })
    }

    fn write(&self, plan: &Plan, source: &mut impl Source<P>) -> Result<()> {
        let mut txn = self.db.begin_write()?;
        let schema = P::schema();
        let mut ids = Vec::with_capacity(self.guids.len());
        for guid in &self.guids {
            ids.push(txn.series_of_guid(*guid, &schema)?.id());
        }
        let mut writer = TidaliteWriter { txn, ids };
        write_all(plan, source, &mut writer)?;
        writer.txn.commit()?;
        Ok(())
    }

    fn read(&self, _: &Plan) -> Result<Digest> {
        let mut touch = Touch::default();
        self.pass(|series| {
            series
                .query(..)
                .for_each_vector(|vector| P::touch(vector, &mut touch))?;
            touch.end_series();
            Ok(())
        })?;
        Ok(touch.finish())
    }

    fn for_each(&self, _: &Plan) -> Result<Total> {
        let mut total = Total::default();
        self.pass(|series| {
            let mut sum = total.sum;
            total.rows += series
                .query(..)
                .for_each(|_, words| sum += f64::from_bits(words[P::FLOAT]))?;
            total.sum = sum;
            Ok(())
        })?;
        Ok(total)
    }

    /// Adds up the aggregates that the tree stores, without reading rows.
    fn sum(&self, _: &Plan) -> Result<Total> {
        let mut total = Total::default();
        self.pass(|series| {
            let aggregate = series.query(..).aggregate(P::FLOAT)?;
            total.rows += aggregate.count();
            total.sum += aggregate.sum();
            Ok(())
        })?;
        Ok(total)
    }
}

struct TidaliteWriter {
    txn: WriteTxn,
    ids: Vec<SeriesId>,
}

impl<P: Columns> Writer<P> for TidaliteWriter {
    #[inline]
    fn batch(&mut self, series: usize, records: impl Iterator<Item = P>) -> Result<()> {
        let mut series = self.txn.series_by_id(self.ids[series])?;
        for record in records {
            record.insert(&mut series)?;
        }
        Ok(())
    }
}
