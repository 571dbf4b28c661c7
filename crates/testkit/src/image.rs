//! The image of a database as another version of the library would have written it.

use tidalite_base::TxnId;
use tidalite_pager::{Header, Kind, seal_block};

const BLOCK: usize = 4096;
/// Where the two copies of the superblock are, and fields in them; docs/format.md section 3.
const SUPERBLOCKS: [usize; 2] = [0, 12 << 10];
/// Byte of the format version (`u32`) in the superblock.
pub const VERSION_AT: usize = 48;
/// Byte of the features that do no harm to who does not know them (`u64`).
pub const COMPATIBLE_AT: usize = 80;
/// Byte of the features that one has to know to write (`u64`).
pub const READ_ONLY_AT: usize = 88;
/// Byte of the features that one has to know even to read (`u64`).
pub const INCOMPATIBLE_AT: usize = 96;

/// The image with `change` done to both copies of the superblock, under right checksums.
///
/// # Panics
/// When the image is shorter than the head of a file.
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
