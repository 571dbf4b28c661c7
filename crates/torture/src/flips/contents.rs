//! Creates valid files with several kinds of contents and with almost no free space.

use super::image::PAGE_BYTES;
use crate::model::messages::bucket::{CHUNK_BYTES, attributes, bytes_of};
use crate::model::messages::containers::options as of_containers;
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS};
use crate::model::{clock, digest_of};
use crate::workload::RUN_BYTES;
use crate::workload::messages::BUCKET_OPTIONS;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tidalite::containers::{Append, Document, FieldValue};
use tidalite::hash_table::{HashTableOptions, History};
use tidalite::objects::ObjectCondition;
use tidalite::queue::{GroupStart, LeaseLimits, NewMessage};
use tidalite::relation::{Cell, Column, ColumnType, Index, Schema};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::topics::Message;
use tidalite::{Database, Options, Steps, Timestamp, Tuning, WriteTxn};
use tidalite_delta::FAN_IN;
use tidalite_testkit::rng::Rng;

/// Maximum percentage of free pages in a file.
pub(super) const FREE_PERCENT_MAX: u64 = 5;
/// Minimum size of a file in bytes.
pub(super) const FILE_BYTES_MIN: usize = 64 << 10;
/// Number of series in a file with an unfinished compaction, and number of rows of each series in a run: together more
/// than the first step of the compaction takes.
const MERGED_SERIES: usize = 24;
const MERGED_ROWS: i64 = 16;
/// Maximum number of commits that are made to use up free pages.
const FILL_COMMITS_MAX: u32 = 2_000;

/// The kind of contents of the file under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A mixture: a table with short and long values, leaves, runs with deleted rows, a tail page.
    Mixed,
    /// A table with values of 3,000 bytes.
    Values,
    /// Runs of many series with an unfinished compaction, with or without later deletes.
    Merge {
        /// Whether rows were deleted.
        deletes: bool,
    },
    /// A hash table and a buffered table, both with runs that are merged in part, and a relation with two indexes.
    Indexes,
    /// Topics, a queue with two groups and leases, a bucket with objects of several chunks, and containers.
    Messages,
}

impl Contents {
    /// All kinds of contents, for the long search.
    pub const ALL: [Self; 6] = [
        Self::Mixed,
        Self::Values,
        Self::Merge { deletes: false },
        Self::Merge { deletes: true },
        Self::Indexes,
        Self::Messages,
    ];

    fn fill(self, db: &Database, rng: &mut Rng) -> tidalite::Result<()> {
        match self {
            Self::Mixed => {
                // Creates free pages, which later take everything except the leaves. When the transaction ends, the
                // extent of the leaves is truncated after the last leaf, and a page after that extent would keep the
                // file long.
                put_one(db, &vec![0; 40 * PAGE_BYTES])?;
                put_one(db, &[])?;
                put_one(db, &[])?;
                rows(db, rng, 2, 0..1_024 + 30)?;
                pairs(db, rng, 60, 90)?;
                pairs(db, rng, 2, 1_500)?;
                for part in 0..3 {
                    let from = 10_000 + 1_000 * part;
                    rows(db, rng, 2, from..from + 30)?;
                }
                delete(db, 2, 10_010..12_000)?;
                rows(db, rng, 2, 20_000..20_003)
            }
            Self::Values => {
                pairs(db, rng, 12, 3_000)?;
                pairs(db, rng, 40, 60)?;
                rows(db, rng, 1, 0..70)
            }
            Self::Merge { deletes } => {
                pairs(db, rng, 60, 90)?;
                for run in 0..FAN_IN as i64 {
                    rows(db, rng, MERGED_SERIES, 100 * run..100 * run + MERGED_ROWS)?;
                }
                if deletes {
                    // Deletes rows of only some series, so that replaced blocks lie beside unchanged blocks.
                    delete(db, MERGED_SERIES / 3, 203..1_102)?;
                }
                rows(db, rng, 1, 20_000..20_003)
            }
            Self::Indexes => {
                for round in 0..12 {
                    indexes(db, rng, round)?;
                }
                pairs(db, rng, 40, 60)
            }
            Self::Messages => {
                clock::at(clock::START, || messages(db))?;
                pairs(db, rng, 40, 60)
            }
        }
    }
}

/// Size in bytes of a chunk of an object.
pub(super) const CHUNK: u32 = CHUNK_BYTES;
/// Number of objects in a file with messages.
const OBJECTS: usize = 6;

