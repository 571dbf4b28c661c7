//! The changed (dirty) pages of a write transaction, and how they are written to the file.

mod background;
mod buffers;
mod bulk_pages;
mod dirty_pages;
mod in_place;
mod page_state;
mod places;
mod state;
pub(crate) mod write_behind;
mod write_out;
mod write_pages;

pub(crate) use buffers::{filled, read_back, zeroed};
pub(crate) use dirty_pages::{CapturedPage, CapturedPages, Dirty, Recycled};
pub(crate) use write_pages::{WriteHint, write};
