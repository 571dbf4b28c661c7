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

    /// The state to which a source belongs.
    pub enum State<'a> {
        Snapshot(&'a Snapshot),
        Uncommitted(&'a UncommittedRead),
    }

    macro_rules! of_state {
        ($source:expr, $pages:ident => $call:expr) => {
            match $source.state() {
                State::Snapshot($pages) => $call,
                State::Uncommitted($pages) => $call,
            }
        };
    }

    pub trait Source: PageRead + Sync {
        fn state(&self) -> State<'_>;

        fn view(&self) -> Pages<'_> {
            match self.state() {
                State::Snapshot(pages) => Pages::Snapshot(pages),
                State::Uncommitted(pages) => Pages::Uncommitted(pages),
            }
        }

        fn txn(&self) -> TxnId {
            of_state!(self, pages => pages.txn())
        }

        fn user_data(&self) -> &[u8] {
            of_state!(self, pages => pages.user_data())
        }

        fn file_bytes(&self) -> u64 {
            of_state!(self, pages => pages.file_bytes())
        }

        /// Time of the newest commit among those that the state contains, by the wall clock of the committing process.
        fn base_time_ns(&self) -> i64 {
            match self.state() {
                State::Snapshot(pages) => pages.commit_time_ns(),
                State::Uncommitted(pages) => pages.base_time_ns(),
            }
        }

        /// Readings of the clocks: now, and when the file was opened.
        fn clocks(&self) -> (Clocks, Clocks) {
            of_state!(self, pages => pages.clocks())
        }

        /// Whether the state may become unreadable while it is in use.
        fn may_end(&self) -> bool {
            match self.state() {
                State::Snapshot(pages) => pages.is_evictable(),
                State::Uncommitted(_) => true,
            }
        }
    }

    impl Source for Snapshot {
        fn state(&self) -> State<'_> {
            State::Snapshot(self)
        }
    }

    impl Source for UncommittedRead {
        fn state(&self) -> State<'_> {
            State::Uncommitted(self)
        }
    }

    impl Source for AnySource {
        fn state(&self) -> State<'_> {
            match self {
                Self::Snapshot(pages) => State::Snapshot(pages),
                Self::Uncommitted(pages) => State::Uncommitted(pages),
            }
        }
    }
}
