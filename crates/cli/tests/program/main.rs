//! The program as a user meets it: the real binary, real files, exit codes and messages.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod bad_inputs;
mod buffered_tables;
mod check_json;
mod consistency;
mod container_changes;
mod container_messages;
mod containers;
mod corners;
mod device;
mod downsampling;
mod events;
mod follow;
mod foreign_dumps;
mod hash_tables;
mod import;
mod import_blocks;
mod import_numbers;
mod import_schemas;
mod injected;
mod integrity;
mod kv_bytes;
mod lmdb_tools;
mod local_times;
mod lost_commits;
mod message_dumps;
mod messy;
mod objects;
mod patterns;
mod pictures;
mod queries;
mod queues;
mod remove;
mod retention;
mod row_figures;
mod schemas;
mod sql;
mod support;
mod tables;
mod tags;
mod topics;
mod topics_watched;
mod trouble;
mod truth;
mod typed_files;
mod upkeep;
mod uploads;
mod walks;
