//! Adapter for libmdbx (Apache-2.0), through the C library in the crate `mdbx-sys`.
//!
//! `Synced`: the default of libmdbx, durable. `Lazy`: `MDBX_SAFE_NOSYNC`. `Unsynced`: `MDBX_UTTERLY_NOSYNC` and a
//! writable map. Geometry of the file: default steps, and an upper bound that is never reached.

#![expect(unsafe_code, reason = "libmdbx is a C library")]

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use super::data::Ascending;
use super::mdbx_sys::*;
use super::{
    Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, sets_face, touch,
};

/// An error code of libmdbx or of the system.
#[derive(Debug)]
struct Error(i32);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the string lives at least until the next call of this thread.
        let text = unsafe { CStr::from_ptr(mdbx_strerror(self.0)) };
        write!(f, "libmdbx: {}", text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

fn done(code: i32) -> Result<()> {
    match code {
        MDBX_SUCCESS => Ok(()),
        code => Err(Error(code).into()),
    }
}

/// Like `done`, but the code for "not found" is not an error: returns false.
fn found(code: i32) -> Result<bool> {
    match code {
        MDBX_NOTFOUND => Ok(false),
        code => done(code).map(|()| true),
    }
}

fn val(bytes: &[u8]) -> MDBX_val {
    MDBX_val {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// The bytes of a value that libmdbx has returned.
///
/// # Safety
/// The transaction in which the value was read must neither write nor end while the result is used.
unsafe fn bytes<'t>(value: &MDBX_val) -> &'t [u8] {
    if value.iov_len == 0 {
        return &[];
    }
    // SAFETY: the value is a range of the memory map; the caller guarantees its lifetime.
    unsafe { std::slice::from_raw_parts(value.iov_base.cast::<u8>(), value.iov_len) }
}

/// A libmdbx environment, which is one database, with its unnamed table.
pub(crate) struct Mdbx {
    env: *mut MDBX_env,
    dbi: MDBX_dbi,
    dir: PathBuf,
    promise: Promise,
}

// SAFETY: an environment may be used by any thread; transactions stay with the thread that began them, as
// they live inside one call of `write` or `read`.
unsafe impl Send for Mdbx {}
// SAFETY: the reason above for `Send` applies to shared use as well.
unsafe impl Sync for Mdbx {}

impl Mdbx {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        Self::open_table(dir, setup, 0)
    }

    fn open_table(dir: &Path, setup: &Setup, table: u32) -> Result<Self> {
        let compacted = dir.join("compacted.dat");
        if compacted.exists() {
            std::fs::rename(compacted, dir.join("mdbx.dat"))?;
        }
        let path = CString::new(dir.as_os_str().as_bytes())?;
        let flags = match setup.promise {
            Promise::Synced => 0,
            Promise::Lazy => MDBX_SAFE_NOSYNC,
            Promise::Unsynced => MDBX_UTTERLY_NOSYNC | MDBX_WRITEMAP,
        };
        let ahead = if setup.jumping { MDBX_NORDAHEAD } else { 0 };
        let upper = setup.data_bytes * 8 + (1 << 30);
        let (level, same) = (MDBX_LOG_ERROR, MDBX_LOGGER_DONTCHANGE);
        // SAFETY: the call sets only a log level; the header defines the values for "do not change".
        unsafe { mdbx_setup_debug(level, MDBX_DBG_DONTCHANGE, same) };
        let mut env = ptr::null_mut();
        // SAFETY: the call sets `env`.
        done(unsafe { mdbx_env_create(&raw mut env) })?;
        let mut this = Self {
            env,
            dbi: 0,
            dir: dir.to_owned(),
            promise: setup.promise,
        };
        // SAFETY: `env` was created and not opened yet; `path` is a C string; -1 means the default.
        unsafe {
            done(mdbx_env_set_geometry(
                env,
                -1,
                -1,
                upper as isize,
                -1,
                -1,
                -1,
            ))?;
            done(mdbx_env_open(env, path.as_ptr(), flags | ahead, 0o644))?;
        }
        let txn = this.begin(MDBX_TXN_READWRITE)?;
        let mut dbi = 0;
        // SAFETY: the transaction is open; no name means the unnamed table, which gets these flags while it is empty.
        done(unsafe { mdbx_dbi_open(txn.txn, ptr::null(), table, &raw mut dbi) })?;
        txn.commit()?;
        this.dbi = dbi;
        Ok(this)
    }

    fn begin(&self, flags: u32) -> Result<Txn> {
        let mut txn = ptr::null_mut();
        let (parent, context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the environment is open; the call sets `txn`.
        done(unsafe { mdbx_txn_begin_ex(self.env, parent, flags, &raw mut txn, context) })?;
        Ok(Txn { txn, dbi: self.dbi })
    }
}

impl Drop for Mdbx {
    fn drop(&mut self) {
        // SAFETY: transactions do not outlive the calls that began them, so none is open.
        unsafe { mdbx_env_close_ex(self.env, false) };
    }
}

impl Engine for Mdbx {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.begin(MDBX_TXN_READWRITE)?;
        work(&mut txn)?;
        txn.commit()
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        work(&mut self.begin(MDBX_TXN_RDONLY)?)
    }

    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        let mut txn = self.begin(MDBX_TXN_READWRITE)?;
        for (key, value) in pairs {
            txn.store(key.as_ref(), value, MDBX_APPEND)?;
        }
        txn.commit()
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: the environment is open. The result -1 (MDBX_RESULT_TRUE) means that there was nothing to do.
        match unsafe { mdbx_env_sync_ex(self.env, true, false) } {
            -1 => Ok(()),
            code => done(code),
        }
    }

    fn compact(&mut self) -> Result<bool> {
        let to = self.dir.join("compacted.dat");
        let path = CString::new(to.as_os_str().as_bytes())?;
        // SAFETY: the environment is open; `path` is a C string.
        done(unsafe { mdbx_env_copy(self.env, path.as_ptr(), MDBX_CP_COMPACT) })?;
        Ok(true)
    }

    fn silent_syncs(&self, commits: u64) -> u64 {
        // In each synced commit, libmdbx writes the meta page through a descriptor with O_DSYNC, which waits for the
        // disk.
        commits * u64::from(self.promise == Promise::Synced)
    }
}

/// A transaction of libmdbx, which is rolled back when dropped.
struct Txn {
    txn: *mut MDBX_txn,
    dbi: MDBX_dbi,
}

impl Txn {
    fn store(&mut self, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let (key, mut value) = (val(key), val(value));
        // SAFETY: both slices outlive the call, which copies them and writes to neither.
        done(unsafe { mdbx_put(self.txn, self.dbi, &raw const key, &raw mut value, flags) })
    }

    /// The value of a key, which lies in the map until the transaction writes or ends.
    fn fetch(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (key, mut value) = (val(key), val(&[]));
        // SAFETY: the transaction is open; the call sets `value`.
        let code = unsafe { mdbx_get(self.txn, self.dbi, &raw const key, &raw mut value) };
        // SAFETY: writing needs exclusive access to the transaction, which the result borrows.
        Ok(found(code)?.then(|| unsafe { bytes(&value) }))
    }

    fn commit(self) -> Result<()> {
        let txn = self.txn;
        std::mem::forget(self);
        // SAFETY: the transaction is open, and the call ends it in any case.
        done(unsafe { mdbx_txn_commit_ex(txn, ptr::null_mut()) })
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        // SAFETY: the transaction is open, because `commit` forgets `self`.
        unsafe { mdbx_txn_abort_ex(self.txn, ptr::null_mut()) };
    }
}

impl Write for Txn {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(key, value, MDBX_UPSERT)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.fetch(key)?.map(touch))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let key = val(key);
        // SAFETY: the slice outlives the call; no value means that all values of the key are removed.
        found(unsafe { mdbx_del(self.txn, self.dbi, &raw const key, ptr::null()) })
    }
}

