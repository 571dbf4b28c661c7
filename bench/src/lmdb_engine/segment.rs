//! A segment: up to `N` points, strictly ascending in time. Its first bytes (the number of points, then the points) are
//! the LMDB value.
//!
//! ```text
//! +0          8  number of points n
//! +8   n x size  the points as in memory
//! ```

#![expect(
    unsafe_code,
    reason = "raw points are stored as their bytes, as the article does"
)]

use super::arena::AnyBits;

/// A record that is stored as its bytes in memory.
///
/// # Safety
/// The type must be `repr(C)`, have only fields of 8 bytes (no padding), and allow every bit pattern.
pub(crate) unsafe trait Point: Copy + 'static {
    /// The time of the record.
    fn time(&self) -> i64;
}

/// Implements [`Point`] for a `repr(C)` struct of this many words. (Defined here to keep `unsafe` in one place.)
macro_rules! plain_words {
    ($record:ty, $words:literal, $time:ident) => {
        const _: () = assert!(size_of::<$record>() == $words * 8);

        // SAFETY: according to its size the struct has this many words and no padding; it consists of integers and
        // floats, for which every bit pattern is valid.
        #[expect(unsafe_code, reason = "raw points are stored as their bytes")]
        unsafe impl $crate::lmdb_engine::Point for $record {
            #[inline]
            fn time(&self) -> i64 {
                self.$time
            }
        }
    };
}
pub(crate) use plain_words;

const HEAD_BYTES: usize = 8;

/// A segment with up to `N` points, in memory.
///
/// Invariants: (1) `len <= N`; (2) `points[..len]` ascend strictly in time.
#[repr(C)]
pub(crate) struct Segment<P, const N: usize> {
    len: u64,
    points: [P; N],
}

// SAFETY: the type is a word and an array of points, for which every bit pattern is valid, aligned to 8. (An arbitrary
// `len` breaks invariant 1, which only causes a panic; `clear` is called first.)
unsafe impl<P: Point, const N: usize> AnyBits for Segment<P, N> {}

impl<P: Point, const N: usize> Segment<P, N> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn points(&self) -> &[P] {
        &self.points[..self.len()]
    }

    pub(crate) fn front(&self) -> Option<&P> {
        self.points().first()
    }

    /// Appends the point if it is later than the last point and the segment has room; otherwise returns false.
    #[inline]
    pub(crate) fn append(&mut self, point: &P) -> bool {
        let len = self.len();
        if len == 0 || len >= N || self.points[len - 1].time() >= point.time() {
            return false;
        }
        self.points[len] = *point;
        self.len += 1;
        true
    }

    /// Inserts a point, or overwrites the point of the same time; returns the point that no longer fits, if any.
    pub(crate) fn insert(&mut self, point: &P) -> Option<P> {
        let len = self.len();
        let at = self.points().partition_point(|p| p.time() < point.time());
        if at < len && self.points[at].time() == point.time() {
            self.points[at] = *point;
            return None;
        }
        if len < N {
            self.points.copy_within(at..len, at + 1);
            self.points[at] = *point;
            self.len += 1;
            return None;
        }
        if at == N {
            return Some(*point);
        }
        let overflow = self.points[N - 1];
        self.points.copy_within(at..N - 1, at + 1);
        self.points[at] = *point;
        Some(overflow)
    }

    /// The bytes to store, without the unused places for points.
    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = HEAD_BYTES + size_of_val(self.points());
        // SAFETY: `self` is `repr(C)` without padding (`Point`), `bytes <= size_of::<Self>()`.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), bytes) }
    }

    /// Copies a stored segment into this one.
    pub(crate) fn load(&mut self, points: &[P]) {
        self.points[..points.len()].copy_from_slice(points);
        self.len = points.len() as u64;
    }
}

/// The points of a stored segment, without a copy.
///
/// # Panics
/// If the value is not a segment of such points. The published engine does not check this; one comparison per 8,100
/// points costs the ported engine nothing.
pub(crate) fn points_of<P: Point>(value: &[u8]) -> &[P] {
    let points = &value[HEAD_BYTES..];
    assert!(
        points.len().is_multiple_of(size_of::<P>()),
        "a segment of another point type"
    );
    assert!(
        points.as_ptr().cast::<P>().is_aligned(),
        "LMDB aligns values of such sizes to 8"
    );
    // SAFETY: the bytes are aligned, they hold a whole number of points, and every bit pattern is valid (`Point`).
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len() / size_of::<P>()) }
}
