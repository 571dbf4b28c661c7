//! Retention policies: the age and the amount of data kept, by series. `Database::maintain` applies them.
//!
//! A policy in the `policies` tree (key: its name, UTF-8):
//!
//! ```text
//! 0         1      2       8          16         24         32          34
//! | version | from | zeros | keep, ns | bytes    | cold, ns | n         | pattern, n bytes, UTF-8 | rule, UTF-8 |
//! |   u8    |  u8  |  6 B  |   u64    |   u64    |   u64    |   u16     |                         |             |
//! ```
//!
//! `keep`, `bytes` and `cold` are 0 if unbounded. `from` is the reference of `keep`: 0 now, 1 the newest
//! row of each series. The rule of downsampling (`downsample.rs`) is empty if there is none.

use crate::catalog::downsample::Downsample;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::pattern::SeriesPattern;
use std::time::Duration;
use tidalite_base::{Corrupt, get_u16, get_u64, put_u16, put_u64};
use tidalite_kv::Tree;
use tidalite_pager::PageRead;

const VERSION: u8 = 4;
const FROM_AT: usize = 1;
const KEEP_AT: usize = 8;
const BYTES_AT: usize = KEEP_AT + 8;
const COLD_AT: usize = BYTES_AT + 8;
const PATTERN_LEN_AT: usize = COLD_AT + 8;
const PATTERN_AT: usize = PATTERN_LEN_AT + 2;

/// Maximum length of a policy's name in bytes.
pub const RETENTION_NAME_BYTES_MAX: usize = 100;
/// Maximum length of a policy's pattern in bytes.
pub const RETENTION_PATTERN_BYTES_MAX: usize = 1000;

/// The time from which the age of a row is counted back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepFrom {
    /// The current time, according to [`Database::clock`](crate::Database::clock).
    #[default]
    Now,
    /// The time of the newest row of the same series. One wrong time far in the future makes all other rows of that
    /// series old.
    Newest,
}

/// A retention policy: bounds on the age and size of the rows of the selected series, and the age for cold storage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retention {
    /// Pattern of series, as for [`ReadTxn::list`](crate::ReadTxn::list); the empty text selects all.
    pub pattern: String,
    /// Maximum age: older rows are removed.
    pub keep: Option<Duration>,
    /// The time from which the age for `keep` is counted back.
    pub keep_from: KeepFrom,
    /// Maximum number of bytes in use by the rows of these series together or, with the empty pattern, by the whole
    /// file, not counting pages that are free or only retained for old versions. If more is in use, the oldest rows of
    /// these series are removed, a leaf or a part of one at a time, until the bound holds. The newest row of each
    /// series stays.
    ///
    /// The file is somewhat larger: [`Tuning::reserve_bytes`](crate::Tuning::reserve_bytes) are kept free, the file
    /// grows by [`Tuning::growth_bytes`](crate::Tuning::growth_bytes) at a time, and pins and readers retain pages of
    /// old versions, which [`Maintained`](crate::retention::Maintained) lists. At most a quarter of the bound is
    /// counted for the log ([`Tuning::log_bytes`](crate::Tuning::log_bytes)).
    pub bytes: Option<u64>,
    /// Age from which leaves are rewritten in cold form (`cold.rs`); all rows of a leaf must have it. Needs the feature
    /// `cold`.
    pub cold: Option<Duration>,
    /// Replaces rows older than `keep` by figures of windows, in the same commit that removes them. Rows are removed up
    /// to the end of a window. Several policies may select a series: it gets the windows of each, all of them at the
    /// age at which the shortest `keep` removes rows. Bounds on bytes and rows that are deleted by hand are not
    /// replaced.
    pub downsample: Option<Downsample>,
}