impl Read for Txn {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.fetch(key)?.map(touch))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.fetch(key)?.map(seen).is_some())
    }

    fn count(&mut self) -> Result<u64> {
        let mut stat = MDBX_stat::default();
        // SAFETY: the transaction is open; the call fills `stat`, whose size is passed.
        done(unsafe { mdbx_dbi_stat(self.txn, self.dbi, &raw mut stat, size_of::<MDBX_stat>()) })?;
        Ok(stat.entries)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        self.walk(from, limit, (MDBX_SET_RANGE, MDBX_NEXT))
    }
}

/// A database whose unnamed table has sorted sets of values of one length.
pub(super) struct Sets(Mdbx);

impl Sets {
    pub(super) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let flags = MDBX_CREATE | MDBX_DUPSORT | MDBX_DUPFIXED;
        Ok(Self(Mdbx::open_table(dir, setup, flags)?))
    }
}

impl sets_face::Sets for Sets {
    fn load(&self, pairs: sets_face::Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin(MDBX_TXN_READWRITE)?;
        let mut last = None;
        for (key, value) in pairs {
            let same = last == Some(key);
            let flags = if same { MDBX_APPENDDUP } else { MDBX_APPEND };
            txn.store(&key, &value, flags)?;
            last = Some(key);
        }
        txn.commit()
    }

    fn put(&self, pairs: sets_face::Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin(MDBX_TXN_READWRITE)?;
        for (key, value) in pairs {
            txn.store(&key, &value, MDBX_UPSERT)?;
        }
        txn.commit()
    }

    fn read(&self, work: sets_face::ReadingSets<'_>) -> Result<()> {
        work(&mut self.0.begin(MDBX_TXN_RDONLY)?)
    }

    fn silent_syncs(&self) -> u64 {
        self.0.silent_syncs(1)
    }
}

impl sets_face::ReadSets for Txn {
    fn scan(&mut self) -> Result<Digest> {
        self.walk(&[], u64::MAX, (MDBX_SET_RANGE, MDBX_NEXT))
    }

    fn values(&mut self, key: &sets_face::Word) -> Result<Digest> {
        self.walk(key, u64::MAX, (MDBX_SET_KEY, MDBX_NEXT_DUP))
    }
}

impl Txn {
    /// Visits entries with the cursor operation `first` for the first entry, and `next` for each following entry.
    fn walk(&self, from: &[u8], limit: u64, (first, next): (u32, u32)) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is open; the call sets `cursor`.
        done(unsafe { mdbx_cursor_open(self.txn, self.dbi, &raw mut cursor) })?;
        let (mut key, mut value) = (val(from), val(&[]));
        let mut op = first;
        let result = loop {
            if digest.entries == limit {
                break Ok(());
            }
            // SAFETY: the cursor is open; `key` points to the caller's slice or is overwritten.
            let code = unsafe { mdbx_cursor_get(cursor, &raw mut key, &raw mut value, op) };
            match found(code) {
                // SAFETY: the bytes are used at once, while the transaction is open.
                Ok(true) => digest.add(unsafe { bytes(&key) }, unsafe { bytes(&value) }),
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            op = next;
        };
        // SAFETY: the cursor was opened above and is closed only here.
        unsafe { mdbx_cursor_close(cursor) };
        result.map(|()| digest)
    }
}
