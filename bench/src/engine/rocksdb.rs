//! Adapter for RocksDB (GPL-2.0 or Apache-2.0), through the C interface of the system's library; only with the feature
//! `rocksdb`.
//!
//! A write transaction is an optimistic transaction; concurrent transactions never write the same key. `Synced`:
//! `WriteOptions.sync`. `Lazy`: the log is written to the system's cache. `Unsynced`: there is no log. Bloom filters
//! have ten bits per key, the cache has the same size as for all engines, there is no compression, and all other
//! options have their defaults.

#![expect(unsafe_code, reason = "RocksDB is a C++ library behind a C interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::slice;

use super::{Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, touch};

/// Pointer to any object of RocksDB, whose fields are hidden.
type Object = *mut c_void;
type Fault = *mut *mut c_char;

// SAFETY: the declarations equal those in `rocksdb/c.h` 7.8, with one type for all pointers to objects.
#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> Object;
    fn rocksdb_options_destroy(options: Object);
    fn rocksdb_options_set_create_if_missing(options: Object, yes: c_uchar);
    fn rocksdb_options_set_compression(options: Object, kind: c_int);
    fn rocksdb_options_set_block_based_table_factory(options: Object, table: Object);
    fn rocksdb_block_based_options_create() -> Object;
    fn rocksdb_block_based_options_destroy(options: Object);
    fn rocksdb_block_based_options_set_filter_policy(options: Object, filter: Object);
    fn rocksdb_block_based_options_set_block_cache(options: Object, cache: Object);
    fn rocksdb_filterpolicy_create_bloom_full(bits: f64) -> Object;
    fn rocksdb_cache_create_lru(bytes: usize) -> Object;
    fn rocksdb_cache_destroy(cache: Object);
    fn rocksdb_optimistictransactiondb_open(
        options: Object,
        path: *const c_char,
        fault: Fault,
    ) -> Object;
    fn rocksdb_optimistictransactiondb_close(db: Object);
    fn rocksdb_optimistictransactiondb_get_base_db(db: Object) -> Object;
    fn rocksdb_optimistictransactiondb_close_base_db(base: Object);
    fn rocksdb_create_snapshot(db: Object) -> Object;
    fn rocksdb_release_snapshot(db: Object, snapshot: Object);
    fn rocksdb_get_pinned(
        db: Object,
        options: Object,
        key: *const c_char,
        len: usize,
        fault: Fault,
    ) -> Object;
    fn rocksdb_multi_get(
        db: Object,
        options: Object,
        count: usize,
        keys: *const *const c_char,
        key_lens: *const usize,
        values: *mut *mut c_char,
        value_lens: *mut usize,
        faults: *mut *mut c_char,
    );
    fn rocksdb_create_iterator(db: Object, options: Object) -> Object;
    fn rocksdb_flush(db: Object, options: Object, fault: Fault);
    fn rocksdb_compact_range(
        db: Object,
        from: *const c_char,
        from_len: usize,
        to: *const c_char,
        to_len: usize,
    );
    fn rocksdb_optimistictransaction_begin(
        db: Object,
        options: Object,
        of_transaction: Object,
        old: Object,
    ) -> Object;
    fn rocksdb_optimistictransaction_options_create() -> Object;
    fn rocksdb_optimistictransaction_options_destroy(options: Object);
    fn rocksdb_transaction_commit(txn: Object, fault: Fault);
    fn rocksdb_transaction_destroy(txn: Object);
    fn rocksdb_transaction_put(
        txn: Object,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        fault: Fault,
    );
    fn rocksdb_transaction_delete(txn: Object, key: *const c_char, len: usize, fault: Fault);
    fn rocksdb_transaction_get_pinned(
        txn: Object,
        options: Object,
        key: *const c_char,
        len: usize,
        fault: Fault,
    ) -> Object;
    fn rocksdb_pinnableslice_value(slice: Object, len: *mut usize) -> *const c_char;
    fn rocksdb_pinnableslice_destroy(slice: Object);
    fn rocksdb_readoptions_create() -> Object;
    fn rocksdb_readoptions_destroy(options: Object);
    fn rocksdb_readoptions_set_snapshot(options: Object, snapshot: Object);
    fn rocksdb_writeoptions_create() -> Object;
    fn rocksdb_writeoptions_destroy(options: Object);
    fn rocksdb_writeoptions_set_sync(options: Object, yes: c_uchar);
    fn rocksdb_writeoptions_disable_WAL(options: Object, yes: c_int);
    fn rocksdb_flushoptions_create() -> Object;
    fn rocksdb_flushoptions_destroy(options: Object);
    fn rocksdb_iter_seek(iterator: Object, key: *const c_char, len: usize);
    fn rocksdb_iter_valid(iterator: Object) -> c_uchar;
    fn rocksdb_iter_next(iterator: Object);
    fn rocksdb_iter_key(iterator: Object, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iterator: Object, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_destroy(iterator: Object);
    fn rocksdb_free(what: *mut c_void);
}

