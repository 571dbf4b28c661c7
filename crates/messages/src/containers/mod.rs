//! Containers: messages of named sources, as documents with fields, ordered by time.
//!
//! ```text
//! value        the value of a field
//! document     a message: fields with unique names
//! numbers      the numbers in a message
//! codec        the encoded form of messages
//! json         messages as JSON
//! fields       the fields that a query returns
//! expression   filters, and values computed from messages
//!
//! parts, keys  the tables of a table of containers, and the keys of their rows
//! options, state, deletion, due, record, message, latest
//!              the rows of each part
//! token        positions in the order of messages
//! seen, dictionary
//!              idempotency keys; names of fields
//! thinning, step_fields
//!              rules of thinning; the fields of a step of time
//! runs, sweep  removing neighbouring rows; finding expired and surplus messages
//! write        ContainersWriter; each kind of call has a file of its own:
//!  ├ append       arguments and results of an append
//!  ├ resolve      finds the containers of messages, and encodes messages
//!  ├ plan         determines the outcome of each message
//!  ├ apply        appends: resolves, plans, writes all parts
//!  ├ manage       creates, drops, restores and renames containers
//!  ├ edit         replaces and deletes messages
//!  ├ restore      restores deleted messages
//!  ├ maintain     removes expired and surplus messages
//!  └ thin, steps  thins older messages; finds the steps of time
//! read         ContainersReader: totals, containers, latest values, fields
//!  ├ cursor, merged
//!  │              the messages of one container, and of several
//!  ├ list         containers by name
//!  └ check, check_parts
//!                 checks every rule of the format
//! recovery, recover_parts, recover
//!              rebuild everything else from the messages and the records
//! ```
//!
//! Invariants of the storage:
//! 1. A container has a number, which it keeps when it is renamed, dropped and restored, and which is not used again.
//!    The keys of all its rows begin with the number, so that they can be removed as ranges.
//! 2. The key of a message is its container, its time and a tie. The record of a container has the exact number of its
//!    messages and bytes, and the exact times of the oldest and the newest one: a later message needs no lookup.
//! 3. For each field of each stored message, the row of latest values of the container has a value whose time is not
//!    earlier than the message.
//! 4. In stored documents, names of fields are replaced by numbers; a number has the same name for ever.
//! 5. Everything that becomes due at some time has a row in `Due` that is not too late, or a row in `SeenTimes`.
//! 6. A deletion stores the exact number of its messages, which is at least one.

pub(crate) mod append;
pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod check_parts;
pub(crate) mod codec;
pub(crate) mod cursor;
pub(crate) mod deletion;
pub(crate) mod dictionary;
pub(crate) mod document;
pub(crate) mod due;
pub(crate) mod edit;
pub(crate) mod expression;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod latest;
pub(crate) mod leaves;
pub(crate) mod list;
pub(crate) mod maintain;
pub(crate) mod manage;
pub(crate) mod merged;
pub(crate) mod message;
pub(crate) mod numbers;
pub(crate) mod options;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod recover;
pub(crate) mod recover_parts;
pub(crate) mod recovery;
pub(crate) mod resolve;
pub(crate) mod restore;
pub(crate) mod runs;
pub(crate) mod seen;
pub(crate) mod state;
pub(crate) mod step_fields;
pub(crate) mod steps;
pub(crate) mod sweep;
pub(crate) mod thin;
pub(crate) mod thinning;
pub(crate) mod token;
pub(crate) mod value;
pub(crate) mod write;

#[cfg(test)]
mod tests;
