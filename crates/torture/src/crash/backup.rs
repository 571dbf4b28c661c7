//! Writes a backup while other transactions commit, and checks the file restored from the backup.

use super::history::History;
use super::open::{Judged, checked, options, text};
use super::world::{World, inside};
use std::io::{self, Write};
use std::sync::Arc;
use tidalite::Database;
use tidalite_testkit::rng::Rng;

/// A stream that writes a backup into memory; other transactions commit between its writes.
pub(super) struct Stream<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) db: Database,
    pub(super) rng: Rng,
    pub(super) bytes: Vec<u8>,
    pub(super) overlap: bool,
    pub(super) failed: bool,
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.overlap && !self.failed && self.rng.one_in(6) {
            let shape = inside(&self.world.shape);
            // If this commit fails, the next call that uses the disk reports the error of the disk.
            let commit = self.world.commit(&self.db, &mut self.rng, &shape, None);
            self.failed = commit.is_err();
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Restores a file from a backup and its increment, and identifies its content.
pub(super) fn restored(chain: &[&[u8]], history: &History, page_size: usize, shown: u64) -> Judged {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let memory = std::path::Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    let path = folder.join(format!(
        "tidalite-crash-{}-{number}.tdl",
        std::process::id()
    ));
    let judged = || -> Judged {
        tidalite::maintenance::Restore::from(chain.iter().copied())
            .to(&path)
            .map_err(text)?;
        let db = options(page_size).open(&path).map_err(text)?;
        history.identify_without_pins(&db, |number| number >= shown)?;
        checked(&db)
    };
    let result = judged();
    let _ = std::fs::remove_file(&path);
    for end in ["lock", "large"] {
        let _ = std::fs::remove_file(format!("{}-{end}", path.display()));
    }
    result.map_err(|error| format!("restored: {error}, {shown} was shown"))
}
