//! The pages that a transaction can read: one type for all kinds of transaction, and a trait for read-only code.

use std::sync::Arc;
use tidalite_pager::{Counters, PageRead, PageRef, Ptr, Result, Snapshot, UncommittedRead};

/// The pages of a snapshot, or of a write transaction, either in its current state or in an earlier one.
#[derive(Clone, Copy)]
pub enum Pages<'a> {
    Snapshot(&'a Snapshot),
    Writer(&'a tidalite_pager::WriteTxn),
    Uncommitted(&'a UncommittedRead),
}

/// Implements `PageRead` for an enum of readers by calling the one that a value has.
macro_rules! page_read {
    ($of:ty, $($variant:ident),+) => {
        impl PageRead for $of {
            fn page_size(&self) -> usize {
                match self { $(Self::$variant(pages) => pages.page_size()),+ }
            }

            #[inline]
            fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
                match self { $(Self::$variant(pages) => pages.page(ptr)),+ }
            }

            #[inline]
            fn lent_page(&self, ptr: &Ptr) -> Option<&[u8]> {
                match self { $(Self::$variant(pages) => pages.lent_page(ptr)),+ }
            }

            #[inline]
            fn prefetch(&self, ptr: &Ptr, bytes: usize) {
                match self { $(Self::$variant(pages) => pages.prefetch(ptr, bytes)),+ }
            }

            #[inline]
            fn reads_single_pages(&self) -> bool {
                match self { $(Self::$variant(pages) => pages.reads_single_pages()),+ }
            }

            fn reads_ahead_in_order(&self) -> bool {
                match self { $(Self::$variant(pages) => pages.reads_ahead_in_order()),+ }
            }

            fn page_in_order(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
                match self { $(Self::$variant(pages) => pages.page_in_order(ptr)),+ }
            }

            fn read_ahead(&self, addr: u64, bytes: u64) {
                match self { $(Self::$variant(pages) => pages.read_ahead(addr, bytes)),+ }
            }

            #[inline]
            fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
                match self { $(Self::$variant(pages) => pages.block(ptr)),+ }
            }

            #[inline]
            fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
                match self { $(Self::$variant(pages) => pages.bytes(addr, len)),+ }
            }

            #[inline]
            fn prefetch_bytes(&self, addr: u64, len: usize) {
                match self { $(Self::$variant(pages) => pages.prefetch_bytes(addr, len)),+ }
            }

            fn counters(&self) -> &Counters {
                match self { $(Self::$variant(pages) => pages.counters()),+ }
            }
        }
    };
}

page_read!(Pages<'_>, Snapshot, Writer, Uncommitted);
page_read!(AnySource, Snapshot, Uncommitted);

/// A source of pages in one state of the database: the sources of [`ReadTxn`](crate::ReadTxn), of
/// [`UncommittedRead`](crate::UncommittedRead), and of [`AnyRead`](crate::AnyRead), which is either of these.
pub trait ReadSource: source::Source {}

impl ReadSource for Snapshot {}

impl ReadSource for UncommittedRead {}

impl ReadSource for AnySource {}

/// The source of an [`AnyRead`](crate::AnyRead).
#[derive(Clone)]
pub enum AnySource {
    /// The pages of a commit.
    Snapshot(Snapshot),
    /// The pages of an unfinished transaction, shared by all handles to this state.
    Uncommitted(Arc<UncommittedRead>),
}

/// Calls a method of the source that an `AnySource` is.
macro_rules! of_either {
    ($source:expr, $pages:ident => $call:expr) => {
        match $source {
            AnySource::Snapshot($pages) => $call,
            AnySource::Uncommitted($pages) => $call,
        }
    };
}

mod source {
    use super::{AnySource, Pages};
    use tidalite_base::TxnId;
    use tidalite_pager::{Clocks, PageRead, Snapshot, UncommittedRead};

    pub trait Source: PageRead + Sync {
        fn view(&self) -> Pages<'_>;
        fn txn(&self) -> TxnId;
        fn user_data(&self) -> &[u8];
        fn file_bytes(&self) -> u64;
        /// Time of the newest commit among those that the state contains, by the wall clock of the committing process.
        fn base_time_ns(&self) -> i64;
        /// Readings of the clocks: now, and when the file was opened.
        fn clocks(&self) -> (Clocks, Clocks);
        /// Whether the state may become unreadable while it is in use.
        fn may_end(&self) -> bool;
    }

    impl Source for Snapshot {
        fn view(&self) -> Pages<'_> {
            Pages::Snapshot(self)
        }

        fn txn(&self) -> TxnId {
            self.txn()
        }

        fn user_data(&self) -> &[u8] {
            self.user_data()
        }

        fn file_bytes(&self) -> u64 {
            self.file_bytes()
        }

        fn base_time_ns(&self) -> i64 {
            self.commit_time_ns()
        }

        fn clocks(&self) -> (Clocks, Clocks) {
            self.clocks()
        }

        fn may_end(&self) -> bool {
            self.is_evictable()
        }
    }

    impl Source for UncommittedRead {
        fn view(&self) -> Pages<'_> {
            Pages::Uncommitted(self)
        }

        fn txn(&self) -> TxnId {
            self.txn()
        }

        fn user_data(&self) -> &[u8] {
            self.user_data()
        }

        fn file_bytes(&self) -> u64 {
            self.file_bytes()
        }

        fn base_time_ns(&self) -> i64 {
            self.base_time_ns()
        }

        fn clocks(&self) -> (Clocks, Clocks) {
            self.clocks()
        }

        fn may_end(&self) -> bool {
            true
        }
    }

    impl Source for AnySource {
        fn view(&self) -> Pages<'_> {
            of_either!(self, pages => pages.view())
        }

        fn txn(&self) -> TxnId {
            of_either!(self, pages => pages.txn())
        }

        fn user_data(&self) -> &[u8] {
            of_either!(self, pages => pages.user_data())
        }

        fn file_bytes(&self) -> u64 {
            of_either!(self, pages => pages.file_bytes())
        }

        fn base_time_ns(&self) -> i64 {
            of_either!(self, pages => pages.base_time_ns())
        }

        fn clocks(&self) -> (Clocks, Clocks) {
            of_either!(self, pages => pages.clocks())
        }

        fn may_end(&self) -> bool {
            of_either!(self, pages => pages.may_end())
        }
    }
}
