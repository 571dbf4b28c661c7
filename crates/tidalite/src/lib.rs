#![doc = include_str!("guide.md")]
//!
//! # Where things are
//!
//! The root holds the types that most programs name: the database, its transactions, series and tables. The rest is
//! grouped in modules: [`hash_table`], [`relation`], [`containers`], [`topics`], [`queue`] and [`objects`], each with
//! all types of its structure; [`query`] (results of queries over many series), [`functions`] (row by row), [`record`]
//! and [`table`]; [`maintenance`], [`retention`], [`monitor`], [`storage`], [`tuning`], [`text`] and [`limits`].
//!
//! The folders, from the top down; each imports only from those below it:
//!
//! ```text
//! maintenance   check, salvage, backup, copy, compact, retention, diff, stat   operations on a whole database
//! database      Database, Options                                             an open file; readers, clock, pins
//! query         Selection, SelectionQuery, Joined, Records, DotFunctions      many series, joins, records, functions
//! container     Containers, ContainersMut                                      documents by time, with their series
//! series        Series, Query, Cursor, Aggregate; SeriesMut, Appender         intervals and statistics; insert, delete
//! relations     Relation; RelationMut                                         typed columns, primary key, indexes
//! messages      Topics, Queue, Bucket; TopicsMut, QueueMut, BucketMut         retained messages, jobs, objects
//! buffered      BufferedTable, BufferedTableMut                               ordered tables for random writes
//! hash          HashTable, HashTableMut                                       records under keys, with an index
//! tables        Table, SetTable, their cursors; TableMut, SetTableMut         ordered tables; put, remove, cursors
//! txn           ReadTxn, WriteTxn, Savepoint                                  a snapshot; the one writer
//! catalog       SeriesInfo, Retention                                         roots, names, schemas, texts as stored
//! types         Error, Schema, Value, SeriesName, Timestamp, Row              value types shared by all folders
//! ```
//!
//! `ReadTxn` and `WriteTxn` are defined in `txn`; `tables` and `series` add the methods that open a table or a series.
//! `maintenance` adds methods to `Database` likewise. The head of each folder's `mod.rs` lists its files.

mod buffered;
mod catalog;
mod container;
mod database;
mod hash;
pub mod maintenance;
mod messages;
pub mod query;
mod relations;
mod series;
mod tables;
mod txn;
mod types;

/// Row-by-row functions on the values of a column: rates, moving means, sums; the most frequent values.
///
/// [`Query::dots`](crate::Query::dots) gives the values of a column; [`DotFunctions`](functions::DotFunctions) has a
/// method for each function, and all of them are lazy iterators. [`SpaceSaving`](functions::SpaceSaving) counts
/// frequent values in bounded memory.
pub mod functions {
    pub use crate::query::functions::{
        Combined, CumulativeSum, Derivative, Difference, Dot, DotFunctions, Dots, Errors,
        ExponentialMean, ExponentialMeanOver, Frequent, MovingMean, MovingMeanOver, Rate,
        SpaceSaving,
    };
}

/// Hash tables, their options, records, figures and iterators, and the bitmaps of record numbers.
///
/// [`WriteTxn::hash_table`](crate::WriteTxn::hash_table) opens one for changes,
/// [`ReadTxn::hash_table`](crate::ReadTxn::hash_table) for reading.
pub mod hash_table {
    pub use crate::hash::counter::Counter;
    pub use crate::hash::options::HashTableOptions;
    pub use crate::hash::range::HashRange;
    pub use crate::hash::read::{HashRecord, HashTable};
    pub use crate::hash::write::HashTableMut;
    pub use tidalite_index::{HashOptions, HashStat, History, KeyForm, RoaringTreemap};
}

/// Limits of names, texts, readers and handles.
///
/// Every limit of the format and of this library is listed in docs/limits.md. A call beyond a limit is an error of kind
/// [`Limit`](crate::ErrorKind::Limit) and changes nothing.
pub mod limits {
    pub use crate::catalog::annotations::{ANNOTATION_BYTES_MAX, ANNOTATION_KEY_BYTES_MAX};
    pub use crate::catalog::retention::{RETENTION_NAME_BYTES_MAX, RETENTION_PATTERN_BYTES_MAX};
    pub use crate::txn::open_table::TABLE_NAME_BYTES_MAX;
    pub use crate::types::decimal::DECIMAL_SCALE_MAX;
    pub use crate::types::merge_policy::time_rows_max;
    pub use crate::types::name::SERIES_NAME_BYTES_MAX;
    pub use crate::types::schema::COLUMN_NAME_BYTES_MAX;
    pub use crate::types::table_types::TYPE_NAME_BYTES_MAX;
    pub use crate::types::value::TEXT_BYTES_MAX;
    pub use tidalite_pager::{HANDLES_MAX, READERS_MAX, USER_BYTES_MAX};
}

