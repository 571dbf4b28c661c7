//! Facts from the operating system: the time, the identity of its start, random bytes.

pub(crate) mod clock;
pub(crate) mod uuid;