/// Runs a call that reports an error as a message; returns the message as an error.
fn checked<T>(call: impl FnOnce(Fault) -> T) -> Result<T> {
    let mut fault = ptr::null_mut();
    let result = call(&raw mut fault);
    if fault.is_null() {
        return Ok(result);
    }
    // SAFETY: the message is a C string of the library, which is freed right after this.
    let text = unsafe { CStr::from_ptr(fault) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: the message is a C string of the library and is not used any more.
    unsafe { rocksdb_free(fault.cast()) };
    Err(format!("RocksDB: {text}").into())
}

/// Passes the bytes of a pinned slice to `seen`, and releases the slice; `None` if there is no slice.
fn pinned<T>(slice: Object, seen: impl FnOnce(&[u8]) -> T) -> Option<T> {
    if slice.is_null() {
        return None;
    }
    let mut len = 0;
    // SAFETY: the slice is valid, and it is read before it is released.
    unsafe {
        let value = rocksdb_pinnableslice_value(slice, &raw mut len);
        let result = seen(slice::from_raw_parts(value.cast(), len));
        rocksdb_pinnableslice_destroy(slice);
        Some(result)
    }
}

/// A RocksDB database with optimistic transactions.
pub(crate) struct Rocks {
    db: Object,
    base: Object,
    write: Object,
    txn: Object,
}

// SAFETY: the library's databases and options may be used by any thread at once; nothing here changes them.
unsafe impl Sync for Rocks {}

impl Rocks {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let path = CString::new(dir.join("rocksdb").as_os_str().as_bytes())?;
        // SAFETY: the options are created, passed on and destroyed here; `path` is a C string.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_compression(options, 0);
            let table = rocksdb_block_based_options_create();
            let filter = rocksdb_filterpolicy_create_bloom_full(10.0);
            rocksdb_block_based_options_set_filter_policy(table, filter);
            let cache = rocksdb_cache_create_lru(setup.cache_bytes as usize);
            rocksdb_block_based_options_set_block_cache(table, cache);
            rocksdb_options_set_block_based_table_factory(options, table);
            let db = checked(|fault| {
                rocksdb_optimistictransactiondb_open(options, path.as_ptr(), fault)
            });
            rocksdb_block_based_options_destroy(table);
            rocksdb_cache_destroy(cache);
            rocksdb_options_destroy(options);
            let db = db?;
            let write = rocksdb_writeoptions_create();
            match setup.promise {
                Promise::Synced => rocksdb_writeoptions_set_sync(write, 1),
                Promise::Lazy => {}
                Promise::Unsynced => rocksdb_writeoptions_disable_WAL(write, 1),
            }
            let txn = rocksdb_optimistictransaction_options_create();
            let base = rocksdb_optimistictransactiondb_get_base_db(db);
            Ok(Self {
                db,
                base,
                write,
                txn,
            })
        }
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: `open` created these objects, and they are destroyed only here; no transaction outlives the call that
        // began it.
        unsafe {
            rocksdb_optimistictransaction_options_destroy(self.txn);
            rocksdb_writeoptions_destroy(self.write);
            rocksdb_optimistictransactiondb_close_base_db(self.base);
            rocksdb_optimistictransactiondb_close(self.db);
        }
    }
}

impl Engine for Rocks {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        // SAFETY: all objects are valid; no old transaction is passed for reuse.
        let txn = unsafe {
            rocksdb_optimistictransaction_begin(self.db, self.write, self.txn, ptr::null_mut())
        };
        // SAFETY: the call takes no arguments.
        let read = unsafe { rocksdb_readoptions_create() };
        let mut writer = Writer { txn, read };
        work(&mut writer)?;
        // SAFETY: the transaction is open.
        checked(|fault| unsafe { rocksdb_transaction_commit(txn, fault) })
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        // SAFETY: the database is open; the reader releases the snapshot and the options.
        let (snapshot, read) = unsafe {
            let snapshot = rocksdb_create_snapshot(self.base);
            let read = rocksdb_readoptions_create();
            rocksdb_readoptions_set_snapshot(read, snapshot);
            (snapshot, read)
        };
        work(&mut Reader {
            db: self.base,
            snapshot,
            read,
        })
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: the database is open; the options live as long as the call.
        unsafe {
            let options = rocksdb_flushoptions_create();
            let result = checked(|fault| rocksdb_flush(self.base, options, fault));
            rocksdb_flushoptions_destroy(options);
            result
        }
    }

    fn settle(&self) -> Result<()> {
        self.flush()?;
        // SAFETY: the database is open; null bounds mean the whole database.
        unsafe {
            rocksdb_compact_range(self.base, ptr::null(), 0, ptr::null(), 0);
        }
        Ok(())
    }

    fn compact(&mut self) -> Result<bool> {
        self.settle()?;
        Ok(true)
    }
}

