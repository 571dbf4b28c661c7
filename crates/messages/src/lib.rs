//! Messages: retained messages of topics, queues of jobs, and objects of any size.
//!
//! ```text
//! topics      retained messages: one for each topic, found by filters with wildcards
//! queues      jobs: many writers, consumer groups, leases, retries, dead letters
//! objects     bytes of any size in chunks, with metadata, expiry, and uploads in parts
//! ```
//!
//! Like the other structures, each is identified by the root of its table (`Tree`): functions take the root and a page
//! reader or page writer, and the caller stores the root. Times are nanoseconds since 1970 in UTC and are passed in by the
//! caller: nothing here reads a clock.

mod objects;
mod queues;
mod topics;
