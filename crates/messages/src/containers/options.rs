//! Options of a table of containers and of single containers, and the limits of names and batches.
//!
//! ```text
//! options of a table                                 options of a container
//!  0  u8    version: 1                                0  u8    version: 1
//!  1  u8    1: a message creates its container        1  u8    duplicates: 0 keep first, 1 replace, 2 keep all, 3 merge
//!  2  u16   0                                         2  u8    overflow: 0 reject, 1 rotate the oldest
//!  4  u32   maximum number of containers              3  u8    length in bytes of the protecting field's name; 0: none
//!  8  u32   maximum number of fields                  4  u32   0
//! 12  u32   0                                         8  i64   time to live
//! 16  i64   window of idempotency keys               16  i64   time for which deleted messages are kept
//! 24  default options of a container                 24  u64   maximum number of messages
//!                                                    32  u64   maximum number of bytes
//!                                                    40  name of the protecting field
//! ```

use crate::containers::parts::{damaged, shown};
use crate::options::{self, duration, is_storable, most, nanoseconds, optional_duration};
use std::time::Duration;
use tidalite_base::{get_i64, get_u32, get_u64};
use tidalite_pager::{Error, Refusal, Result};

/// Maximum length in bytes of the name of a container.
pub const CONTAINER_NAME_BYTES_MAX: usize = 512;
/// Maximum length in bytes of an idempotency key of a message.
pub const MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
/// Maximum number of messages that one call appends.
pub const APPENDS_MAX: usize = 1 << 20;
/// Time to live of messages that never expire.
pub(crate) const TTL_FOREVER_NS: i64 = i64::MAX;

/// Maximum length in bytes of the name of the field that protects messages.
const PROTECT_BYTES_MAX: usize = u8::MAX as usize;

/// Counters are not greater than this, so that sums of several never overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 60;

const VERSION: u8 = 1;
const TABLE_BYTES: usize = 24;
const CONTAINER_BYTES: usize = 40;

/// The rule for a message with the time of an earlier message of its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// The earlier message stays, and the new one is ignored.
    KeepFirst,
    /// The new message replaces the earlier one.
    Replace,
    /// Both are kept, in the order of their arrival.
    #[default]
    KeepAll,
    /// The fields of the new message are set in the earlier one.
    Merge,
}

/// The rule for messages that a full container has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ContainerOverflow {
    /// The message is not stored.
    Reject,
    /// The oldest messages are removed.
    #[default]
    DropOldest,
}

/// Options of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerOptions {
    /// The rule for messages with equal times.
    pub on_duplicate: OnDuplicate,
    /// The rule for a full container.
    pub overflow: ContainerOverflow,
    /// Age, counted from the time of the message, at which a message expires. `None`: messages do not expire.
    /// [`Duration::ZERO`]: messages are not stored, they only set the latest values.
    pub ttl: Option<Duration>,
    /// Time for which deleted messages, and the container itself when it is dropped, can be restored;
    /// [`Duration::ZERO`]: they are removed at once. Expired and rotated messages are always removed at once.
    pub keep_deleted: Duration,
    /// Maximum number of messages without the protected ones; `None`: no maximum.
    pub messages_max: Option<u64>,
    /// Maximum number of bytes of all messages without the protected ones; `None`: no maximum. A message counts with
    /// its document and 25 bytes, or 29 bytes if it stands for several messages.
    pub bytes_max: Option<u64>,
    /// Name of a field that protects a message if its value is `true` when the message is stored: such a message does
    /// not expire, is not rotated, and does not count for the two maxima.
    pub protect: Option<String>,
}

impl Default for ContainerOptions {
    /// All messages are kept for ever, also several of one time; deleted messages are removed at once.
    fn default() -> Self {
        Self {
            on_duplicate: OnDuplicate::default(),
            overflow: ContainerOverflow::default(),
            ttl: None,
            keep_deleted: Duration::ZERO,
            messages_max: None,
            bytes_max: None,
            protect: None,
        }
    }
}

