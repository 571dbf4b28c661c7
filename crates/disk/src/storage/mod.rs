//! Access to the data file through one small trait. Files of the operating system, memory, and the simulated disk of
//! the test kit implement the trait.

mod create;
pub mod device;
mod file;
mod interface;
mod length;
mod machine;
mod map;
mod memory;
mod named;
pub mod network;
mod places;
mod range_maps;
mod unnamed;
mod watch;
mod write_back;
mod write_map;

pub use create::{create_file, finish_creation, give_name, real_path, sync_directory, sync_name};
pub use file::{FileStorage, ReadAhead};
pub use interface::{Committed, Growth, Observer, Storage};
pub use memory::MemoryStorage;
pub use named::{FileId, MoveCheck, Named};
pub use places::Places;
pub use watch::watched;
#[cfg(feature = "test-hooks")]
pub use watch::{Opened, wrap_opened, wrap_opened_here};
pub use write_back::WriteBack;
