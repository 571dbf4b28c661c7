//! What only the operating system can tell: the time, which start of the system this is, random bytes.

pub(crate) mod clock;
pub(crate) mod uuid;
