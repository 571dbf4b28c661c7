//! The format of the file: its layout, checksummed blocks, pointers to blocks, and the superblock and meta records in
//! the head.

pub(crate) mod header;
pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod meta_blocks;
pub(crate) mod page_map;
pub(crate) mod pages;
pub(crate) mod pins;
pub(crate) mod ptr;
pub(crate) mod superblock;