/// Names of the objects in a file with messages.
pub(super) fn object_names() -> Vec<String> {
    (0..OBJECTS)
        .map(|number| format!("file {number}"))
        .collect()
}

/// The bytes of an object in a file with messages: of one to six chunks.
pub(super) fn object_of(number: usize) -> Vec<u8> {
    bytes_of(number as u64, 0, CHUNK as usize * number + 600)
}

/// Creates topics, a queue, a bucket and containers.
fn messages(db: &Database) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    let names: Vec<String> = (0..40)
        .map(|i| format!("hall/{}/door/{i:03}", i % 5))
        .collect();
    let messages: Vec<Message<'_>> = names
        .iter()
        .map(|name| Message::new(name, name.as_bytes()))
        .collect();
    let mut topics = tx.topics(BROKER)?;
    topics.publish_batch(messages.iter().map(|message| (message, true)))?;
    let mut queue = tx.queue(JOBS)?;
    queue.create_group("mail", GroupStart::Oldest)?;
    queue.create_group("print", GroupStart::Oldest)?;
    let jobs: Vec<String> = (0..30).map(|i| format!("job number {i:03}")).collect();
    let new: Vec<NewMessage<'_>> = (jobs.iter())
        .map(|job| NewMessage::new(job.as_bytes()))
        .collect();
    queue.push_many(&new)?;
    let hour = Duration::from_secs(3_600);
    let leased = queue.lease("mail", "one", hour, LeaseLimits::messages(12))?;
    let ids: Vec<u64> = leased.iter().map(|one| one.message.id).collect();
    queue.ack("mail", "one", &ids[..5])?;
    queue.reject("mail", "one", &ids[5..8])?;
    let mut bucket = tx.bucket_with(FILES, &BUCKET_OPTIONS)?;
    for (number, name) in object_names().iter().enumerate() {
        let given = attributes(number as u64, None, false);
        let stored = bucket.put(name, &object_of(number), given, &ObjectCondition::Missing)?;
        assert!(stored.done().is_some(), "{name} is new");
    }
    containers(&mut tx)?;
    tx.commit()?;
    Ok(())
}

/// Creates two containers, one with rules of thinning, and a dropped one.
fn containers(tx: &mut WriteTxn) -> tidalite::Result<()> {
    let document = |number: i64| {
        let text = format!("device message {number:03}");
        let mut document = Document::default();
        document.set("text", FieldValue::Text(text));
        document.set("n", FieldValue::Integer(number.into()));
        document
    };
    let mut table = tx.containers_with(DEVICES, &of_containers::of_table())?;
    let documents: Vec<Document> = (0..40).map(document).collect();
    let messages: Vec<Append<'_>> = (0..40)
        .zip(&documents)
        .map(|(number, document)| Append {
            idempotency_key: (number % 9 == 0).then_some(&b"key"[..]),
            ..Append::new(
                ["a", "b"][number as usize / 20],
                Timestamp(clock::START + number),
                document,
            )
        })
        .collect();
    table.append_batch(&messages)?;
    table.delete_message("a", (Timestamp(clock::START + 1), 0))?;
    table.set_thinning("b", Some(&of_containers::thinning(0)))?;
    // Salvage may bring a dropped container back, so its message has no text.
    table.append(&Append::new(
        "dropped",
        Timestamp(clock::START),
        &Document::default(),
    ))?;
    table.drop_container("dropped")?;
    Ok(())
}

/// Name of the relation in a file with indexes, and of its index of texts.
pub(super) const RELATION: &str = "r0";
pub(super) const BY_TEXT: &str = "by text";

fn schema() -> Schema {
    Schema::new()
        .column(Column::new("id", ColumnType::I64))
        .column(Column::new("text", ColumnType::Text))
        .column(Column::new("number", ColumnType::U64))
        .primary_key(["id"])
        .index(Index::new(BY_TEXT, ["text"]))
        .index(Index::new("by number", ["number"]).unique())
}