/// Observation of a running database: counters, durations, events, its readers and its writer.
///
/// [`ReadTxn::counters`](crate::ReadTxn::counters) and [`Database::metrics`](crate::Database::metrics) report what
/// this handle did; [`Options::on_event`](crate::Options::on_event) reports changes of the file as they happen;
/// [`inspect`](monitor::inspect) reads the head of a file without opening it.
pub mod monitor {
    pub use tidalite_pager::{
        Counters, Event, Inspection, LongReader, LongReaderAction, MetricsReport, PHASES, Phase,
        Reader, ReaderKind, Recovery, Times, WriterSeen, inspect,
    };
}

/// Containers: documents by time, options, queries, expressions, figures.
///
/// [`WriteTxn::containers`](crate::WriteTxn::containers) opens containers for changes,
/// [`ReadTxn::containers`](crate::ReadTxn::containers) for reading.
pub mod containers {
    pub use crate::container::aggregate::{AggregateQuery, AggregateRow, MessageFigure};
    pub use crate::container::append::ContainersMut;
    pub use crate::container::found::{FoundMessage, Message};
    pub use crate::container::hand_over::{HandOver, Handed};
    pub use crate::container::read::{Containers, MessagePage, Select};
    pub use crate::container::thin::ThinnedContainers;
    pub use crate::types::name::CONTAINER_TAG;
    pub use tidalite_messages::{
        APPENDS_MAX, Append, AppendOutcome, Appended, CONTAINER_NAME_BYTES_MAX, ContainerInfo,
        ContainerOptions, ContainerOverflow, ContainerTableOptions, ContainersMaintenance,
        ContainersStat, DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX, DOCUMENT_LEVELS_MAX,
        DOCUMENT_VALUES_MAX, DeleteRange, Deleted, DeletedPlace, Deletion, Document,
        DroppedContainer, EXPRESSION_BYTES_MAX, EXPRESSION_LEVELS_MAX, EncodedDocument,
        EncodedList, EncodedObject, EncodedPath, EncodedProjection, EncodedValue, Expression,
        ExpressionError, FIELD_NAME_BYTES_MAX, FieldNames, FieldNumber, FieldSource, FieldValue,
        LatestValue, MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX, MESSAGE_TOKEN_BYTES, MessageFields,
        MessageKey, MessageQuery, MessageToken, OnDuplicate, Projection, Rejection, RemovalReason,
        RemovedMessage, RemovedSpan, RestoreRange, Restored, StoredMessage, THINNING_FIELDS_MAX,
        THINNING_RULES_MAX, Thinning, ThinningFigure, ThinningRule, ValueRef,
    };
}

/// Topics: retained messages, filters, searches, the feed of changes.
///
/// [`WriteTxn::topics`](crate::WriteTxn::topics) opens topics for changes, [`ReadTxn::topics`](crate::ReadTxn::topics)
/// for reading.
pub mod topics {
    pub use crate::messages::topics::Topics;
    pub use crate::messages::topics_mut::TopicsMut;
    pub use tidalite_messages::{
        Filter, FoundMessage, Match, Message, PROPERTIES_BYTES_MAX, PROPERTY_BYTES_MAX, Properties,
        Published, Qos, Removed, Retained, SearchCounters, SearchOptions, SearchPage,
        TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX, TOPIC_PAYLOAD_BYTES_MAX, TopicChange, TopicChanges,
        TopicCount, TopicList, TopicOptions, TopicSearch, TopicsMaintenance, TopicsStat, matches,
        topic_of_bytes,
    };
}

