//! Retention: stored policies that say how long, and how much, is kept; and the work of keeping to them.
//!
//! A policy in the `policies` tree (key: its name, UTF-8):
//!
//! ```text
//! 0         1       8          16         24         32          34
//! | version | zeros | keep, ns | bytes    | cold, ns | n         | pattern, n bytes, UTF-8 |
//! |   u8    |  7 B  |   u64    |   u64    |   u64    |   u16     |                         |
//! ```
//!
//! `keep`, `bytes` and `cold` are 0 where there is no such bound.
//!
//! Invariants: 1. A series loses its oldest rows only, and only by a commit of its own: a snapshot sees either
//! all of a policy's cut of a series or nothing of it. 2. What is cut is decided from the series' records, without
//! reading leaves; whole leaves behind the cut are unlinked unread, so a damaged old leaf is no obstacle.

use crate::catalog::SeriesInfo;
use crate::cold::Cooled;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::leaves::stored_tree;
use crate::name::SeriesPattern;
use crate::read::{ReadSource, ReadTxn, Reading};
use crate::schema::Unit;
use crate::series::EVER;
use crate::time::Timestamp;
use crate::write::WriteTxn;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidalite_base::{Corrupt, SeriesId, get_u16, get_u64, put_u16, put_u64};
use tidalite_kv::Tree;
use tidalite_pager::PageRead;

const VERSION: u8 = 2;
const KEEP_AT: usize = 8;
const BYTES_AT: usize = KEEP_AT + 8;
const COLD_AT: usize = BYTES_AT + 8;
const PATTERN_LEN_AT: usize = COLD_AT + 8;
const PATTERN_AT: usize = PATTERN_LEN_AT + 2;

/// A bound by size is acted on when more than this part of it is used ...
const FULL: f64 = 0.92;
/// ... and then cut back to this part, so that not every call has to cut.
const TRIMMED: f64 = 0.88;

/// Of a bound for the whole file, what is no row and comes and goes (the reserve, the log of small commits, removed rows in extents that
/// others keep) counts for this part: under a small bound all rows would go for it ...
const KEPT_PART: u64 = 4;
/// ... as long as no more than this does not count: a reserve, a log, and a stretch of leaves.
const KEPT_BEYOND: u64 = 6 << 20;

/// What a row in the front is taken to cost.
const WAITING_ROW_BYTES: u64 = 8;

/// Bytes of a policy's name at most.
pub const RETENTION_NAME_BYTES_MAX: usize = 100;
/// Bytes of a policy's pattern at most.
pub const RETENTION_PATTERN_BYTES_MAX: usize = 1000;

/// What is kept of the series that a pattern selects, and in which form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Which series, as for [`ReadTxn::list`]; the empty text selects all.
    pub pattern: String,
    /// Rows older than this are removed.
    pub keep: Option<Duration>,
    /// What may be used: by the leaves of these series together, or, with the empty pattern, by the whole
    /// file. When it is nearly reached the oldest rows of the series are removed, up to one time for all of them. Under a small bound
    /// the whole file may be longer than that: what is kept free ([`Options::reserve_bytes`](crate::Options::reserve_bytes)), the log
    /// ([`Options::log_bytes`](crate::Options::log_bytes)) and the room of removed rows, which comes back in steps of 1 MiB, count for a
    /// quarter of the bound where they are more, if only 6 MiB more.
    pub bytes: Option<u64>,
    /// Leaves whose rows are all older than this are written anew in cold form (`cold.rs`), which takes the feature `cold`.
    pub cold: Option<Duration>,
}

/// How much one call of [`Database::maintain`] may do.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// No commit is begun after this time, but for the first that removes rows and the first that makes leaves cold: so each call gets on,
    /// however long it takes to look at a million series. Without any time nothing is done, and [`Maintained::more`] says what there is.
    pub time: Duration,
    /// Series that are cut in one commit.
    pub series: usize,
    /// What counts as now.
    pub now: Timestamp,
}

impl Default for Budget {
    /// A second, a thousand series a commit, the wall clock.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            series: 1000,
            now: Timestamp::now(),
        }
    }
}

impl Budget {
    pub(crate) fn clock(&self) -> BudgetClock {
        BudgetClock {
            deadline: Instant::now().checked_add(self.time),
            first: !self.time.is_zero(),
        }
    }
}

/// Says when the time of a budget is over.
pub(crate) struct BudgetClock {
    deadline: Option<Instant>,
    /// The first step is still to be taken, whatever the time.
    first: bool,
}

