//! Atomics of the model checker loom. loom treats a sequentially consistent access as acquire and release only, so each
//! such access here has a sequentially consistent fence after a store and before a load, which matches the processor.

pub(crate) use loom::sync::atomic::{Ordering, fence};

pub(crate) struct AtomicU64(loom::sync::atomic::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self(loom::sync::atomic::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        if order == Ordering::SeqCst {
            fence(order);
        }
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
        if order == Ordering::SeqCst {
            fence(order);
        }
    }

    pub(crate) fn compare_exchange(
        &self,
        from: u64,
        to: u64,
        well: Ordering,
        else_: Ordering,
    ) -> Result<u64, u64> {
        let is_consistent = well == Ordering::SeqCst;
        if is_consistent {
            fence(well);
        }
        let result = self.0.compare_exchange(from, to, well, else_);
        if is_consistent {
            fence(well);
        }
        result
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

    pub(crate) fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.0.fetch_or(bits, order)
    }
}