/// Queues: messages, leases and their answers, groups, dead letters.
///
/// [`WriteTxn::queue`](crate::WriteTxn::queue) opens a queue for changes, [`ReadTxn::queue`](crate::ReadTxn::queue) for
/// reading.
pub mod queue {
    pub use crate::messages::queue::Queue;
    pub use crate::messages::queue_mut::QueueMut;
    pub use tidalite_messages::{
        Answered, BATCH_MAX, CONSUMER_NAME_BYTES_MAX, DEFAULT_GROUP, DeadLetter, DeadReason,
        Delivery, GROUP_NAME_BYTES_MAX, GROUPS_MAX, GroupStart, GroupStat, HEADERS_BYTES_MAX,
        IDEMPOTENCY_KEY_BYTES_MAX, LeaseLimits, NewMessage, ORDERING_KEY_BYTES_MAX, Overflow,
        PRIORITY_DEFAULT, Pushed, QUEUE_PAYLOAD_BYTES_MAX, QueueMaintenance, QueueMessage,
        QueueOptions, QueueStat,
    };
}

/// Buckets: objects, conditions, lists, uploads, links.
///
/// [`WriteTxn::bucket`](crate::WriteTxn::bucket) opens a bucket for changes,
/// [`ReadTxn::bucket`](crate::ReadTxn::bucket) for reading.
pub mod objects {
    pub use crate::messages::bucket::Bucket;
    pub use crate::messages::bucket_mut::BucketMut;
    pub use tidalite_messages::{
        BucketMaintenance, BucketOptions, BucketOverflow, BucketStat, CHUNK_BYTES_DEFAULT,
        CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, CHUNKS_FREED_AT_ONCE, CONTENT_TYPE_BYTES_MAX,
        ContentHash, ContentHasher, DAMAGED_CHUNKS_MAX, LinkId, ListPage, ListQuery, ListToken,
        METADATA_BYTES_MAX, METADATA_PAIRS_MAX, OBJECT_CHUNKS_MAX, OBJECT_NAME_BYTES_MAX,
        OBJECTS_EXAMINED_MAX, OBJECTS_LISTED_MAX, OBJECTS_ROTATED_PER_PUT_MAX, ObjectAttributes,
        ObjectChange, ObjectCondition, ObjectCursor, ObjectFilter, ObjectInfo, ObjectLink,
        ObjectOutcome, ObjectPut, ObjectVerification, PART_CHUNKS_MAX, PUT_ABANDONED_AFTER_NS,
        RemovedObjects, StoredObject, UploadAppend, UploadCompletion, UploadId, UploadInfo,
        UploadMode, UploadOutcome, UploadPart,
    };
}

/// Rows as plain structs: the traits behind `#[derive(Record)]`, and readers of records.
///
/// Most programs only need [`Record`](trait@crate::Record) and its derive macro.
pub mod record {
    pub use crate::query::records::{RecordCursor, RecordReader, Records};
    pub use crate::series::record::{
        Field, RecordTime, RowReader, RowWriter, column_of, decimal_of,
    };
}

/// Relations: tables with typed columns, a primary key and secondary indexes.
///
/// [`WriteTxn::create_relation`](crate::WriteTxn::create_relation) creates one,
/// [`WriteTxn::relation_mut`](crate::WriteTxn::relation_mut) opens it for changes and
/// [`ReadTxn::relation`](crate::ReadTxn::relation) for reading.
pub mod relation {
    pub use crate::relations::relation::Relation;
    pub use crate::relations::relation_mut::RelationMut;
    pub use crate::relations::rows::{RowRef, Rows};
    pub use tidalite_relations::{
        COLUMNS_MAX, Cell, CellRef, Column, ColumnType, Conflict, DECIMAL_DIGITS_MAX,
        DEFAULT_BYTES_MAX, FIELDS_MAX, INDEXES_MAX, Index, KEY_COLUMNS_MAX, KeyBounds,
        RELATION_NAME_BYTES_MAX, ROW_BYTES_MAX, RowKey, Schema, TimeUnit,
    };
}

/// Retention policies: rows that expire by age, a maximum size of the file, and the clock by which rows expire.
///
/// [`WriteTxn::set_retention`](crate::WriteTxn::set_retention) stores a policy,
/// [`Database::maintain`](crate::Database::maintain) applies all of them.
pub mod retention {
    pub use crate::catalog::commit_clock::ClockReading;
    pub use crate::catalog::downsample::Downsample;
    pub use crate::catalog::retention::{KeepFrom, Retention};
    pub use crate::maintenance::policies::{
        Budget, CapState, FailedTable, Holder, Maintained, MaintainedMessages, Preview, Removal,
    };
    pub use tidalite_pager::Clocks;
}

