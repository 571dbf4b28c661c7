//! The calls of LMDB that the engine needs. Lifetimes enforce the rules of LMDB: a value borrows the transaction, and
//! writing needs exclusive access to the transaction.

#![expect(unsafe_code, reason = "LMDB is a C library")]

use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use lmdb_master_sys as sys;

/// An error code of LMDB or of the system.
#[derive(Debug)]
pub(crate) struct Error(i32);

/// Result of every call of LMDB.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: `mdb_strerror` returns a string that stays valid at least until the next call.
        let text = unsafe { CStr::from_ptr(sys::mdb_strerror(self.0)) };
        write!(f, "LMDB: {}", text.to_string_lossy())
    }
}

impl std::error::Error for Error {}

fn done(code: i32) -> Result<()> {
    if code == sys::MDB_SUCCESS {
        Ok(())
    } else {
        Err(Error(code))
    }
}

fn val(bytes: &[u8]) -> sys::MDB_val {
    sys::MDB_val {
        mv_size: bytes.len(),
        mv_data: bytes.as_ptr().cast_mut().cast(),
    }
}

/// An LMDB environment, which is one database, with its unnamed table.
pub(crate) struct Env {
    env: *mut sys::MDB_env,
    dbi: sys::MDB_dbi,
}

impl Env {
    /// Opens or creates the environment in directory `dir`, with at most `map_bytes` of data. It is written through the
    /// memory map and synced at each commit.
    pub(crate) fn open(dir: &Path, map_bytes: usize) -> Result<Self> {
        Self::open_with(dir, map_bytes, sys::MDB_WRITEMAP)
    }

    /// Opens or creates the environment with these flags of LMDB.
    pub(crate) fn open_with(dir: &Path, map_bytes: usize, flags: u32) -> Result<Self> {
        Self::open_table(dir, map_bytes, flags, 0)
    }

    /// Like `open_with`, with a table whose keys have sorted sets of values of one length.
    pub(crate) fn open_sets(dir: &Path, map_bytes: usize, flags: u32) -> Result<Self> {
        Self::open_table(dir, map_bytes, flags, sys::MDB_DUPSORT | sys::MDB_DUPFIXED)
    }

    fn open_table(dir: &Path, map_bytes: usize, flags: u32, table: u32) -> Result<Self> {
        let path = CString::new(dir.as_os_str().as_bytes()).map_err(|_| Error(libc::EINVAL))?;
        let mut env = ptr::null_mut();
        // SAFETY: the call sets `env`.
        done(unsafe { sys::mdb_env_create(&raw mut env) })?;
        let mut this = Self { env, dbi: 0 };
        // SAFETY: `env` was created and not opened yet; `path` is a C string.
        unsafe {
            done(sys::mdb_env_set_mapsize(env, map_bytes))?;
            done(sys::mdb_env_open(env, path.as_ptr(), flags, 0o644))?;
        }
        let txn = this.begin(table != 0)?;
        let mut dbi = 0;
        // SAFETY: the transaction is open; no name means the unnamed table, which gets these flags while it is empty.
        done(unsafe { sys::mdb_dbi_open(txn.txn, ptr::null(), table, &raw mut dbi) })?;
        txn.commit()?;
        this.dbi = dbi;
        Ok(this)
    }

    /// Begins a write transaction, or a read transaction if `write` is false.
    pub(crate) fn begin(&self, write: bool) -> Result<Txn<'_>> {
        let flags = if write { 0 } else { sys::MDB_RDONLY };
        let mut txn = ptr::null_mut();
        // SAFETY: the environment is open; the call sets `txn`.
        done(unsafe { sys::mdb_txn_begin(self.env, ptr::null_mut(), flags, &raw mut txn) })?;
        Ok(Txn {
            txn,
            dbi: self.dbi,
            env: PhantomData,
        })
    }

    /// Writes all commits that are only in the system's memory to the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        // SAFETY: the environment is open.
        done(unsafe { sys::mdb_env_sync(self.env, 1) })
    }

    /// Writes a copy without free pages into the empty directory `dir`.
    pub(crate) fn copy_compacted(&self, dir: &Path) -> Result<()> {
        let path = CString::new(dir.as_os_str().as_bytes()).map_err(|_| Error(libc::EINVAL))?;
        // SAFETY: the environment is open; `path` is a C string.
        done(unsafe { sys::mdb_env_copy2(self.env, path.as_ptr(), sys::MDB_CP_COMPACT) })
    }
}

// SAFETY: an environment may be used by any thread; with `MDB_NOTLS` or without, a transaction stays with
// the thread that began it, as `Txn` holds a raw pointer and is neither `Send` nor `Sync`.
unsafe impl Send for Env {}
// SAFETY: an environment may also be shared by threads, because a `Txn` stays with the thread that began it.
unsafe impl Sync for Env {}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: every `Txn` borrows the `Env`, so none is open.
        unsafe { sys::mdb_env_close(self.env) };
    }
}

/// A transaction of LMDB, which is rolled back when dropped.
pub(crate) struct Txn<'e> {
    txn: *mut sys::MDB_txn,
    dbi: sys::MDB_dbi,
    env: PhantomData<&'e Env>,
}