impl ContainerOptions {
    /// Returns a text that says why the options cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        // The greatest number of nanoseconds stands for none.
        if let Some(ttl) = self.ttl.filter(|ttl| nanoseconds(*ttl) == TTL_FOREVER_NS) {
            return Some(format!("a time to live of {ttl:?}"));
        }
        if !is_storable(self.keep_deleted) {
            let time = self.keep_deleted;
            return Some(format!("deleted messages kept for {time:?}"));
        }
        if self.messages_max == Some(0) || self.bytes_max == Some(0) {
            return Some("a container without room; a time to live of 0 stores no messages".into());
        }
        if let Some(problem) = options::problem_of(&[self.messages_max, self.bytes_max]) {
            return Some(problem);
        }
        let protect = self.protect.as_ref().map_or(1, String::len);
        (protect == 0 || protect > PROTECT_BYTES_MAX)
            .then(|| format!("the name of a protecting field with {protect} bytes"))
    }

    pub(crate) fn check(&self) -> Result<()> {
        options::check(self.problem())
    }

    /// The age in nanoseconds at which a message expires, or [`TTL_FOREVER_NS`].
    pub(crate) fn ttl_ns(&self) -> i64 {
        self.ttl.map_or(TTL_FOREVER_NS, nanoseconds)
    }

    /// The time in nanoseconds for which deleted messages can be restored.
    pub(crate) fn keep_deleted_ns(&self) -> i64 {
        nanoseconds(self.keep_deleted)
    }

    /// The time at which a message without protection expires; `i64::MAX`: never.
    pub(crate) fn expires(&self, time: i64) -> i64 {
        time.saturating_add(self.ttl_ns())
    }

    pub(crate) fn is_expired(&self, time: i64, is_protected: bool, now: i64) -> bool {
        self.ttl.is_some() && !is_protected && self.expires(time) <= now
    }

    /// Whether a container is fuller than it may be.
    pub(crate) fn is_over(&self, messages: u64, bytes: u64) -> bool {
        messages > most(self.messages_max) || bytes > most(self.bytes_max)
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let protect = self.protect.as_deref().unwrap_or_default();
        let on_duplicate = match self.on_duplicate {
            OnDuplicate::KeepFirst => 0,
            OnDuplicate::Replace => 1,
            OnDuplicate::KeepAll => 2,
            OnDuplicate::Merge => 3,
        };
        let overflow = match self.overflow {
            ContainerOverflow::Reject => 0,
            ContainerOverflow::DropOldest => 1,
        };
        bytes.extend_from_slice(&[VERSION, on_duplicate, overflow, protect.len() as u8]);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.ttl_ns().to_le_bytes());
        bytes.extend_from_slice(&self.keep_deleted_ns().to_le_bytes());
        bytes.extend_from_slice(&most(self.messages_max).to_le_bytes());
        bytes.extend_from_slice(&most(self.bytes_max).to_le_bytes());
        bytes.extend_from_slice(protect.as_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| damaged("options of a container", shown(bytes), "options"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, protect) = bytes.split_first_chunk::<CONTAINER_BYTES>()?;
        if head[0] != VERSION || protect.len() != head[3] as usize || head[4..8] != [0; 4] {
            return None;
        }
        let protect = std::str::from_utf8(protect).ok()?;
        let options = Self {
            on_duplicate: match head[1] {
                0 => OnDuplicate::KeepFirst,
                1 => OnDuplicate::Replace,
                2 => OnDuplicate::KeepAll,
                3 => OnDuplicate::Merge,
                _ => return None,
            },
            overflow: match head[2] {
                0 => ContainerOverflow::Reject,
                1 => ContainerOverflow::DropOldest,
                _ => return None,
            },
            ttl: match get_i64(head, 8) {
                TTL_FOREVER_NS => None,
                ttl => Some(duration(ttl)?),
            },
            keep_deleted: duration(get_i64(head, 16))?,
            messages_max: options::maximum(get_u64(head, 24)),
            bytes_max: options::maximum(get_u64(head, 32)),
            protect: (!protect.is_empty()).then(|| protect.to_owned()),
        };
        options.problem().is_none().then_some(options)
    }
}

/// Options of a table of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerTableOptions {
    /// Whether a message creates its container if it does not exist.
    pub creates_containers: bool,
    /// Maximum number of containers; dropped ones that can still be restored do not count.
    pub containers_max: u32,
    /// Maximum number of different names of fields that the messages of the table have ever had.
    pub fields_max: u32,
    /// Time within which a second message with the same idempotency key stores nothing; `None`: keys are ignored.
    pub idempotency_window: Option<Duration>,
    /// Options of containers that have no options of their own.
    pub defaults: ContainerOptions,
}

impl Default for ContainerTableOptions {
    /// Messages create their containers; up to 65,536 names of fields; idempotency keys are ignored.
    fn default() -> Self {
        Self {
            creates_containers: true,
            containers_max: u32::MAX,
            fields_max: 1 << 16,
            idempotency_window: None,
            defaults: ContainerOptions::default(),
        }
    }
}

impl ContainerTableOptions {
    /// Returns a text that says why the options cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let window = self.idempotency_window;
        if let Some(window) = window.filter(|window| window.is_zero() || !is_storable(*window)) {
            return Some(format!("a window of {window:?} for idempotency keys"));
        }
        self.defaults.problem()
    }

    /// The window of idempotency keys in nanoseconds; 0: keys are ignored.
    pub(crate) fn window_ns(&self) -> i64 {
        self.idempotency_window.map_or(0, nanoseconds)
    }

    pub(crate) fn check(&self) -> Result<()> {
        options::check(self.problem())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.creates_containers.into(), 0, 0];
        bytes.extend_from_slice(&self.containers_max.to_le_bytes());
        bytes.extend_from_slice(&self.fields_max.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.window_ns().to_le_bytes());
        debug_assert!(bytes.len() == TABLE_BYTES, "as drawn above");
        self.defaults.encode(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || damaged("options of a table of containers", shown(bytes), "options");
        let (head, defaults) = bytes.split_first_chunk::<TABLE_BYTES>().ok_or_else(wrong)?;
        if head[0] != VERSION || head[1] > 1 || head[2..4] != [0; 2] || head[12..16] != [0; 4] {
            return Err(wrong());
        }
        let options = Self {
            creates_containers: head[1] == 1,
            containers_max: get_u32(head, 4),
            fields_max: get_u32(head, 8),
            idempotency_window: optional_duration(get_i64(head, 16)).ok_or_else(wrong)?,
            defaults: ContainerOptions::decode(defaults)?,
        };
        match options.problem() {
            Some(_) => Err(wrong()),
            None => Ok(options),
        }
    }
}

/// Checks the name of a container.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let limit = CONTAINER_NAME_BYTES_MAX as u64;
    crate::containers::parts::within("bytes of the name of a container", name.len() as u64, limit)?;
    match name.is_empty() || name.contains('\0') {
        false => Ok(()),
        true => Err(Error::refused(
            Refusal::InvalidName,
            format!("the name {name:?} of a container"),
            "a name that is not empty and contains no zero bytes",
        )),
    }
}
