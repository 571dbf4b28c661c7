//! Memory for the buffers of modified segments, in blocks of huge pages: 10,000 buffers of 194 KB are 1.9 GB, and with
//! small pages the peer would have a TLB miss for each insert.

#![expect(unsafe_code, reason = "blocks of raw memory, handed out as places")]

use std::alloc::{self, Layout};
use std::marker::PhantomData;
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Number of places in a block that [`Arena::reserve`] has not requested.
const BLOCK_PLACES: usize = 64;

/// Memory for values of `T`, which are reused without being cleared.
///
/// Invariants: (1) each block is live and holds `places` initialised values; (2) the first
/// `taken` places, in block order, were handed out, each of them once.
pub(crate) struct Arena<T> {
    blocks: Vec<Block>,
    /// Index of the current block, and (next field) number of places taken from it.
    block: usize,
    taken: usize,
    of: PhantomData<T>,
}

struct Block {
    at: NonNull<u8>,
    places: usize,
    layout: Layout,
}

// SAFETY: this block alone owns the allocated memory; the arena controls access to its places.
unsafe impl Send for Block {}

/// A type for which all-zero bytes and the bytes of any earlier use are valid values.
///
/// # Safety
/// Every bit pattern must be a valid value.
pub(crate) unsafe trait AnyBits {}

impl<T: AnyBits> Arena<T> {
    /// Creates an arena without memory.
    pub(crate) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            block: 0,
            taken: 0,
            of: PhantomData,
        }
    }

    /// Allocates and touches this many places at once.
    pub(crate) fn reserve(&mut self, places: usize) {
        self.blocks.push(Block::new::<T>(places));
    }

    /// Takes one more place. Its content is arbitrary.
    pub(crate) fn take(&mut self) -> NonNull<T> {
        while self
            .blocks
            .get(self.block)
            .is_some_and(|block| block.places == self.taken)
        {
            self.block += 1;
            self.taken = 0;
        }
        if self.block == self.blocks.len() {
            self.reserve(BLOCK_PLACES);
        }
        let at = self.blocks[self.block].at;
        self.taken += 1;
        // SAFETY: the block is valid (invariant 1), and `taken` was below `places`.
        unsafe { at.cast::<T>().add(self.taken - 1) }
    }

    /// Makes all places available again.
    ///
    /// # Safety
    /// No pointer that [`Arena::take`] has returned may be used afterwards.
    pub(crate) unsafe fn recycle(&mut self) {
        (self.block, self.taken) = (0, 0);
    }
}

impl Block {
    fn new<T>(places: usize) -> Self {
        assert!(places > 0, "a block without places");
        let bytes = (places * size_of::<T>()).next_multiple_of(HUGE_PAGE_BYTES);
        let layout = Layout::from_size_align(bytes, HUGE_PAGE_BYTES)
            .unwrap_or_else(|_| unreachable!("the size is a multiple of the alignment"));
        // SAFETY: the size of the allocation is not zero.
        let Some(at) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: the block is valid and has this length; a rejected advice has no effect.
        unsafe {
            libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            at.write_bytes(0, bytes);
        }
        Self { at, places, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout; all users of its places borrowed the arena.
        unsafe { alloc::dealloc(self.at.as_ptr(), self.layout) };
    }
}
