//! The pages that a transaction can read: one type for all kinds of transaction, and a trait for read-only code.

use std::sync::Arc;
use tidalite_pager::{PageRead, Snapshot, UncommittedRead, forward_page_read};

/// The pages of a snapshot, or of a write transaction, either in its current state or in an earlier one.
#[derive(Clone, Copy)]
pub enum Pages<'a> {
    Snapshot(&'a Snapshot),
    Writer(&'a tidalite_pager::WriteTxn),
    Uncommitted(&'a UncommittedRead),
}

/// Calls a method of the reader that a value of `Pages` contains.
macro_rules! of_pages {
    ($own:expr, $pages:ident => $call:expr) => {
        match $own {
            Self::Snapshot($pages) => $call,
            Self::Writer($pages) => $call,
            Self::Uncommitted($pages) => $call,
        }
    };
}

impl PageRead for Pages<'_> {
    forward_page_read!(of_pages);
}

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

/// Calls a method of the reader that an `AnySource` contains.
macro_rules! of_source {
    ($own:expr, $pages:ident => $call:expr) => {
        match $own {
            Self::Snapshot($pages) => $call,
            Self::Uncommitted($pages) => $call,
        }
    };
}

impl PageRead for AnySource {
    forward_page_read!(of_source);
}

mod source {
    use super::{AnySource, Pages};
    use tidalite_base::TxnId;
    use tidalite_pager::{Clocks, PageRead, Snapshot, UncommittedRead};

    /// Calls a method of the snapshot or of the uncommitted state to which a source belongs.
    macro_rules! of_view {
        ($source:expr, $pages:ident => $call:expr) => {
            match $source.view() {
                Pages::Snapshot($pages) => $call,
                Pages::Uncommitted($pages) => $call,
                Pages::Writer(_) => unreachable!("a source is for reading alone"),
            }
        };
    }

    pub trait Source: PageRead + Sync {
        fn view(&self) -> Pages<'_>;

        fn txn(&self) -> TxnId {
            of_view!(self, pages => pages.txn())
        }

        fn user_data(&self) -> &[u8] {
            of_view!(self, pages => pages.user_data())
        }

        fn file_bytes(&self) -> u64 {
            of_view!(self, pages => pages.file_bytes())
        }

        /// Time of the newest commit among those that the state contains, by the wall clock of the committing process.
        fn base_time_ns(&self) -> i64 {
            match self.view() {
                Pages::Snapshot(pages) => pages.commit_time_ns(),
                Pages::Uncommitted(pages) => pages.base_time_ns(),
                Pages::Writer(_) => unreachable!("a source is for reading alone"),
            }
        }

        /// Readings of the clocks: now, and when the file was opened.
        fn clocks(&self) -> (Clocks, Clocks) {
            of_view!(self, pages => pages.clocks())
        }

        /// Whether the state may become unreadable while it is in use.
        fn may_end(&self) -> bool {
            match self.view() {
                Pages::Snapshot(pages) => pages.is_evictable(),
                _ => true,
            }
        }
    }

    impl Source for Snapshot {
        fn view(&self) -> Pages<'_> {
            Pages::Snapshot(self)
        }
    }

    impl Source for UncommittedRead {
        fn view(&self) -> Pages<'_> {
            Pages::Uncommitted(self)
        }
    }

    impl Source for AnySource {
        fn view(&self) -> Pages<'_> {
            match self {
                Self::Snapshot(pages) => Pages::Snapshot(pages),
                Self::Uncommitted(pages) => Pages::Uncommitted(pages),
            }
        }
    }
}
