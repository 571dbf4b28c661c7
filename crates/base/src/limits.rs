//! Bounds on which several crates rely. docs/limits.md lists them for users.

/// Rows of one vector: the unit of encoding, checksumming and scanning.
pub const VECTOR_ROWS: usize = 1024;

/// Maximum number of vectors per leaf.
pub const LEAF_VECTORS_MAX: usize = 16;

/// Maximum number of columns of a series, without the timestamp.
pub const COLUMNS_MAX: usize = 64;

/// Maximum number of bytes that one checksum covers inside an extent.
pub const CHECKSUM_SPAN_MAX: usize = 64 * 1024;

/// Smallest page size, for tests only.
pub const PAGE_SIZE_MIN: usize = 512;

/// Default page size.
pub const PAGE_SIZE_DEFAULT: usize = 4096;

/// Largest page size.
pub const PAGE_SIZE_MAX: usize = 256 * 1024;

/// Maximum number of pages of an extent; a table with a larger one is damaged. Address plus length of an extent
/// cannot overflow.
pub const EXTENT_PAGES_MAX: u64 = 1 << 40;

/// Byte addresses from here up lie in the second file, whose byte 0 has this address.
pub const SECOND_FILE_AT: u64 = 1 << 62;

/// Text of an error for a number beyond a limit: above it, or below a lower limit that the name gives.
#[must_use]
pub fn exceeded(name: &str, found: u64, limit: u64) -> String {
    if found < limit {
        format!("{name}: {found} is too small; the maximum is {limit}")
    } else {
        format!("{name}: {found} exceeds the limit of {limit}; docs/limits.md lists all limits")
    }
}
