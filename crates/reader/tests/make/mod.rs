//! Writes the stored files with the engine.

mod answers;
mod hashes;
mod message_answers;
mod messages;
mod relations;
mod rows;
mod tables;

pub(crate) use messages::large_objects;
pub(crate) use tables::large_pages;

use std::sync::Arc;
use tidalite::storage::{LockMemory, MemoryStorage, Storage};
use tidalite::{Database, Options, Tuning};
use tidalite_reader::{Contents, Image};

/// A file that the engine has written, and the contents that it has according to the engine.
pub(crate) struct Made {
    pub(crate) first: Vec<u8>,
    pub(crate) second: Option<Vec<u8>>,
    pub(crate) contents: Contents,
    /// Contents of earlier commits, which may appear when the end of the redo log is damaged.
    pub(crate) earlier: Vec<Contents>,
}

/// Function that writes a file.
type Recipe = fn() -> Made;

/// The names of the files, and the functions that write them.
pub(crate) const FILES: [(&str, Recipe); 13] = [
    ("empty", tables::empty),
    ("tables", tables::tables),
    ("nested", tables::nested),
    ("sets", tables::sets),
    ("two_files", tables::two_files),
    ("log", tables::log),
    ("types", rows::types),
    ("tree", rows::tree),
    ("delta", rows::delta),
    ("catalog", tables::catalog),
    ("hashes", hashes::hashes),
    ("messages", messages::messages),
    ("relations", relations::relations),
];

/// Options with which the engine writes files that are as short as possible.
fn small(page_bytes: usize) -> Options {
    tidalite_testkit::watch();
    Options::new()
        .page_size(page_bytes)
        .tuning(small_tuning(page_bytes))
}

fn small_tuning(page_bytes: usize) -> Tuning {
    Tuning::new()
        .growth_bytes(page_bytes as u64, page_bytes as u64)
        .log_bytes(0)
}

/// Creates a database in memory; `fill` fills it and commits.
fn make(options: &Options, fill: impl FnOnce(&Database)) -> Made {
    let storage = Arc::new(MemoryStorage::new());
    let db = options.open_storage(storage.clone()).expect("a new file");
    fill(&db);
    let contents = answers::contents(&db);
    let mut first = bytes(&*storage);
    if let Ok(image) = Image::open(first.clone()) {
        cut(&mut first, image.meta().pages, image.page_bytes());
    }
    Made {
        first,
        second: None,
        contents,
        earlier: Vec::new(),
    }
}

/// As `make`, with a second file for values of at least `min` bytes.
fn make_two(options: Options, min: u64, fill: impl FnOnce(&Database)) -> Made {
    let (first, second) = (
        Arc::new(MemoryStorage::new()),
        Arc::new(MemoryStorage::new()),
    );
    let options = options.large_values("values", min);
    let memory = LockMemory::new();
    let db = options
        .open_storages(first.clone(), second.clone(), &memory)
        .expect("new files");
    fill(&db);
    let contents = answers::contents(&db);
    let (mut first, mut second) = (bytes(&*first), bytes(&*second));
    if let Ok(image) = Image::open(first.clone())
        && let Ok(Some(known)) = image.second_file()
    {
        cut(&mut first, image.meta().pages, image.page_bytes());
        cut(&mut second, known.pages, image.page_bytes());
    }
    Made {
        first,
        second: Some(second),
        contents,
        earlier: Vec::new(),
    }
}

/// All bytes of a storage. The database is still open, so the bytes are the same as after a crash.
fn bytes(storage: &dyn Storage) -> Vec<u8> {
    let length = storage.len().expect("a length");
    let mut bytes = vec![0; usize::try_from(length).expect("a short file")];
    storage.read_at(0, &mut bytes).expect("bytes");
    bytes
}

/// Shortens a file to its length in pages: free pages at the end of the file may be missing.
fn cut(file: &mut Vec<u8>, pages: u64, page_bytes: usize) {
    file.truncate(usize::try_from(pages).expect("pages") * page_bytes);
}
