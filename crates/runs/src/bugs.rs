//! Deliberate bugs, to prove that the tests bite. Compiled in with the feature `seeded-bugs` only.

/// Makes merges forget their watermark: the record says that nothing was merged yet.
#[cfg(feature = "seeded-bugs")]
pub fn set_merge_forgets_watermark(on: bool) {
    switch::FORGET.store(on, std::sync::atomic::Ordering::Relaxed);
}

#[cfg(feature = "seeded-bugs")]
mod switch {
    pub(super) static FORGET: std::sync::atomic::AtomicBool =
        std::sync::atomic::AtomicBool::new(false);
}

/// Whether that bug is on; never without the feature.
pub(crate) fn merge_forgets_watermark() -> bool {
    #[cfg(feature = "seeded-bugs")]
    {
        switch::FORGET.load(std::sync::atomic::Ordering::Relaxed)
    }
    #[cfg(not(feature = "seeded-bugs"))]
    {
        false
    }
}
