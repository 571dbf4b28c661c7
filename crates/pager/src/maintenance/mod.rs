//! Operations on a whole file: check, backup and restore, salvage.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod salvage;
