//! Removes the database that an earlier quickstart has left.

use crate::exit::{Failure, Outcome};
use std::path::Path;

/// Removes a database and its lock file.
pub(super) fn remove_database(path: &Path) -> Outcome {
    std::fs::remove_file(path).map_err(|error| Failure::file("cannot replace", path, &error))?;
    let mut lock = path.as_os_str().to_owned();
    lock.push("-lock");
    let _ = std::fs::remove_file(lock);
    Ok(())
}
