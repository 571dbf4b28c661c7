//! Safe calls of LMDB through the crate `lmdb-master-sys`: one environment with three tables.
#![expect(unsafe_code, reason = "LMDB is a C library")]

use libc::{c_int, c_uint, c_void};
use lmdb_master_sys as sys;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::null_mut;

pub use sys::{
    MDB_APPEND, MDB_APPENDDUP, MDB_CURRENT, MDB_FIRST, MDB_FIRST_DUP, MDB_GET_BOTH,
    MDB_GET_BOTH_RANGE, MDB_LAST, MDB_LAST_DUP, MDB_NEXT, MDB_NEXT_DUP, MDB_NEXT_NODUP,
    MDB_NODUPDATA, MDB_NOOVERWRITE, MDB_PREV, MDB_PREV_DUP, MDB_PREV_NODUP, MDB_SET_KEY,
    MDB_SET_RANGE,
};

const MAP_BYTES: usize = 1 << 30;

/// Maximum number of tables: the three tables, and the plain table under its second name.
const TABLES_MAX: c_uint = 4;

/// Flags with which each table is created, in the order of [`Which`].
const FLAGS: [c_uint; 3] = [
    sys::MDB_CREATE,
    sys::MDB_CREATE | sys::MDB_DUPSORT,
    sys::MDB_CREATE | sys::MDB_DUPSORT | sys::MDB_DUPFIXED,
];

/// Panics if LMDB returns an error code that no operation here should cause.
fn sound(code: c_int) {
    assert!(code == 0, "LMDB reports {code}");
}

fn val(bytes: &[u8]) -> sys::MDB_val {
    sys::MDB_val {
        mv_size: bytes.len(),
        mv_data: bytes.as_ptr() as *mut c_void,
    }
}

fn none() -> sys::MDB_val {
    sys::MDB_val {
        mv_size: 0,
        mv_data: null_mut(),
    }
}

/// An LMDB environment, which is one database.
pub struct Lmdb {
    env: *mut sys::MDB_env,
}

/// Selects one of the three tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The table with one value per key.
    Plain,
    /// The table with sorted duplicates: several values per key.
    Multi,
    /// The table with sorted duplicates of one length.
    Fixed,
}

/// A write transaction of LMDB.
pub struct Txn<'e> {
    txn: *mut sys::MDB_txn,
    tables: [sys::MDB_dbi; 3],
    env: *mut sys::MDB_env,
    lent: PhantomData<&'e Lmdb>,
}

/// A cursor of a transaction.
pub struct Cursor<'t> {
    cursor: *mut sys::MDB_cursor,
    txn: PhantomData<&'t Txn<'t>>,
}

impl Lmdb {
    /// Opens an environment in a folder, which must exist.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn open(folder: &Path) -> Self {
        let path = CString::new(folder.to_string_lossy().as_bytes()).expect("a path");
        let mut env = null_mut();
        // SAFETY: the first call creates `env`, and the path ends with a zero byte.
        unsafe {
            sound(sys::mdb_env_create(&mut env));
            sound(sys::mdb_env_set_mapsize(env, MAP_BYTES));
            sound(sys::mdb_env_set_maxdbs(env, TABLES_MAX));
            sound(sys::mdb_env_open(
                env,
                path.as_ptr(),
                sys::MDB_NOSYNC,
                0o600,
            ));
        }
        Self { env }
    }

    /// Begins a write transaction and opens all tables; `plain` is the name of the plain table.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn begin(&self, plain: &CStr) -> Txn<'_> {
        let mut txn = null_mut();
        // SAFETY: the environment is open.
        unsafe { sound(sys::mdb_txn_begin(self.env, null_mut(), 0, &mut txn)) };
        let mut begun = Txn {
            txn,
            tables: [0; 3],
            env: self.env,
            lent: PhantomData,
        };
        begun.open(Which::Plain, plain);
        begun.open(Which::Multi, c"multi");
        begun.open(Which::Fixed, c"fixed");
        begun
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // SAFETY: transactions borrow the environment, so none is open.
        unsafe { sys::mdb_env_close(self.env) };
    }
}