struct Writer {
    txn: Object,
    read: Object,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: `write` created these objects, and they are destroyed only here; an uncommitted transaction is rolled
        // back.
        unsafe {
            rocksdb_readoptions_destroy(self.read);
            rocksdb_transaction_destroy(self.txn);
        }
    }
}

impl Write for Writer {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (at, len) = (key.as_ptr().cast(), key.len());
        let (value_at, value_len) = (value.as_ptr().cast(), value.len());
        // SAFETY: the slices outlive the call, which copies them.
        checked(|fault| unsafe {
            rocksdb_transaction_put(self.txn, at, len, value_at, value_len, fault);
        })
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let (at, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: the slice outlives the call.
        let slice = checked(|fault| unsafe {
            rocksdb_transaction_get_pinned(self.txn, self.read, at, len, fault)
        })?;
        Ok(pinned(slice, touch))
    }

    /// RocksDB removes a key by writing a tombstone, without a lookup. So this function does not look the key up
    /// either, and returns true.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let (at, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: the slice outlives the call, which copies it.
        checked(|fault| unsafe { rocksdb_transaction_delete(self.txn, at, len, fault) })?;
        Ok(true)
    }
}

struct Reader {
    db: Object,
    snapshot: Object,
    read: Object,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: `read` created these objects, and they are destroyed only here.
        unsafe {
            rocksdb_readoptions_destroy(self.read);
            rocksdb_release_snapshot(self.db, self.snapshot);
        }
    }
}

impl Reader {
    /// The value of a key, which must be released; null if the key does not exist.
    fn fetch(&self, key: &[u8]) -> Result<Object> {
        let (at, len) = (key.as_ptr().cast(), key.len());
        // SAFETY: the slice outlives the call.
        checked(|fault| unsafe { rocksdb_get_pinned(self.db, self.read, at, len, fault) })
    }
}

impl Read for Reader {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(pinned(self.fetch(key)?, touch))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(pinned(self.fetch(key)?, seen).is_some())
    }

    fn values(&mut self, keys: &[&[u8]], seen: &mut dyn FnMut(usize, &[u8])) -> Result<bool> {
        let count = keys.len();
        let starts: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lens: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut values = vec![ptr::null_mut(); count];
        let mut value_lens = vec![0; count];
        let mut faults = vec![ptr::null_mut(); count];
        // SAFETY: every array has `count` elements, and the keys outlive the call.
        unsafe {
            rocksdb_multi_get(
                self.db,
                self.read,
                count,
                starts.as_ptr(),
                lens.as_ptr(),
                values.as_mut_ptr(),
                value_lens.as_mut_ptr(),
                faults.as_mut_ptr(),
            );
        }
        for (at, (value, fault)) in values.into_iter().zip(faults).enumerate() {
            checked(|to| {
                // SAFETY: `to` points to a variable of `checked`, which frees the message.
                unsafe { *to = fault };
            })?;
            if !value.is_null() {
                // SAFETY: the library has allocated the value, with the length that it reports.
                unsafe {
                    seen(
                        at,
                        slice::from_raw_parts(value.cast_const().cast(), value_lens[at]),
                    );
                    rocksdb_free(value.cast());
                }
            }
        }
        Ok(true)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        // SAFETY: the iterator is valid until it is destroyed; its slices are used before it moves.
        unsafe {
            let iterator = rocksdb_create_iterator(self.db, self.read);
            rocksdb_iter_seek(iterator, from.as_ptr().cast(), from.len());
            while digest.entries < limit && rocksdb_iter_valid(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = rocksdb_iter_key(iterator, &raw mut key_len).cast();
                let value = rocksdb_iter_value(iterator, &raw mut value_len).cast();
                digest.add(
                    slice::from_raw_parts(key, key_len),
                    slice::from_raw_parts(value, value_len),
                );
                rocksdb_iter_next(iterator);
            }
            rocksdb_iter_destroy(iterator);
        }
        Ok(digest)
    }
}
