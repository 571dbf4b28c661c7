//! Modification buffers, cut from blocks that ask for huge pages: 10,000 buffers of 194 KB are
//! 1.9 GB, and small pages would cost the peer a TLB miss per insert.

#![expect(unsafe_code, reason = "blocks of raw memory, handed out as places")]

use std::alloc::{self, Layout};
use std::marker::PhantomData;
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Places of a block that was not asked for by [`Arena::reserve`].
const BLOCK_PLACES: usize = 64;

/// Values of `T`, recycled as they are.
///
/// Invariants: (1) each block is live and holds `places` initialised values; (2) the first
/// `taken` places, in the order of the blocks, were handed out, each of them once.
pub(crate) struct Arena<T> {
    blocks: Vec<Block>,
    /// Number of the block from which is taken, and how many places of it are.
    block: usize,
    taken: usize,
    of: PhantomData<T>,
}

struct Block {
    at: NonNull<u8>,
    places: usize,
    layout: Layout,
}

// SAFETY: memory of the allocator that this block alone owns; who uses its places is the arena's affair.
unsafe impl Send for Block {}

/// A type for which all-zero bytes are a value, and so is whatever was left by an earlier owner.
///
/// # Safety
/// Every bit pattern is a valid value.
pub(crate) unsafe trait AnyBits {}

impl<T: AnyBits> Arena<T> {
    /// An arena without memory.
    pub(crate) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            block: 0,
            taken: 0,
            of: PhantomData,
        }
    }

    /// Gets so many places at once, touched.
    pub(crate) fn reserve(&mut self, places: usize) {
        self.blocks.push(Block::new::<T>(places));
    }

    /// One more place. Its content is arbitrary.
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
        // SAFETY: invariant 1; `taken` was below `places`.
        unsafe { at.cast::<T>().add(self.taken - 1) }
    }

    /// Takes all places back.
    ///
    /// # Safety
    /// No pointer from [`Arena::take`] is used afterwards.
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
        // SAFETY: the size is not zero.
        let Some(at) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: the block is live, and so long; the advice may be refused, which is harmless.
        unsafe {
            libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            at.write_bytes(0, bytes);
        }
        Self { at, places, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; whoever used the places borrowed the arena.
        unsafe { alloc::dealloc(self.at.as_ptr(), self.layout) };
    }
}