impl Retention {
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let problem = |problem: String| {
            Error::from(Cause::Name {
                name: name.to_owned(),
                problem,
            })
        };
        if name.is_empty() || name.len() > RETENTION_NAME_BYTES_MAX {
            let most = RETENTION_NAME_BYTES_MAX;
            return Err(problem(format!("{} bytes, 1 to {most} can be", name.len())));
        }
        if self.pattern.len() > RETENTION_PATTERN_BYTES_MAX {
            let most = RETENTION_PATTERN_BYTES_MAX;
            return Err(problem(format!(
                "a pattern of {} bytes, at most {most} can be",
                self.pattern.len()
            )));
        }
        SeriesPattern::parse(&self.pattern)?;
        let times = [self.keep, self.cold];
        let empty = times.iter().all(Option::is_none) && self.bytes.is_none();
        if empty || times.contains(&Some(Duration::ZERO)) || self.bytes == Some(0) {
            return Err(problem(
                "bounds are more than zero, and one is there".to_owned(),
            ));
        }
        if self.keep_from == KeepFrom::Newest && self.keep.is_none() {
            return Err(problem(
                "an age that is counted from the newest row needs `keep`".to_owned(),
            ));
        }
        match &self.downsample {
            Some(_) if self.keep.is_none() => Err(problem(
                "windows replace rows after a time, so `keep` is needed".to_owned(),
            )),
            Some(rule) => rule.check(),
            None => Ok(()),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; PATTERN_AT];
        bytes[0] = VERSION;
        bytes[FROM_AT] = u8::from(self.keep_from == KeepFrom::Newest);
        let keep = self.keep.map_or(0, nanos);
        put_u64(&mut bytes, KEEP_AT, keep);
        put_u64(&mut bytes, BYTES_AT, self.bytes.unwrap_or(0));
        put_u64(&mut bytes, COLD_AT, self.cold.map_or(0, nanos));
        put_u16(&mut bytes, PATTERN_LEN_AT, self.pattern.len() as u16);
        bytes.extend_from_slice(self.pattern.as_bytes());
        if let Some(rule) = &self.downsample {
            bytes.extend_from_slice(rule.text().as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |found: String| {
            Corrupt::new("retention policy", 0, found, "a policy as it is written").into()
        };
        if bytes.len() < PATTERN_AT || bytes[0] != VERSION {
            return Err(damaged(format!("{} bytes", bytes.len())));
        }
        let pattern_len = usize::from(get_u16(bytes, PATTERN_LEN_AT));
        let Some((pattern, rule)) = bytes[PATTERN_AT..].split_at_checked(pattern_len) else {
            return Err(damaged(format!("a pattern of {pattern_len} bytes")));
        };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|error| damaged(error.to_string()));
        let (pattern, rule) = (text(pattern)?, text(rule)?);
        let bound = |at| Some(get_u64(bytes, at)).filter(|&bound| bound > 0);
        let policy = Self {
            pattern: pattern.to_owned(),
            keep: bound(KEEP_AT).map(Duration::from_nanos),
            // Invalid values decode as `Newest` here; the comparison with the re-encoded policy below then rejects
            // them.
            keep_from: match bytes[FROM_AT] {
                0 => KeepFrom::Now,
                _ => KeepFrom::Newest,
            },
            bytes: bound(BYTES_AT),
            cold: bound(COLD_AT).map(Duration::from_nanos),
            downsample: match rule {
                "" => None,
                rule => Some(Downsample::parse(rule)?),
            },
        };
        if policy.encode() != bytes {
            return Err(damaged(format!("{policy:?}")));
        }
        Ok(policy)
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Decodes a policy and its name. Returns an error for a policy that no call can have stored.
pub(crate) fn policy_of(key: &[u8], value: &[u8]) -> Result<(String, Retention)> {
    let name = std::str::from_utf8(key)
        .map_err(|error| Corrupt::new("name of a policy", 0, error.to_string(), "UTF-8"))?;
    let policy = Retention::decode(value)?;
    policy.check(name)?;
    Ok((name.to_owned(), policy))
}

/// Returns every stored policy with its name.
pub(crate) fn policies<R: PageRead>(tree: &Tree, pages: &R) -> Result<Vec<(String, Retention)>> {
    let mut policies = Vec::new();
    let mut cursor = tree.cursor(pages);
    let mut found = cursor.first()?;
    while found {
        let name = std::str::from_utf8(cursor.key())
            .map_err(|error| Corrupt::new("name of a policy", 0, error.to_string(), "UTF-8"))?;
        let policy = Retention::decode(&cursor.value()?.to_vec()?)?;
        policies.push((name.to_owned(), policy));
        found = cursor.next()?;
    }
    Ok(policies)
}
