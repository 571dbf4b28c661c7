//! Kinds of pages and blocks.

/// Kind of a page or block. The numbers are part of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// No kind: the null pointer, or an unknown number.
    #[default]
    None = 0,
    /// Superblock, which stores the constants of the file.
    Superblock = 1,
    /// Meta block, which stores one copy of a meta record.
    Meta = 2,
    /// Branch of an ordered table.
    KvBranch = 3,
    /// Leaf of an ordered table.
    KvLeaf = 4,
    /// Chunk of a large value: at most 64 KiB of the extent that stores the value.
    KvValue = 5,
    /// Root page of the free space.
    FreeRoot = 6,
    /// Directory page of the free space.
    FreeDirectory = 7,
    /// Bitmap with the free pages of one region.
    FreeBitmap = 8,
    /// Page with a list of freed ranges that a snapshot may still read.
    FreePending = 9,
    /// Tail page of the delta, to which small commits append rows.
    Tail = 10,
    /// Block of rows in a run of the delta.
    RunBlock = 11,
    /// Header and directory of a series leaf.
    SeriesLeaf = 12,
    /// Main block of a node of a series tree, with the links to its children.
    SeriesNode = 13,
    /// Block with the column statistics of a node of a series tree.
    SeriesStats = 14,
    /// Record of the delta: its runs, compactions and watermarks.
    DeltaRecord = 15,
    /// Directory page of the lists of freed ranges: `FreePending` pages form stacks, one for each snapshot that may
    /// still read the listed ranges, and the directory points to the top page of each stack.
    ReuseFreed = 16,
    /// Table of the named pins.
    Pins = 17,
    /// List of the commit times of transactions.
    Clock = 18,
    /// Page of the free space of the second file: its root, or a directory page.
    LargeSpace = 19,
    /// Header and directory of a cold series leaf.
    SeriesCold = 20,
    /// Block of the redo log of small commits.
    Redo = 21,
}

impl Kind {
    /// Returns the kind with this number, or `Kind::None` if the number is unknown.
    #[must_use]
    pub fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Superblock,
            2 => Self::Meta,
            3 => Self::KvBranch,
            4 => Self::KvLeaf,
            5 => Self::KvValue,
            6 => Self::FreeRoot,
            7 => Self::FreeDirectory,
            8 => Self::FreeBitmap,
            9 => Self::FreePending,
            10 => Self::Tail,
            11 => Self::RunBlock,
            12 => Self::SeriesLeaf,
            13 => Self::SeriesNode,
            14 => Self::SeriesStats,
            15 => Self::DeltaRecord,
            16 => Self::ReuseFreed,
            17 => Self::Pins,
            18 => Self::Clock,
            19 => Self::LargeSpace,
            20 => Self::SeriesCold,
            21 => Self::Redo,
            _ => Self::None,
        }
    }
}