impl Txn<'_> {
    fn table(&self, which: Which) -> sys::MDB_dbi {
        self.tables[which as usize]
    }

    /// Opens a table, and creates it if it does not exist.
    fn open(&mut self, which: Which, name: &CStr) {
        let table = &mut self.tables[which as usize];
        // SAFETY: the transaction is open, and the name ends with a zero byte.
        sound(unsafe { sys::mdb_dbi_open(self.txn, name.as_ptr(), FLAGS[which as usize], table) });
    }

    /// Begins a transaction nested in this transaction, which cannot be used until the nested one ends.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn nested(&mut self) -> Txn<'_> {
        let mut txn = null_mut();
        // SAFETY: the parent is open, and is not used while the child borrows it.
        unsafe { sound(sys::mdb_txn_begin(self.env, self.txn, 0, &mut txn)) };
        Txn {
            txn,
            tables: self.tables,
            env: self.env,
            lent: PhantomData,
        }
    }

    /// Removes all entries of a table.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn clear(&mut self, which: Which) {
        // SAFETY: cursors borrow the transaction, so none is open.
        sound(unsafe { sys::mdb_drop(self.txn, self.table(which), 0) });
    }

    /// Deletes a table and creates it again, empty. Must not be called in a nested transaction.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn remake(&mut self, which: Which, name: &CStr) {
        // SAFETY: cursors borrow the transaction, so none is open; the handle, which becomes invalid, is opened again
        // before it is used.
        sound(unsafe { sys::mdb_drop(self.txn, self.table(which), 1) });
        self.open(which, name);
    }

    /// Renames the plain table. LMDB has no call for this, so the pairs are copied. Must not be called in a nested
    /// transaction.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn rename_plain(&mut self, to: &CStr) {
        let mut pairs = Vec::new();
        let mut cursor = self.cursor(Which::Plain);
        while let Some(pair) = cursor.go(MDB_NEXT, &[], &[]) {
            pairs.push(pair);
        }
        drop(cursor);
        self.remake(Which::Plain, to);
        for (key, value) in pairs {
            assert!(self.put(Which::Plain, &key, &value, MDB_APPEND));
        }
    }

    /// Inserts a pair; returns false if LMDB returns `MDB_KEYEXIST`.
    ///
    /// # Panics
    /// When LMDB reports another error.
    pub fn put(&mut self, which: Which, key: &[u8], value: &[u8], flags: c_uint) -> bool {
        let (mut key, mut value) = (val(key), val(value));
        // SAFETY: both slices live until the call returns; the call copies them.
        let code =
            unsafe { sys::mdb_put(self.txn, self.table(which), &mut key, &mut value, flags) };
        if code != sys::MDB_KEYEXIST {
            sound(code);
        }
        code == 0
    }

    /// The value of a key, or the first of its values; `None` if the key does not exist.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn get(&self, which: Which, key: &[u8]) -> Option<Vec<u8>> {
        let (mut key, mut value) = (val(key), none());
        // SAFETY: the value points into the memory map, which stays valid while the transaction is open; the value is
        // copied at once.
        unsafe {
            let code = sys::mdb_get(self.txn, self.table(which), &mut key, &mut value);
            if code == sys::MDB_NOTFOUND {
                return None;
            }
            sound(code);
            Some(bytes(&value))
        }
    }

    /// Removes a key, or one of its values; returns true if it existed.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn del(&mut self, which: Which, key: &[u8], value: Option<&[u8]>) -> bool {
        let mut key = val(key);
        let mut value = value.map(val);
        let value = value.as_mut().map_or(null_mut(), |value| value as *mut _);
        // SAFETY: both slices live until the call returns.
        let code = unsafe { sys::mdb_del(self.txn, self.table(which), &mut key, value) };
        if code != sys::MDB_NOTFOUND {
            sound(code);
        }
        code == 0
    }

    /// Opens a cursor that is at no entry yet.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn cursor(&self, which: Which) -> Cursor<'_> {
        let mut cursor = null_mut();
        // SAFETY: the transaction is open as long as the cursor borrows it.
        sound(unsafe { sys::mdb_cursor_open(self.txn, self.table(which), &mut cursor) });
        Cursor {
            cursor,
            txn: PhantomData,
        }
    }

    /// Number of entries in a table; each duplicate counts.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn count(&self, which: Which) -> u64 {
        // SAFETY: the structure consists of numbers, which the call sets.
        unsafe {
            let mut stat: sys::MDB_stat = std::mem::zeroed();
            sound(sys::mdb_stat(self.txn, self.table(which), &mut stat));
            stat.ms_entries as u64
        }
    }

    /// Commits the transaction.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn commit(self) {
        // SAFETY: cursors borrow the transaction, so none is open.
        sound(unsafe { sys::mdb_txn_commit(self.txn) });
        std::mem::forget(self);
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        // SAFETY: cursors borrow the transaction, so none is open.
        unsafe { sys::mdb_txn_abort(self.txn) };
    }
}

