//! What happens to an open file that somebody may want to log.

use std::fmt;
use std::sync::Arc;
use tidalite_base::TxnId;

/// Something that happened to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The file was opened.
    Opened {
        /// Its newest commit.
        txn: TxnId,
        /// Its bytes.
        bytes: u64,
        /// Only for reading.
        read_only: bool,
    },
    /// A damaged block of the head was rewritten from its copy.
    Healed {
        /// Where it is.
        at: u64,
    },
    /// The file grew.
    Grew {
        /// Bytes before.
        from: u64,
        /// Bytes now.
        to: u64,
    },
    /// A sync or the write of a commit record failed: nothing more is acknowledged until the file is reopened.
    Poisoned {
        /// What failed.
        first: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened {
                txn,
                bytes,
                read_only,
            } => {
                let how = if *read_only { " for reading" } else { "" };
                write!(f, "opened{how} at {txn}, {bytes} bytes")
            }
            Self::Healed { at } => write!(f, "the block at byte {at} was rewritten from its copy"),
            Self::Grew { from, to } => write!(f, "grew from {from} to {to} bytes"),
            Self::Poisoned { first } => write!(f, "nothing more is acknowledged: {first}"),
        }
    }
}

/// Who is told of events.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&Event) + Send + Sync>);

impl Logger {
    /// A logger that calls `f`, from whatever thread; it must not use the database.
    pub fn new(f: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn tell(&self, event: &Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logger")
    }
}
