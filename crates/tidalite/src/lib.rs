//! Tidalite: an embedded database for measurements. Time series and ordered tables in one file and one
//! transaction; open a file and write, no server, no maintenance.
//!
//! ```
//! # let dir = std::env::temp_dir().join(format!("tidalite-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! use tidalite::Database;
//!
//! let db = Database::open(dir.join("plant.tdl"))?;
//! let mut tx = db.begin_write()?;                                  // drop = roll back
//! let mut wind = tx.series(r#"wind.speed{turbine="R80711"}"#)?;    // opens or creates
//! wind.insert("2014-06-01T00:10:00Z", 7.12)?;                      // at the end, before, or over
//! wind.insert("2014-06-01T00:00:00Z", 6.95)?;
//! tx.table("config")?.put(b"hub_height", b"80")?;                  // the same transaction
//! tx.commit()?;                                                    // durable when it returns
//!
//! let snap = db.begin_read()?;                                     // never waits, never changes
//! let wind = snap.series(r#"wind.speed{turbine="R80711"}"#)?.ok_or("no such series")?;
//! let june = wind.within("2014-06-01".."2014-07-01")?;
//! assert_eq!(june.aggregate(1)?.max(), Some((7.12, 1_401_581_400_000_000_000)));
//! # drop(snap); drop(db); std::fs::remove_dir_all(dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folders, from the top down; each imports only from those below it:
//!
//! ```text
//! maintenance   check, salvage, backup, copy, compact, retention, diff, stat   operations on a whole database
//! database      Database, Options                                             an open file; readers, clock, pins
//! query         Selection, Group, Matching, Records, DotFunctions             filters, many series, joins, functions
//! series        Series, Range, Cursor, Aggregate; SeriesMut, Appender         intervals and statistics; insert, delete
//! tables        Table, TableCursor, MultiTable; TableMut, TableCursorMut      ordered tables; put, remove, cursors
//! txn           ReadTxn, WriteTxn, Savepoint                                  a snapshot; the one writer
//! catalog       SeriesInfo, Retention                                         roots, names, schemas, texts as stored
//! types         Error, Schema, Value, SeriesName, Timestamp, Row              value types shared by all folders
//! ```
//!
//! `ReadTxn` and `WriteTxn` are defined in `txn`; `tables` and `series` add the methods that open a table or a series.
//! `maintenance` adds methods to `Database` likewise. The head of each folder's `mod.rs` lists its files.

mod catalog;
mod database;
mod maintenance;
mod query;
mod series;
mod tables;
mod txn;
mod types;

pub use catalog::annotations::{ANNOTATION_BYTES_MAX, ANNOTATION_KEY_BYTES_MAX};
pub use catalog::commit_clock::ClockReading;
pub use catalog::entries::SeriesInfo;
pub use catalog::retention::{
    KeepFrom, RETENTION_NAME_BYTES_MAX, RETENTION_PATTERN_BYTES_MAX, Retention,
};
pub use database::handle::Database;
pub use database::options::{OpenMode, Options, ReadAhead, Verify};
pub use database::pins::Pin;
pub use database::readers::ParkedRead;
pub use maintenance::backup::{BackupInfo, restore, restore_in_two};
pub use maintenance::check::{CheckReport, Finding, HitSeries, Place};
pub use maintenance::cold::Cooled;
pub use maintenance::compact::Compaction;
pub use maintenance::diff::Change;
pub use maintenance::page_map::{PageDump, PageRange, Weight};
pub use maintenance::policies::{Budget, CapState, Holder, Maintained, Preview, Removal};
pub use maintenance::salvage::{SalvageReport, Saved, salvage, salvage_in_two, salvage_storage};
pub use maintenance::stat::Stat;
pub use maintenance::watch::{Progress, Watch};
pub use query::candles::{Candle, CandleSize};
pub use query::fill::{Fill, Filled};
pub use query::filter::ValueFilter;
pub use query::functions::{
    Combined, CumulativeSum, Derivative, Difference, Dot, DotFunctions, Dots, Errors,
    ExponentialMean, ExponentialMeanOver, Frequent, MovingMean, MovingMeanOver, Rate, SpaceSaving,
};
pub use query::join::{Join, Joined, JoinedRow};
pub use query::matching::Matching;
pub use query::merge::{MergedRow, MergedRows};
pub use query::names::Names;
pub use query::records::{RecordCursor, RecordReader, Records};
pub use query::selection::{Group, Selection};
pub use query::text_matches::TextMatches;
pub use query::window_rows::WindowRow;
pub use query::windows::{GroupFigures, GroupWindow};
pub use series::aggregate::{Aggregate, Window};
pub use series::appender::{Appender, SeriesAppender};
pub use series::cursor::{Cursor, SearchResult};
pub use series::figures::{Figure, Figures, RangeFigures};
pub use series::nearest::Direction;
pub use series::range::{Range, Vector};
pub use series::read::Series;
pub use series::record::{Field, Record, RecordTime, RowReader, RowWriter, column_of, decimal_of};
pub use series::write::SeriesMut;
pub use tables::cached::{Cached, CachedGet};
pub use tables::codec::{AsArg, TableKey, TableValue};
pub use tables::key_range::{KeyBounds, KeyRange};
pub use tables::lent::Lent;
pub use tables::multi::{MultiCursor, MultiTable};
pub use tables::multi_edit::MultiEdit;
pub use tables::multi_mut::MultiTableMut;
pub use tables::range::{MultiRange, TableRange};
pub use tables::stream::ValueReader;
pub use tables::table::Table;
pub use tables::table_cursor::TableCursor;
pub use tables::table_cursor_mut::TableCursorMut;
pub use tables::table_mut::TableMut;
pub use tables::typed_multi::{TypedMultiTable, TypedMultiTableMut};
pub use tidalite_base::{
    Corrupt, Ordered, Reversed, SeriesId, TxnId, json_integer_key, json_number_key, text_key,
};
pub use tidalite_codec::{ColumnType as WordType, Stats};
pub use tidalite_derive::Record;
pub use tidalite_kv::TableShape;
pub use tidalite_pager::storage::{Growth, MemoryStorage, Storage};
pub use tidalite_pager::{
    Clocks, Counters, Durability, Error as StoreError, Event, HANDLES_MAX, LockMemory, LongReader,
    LongReaderAction, Look, LossCause, LostCommits, MetricsReport, PHASES, Phase, READERS_MAX,
    Reader, ReaderKind, Recovery, Ticket, Times, USER_BYTES_MAX, WriterSeen, look,
};
pub use txn::open_table::TABLE_NAME_BYTES_MAX;
pub use txn::pages::ReadSource;
pub use txn::read::{ReadTxn, Reading};
pub use txn::savepoint::Savepoint;
pub use txn::uncommitted::UncommittedRead;
pub use txn::write::{Commit, WriteTxn};
pub use types::column::{Column, ColumnType};
pub use types::decimal::{DECIMAL_SCALE_MAX, Decimal};
pub use types::error::{Error, Result};
pub use types::grid::Grid;
pub use types::into_column::IntoColumn;
pub use types::merge_policy::{MergePolicy, time_rows_max};
pub use types::name::{SERIES_NAME_BYTES_MAX, SeriesName, SeriesPattern};
pub use types::point::{Point, Sample};
pub use types::row::Row;
pub use types::schema::{COLUMN_NAME_BYTES_MAX, Schema, Unit};
pub use types::text_form::{guid_dotnet, guid_text, key_text};
pub use types::time::{Instant, Timestamp};
pub use types::value::{TEXT_BYTES_MAX, Value};
