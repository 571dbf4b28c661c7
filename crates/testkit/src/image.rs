//! Changes the image of a database file, so that it looks as if another version of the library had written it.

use tidalite_base::TxnId;
use tidalite_pager::{Header, Kind, seal_block};

const BLOCK: usize = 4096;
/// Offsets of the two copies of the superblock; docs/format.md section 3 describes the fields below.
const SUPERBLOCKS: [usize; 2] = [0, 12 << 10];
/// Offset of the format version (`u32`) in the superblock.
pub const VERSION_AT: usize = 48;
/// Offset in the superblock of the compatible features (`u64`), which software that does not know them can ignore.
pub const COMPATIBLE_AT: usize = 80;
/// Offset in the superblock of the features (`u64`) that software must know to write to the file.
pub const READ_ONLY_AT: usize = 88;
/// Offset in the superblock of the features (`u64`) that software must know even to read the file.
pub const INCOMPATIBLE_AT: usize = 96;

/// Applies `change` to both copies of the superblock and updates their checksums.
///
/// # Panics
/// If the image is shorter than the head of a file.
pub fn with_superblocks(image: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut image = image.to_vec();
    for start in SUPERBLOCKS {
        let block = &mut image[start..start + BLOCK];
        change(block);
        let header = Header {
            kind: Kind::Superblock,
            flags: 0,
            owner: 0,
            address: start as u64,
            birth: TxnId(1),
        };
        let _ = seal_block(block, &header);
    }
    image
}
