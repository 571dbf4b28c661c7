//! The part of `mdbx.h` (libmdbx 0.14.4) that the adapter uses, declared by hand; the crate `mdbx-sys` compiles and
//! links the library.

#![expect(unsafe_code, reason = "declarations of a C library")]
#![expect(non_camel_case_types, reason = "the names of the C header")]

use std::ffi::{c_char, c_int, c_uint, c_void};

// This import only makes the linker include the library.
use mdbx_sys as _;

/// Type of an environment, whose fields are hidden.
#[repr(C)]
pub(super) struct MDBX_env {
    opaque: [u8; 0],
}
/// Type of a transaction, whose fields are hidden.
#[repr(C)]
pub(super) struct MDBX_txn {
    opaque: [u8; 0],
}
/// Type of a cursor, whose fields are hidden.
#[repr(C)]
pub(super) struct MDBX_cursor {
    opaque: [u8; 0],
}
/// Figures about a table.
#[derive(Default)]
#[repr(C)]
pub(super) struct MDBX_stat {
    pub(super) page_size: u32,
    pub(super) depth: u32,
    pub(super) branch_pages: u64,
    pub(super) leaf_pages: u64,
    pub(super) overflow_pages: u64,
    pub(super) entries: u64,
    pub(super) last_change: u64,
}
/// Handle of a table.
pub(super) type MDBX_dbi = u32;
/// A slice of bytes, a `struct iovec` in the header.
pub(super) type MDBX_val = libc::iovec;

pub(super) const MDBX_SUCCESS: c_int = 0;
pub(super) const MDBX_NOTFOUND: c_int = -30798;

pub(super) const MDBX_WRITEMAP: c_uint = 0x8_0000;
pub(super) const MDBX_NORDAHEAD: c_uint = 0x80_0000;
pub(super) const MDBX_SAFE_NOSYNC: c_uint = 0x1_0000;
pub(super) const MDBX_UTTERLY_NOSYNC: c_uint = MDBX_SAFE_NOSYNC | 0x10_0000;

pub(super) const MDBX_TXN_READWRITE: c_uint = 0;
pub(super) const MDBX_TXN_RDONLY: c_uint = 0x2_0000;

pub(super) const MDBX_UPSERT: c_uint = 0;
pub(super) const MDBX_APPEND: c_uint = 0x2_0000;
pub(super) const MDBX_APPENDDUP: c_uint = 0x4_0000;
pub(super) const MDBX_CP_COMPACT: c_uint = 1;

pub(super) const MDBX_DUPSORT: c_uint = 0x04;
pub(super) const MDBX_DUPFIXED: c_uint = 0x10;
pub(super) const MDBX_CREATE: c_uint = 0x4_0000;

/// Log level for messages to standard error: errors only.
pub(super) const MDBX_LOG_ERROR: c_int = 1;
pub(super) const MDBX_DBG_DONTCHANGE: c_int = -1;
pub(super) const MDBX_LOGGER_DONTCHANGE: *const c_void = usize::MAX as *const c_void;

/// Values of `enum MDBX_cursor_op`.
pub(super) const MDBX_NEXT: c_uint = 8;
pub(super) const MDBX_NEXT_DUP: c_uint = 9;
pub(super) const MDBX_SET_KEY: c_uint = 16;
pub(super) const MDBX_SET_RANGE: c_uint = 17;

// SAFETY: the declarations equal those in `mdbx.h` 0.14.4, argument by argument.
unsafe extern "C" {
    pub(super) fn mdbx_strerror(code: c_int) -> *const c_char;
    pub(super) fn mdbx_setup_debug(level: c_int, flags: c_int, logger: *const c_void) -> c_int;
    pub(super) fn mdbx_env_create(env: *mut *mut MDBX_env) -> c_int;
    pub(super) fn mdbx_env_set_geometry(
        env: *mut MDBX_env,
        lower: isize,
        now: isize,
        upper: isize,
        growth_step: isize,
        shrink_threshold: isize,
        page_size: isize,
    ) -> c_int;
    pub(super) fn mdbx_env_open(
        env: *mut MDBX_env,
        path: *const c_char,
        flags: c_uint,
        mode: libc::mode_t,
    ) -> c_int;
    pub(super) fn mdbx_env_close_ex(env: *mut MDBX_env, dont_sync: bool) -> c_int;
    pub(super) fn mdbx_env_sync_ex(env: *mut MDBX_env, force: bool, nonblock: bool) -> c_int;
    pub(super) fn mdbx_env_copy(env: *mut MDBX_env, to: *const c_char, flags: c_uint) -> c_int;
    pub(super) fn mdbx_txn_begin_ex(
        env: *mut MDBX_env,
        parent: *mut MDBX_txn,
        flags: c_uint,
        txn: *mut *mut MDBX_txn,
        context: *mut c_void,
    ) -> c_int;
    pub(super) fn mdbx_txn_commit_ex(txn: *mut MDBX_txn, latency: *mut c_void) -> c_int;
    pub(super) fn mdbx_txn_abort_ex(txn: *mut MDBX_txn, latency: *mut c_void) -> c_int;
    pub(super) fn mdbx_dbi_open(
        txn: *mut MDBX_txn,
        name: *const c_char,
        flags: c_uint,
        dbi: *mut MDBX_dbi,
    ) -> c_int;
    pub(super) fn mdbx_dbi_stat(
        txn: *const MDBX_txn,
        dbi: MDBX_dbi,
        stat: *mut MDBX_stat,
        bytes: usize,
    ) -> c_int;
    pub(super) fn mdbx_get(
        txn: *const MDBX_txn,
        dbi: MDBX_dbi,
        key: *const MDBX_val,
        value: *mut MDBX_val,
    ) -> c_int;
    pub(super) fn mdbx_put(
        txn: *mut MDBX_txn,
        dbi: MDBX_dbi,
        key: *const MDBX_val,
        value: *mut MDBX_val,
        flags: c_uint,
    ) -> c_int;
    pub(super) fn mdbx_del(
        txn: *mut MDBX_txn,
        dbi: MDBX_dbi,
        key: *const MDBX_val,
        value: *const MDBX_val,
    ) -> c_int;
    pub(super) fn mdbx_cursor_open(
        txn: *mut MDBX_txn,
        dbi: MDBX_dbi,
        cursor: *mut *mut MDBX_cursor,
    ) -> c_int;
    pub(super) fn mdbx_cursor_close(cursor: *mut MDBX_cursor);
    pub(super) fn mdbx_cursor_get(
        cursor: *mut MDBX_cursor,
        key: *mut MDBX_val,
        value: *mut MDBX_val,
        op: c_uint,
    ) -> c_int;
}
