//! All access to the data file goes through one small trait, implemented by files of the operating system, by memory,
//! and by the simulated disk of the test kit.

mod create;
pub(crate) mod device;
pub(crate) mod file;
mod interface;
mod length;
mod machine;
mod map;
mod memory;
mod named;
pub(crate) mod network;
mod overlay;
mod places;
mod range_maps;
mod unnamed;
mod watch;
mod write_back;
mod write_map;

pub(crate) use create::{
    create_file, finish_creation, give_name, real_path, sync_directory, sync_name,
};
pub use file::FileStorage;
pub use interface::{Committed, Growth, Observer, Storage};
pub use memory::MemoryStorage;
pub(crate) use named::{FileId, MoveCheck, Named};
pub(crate) use overlay::Overlay;
pub use places::Places;
pub(crate) use watch::watched;
#[cfg(feature = "seeded-bugs")]
pub use watch::{Opened, wrap_opened, wrap_opened_here};
pub(crate) use write_back::WriteBack;
