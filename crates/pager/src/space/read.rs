//! Reads pages of the free-space structure.

use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::pages::PageRef;
use crate::format::ptr::Ptr;
use tidalite_base::Corrupt;

/// Function that reads and verifies the page to which a pointer points.
pub(crate) type ReadPage<'a> = &'a dyn Fn(&Ptr) -> Result<PageRef<'a>>;

pub(super) fn damaged(
    what: &str,
    ptr: &Ptr,
    found: impl std::fmt::Display,
    expected: &str,
) -> Error {
    Corrupt::new(format!("free space: {what}"), ptr.addr, found, expected).into()
}

pub(super) fn read_kind<'a>(read: ReadPage<'a>, ptr: &Ptr, kind: Kind) -> Result<PageRef<'a>> {
    if ptr.kind != kind {
        return Err(damaged(
            "page",
            ptr,
            format!("{:?}", ptr.kind),
            &format!("{kind:?}"),
        ));
    }
    read(ptr)
}
