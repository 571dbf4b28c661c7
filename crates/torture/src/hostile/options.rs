//! The options with which this test opens every file.

use crate::workload::RUN_BYTES;
use tidalite::{Options, Tuning};

pub(super) fn options() -> Options {
    Options::new().tuning(
        Tuning::new()
            .growth_bytes(16 << 10, 64 << 10)
            .dirty_bytes(64 << 10)
            .write_behind_bytes(32 << 10)
            .write_buffer_bytes(256 << 10)
            .run_bytes(RUN_BYTES),
    )
}
