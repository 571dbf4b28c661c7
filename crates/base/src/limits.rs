//! Bounds that more than one room relies on. docs/limits.md lists them for users.

/// Rows of one vector: the unit of encoding, checksumming and scanning.
pub const VECTOR_ROWS: usize = 1024;

/// Vectors of one leaf at most.
pub const LEAF_VECTORS_MAX: usize = 16;

/// Columns of a series at most, the timestamp not counted.
pub const COLUMNS_MAX: usize = 64;

/// Bytes that one checksum covers at most inside an extent.
pub const CHECKSUM_SPAN_MAX: usize = 64 * 1024;

/// Smallest page size, for tests only.
pub const PAGE_SIZE_MIN: usize = 512;

/// Default page size.
pub const PAGE_SIZE_DEFAULT: usize = 4096;

/// Largest page size.
pub const PAGE_SIZE_MAX: usize = 256 * 1024;

/// No extent has more pages; a table that names one is damaged. Address and length of an extent add up without overflow.
pub const EXTENT_PAGES_MAX: u64 = 1 << 40;

/// Byte addresses from here on lie in the second file, the first of them at its byte 0.
pub const SECOND_FILE_AT: u64 = 1 << 62;
