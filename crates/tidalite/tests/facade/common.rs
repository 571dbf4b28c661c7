//! Helpers shared by the tests of this folder: temporary folders, databases in memory, and contents to compare.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, ReadTxn, Result, Series, Table};

/// A temporary directory, which is removed when this value is dropped. The first call of `new` switches on the monitor
/// of writes for every database of this process.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        tidalite_testkit::watch();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidalite-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Opens a database in memory, and checks every write against the rules of the write protocol.
pub(crate) fn in_memory(options: &Options) -> Database {
    tidalite_testkit::watch();
    options
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

pub(crate) type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
pub(crate) type Rows = BTreeMap<i64, Vec<u64>>;

/// The whole content of a database: tables and series by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) tables: BTreeMap<String, Pairs>,
    pub(crate) series: BTreeMap<String, Rows>,
}

pub(crate) fn pairs_of(table: &Table<'_>) -> Result<Pairs> {
    let mut pairs = Pairs::new();
    table.for_each(|key, value| {
        pairs.insert(key.to_vec(), value.to_vec());
    })?;
    assert_eq!(table.count(), pairs.len() as u64);
    Ok(pairs)
}

pub(crate) fn rows_of(series: &Series<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    series.query(..).for_each(|time, words| {
        rows.insert(time, words.to_vec());
    })?;
    assert_eq!(series.count()?, rows.len() as u64);
    Ok(rows)
}

/// Reads the whole content of a snapshot.
pub(crate) fn content_of(snap: &ReadTxn) -> Result<Content> {
    let mut content = Content::default();
    for name in snap.tables()? {
        let table = snap.table(&name)?.unwrap();
        content.tables.insert(name, pairs_of(&table)?);
    }
    for info in snap.list("")? {
        let series = snap.series_by_id(info.id)?.unwrap();
        content.series.insert(info.label(), rows_of(&series)?);
    }
    Ok(content)
}

/// Checks the whole file and fails with the problems found.
pub(crate) fn assert_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}
