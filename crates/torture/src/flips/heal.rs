//! Flips bits in the head of a file and opens the file for writing, which must repair the head.

use super::contents::{Contents, options, put_one, sound_file};
use super::depth::Depth;
use super::image::HEAD_BYTES;
use super::threads::on_threads;
use crate::model::digest_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tidalite::Database;
use tidalite::storage::{MemoryStorage, Storage};

/// Flips bits of the head and opens the file for writing. The content is read after each flip. With `OneBit`, only one
/// in four of the bytes that are zero is tested. Returns the number of flips.
///
/// # Errors
/// Returns the failure, as a sentence.
pub fn heal(contents: Contents, seed: u64, depth: Depth, threads: usize) -> Result<u64, String> {
    let (bytes, digest) = sound_file(contents, seed)?;
    // Flips the bits of `mask` in a byte (mask 0: no bit), lets the file be repaired, commits, and returns the digest.
    let tried = |at: usize, mask: u8| -> Result<u64, String> {
        let mut image = bytes.clone();
        image[at] ^= mask;
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::from_image(image));
        let opened = options().open_storage(Arc::clone(&storage));
        let db = opened.map_err(|error| format!("it does not open: {error}"))?;
        let found = digest_of(&db).map_err(|error| error.to_string())?;
        if found != digest {
            return Err("a wrong content".to_owned());
        }
        commit_and_reopen(&storage, db)
    };
    let right = tried(0, 0)?;
    let (next, flips) = (AtomicUsize::new(0), AtomicU64::new(0));
    on_threads(threads, &|| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= HEAD_BYTES {
                return Ok(());
            }
            if depth == Depth::OneBit && bytes[at] == 0 && at % 4 != 0 {
                continue;
            }
            for (mask, _) in depth.masks(at) {
                let wrong = match tried(at, mask) {
                    Ok(found) if found == right => None,
                    Ok(_) => Some("a wrong content after a commit".to_owned()),
                    Err(problem) => Some(problem),
                };
                if let Some(problem) = wrong {
                    next.store(HEAD_BYTES, Ordering::Relaxed);
                    return Err(format!(
                        "bit {mask:#04x} of byte {at}, opened for writing: {problem}"
                    ));
                }
                flips.fetch_add(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(flips.into_inner())
}

/// Commits one pair to a file that was opened for writing, reopens the file, checks that it is undamaged, and returns
/// the digest of its content.
fn commit_and_reopen(storage: &Arc<dyn Storage>, db: Database) -> Result<u64, String> {
    let told = |what: &str, error: tidalite::Error| format!("{what}: {error}");
    put_one(&db, b"after").map_err(|error| told("a commit", error))?;
    drop(db);
    let opened = options().read_only(true).open_storage(Arc::clone(storage));
    let db = opened.map_err(|error| told("reopened", error))?;
    let report = db.check().map_err(|error| told("check", error))?;
    if !report.is_clean() || !report.notes.is_empty() {
        let (problems, notes) = (report.problems, report.notes);
        return Err(format!("not healed: {problems:?} {notes:?}"));
    }
    digest_of(&db).map_err(|error| told("reopened", error))
}
