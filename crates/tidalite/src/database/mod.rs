//! The database: options, opening, transactions, durability, readers, clock and pins.

pub(crate) mod amend;
pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod durability;
pub(crate) mod handle;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod pins;
pub(crate) mod readers;
pub(crate) mod verify;