/// Storage other than files: a database in memory, and the trait for a storage of your own.
///
/// ```
/// use std::sync::Arc;
/// use tidalite::{Options, storage::MemoryStorage};
///
/// let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// # Ok::<(), tidalite::Error>(())
/// ```
pub mod storage {
    pub use tidalite_pager::{Growth, LockMemory, MemoryStorage, Storage};
}

/// Tables that few programs name: buffered ones, several open at once, owned handles, cached lookups, iterators, lent
/// values, and the traits of the arguments of their methods.
pub mod table {
    pub use crate::buffered::range::BufferedEntries;
    pub use crate::buffered::read::BufferedTable;
    pub use crate::buffered::write::BufferedTableMut;
    pub use crate::tables::cached::{Cached, CachedGet};
    pub use crate::tables::codec::{AsArg, EncodeError};
    #[cfg(feature = "serde")]
    pub use crate::tables::document::Document;
    pub use crate::tables::key_range::{KeyBounds, KeyRange};
    pub use crate::tables::lent::Lent;
    pub use crate::tables::owned::{OwnedEntries, OwnedTable};
    pub use crate::tables::set_range::SetValues;
    pub use crate::tables::shared::{SharedEntries, SharedSetTable, SharedTable, SharedTxn};
    pub use crate::tables::stream::ValueReader;
    pub use crate::types::table_types::TableTypes;
    pub use tidalite_base::TypeName;
    pub use tidalite_index::BufferedStat;
}

/// Choices of [`Options`] and [`Tuning`] that few programs change.
pub mod tuning {
    pub use crate::database::options::{ReadAhead, Verify};
}

/// Keys, names and GUIDs as text, texts as table keys that sort like the values they show, and the error of a text that
/// is not a timestamp.
pub mod text {
    pub use crate::types::text_form::{guid_dotnet, guid_text, key_text};
    pub use tidalite_base::{json_integer_key, json_number_key, text_key};
    pub use tidalite_time::TimestampError;
}

pub use catalog::entries::SeriesInfo;
pub use database::handle::Database;
pub use database::options::{OpenMode, Options};
pub use database::pins::Pin;
pub use database::readers::ParkedRead;
pub use database::tuning::Tuning;
pub use query::selection::Selection;
pub use series::aggregate::{Aggregate, Window};
pub use series::appender::{Appender, SeriesAppender};
pub use series::cursor::{Cursor, SearchResult};
pub use series::figures::Figures;
pub use series::nearest::Direction;
pub use series::opener::SeriesOpener;
pub use series::owned::OwnedSeries;
pub use series::query::Query;
pub use series::read::Series;
pub use series::record::Record;
pub use series::vector_scan::VectorScan;
pub use series::vectors::Vector;
pub use series::write::SeriesMut;
pub use tables::codec::{TableKey, TableValue};
pub use tables::range::TableRange;
pub use tables::set_cursor::SetCursor;
pub use tables::set_cursor_mut::SetCursorMut;
pub use tables::set_range::SetRange;
pub use tables::set_table::SetTable;
pub use tables::set_table_mut::SetTableMut;
pub use tables::table::Table;
pub use tables::table_cursor::TableCursor;
pub use tables::table_cursor_mut::TableCursorMut;
pub use tables::table_mut::TableMut;
pub use tidalite_base::{Corrupt, Ordered, Reversed, SeriesId, TxnId};
pub use tidalite_derive::Record;
pub use tidalite_pager::{Durability, Ticket};
pub use tidalite_time::Timestamp;
pub use txn::catalog_cache::CatalogVersion;
pub use txn::pages::ReadSource;
pub use txn::read::{AnyRead, ReadTxn, Reading};
pub use txn::savepoint::Savepoint;
pub use txn::uncommitted::UncommittedRead;
pub use txn::write::{Commit, WriteTxn};
pub use types::column::{Column, ColumnType};
pub use types::decimal::Decimal;
pub use types::error::kind::ErrorKind;
pub use types::error::{Error, Result};
pub use types::figure::Figure;
pub use types::grid::Grid;
pub use types::instant::{Instant, Steps};
pub use types::interval::Interval;
pub use types::into_column::IntoColumn;
pub use types::merge_policy::MergePolicy;
pub use types::name::SeriesName;
pub use types::pattern::SeriesPattern;
pub use types::point::{Point, Sample};
pub use types::row::Row;
pub use types::schema::{Schema, Unit};
pub use types::table_types::TableLayout;
pub use types::value::Value;
pub use types::zone::Zone;
