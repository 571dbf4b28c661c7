//! Limits on which several crates rely. docs/limits.md lists the limits for users.

/// Maximum number of rows in a vector, the unit of encoding, checksumming and scanning.
pub const VECTOR_ROWS: usize = 1024;

/// Maximum number of vectors in a leaf of a series.
pub const LEAF_VECTORS_MAX: usize = 16;

/// Maximum number of columns of a series, without the timestamp.
pub const COLUMNS_MAX: usize = 64;

/// Maximum number of bytes that one checksum covers inside an extent.
pub const CHECKSUM_SPAN_MAX: usize = 64 * 1024;

/// Minimum page size in bytes. Pages as small as this are useful only in tests.
pub const PAGE_SIZE_MIN: usize = 512;

/// Default page size in bytes.
pub const PAGE_SIZE_DEFAULT: usize = 4096;

/// Maximum page size in bytes.
pub const PAGE_SIZE_MAX: usize = 256 * 1024;

/// Maximum number of pages of an extent; a table of extents with a larger one is damaged. The bound makes sure that
/// address plus length of an extent cannot overflow.
pub const EXTENT_PAGES_MAX: u64 = 1 << 40;

/// Byte addresses from this value on are in the second file, whose byte 0 has this address.
pub const SECOND_FILE_AT: u64 = 1 << 62;

/// The error text for a number that is beyond a limit: greater than a maximum, or less than a minimum if `name` says
/// that.
#[must_use]
pub fn exceeded(name: &str, found: u64, limit: u64) -> String {
    if found < limit {
        format!("{name}: {found} is too small; the maximum is {limit}")
    } else {
        format!("{name}: {found} exceeds the limit of {limit}; docs/limits.md lists all limits")
    }
}