/// Changes a hash table, a buffered table and a relation in one commit.
fn indexes(db: &Database, rng: &mut Rng, round: u8) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    // The seed is fixed, so that the file has the same bytes each time.
    let options = HashTableOptions::new().seed(1).history(History::Last(1));
    for _ in 0..25 {
        let key = format!("key {:03}", rng.below(120)).into_bytes();
        let mut hash = tx.hash_table_with::<[u8], [u8]>("h0", &options)?;
        match rng.one_in(6) {
            true => drop(hash.remove(&key)?),
            false => drop(hash.set(&key, &[round; 8])?),
        }
        let mut buffered = tx.buffered_table::<[u8], [u8]>("b0")?;
        match rng.one_in(6) {
            true => buffered.remove(&key)?,
            false => buffered.put(&key, &[round; 8])?,
        }
    }
    let mut relation = match round {
        0 => tx.create_relation(RELATION, &schema())?,
        _ => (tx.relation_mut(RELATION)?).expect("the first commit has created it"),
    };
    for at in 0..8 {
        // Each number occurs once.
        let number = u64::from(round) * 8 + at;
        let id = rng.below(70) as i64;
        let text = format!("text {}", number % 30);
        relation.upsert(&[Cell::I64(id), Cell::from(text), Cell::U64(number)])?;
    }
    tx.commit()?;
    Ok(())
}

/// Inserts `count` new pairs with values of up to `len` bytes; if `len` exceeds the page size, with values of exactly
/// `len` bytes.
fn pairs(db: &Database, rng: &mut Rng, count: usize, len: usize) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    let mut table = tx.table("pairs")?;
    for i in 0..count {
        let mut value = vec![
            0;
            if len > PAGE_BYTES {
                len
            } else {
                rng.index(len)
            }
        ];
        rng.fill(&mut value);
        table.put(format!("key {len} {i:04}").as_bytes(), &value)?;
    }
    tx.commit()?;
    Ok(())
}

/// Commits one pair, which is alone in its table.
pub(super) fn put_one(db: &Database, value: &[u8]) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("one")?.put(b"one", value)?;
    tx.commit()?;
    Ok(())
}

/// Appends rows at these times to each of `series` series; every eighth series gets random values.
fn rows(db: &Database, rng: &mut Rng, series: usize, times: Range<i64>) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    for i in 0..series {
        let mut series = tx.series(&format!("s{i}"))?;
        for time in times.clone() {
            // Only few series get random values, so that many rows take few bytes.
            let noise = i % 8 == 0;
            let value = if noise { rng.f64() } else { time as f64 };
            series.insert_point(Steps(time), 0, value)?;
        }
    }
    tx.commit()?;
    Ok(())
}

fn delete(db: &Database, series: usize, times: Range<i64>) -> tidalite::Result<()> {
    let mut tx = db.begin_write()?;
    for i in 0..series {
        tx.series(&format!("s{i}"))?
            .delete(Steps(times.start)..Steps(times.end))?;
    }
    tx.commit()?;
    Ok(())
}

/// Creates a file with almost no free space; returns its bytes and the digest of its content.
pub(crate) fn sound_file(contents: Contents, seed: u64) -> Result<(Vec<u8>, u64), String> {
    let (file, digest) = sound_storage(contents, seed).map_err(|error| error.to_string())?;
    let len = file.len().map_err(|error| error.to_string())?;
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes)
        .map_err(|error| error.to_string())?;
    Ok((bytes, digest))
}

pub(super) fn options() -> Options {
    Options::new().page_size(PAGE_BYTES).tuning(
        clock::of_thread(Tuning::new())
            .growth_bytes(PAGE_BYTES as u64, PAGE_BYTES as u64)
            .reserve_bytes(0)
            .run_bytes(RUN_BYTES)
            // The file has no redo log: damage in an emptied log loses nothing and is not reported.
            // (crates/pager/tests/redo.rs tests damage in a log that holds commits.)
            .log_bytes(0),
    )
}

fn sound_storage(contents: Contents, seed: u64) -> tidalite::Result<(Arc<dyn Storage>, u64)> {
    let file: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let options = options();
    // Closing the file truncates the free pages at its end.
    let reopened = || options.open_storage(Arc::clone(&file));
    contents.fill(&reopened()?, &mut Rng::new(seed))?;
    let mut db = reopened()?;
    // Makes small commits until the freed pages are reused. After each, two commits change a single page, so that the
    // pages freed by the small commit are no longer pending.
    for i in 0..FILL_COMMITS_MAX {
        let stat = db.stat()?;
        let free = stat.pages_free + stat.pages_pending;
        let large = stat.pages_total >= (FILE_BYTES_MIN / PAGE_BYTES) as u64;
        if large && free * 100 <= stat.pages_total * FREE_PERCENT_MAX {
            break;
        }
        let mut tx = db.begin_write()?;
        tx.table("pairs")?
            .put(format!("more {i:04}").as_bytes(), &[7; 100])?;
        tx.commit()?;
        put_one(&db, &[])?;
        put_one(&db, &[])?;
        drop(db);
        db = reopened()?;
    }
    let digest = digest_of(&db)?;
    drop(db);
    Ok((file, digest))
}
