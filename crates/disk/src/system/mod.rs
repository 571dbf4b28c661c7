//! Facts from the operating system: the time, the identity of its start, random bytes.

mod clock;
mod uuid;

pub use clock::{ClockSource, Clocks, boot_id, now_ns, wall_ns};
pub use uuid::{new_uuid, uuid_text};
