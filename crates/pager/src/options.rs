//! How a file is opened.

use tidalite_base::limits::PAGE_SIZE_DEFAULT;

/// How pages are checked against the checksums in the pointers to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// When a page is touched for the first time by this process.
    #[default]
    OnFirstTouch,
    /// Every time.
    Always,
    /// Not at all.
    Never,
}

/// Whether the file must, may or must not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenMode {
    /// Open it, or create it.
    #[default]
    CreateOrOpen,
    /// Create it; it must not exist.
    Create,
    /// Open it; it must exist.
    Open,
}

/// How a file is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the file must, may or must not exist.
    pub mode: OpenMode,
    /// Bytes of a page, a power of two; used when the file is created.
    pub page_size: usize,
    /// Nothing is written; several processes may do so at once, while none writes.
    pub read_only: bool,
    /// Nobody else at all, not even readers beside a reader.
    pub exclusive: bool,
    /// How pages are checked.
    pub verify: Verify,
    /// Lend pages from a read-only map. Off: every read is a `pread`, and every media error a typed error.
    pub map: bool,
    /// Bytes of changed pages that a transaction keeps in memory before it writes some of them early.
    pub dirty_bytes_max: usize,
    /// The file grows by at least this many bytes at a time ...
    pub growth_bytes_min: u64,
    /// ... and at most this many more than it needs.
    pub growth_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: OpenMode::default(),
            page_size: PAGE_SIZE_DEFAULT,
            read_only: false,
            exclusive: false,
            verify: Verify::default(),
            map: true,
            dirty_bytes_max: 64 << 20,
            growth_bytes_min: 1 << 20,
            growth_bytes_max: 8 << 20,
        }
    }
}
