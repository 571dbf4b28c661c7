//! Messages: containers of documents, retained messages of topics, queues of jobs, and objects of any size.
//!
//! ```text
//! containers  messages of named sources: documents ordered by time
//! topics      retained messages: one for each topic, found by filters with wildcards
//! queues      jobs: many writers, consumer groups, leases, retries, dead letters
//! objects     bytes of any size in chunks, with metadata, expiry, and uploads in parts
//! options     maxima and durations as numbers of the file
//! ```
//!
//! Like the other structures, each is identified by the root of its table (`Tree`): functions take the root and a page
//! reader or page writer, and the caller stores the root. Times are passed in by the caller; no code here reads a
//! clock. The types that users see have times as `Timestamp`; rows, keys and the calls of readers and writers have
//! them as nanoseconds since 1970 in UTC.

mod containers;
mod objects;
mod options;
mod queues;
mod topics;

pub use containers::append::{Append, AppendChanges, AppendOutcome, Appended, Rejection};
pub use containers::codec::{
    EncodedDocument, EncodedList, EncodedObject, EncodedValue, encode as encode_document,
};
pub use containers::cursor::{MessageCursor, MessageQuery};
pub use containers::deletion::Deletion;
pub use containers::dictionary::FieldNames;
pub use containers::document::{
    DOCUMENT_BYTES_MAX, DOCUMENT_FIELDS_MAX, DOCUMENT_LEVELS_MAX, DOCUMENT_VALUES_MAX, Document,
    FIELD_NAME_BYTES_MAX,
};
pub use containers::edit::{DeleteRange, Deleted, SelectMessage};
pub use containers::expression::{
    EXPRESSION_BYTES_MAX, EXPRESSION_LEVELS_MAX, EncodedFields, Expression, ExpressionError,
    FieldSource, MessageFields, ValueRef,
};
pub use containers::fields::{EncodedPath, EncodedProjection, Projection};
pub use containers::keys::MessageKey;
pub use containers::leaves::part_of_container_rows;
pub use containers::maintain::{ContainersMaintenance, OnRemoved, RemovedSpan};
pub use containers::manage::DroppedContainer;
pub use containers::merged::MergedMessages;
pub use containers::message::{ContainerMessage, StoredMessage};
pub use containers::numbers::FieldNumber;
pub use containers::options::{
    APPENDS_MAX, CONTAINER_NAME_BYTES_MAX, ContainerOptions, ContainerOverflow,
    ContainerTableOptions, MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX, OnDuplicate,
};
pub use containers::parts::container_rows;
pub use containers::read::{ContainerInfo, ContainersReader, ContainersStat, LatestValue};
pub use containers::recovery::ContainersRecovery;
pub use containers::restore::{DeletedPlace, RestoreRange, Restored};
pub use containers::sweep::{RemovalReason, RemovedMessage};
pub use containers::thin::Thinned;
pub use containers::thinning::{
    THINNING_FIELDS_MAX, THINNING_RULES_MAX, Thinning, ThinningFigure, ThinningRule,
};
pub use containers::token::{MESSAGE_TOKEN_BYTES, MessageToken};
pub use containers::value::FieldValue;
pub use containers::write::ContainersWriter;
pub use objects::append::UploadAppend;
pub use objects::attributes::{
    CONTENT_TYPE_BYTES_MAX, METADATA_BYTES_MAX, METADATA_PAIRS_MAX, ObjectAttributes,
};
pub use objects::bucket::BucketWriter;
pub use objects::change::ObjectChange;
pub use objects::chunks::CHUNKS_FREED_AT_ONCE;
pub use objects::complete::{UploadCompletion, UploadOutcome};
pub use objects::condition::{ObjectCondition, ObjectOutcome};
pub use objects::content_hash::{ContentHash, ContentHasher};
pub use objects::cursor::ObjectCursor;
pub use objects::keys::{
    CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, OBJECT_CHUNKS_MAX, OBJECT_NAME_BYTES_MAX,
};
pub use objects::leaves::part_of_bucket_rows;
pub use objects::links::{LinkId, ObjectLink};
pub use objects::list::{
    ListPage, ListQuery, ListToken, OBJECTS_EXAMINED_MAX, OBJECTS_LISTED_MAX, ObjectFilter,
};
pub use objects::maintain::BucketMaintenance;
pub use objects::manifest::ObjectInfo;
pub use objects::options::{BucketOptions, BucketOverflow};
pub use objects::parts::object_rows;
pub use objects::put::{ObjectPut, PUT_ABANDONED_AFTER_NS};
pub use objects::read::BucketReader;
pub use objects::room::{OBJECTS_ROTATED_PER_PUT_MAX, RemovedObjects, StoredObject};
pub use objects::state::BucketStat;
pub use objects::upload::{PART_CHUNKS_MAX, UploadId, UploadInfo, UploadMode, UploadPart};
pub use objects::verify::{DAMAGED_CHUNKS_MAX, ObjectVerification};
pub use options::{check as check_options, nanoseconds};
pub use queues::answer::Answered;
pub use queues::due::DeadReason;
pub use queues::groups::GroupStart;
pub use queues::lease::{Delivery, LeaseLimits};
pub use queues::leaves::part_of_queue_rows;
pub use queues::message::{NewMessage, PRIORITY_DEFAULT, QueueMessage};
pub use queues::options::{
    BATCH_MAX, CONSUMER_NAME_BYTES_MAX, GROUP_NAME_BYTES_MAX, GROUPS_MAX, HEADERS_BYTES_MAX,
    IDEMPOTENCY_KEY_BYTES_MAX, ORDERING_KEY_BYTES_MAX, Overflow, QUEUE_PAYLOAD_BYTES_MAX,
    QueueOptions,
};
pub use queues::parts::queue_rows;
pub use queues::push::Pushed;
pub use queues::read::{DeadLetter, GroupStat, QueueReader, QueueStat};
pub use queues::recover::{QueueRecovery, recover_queue};
pub use queues::remove::QueueMaintenance;
pub use queues::writer::{DEFAULT_GROUP, QueueWriter};
pub use topics::{
    Filter, FoundMessage, Match, Message, PROPERTIES_BYTES_MAX, PROPERTY_BYTES_MAX, Properties,
    Published, Qos, RecoveredTopics, Removed, Retained, SearchCounters, SearchOptions, SearchPage,
    TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX, TOPIC_PAYLOAD_BYTES_MAX, TopicChange, TopicChanges,
    TopicCount, TopicList, TopicOptions, TopicSearch, TopicsMaintenance, TopicsReader, TopicsStat,
    TopicsWriter, matches, part_of_topic_rows, topic_of_bytes, topic_rows,
};
