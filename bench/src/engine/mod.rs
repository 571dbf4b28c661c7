//! The databases of the comparison, with a common interface. Keys and values are bytes; a database has one table.
//!
//! ```text
//! Engine   write: one transaction, committed with the durability chosen at opening
//!          read: one snapshot          load: ascending pairs in one transaction, the fastest way
//!  ├ tidalite, tidalite_buffered, tidalite_hash, tidalite_series    ours
//!  ├ lmdb_series                      a published time series engine on LMDB, for suites of points
//!  └ lmdb, mdbx (mdbx_sys), redb, fjall, sqlite, rocksdb (a feature)
//! sets     engines with multi-values, with an interface of their own
//! face     the common interface, and the digest for comparing answers
//! data     the pairs: keys, values, shapes
//! ```
//!
//! A call through the interface costs the same few nanoseconds for every engine. A scan visits entries inside the
//! adapter, so that not even this cost is added per entry.

pub(crate) mod data;
mod face;
mod fjall;
mod lmdb;
mod lmdb_series;
mod mdbx;
mod mdbx_sys;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
pub(crate) mod sets;
mod sets_face;
mod sqlite;
mod tidalite;
mod tidalite_buffered;
mod tidalite_hash;
mod tidalite_series;

pub(crate) use face::{
    Digest, Engine, InUse, Kind, Promise, Read, Reading, Result, Setup, Write, Writing, point_of,
    touch,
};

/// The tables of Tidalite.
pub(crate) const TIDALITE: Kind = Kind {
    name: "tidalite",
    ours: true,
    open: |dir, setup| Ok(Box::new(tidalite::Tables::open(dir, setup)?)),
};

/// The hash tables of Tidalite.
pub(crate) const TIDALITE_HASH: Kind = Kind {
    name: "tidalite-hash",
    ours: true,
    open: |dir, setup| Ok(Box::new(tidalite_hash::Hashes::open(dir, setup)?)),
};

/// The buffered tables of Tidalite.
pub(crate) const TIDALITE_BUFFERED: Kind = Kind {
    name: "tidalite-buffered",
    ours: true,
    open: |dir, setup| Ok(Box::new(tidalite_buffered::Buffered::open(dir, setup)?)),
};

/// The series of Tidalite, for suites whose keys are a series and a time.
pub(crate) const TIDALITE_SERIES: Kind = Kind {
    name: "tidalite-series",
    ours: true,
    open: |dir, setup| {
        Ok(Box::new(tidalite_series::Points::with(
            dir,
            tidalite::durability(setup.promise),
        )?))
    },
};

/// The tables of Tidalite, with commits that wait for one barrier (flush of the disk).
pub(crate) const TIDALITE_ONE_FLUSH: Kind = Kind {
    name: "tidalite-one-flush",
    ours: true,
    open: |dir, setup| {
        let durability = tidalite::one_flush(setup.promise);
        Ok(Box::new(tidalite::Tables::with(dir, durability)?))
    },
};

/// The tables of Tidalite, with commits that always wait for two barriers (flushes of the disk), as in LMDB.
pub(crate) const TIDALITE_TWO_BARRIERS: Kind = Kind {
    name: "tidalite-two-barriers",
    ours: true,
    open: |dir, setup| Ok(Box::new(tidalite::Tables::without_log(dir, setup)?)),
};

/// The series of Tidalite, with commits that wait for one barrier (flush of the disk).
pub(crate) const TIDALITE_SERIES_ONE_FLUSH: Kind = Kind {
    name: "tidalite-series-one-flush",
    ours: true,
    open: |dir, setup| {
        let durability = tidalite::one_flush(setup.promise);
        Ok(Box::new(tidalite_series::Points::with(dir, durability)?))
    },
};

/// The port of a published time series engine on LMDB, which stores raw points in segments of 8,100.
pub(crate) const LMDB_SERIES: Kind = Kind {
    name: "lmdb-series",
    ours: false,
    open: |dir, setup| Ok(Box::new(lmdb_series::Segments::open(dir, setup)?)),
};

/// LMDB, which is the only peer in some suites.
pub(crate) const LMDB: Kind = Kind {
    name: "lmdb",
    ours: false,
    open: |dir, setup| Ok(Box::new(lmdb::Lmdb::open(dir, setup)?)),
};

/// All peers of this build.
pub(crate) const PEERS: &[Kind] = &[
    LMDB,
    Kind {
        name: "libmdbx",
        ours: false,
        open: |dir, setup| Ok(Box::new(mdbx::Mdbx::open(dir, setup)?)),
    },
    Kind {
        name: "redb",
        ours: false,
        open: |dir, setup| Ok(Box::new(redb::Redb::open(dir, setup)?)),
    },
    Kind {
        name: "fjall",
        ours: false,
        open: |dir, setup| Ok(Box::new(fjall::Fjall::open(dir, setup)?)),
    },
    Kind {
        name: "sqlite",
        ours: false,
        open: |dir, setup| Ok(Box::new(sqlite::Sqlite::open(dir, setup)?)),
    },
    #[cfg(feature = "rocksdb")]
    Kind {
        name: "rocksdb",
        ours: false,
        open: |dir, setup| Ok(Box::new(rocksdb::Rocks::open(dir, setup)?)),
    },
];

#[cfg(test)]
mod tests;