impl BudgetClock {
    /// Whether there is no time for the next step.
    pub(crate) fn is_over(&mut self) -> bool {
        !std::mem::take(&mut self.first)
            && self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What maintenance did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Series that were cut.
    pub series: u64,
    /// Rows that were removed.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// What became cold; its commits are counted there.
    pub cold: Cooled,
    /// True when the budget ended before the work did.
    pub more: bool,
}

impl Retention {
    fn check(&self, name: &str) -> Result<()> {
        let problem = |problem: String| Error::Name {
            name: name.to_owned(),
            problem,
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
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; PATTERN_AT];
        bytes[0] = VERSION;
        let keep = self.keep.map_or(0, nanos);
        put_u64(&mut bytes, KEEP_AT, keep);
        put_u64(&mut bytes, BYTES_AT, self.bytes.unwrap_or(0));
        put_u64(&mut bytes, COLD_AT, self.cold.map_or(0, nanos));
        put_u16(&mut bytes, PATTERN_LEN_AT, self.pattern.len() as u16);
        bytes.extend_from_slice(self.pattern.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |found: String| {
            Corrupt::new("retention policy", 0, found, "a policy as it is written").into()
        };
        if bytes.len() < PATTERN_AT || bytes[0] != VERSION {
            return Err(damaged(format!("{} bytes", bytes.len())));
        }
        let pattern = &bytes[PATTERN_AT..];
        let pattern = std::str::from_utf8(pattern).map_err(|error| damaged(error.to_string()))?;
        let bound = |at| Some(get_u64(bytes, at)).filter(|&bound| bound > 0);
        let policy = Self {
            pattern: pattern.to_owned(),
            keep: bound(KEEP_AT).map(Duration::from_nanos),
            bytes: bound(BYTES_AT),
            cold: bound(COLD_AT).map(Duration::from_nanos),
        };
        if usize::from(get_u16(bytes, PATTERN_LEN_AT)) != pattern.len() || policy.encode() != bytes
        {
            return Err(damaged(format!("{policy:?}")));
        }
        Ok(policy)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl WriteTxn {
    /// Stores a policy under a name, in place of one that has this name. It takes effect with
    /// [`Database::maintain`]. It may take a page or two of the reserve, so that it can be set on a full disk.
    ///
    /// # Errors
    /// `Name` for a name, pattern or bound that cannot be; what the file reports.
    pub fn set_retention(&mut self, name: &str, policy: &Retention) -> Result<()> {
        policy.check(name)?;
        // It is there to free space.
        self.free_space();
        self.changing(|txn| {
            let policies = &mut txn.roots.policies;
            policies.insert(&mut txn.pages, name.as_bytes(), &policy.encode())?;
            Ok(())
        })
    }

    /// Removes the policy with this name; false when there is none.
    ///
    /// # Errors
    /// What the file reports.
    pub fn remove_retention(&mut self, name: &str) -> Result<bool> {
        self.changing(|txn| Ok(txn.roots.policies.remove(&mut txn.pages, name.as_bytes())?))
    }
}

impl<S: ReadSource> Reading<S> {
    /// The policies with their names, in the order of these.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn retentions(&self) -> Result<Vec<(String, Retention)>> {
        policies(&self.begun.roots.policies, &self.pages)
    }
}

/// A policy as its row stores it, if that is one that could have been set.
pub(crate) fn policy_of(key: &[u8], value: &[u8]) -> Result<(String, Retention)> {
    let name = std::str::from_utf8(key)
        .map_err(|error| Corrupt::new("name of a policy", 0, error.to_string(), "UTF-8"))?;
    let policy = Retention::decode(value)?;
    policy.check(name)?;
    Ok((name.to_owned(), policy))
}

/// Every policy of the tree.
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

/// What a plan needs to know of a series.
struct Candidate {
    info: Arc<SeriesInfo>,
    begin: i64,
    end: i64,
    bytes: u64,
}

impl Candidate {
    /// Nanoseconds since 1970, in 128 bits: every unit's times fit.
    fn clock(unit: Unit, raw: i64) -> i128 {
        (i128::from(raw) - i128::from(unit.steps_to_1970())) * i128::from(unit.nanos())
    }

    /// The first raw time at or after `nanos`.
    fn raw(&self, nanos: i128) -> i64 {
        raw_time(self.info.schema.unit, nanos)
    }

    /// Bytes before `nanos`, if its rows lie evenly in time.
    fn bytes_before(&self, nanos: i128) -> f64 {
        let unit = self.info.schema.unit;
        let (begin, end) = (Self::clock(unit, self.begin), Self::clock(unit, self.end));
        let part = (nanos - begin) as f64 / (end - begin + 1) as f64;
        self.bytes as f64 * part.clamp(0.0, 1.0)
    }
}

/// The first raw time at or after `nanos`.
fn raw_time(unit: Unit, nanos: i128) -> i64 {
    let raw = -(-nanos).div_euclid(unit.nanos().into()) + i128::from(unit.steps_to_1970());
    raw.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Where each series is to be cut: rows before that raw time go.
#[derive(Default)]
struct Plan {
    cuts: BTreeMap<SeriesId, i64>,
    /// Leaves before that raw time become cold.
    cools: BTreeMap<SeriesId, i64>,
}

impl Plan {
    fn cut(&mut self, candidate: &Candidate, nanos: i128) {
        let raw = candidate.raw(nanos);
        if candidate.begin < raw {
            let cut = self.cuts.entry(candidate.info.id).or_insert(raw);
            *cut = raw.max(*cut);
        }
    }
}

impl Database {
    /// Keeps to the policies: removes what is too old or too much, oldest first, in commits of bounded size; then gives old leaves the
    /// cold form. Reads the record of each series that a policy selects, and the nodes of those that are to become cold. Space comes back when no snapshot sees it any more.
    ///
    /// # Errors
    /// What reading and committing report; `Unsupported` where leaves are to become cold and the build has not the feature `cold`.
    /// Commits done before stay.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use std::time::Duration;
    /// use tidalite::{Budget, Database, MemoryStorage, Options, Retention, Timestamp};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let month = Some(Duration::from_secs(30 * 86_400));
    /// tx.set_retention("default", &Retention { pattern: String::new(), keep: month, bytes: None, cold: None })?;
    /// tx.series("load")?.insert("2014-01-01", 1.0)?;
    /// tx.series("load")?.insert("2014-06-01", 2.0)?;
    /// tx.commit()?;
    /// let now = Timestamp::parse("2014-06-02")?;
    /// let done = db.maintain(&Budget { now, ..Budget::default() })?;
    /// assert_eq!((done.rows, done.more), (1, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn maintain(&self, budget: &Budget) -> Result<Maintained> {
        self.maintain_with(budget, || self.begin_write().map(Some))
    }

    /// As `maintain`, with transactions from `begin`; ends when that gives none.
    pub(crate) fn maintain_with(
        &self,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Maintained> {
        let start = Instant::now();
        let mut done = self.cut_with(budget, &begin)?;
        let mut rest = budget.time.saturating_sub(start.elapsed());
        if !budget.time.is_zero() {
            // For one step there always is.
            rest = rest.max(Duration::from_nanos(1));
        }
        if done.more {
            return Ok(done);
        }
        let cools = self.plan(budget.now)?.cools;
        let due: Vec<(SeriesId, i64)> = cools.into_iter().collect();
        let budget = Budget {
            time: rest,
            ..*budget
        };
        done.cold = self.cool_all(&due, &budget, begin)?;
        done.more = done.cold.more;
        Ok(done)
    }

    fn cut_with(
        &self,
        budget: &Budget,
        begin: &impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Maintained> {
        let mut clock = budget.clock();
        let mut done = Maintained::default();
        // A cut by size is worked out from averages: look again until it holds, as long as that moves anything.
        for _ in 0..16 {
            let plan = self.plan(budget.now)?;
            if plan.cuts.is_empty() {
                return Ok(done);
            }
            let before = done.rows;
            let cuts: Vec<(SeriesId, i64)> = plan.cuts.into_iter().collect();
            for cuts in cuts.chunks(budget.series.max(1)) {
                if clock.is_over() {
                    done.more = true;
                    return Ok(done);
                }
                let Some(mut txn) = begin()? else {
                    done.more = true;
                    return Ok(done);
                };
                for &(id, cut) in cuts {
                    let rows = match txn.series_by_id(id) {
                        // Removed since the plan was made.
                        Err(Error::NoSuchSeries { .. }) => continue,
                        series => series?.delete(..cut)?,
                    };
                    done.rows += rows;
                    done.series += u64::from(rows > 0);
                }
                txn.commit()?;
                done.commits += 1;
            }
            if done.rows == before {
                break;
            }
        }
        Ok(done)
    }

    fn plan(&self, now: Timestamp) -> Result<Plan> {
        let snap = self.begin_read()?;
        let mut plan = Plan::default();
        for (_, policy) in snap.retentions()? {
            let candidates = snap.candidates(&policy.pattern)?;
            if let Some(keep) = policy.keep {
                let horizon = i128::from(now.0) - i128::from(nanos(keep));
                for candidate in &candidates {
                    plan.cut(candidate, horizon);
                }
            }
            if let Some(cold) = policy.cold {
                let horizon = i128::from(now.0) - i128::from(nanos(cold));
                for (id, raw) in snap.warm_series(&policy.pattern, horizon)? {
                    let cool = plan.cools.entry(id).or_insert(raw);
                    *cool = raw.max(*cool);
                }
            }
            if let Some(bytes) = policy.bytes {
                let used = if policy.pattern.is_empty() {
                    let pages = self.pager.stat()?;
                    let idle = pages.pages_free + pages.pages_pending;
                    let used = pages.pages_total.saturating_sub(idle) * pages.page_size as u64;
                    // What is kept free for deleting on a full disk is part of the file, too.
                    let reserve = self.pager.options().reserve_bytes;
                    let dead = tidalite_series::dead_bytes(&snap.begun.roots.extents, &snap.pages)?;
                    let kept = reserve + pages.log_pages * pages.page_size as u64 + dead;
                    let beyond = kept.saturating_sub(bytes / KEPT_PART).min(KEPT_BEYOND);
                    (used + reserve).saturating_sub(beyond)
                } else {
                    candidates.iter().map(|candidate| candidate.bytes).sum()
                };
                if used as f64 > bytes as f64 * FULL {
                    let excess = used as f64 - bytes as f64 * TRIMMED;
                    cut_by_size(&mut plan, &candidates, excess);
                }
            }
        }
        Ok(plan)
    }
}

impl ReadTxn {
    /// The series of the pattern that have leaves, not cold yet, all of whose rows are before `nanos`; and that time as they count.
    pub(crate) fn warm_series(&self, pattern: &str, nanos: i128) -> Result<Vec<(SeriesId, i64)>> {
        let mut warm = Vec::new();
        for info in self.list(pattern)? {
            let types = info.schema.word_types();
            let tree = stored_tree(&self.begun.roots.records, &self.pages, info.id, &types)?;
            let raw = raw_time(info.schema.unit, nanos);
            if tree.has_warm_leaves(&self.pages, raw)? {
                warm.push((info.id, raw));
            }
        }
        Ok(warm)
    }

    fn candidates(&self, pattern: &str) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        // The oldest rows of a series that never filled a leaf are in the front.
        let waiting = self.begun.front.series_row_counts(&self.pages)?;
        for info in self.list(pattern)? {
            let types = info.schema.word_types();
            let tree = stored_tree(&self.begun.roots.records, &self.pages, info.id, &types)?;
            let mut bytes = tree.stored_bytes();
            let columns = info.schema.columns.iter().enumerate();
            let columns = columns.filter(|(_, column)| column.ty.is_text());
            let columns = columns.map(|(c, _)| c);
            let texts = &self.begun.roots.texts;
            let texts = crate::texts::block_bytes(&self.pages, texts, info.id, columns)?;
            bytes = bytes.saturating_add(texts);
            let mut span = tree.span();
            if let Some(rows) = waiting.get(&info.id) {
                let first = self
                    .begun
                    .front
                    .first(&self.pages, info.id, &types, i64::MIN)?;
                let last = self
                    .begun
                    .front
                    .latest(&self.pages, info.id, &types, EVER)?;
                if let (Some((first, _)), Some((last, _))) = (first, last) {
                    let (begin, end) = span.unwrap_or((first, last));
                    span = Some((begin.min(first), end.max(last)));
                    bytes = bytes.saturating_add(rows.saturating_mul(WAITING_ROW_BYTES));
                }
            }
            if let Some((begin, end)) = span {
                candidates.push(Candidate {
                    info,
                    begin,
                    end,
                    bytes,
                });
            }
        }
        Ok(candidates)
    }
}

/// Finds the time before which `excess` bytes lie, and cuts all series there; never the newest row.
fn cut_by_size(plan: &mut Plan, candidates: &[Candidate], excess: f64) {
    let clock = |candidate: &Candidate, raw| Candidate::clock(candidate.info.schema.unit, raw);
    let begins = candidates.iter().map(|own| clock(own, own.begin));
    let ends = candidates.iter().map(|own| clock(own, own.end));
    let (Some(mut low), Some(mut high)) = (begins.min(), ends.max()) else {
        return;
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let freed: f64 = candidates.iter().map(|own| own.bytes_before(middle)).sum();
        if freed < excess {
            low = middle;
        } else {
            high = middle;
        }
    }
    for candidate in candidates {
        plan.cut(candidate, high);
    }
}