impl Txn<'_> {
    /// Stores `value` under `key`.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut value) = (val(key), val(value));
        // SAFETY: both slices outlive the call, which copies them and writes to neither.
        done(unsafe { sys::mdb_put(self.txn, self.dbi, &raw mut key, &raw mut value, 0) })
    }

    /// Stores `value` under `key`, which must be above all existing keys.
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut value) = (val(key), val(value));
        let flags = sys::MDB_APPEND;
        // SAFETY: both slices outlive the call, which copies them and writes to neither.
        done(unsafe { sys::mdb_put(self.txn, self.dbi, &raw mut key, &raw mut value, flags) })
    }

    /// Stores `value` after all other values of `key`, which must be the last key.
    pub(crate) fn append_to_set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut value) = (val(key), val(value));
        let flags = sys::MDB_APPENDDUP;
        // SAFETY: both slices outlive the call, which copies them and writes to neither.
        done(unsafe { sys::mdb_put(self.txn, self.dbi, &raw mut key, &raw mut value, flags) })
    }

    /// The value of `key`, borrowed from the memory map; `None` if the key does not exist.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (mut key, mut value) = (val(key), val(&[]));
        // SAFETY: the transaction is open; the call only reads `key`, and sets `value`.
        let code = unsafe { sys::mdb_get(self.txn, self.dbi, &raw mut key, &raw mut value) };
        if code == sys::MDB_NOTFOUND {
            return Ok(None);
        }
        done(code)?;
        // SAFETY: the value is a range of the memory map, valid until the transaction writes or ends; writing needs
        // exclusive access to the `Txn`, which the result borrows.
        let value =
            unsafe { std::slice::from_raw_parts(value.mv_data.cast::<u8>(), value.mv_size) };
        Ok(Some(value))
    }

    /// Number of entries of the table.
    pub(crate) fn entries(&self) -> Result<u64> {
        // SAFETY: all-zero bytes are a valid `MDB_stat`, which the call fills.
        let mut stat: sys::MDB_stat = unsafe { std::mem::zeroed() };
        // SAFETY: the transaction is open; the call sets `stat`.
        done(unsafe { sys::mdb_stat(self.txn, self.dbi, &raw mut stat) })?;
        Ok(stat.ms_entries as u64)
    }

    /// Removes `key`; returns true if it existed.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool> {
        match self.delete(key) {
            Ok(()) => Ok(true),
            Err(Error(sys::MDB_NOTFOUND)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes `key`, which must exist.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut key = val(key);
        // SAFETY: the slice outlives the call.
        done(unsafe { sys::mdb_del(self.txn, self.dbi, &raw mut key, ptr::null_mut()) })
    }

    /// Opens a cursor over the table.
    pub(crate) fn cursor(&self) -> Result<Cursor<'_>> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is open; the call sets `cursor`.
        done(unsafe { sys::mdb_cursor_open(self.txn, self.dbi, &raw mut cursor) })?;
        Ok(Cursor {
            cursor,
            txn: PhantomData,
        })
    }

    /// Commits the transaction: LMDB syncs the map with `msync`, then writes the meta page.
    pub(crate) fn commit(self) -> Result<()> {
        let txn = self.txn;
        std::mem::forget(self);
        // SAFETY: the transaction is open, and the call ends it in any case.
        done(unsafe { sys::mdb_txn_commit(txn) })
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction is open, because `commit` forgets `self`; every `Cursor` borrows the `Txn`.
        unsafe { sys::mdb_txn_abort(self.txn) };
    }
}

/// A cursor of LMDB: a position in the table.
pub(crate) struct Cursor<'t> {
    cursor: *mut sys::MDB_cursor,
    txn: PhantomData<&'t Txn<'t>>,
}

/// A key and its value, borrowed from the memory map.
pub(crate) type Entry<'t> = (&'t [u8], &'t [u8]);

impl<'t> Cursor<'t> {
    /// Moves to the first entry at or after `key`, and returns it.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<Option<Entry<'t>>> {
        self.get(val(key), sys::MDB_SET_RANGE)
    }

    /// Moves to the first value of exactly this `key`, and returns the entry.
    pub(crate) fn seek_exactly(&mut self, key: &[u8]) -> Result<Option<Entry<'t>>> {
        self.get(val(key), sys::MDB_SET_KEY)
    }

    /// Moves to the next value of the current key, and returns the entry.
    pub(crate) fn next_of_set(&mut self) -> Result<Option<Entry<'t>>> {
        self.get(val(&[]), sys::MDB_NEXT_DUP)
    }

    /// Moves to the next entry, and returns it.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'t>>> {
        self.get(val(&[]), sys::MDB_NEXT)
    }

    /// Moves to the previous entry, and returns it.
    pub(crate) fn previous(&mut self) -> Result<Option<Entry<'t>>> {
        self.get(val(&[]), sys::MDB_PREV)
    }

    /// Moves to the last entry of the table, and returns it.
    pub(crate) fn last(&mut self) -> Result<Option<Entry<'t>>> {
        self.get(val(&[]), sys::MDB_LAST)
    }

    fn get(&mut self, mut key: sys::MDB_val, op: sys::MDB_cursor_op) -> Result<Option<Entry<'t>>> {
        let mut value = val(&[]);
        // SAFETY: the cursor is open; `key` points to the caller's slice or is overwritten.
        let code = unsafe { sys::mdb_cursor_get(self.cursor, &raw mut key, &raw mut value, op) };
        if code == sys::MDB_NOTFOUND {
            return Ok(None);
        }
        done(code)?;
        // SAFETY: LMDB returns ranges of the memory map, valid until the transaction writes or ends; writing needs
        // exclusive access to the `Txn`, which `'t` borrows.
        let entry = unsafe {
            (
                std::slice::from_raw_parts(key.mv_data.cast::<u8>(), key.mv_size),
                std::slice::from_raw_parts(value.mv_data.cast::<u8>(), value.mv_size),
            )
        };
        Ok(Some(entry))
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the cursor is open until here.
        unsafe { sys::mdb_cursor_close(self.cursor) };
    }
}
