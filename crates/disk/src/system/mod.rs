//! Services of the operating system: clocks, the id of the current boot, random bytes.

mod clock;
mod uuid;

pub use clock::{ClockSource, Clocks, boot_id, now_ns, wall_ns};
pub use uuid::{new_uuid, uuid_text};
