//! Rules for thinning the older messages of a container.
//!
//! ```text
//!  0  u8    version: 1
//!  1  u8    number of rules, r, 1 to 8
//!  2  u8    figure of fields that are not named
//!  3  u8    number of named fields, f
//!  4  r x { i64 age, i64 step, i64 done }
//!  .  f x { u8 figure, u8 length of the name, name }
//! ```
//!
//! `done` is the time up to which the rule has been applied. Figures: 0 first, 1 last, 2 min, 3 max, 4 mean, 5 sum, 6
//! drop.

use crate::containers::parts::{damaged, shown};
use crate::options::{duration, is_storable, nanoseconds};
use std::time::Duration;
use tidalite_base::{get_i64, put_i64};
use tidalite_pager::{Error, Refusal, Result};

/// Maximum number of rules of a container.
pub const THINNING_RULES_MAX: usize = 8;
/// Maximum number of fields with a figure of their own.
pub const THINNING_FIELDS_MAX: usize = u8::MAX as usize;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 4;
const RULE_BYTES: usize = 24;

/// A rule: of the messages that are older than `age`, one remains for each step of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinningRule {
    /// Age, counted from the time of a message; at least one nanosecond.
    pub age: Duration,
    /// Length of a step, at least one nanosecond; steps begin at its multiples, counted from 1970.
    pub step: Duration,
}

impl ThinningRule {
    pub(crate) fn age_ns(&self) -> i64 {
        nanoseconds(self.age)
    }

    pub(crate) fn step_ns(&self) -> i64 {
        nanoseconds(self.step)
    }

    /// Whether both durations can be stored: as numbers of nanoseconds from 1.
    fn fits(&self) -> bool {
        let fits = |duration: Duration| is_storable(duration) && !duration.is_zero();
        fits(self.age) && fits(self.step)
    }
}

/// The value of a field in the message that represents a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinningFigure {
    /// The first value.
    First,
    /// The last value.
    #[default]
    Last,
    /// The least number; the last value if no value is a number.
    Min,
    /// The greatest number; the last value if no value is a number.
    Max,
    /// The mean of the numbers; the last value if no value is a number. A message that already stands for several
    /// messages has their number as its weight, even if some of them did not have the field.
    Mean,
    /// The sum of the numbers; the last value if no value is a number. A sum that is too large for a float is null.
    Sum,
    /// The field is omitted from a message that represents several messages. A step with only one message does not
    /// change, so its message keeps the field.
    Drop,
}

impl ThinningFigure {
    const ALL: [Self; 7] = [
        Self::First,
        Self::Last,
        Self::Min,
        Self::Max,
        Self::Mean,
        Self::Sum,
        Self::Drop,
    ];

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The thinning rules of a container. Protected messages are not thinned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinning {
    /// The rules, the youngest age first. Ages and steps must ascend.
    pub rules: Vec<ThinningRule>,
    /// The figure of all fields that are not in `fields`.
    pub others: ThinningFigure,
    /// Figures of individual fields.
    pub fields: Vec<(String, ThinningFigure)>,
}

impl Thinning {
    /// Returns a text that says why the rules cannot be used; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let rules = &self.rules;
        if !(1..=THINNING_RULES_MAX).contains(&rules.len()) {
            return Some(format!(
                "{} rules, 1 to {THINNING_RULES_MAX} can be",
                rules.len()
            ));
        }
        if let Some(rule) = rules.iter().find(|rule| !rule.fits()) {
            return Some(format!("{rule:?}; from a nanosecond to 292 years can be"));
        }
        let ascend =
            |pair: &[ThinningRule]| pair[0].age < pair[1].age && pair[0].step < pair[1].step;
        if !rules.windows(2).all(ascend) {
            return Some("rules whose ages and steps do not ascend".into());
        }
        if self.fields.len() > THINNING_FIELDS_MAX {
            return Some(format!("{} fields with figures", self.fields.len()));
        }
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        let is_wrong = |name: &&str| !(1..=usize::from(u8::MAX)).contains(&name.len());
        if let Some(name) = names.iter().find(|name| is_wrong(name)) {
            return Some(format!("the name of a field with {} bytes", name.len()));
        }
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map(|pair| format!("two figures of the field {:?}", pair[0]))
    }
}

/// The rules of a container, with the progress of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThinningRow {
    pub(crate) thinning: Thinning,
    /// The time up to which each rule has been applied.
    pub(crate) done: Vec<i64>,
}

impl ThinningRow {
    pub(crate) fn new(thinning: Thinning) -> Result<Self> {
        match thinning.problem() {
            Some(found) => Err(Error::refused(
                Refusal::InvalidInput,
                found,
                "rules that can be used",
            )),
            None => Ok(Self {
                done: vec![i64::MIN; thinning.rules.len()],
                thinning,
            }),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Thinning {
            rules,
            others,
            fields,
        } = &self.thinning;
        let mut bytes = vec![
            VERSION,
            rules.len() as u8,
            *others as u8,
            fields.len() as u8,
        ];
        for (rule, done) in rules.iter().zip(&self.done) {
            let mut row = [0; RULE_BYTES];
            put_i64(&mut row, 0, rule.age_ns());
            put_i64(&mut row, 8, rule.step_ns());
            put_i64(&mut row, 16, *done);
            bytes.extend_from_slice(&row);
        }
        for (name, figure) in fields {
            bytes.extend_from_slice(&[*figure as u8, name.len() as u8]);
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes)
            .ok_or_else(|| damaged("rules of thinning", shown(bytes), "rules that were set"))
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (&[version, rules, others, fields], rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        if version != VERSION {
            return None;
        }
        let (rows, mut rest) = rest.split_at_checked(usize::from(rules) * RULE_BYTES)?;
        let (mut thinning, mut done) = (Thinning::default(), Vec::new());
        for row in rows.chunks_exact(RULE_BYTES) {
            thinning.rules.push(ThinningRule {
                age: duration(get_i64(row, 0))?,
                step: duration(get_i64(row, 8))?,
            });
            done.push(get_i64(row, 16));
        }
        thinning.others = ThinningFigure::of_number(others)?;
        for _ in 0..fields {
            let (&[figure, len], behind) = rest.split_first_chunk::<2>()?;
            let (name, behind) = behind.split_at_checked(len.into())?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            thinning
                .fields
                .push((name, ThinningFigure::of_number(figure)?));
            rest = behind;
        }
        let is_whole = rest.is_empty() && thinning.problem().is_none();
        is_whole.then_some(Self { thinning, done })
    }
}
