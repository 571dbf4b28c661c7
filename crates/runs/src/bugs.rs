//! Deliberate bugs, to prove that the tests bite. Compiled in with the feature `seeded-bugs` only, and switched
//! on for one thread, so that other tests of the same process stay sound.

/// Makes merges of this thread forget their watermark: the record says that nothing was merged yet.
#[cfg(feature = "seeded-bugs")]
pub fn set_merge_forgets_watermark(on: bool) {
    switch::FORGET.set(on);
}

#[cfg(feature = "seeded-bugs")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        pub(super) static FORGET: Cell<bool> = const { Cell::new(false) };
    }
}

/// Whether that bug is on; never without the feature.
pub(crate) fn merge_forgets_watermark() -> bool {
    #[cfg(feature = "seeded-bugs")]
    {
        switch::FORGET.get()
    }
    #[cfg(not(feature = "seeded-bugs"))]
    {
        false
    }
}