/// Copies a value that LMDB has lent.
///
/// # Safety
/// A successful call must have set `value`, in a transaction that is still open.
unsafe fn bytes(value: &sys::MDB_val) -> Vec<u8> {
    if value.mv_size == 0 {
        return Vec::new();
    }
    // SAFETY: the caller guarantees that the value is valid.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast::<u8>(), value.mv_size) }.to_vec()
}

impl Cursor<'_> {
    /// Moves the cursor; returns the pair at the new position, or `None` if there is no such position.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn go(&mut self, op: c_uint, key: &[u8], value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (given, mut value) = (key.to_vec(), val(value));
        let mut key = val(&given);
        // SAFETY: the slices live until the call returns; the returned pair points into the memory map and is copied at
        // once.
        unsafe {
            let code = sys::mdb_cursor_get(self.cursor, &mut key, &mut value, op);
            if code == sys::MDB_NOTFOUND {
                return None;
            }
            sound(code);
            Some((bytes(&key), bytes(&value)))
        }
    }

    /// The pair at the cursor.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn here(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.go(sys::MDB_GET_CURRENT, &[], &[])
    }

    /// Number of values of the key at the cursor.
    ///
    /// # Panics
    /// When LMDB reports an error.
    #[must_use]
    pub fn count(&self) -> u64 {
        let mut count = 0;
        // SAFETY: the cursor is at an entry.
        sound(unsafe { sys::mdb_cursor_count(self.cursor, &mut count) });
        count as u64
    }

    /// All values of the key at the cursor, from the current one on, concatenated; for the table whose values have one
    /// length.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn multiple(&mut self) -> Vec<u8> {
        if self.count() == 1 {
            // LMDB returns pages of values, and a key with a single value has no such page.
            return self.here().expect("the cursor is at a pair").1;
        }
        let (_, mut all) = self
            .go(sys::MDB_GET_MULTIPLE, &[], &[])
            .expect("the cursor is at a pair");
        while let Some((_, more)) = self.go(sys::MDB_NEXT_MULTIPLE, &[], &[]) {
            all.extend(more);
        }
        all
    }

    /// Replaces the value at the cursor (`MDB_CURRENT`). If the key has several values, the new value must have the
    /// same length and the same place in the order.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn replace(&mut self, key: &[u8], value: &[u8]) {
        let (mut key, mut value) = (val(key), val(value));
        // SAFETY: both slices live until the call returns; the call copies them.
        let code =
            unsafe { sys::mdb_cursor_put(self.cursor, &mut key, &mut value, sys::MDB_CURRENT) };
        sound(code);
    }

    /// Removes the pair at the cursor; if `all`, removes every value of its key.
    ///
    /// # Panics
    /// When LMDB reports an error.
    pub fn remove(&mut self, all: bool) {
        let flags = if all { sys::MDB_NODUPDATA } else { 0 };
        // SAFETY: the cursor is at an entry.
        sound(unsafe { sys::mdb_cursor_del(self.cursor, flags) });
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction of the cursor is still open.
        unsafe { sys::mdb_cursor_close(self.cursor) };
    }
}
