//! Atomics of the model checker loom, in which every access is relaxed.

pub(crate) use loom::sync::atomic::{Ordering, fence};

pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self(loom::sync::atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, _: Ordering) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, value: u64, _: Ordering) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn compare_exchange(
        &self,
        from: u64,
        to: u64,
        _: Ordering,
        _: Ordering,
    ) -> Result<u64, u64> {
        self.0
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
    }

    pub(crate) fn compare_exchange_weak(
        &self,
        from: u64,
        to: u64,
        well: Ordering,
        else_: Ordering,
    ) -> Result<u64, u64> {
        self.compare_exchange(from, to, well, else_)
    }

    pub(crate) fn fetch_sub(&self, value: u64, _: Ordering) -> u64 {
        self.0.fetch_sub(value, Ordering::Relaxed)
    }

    pub(crate) fn fetch_or(&self, bits: u64, _: Ordering) -> u64 {
        self.0.fetch_or(bits, Ordering::Relaxed)
    }
}
