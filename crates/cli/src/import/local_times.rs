//! Local times that clocks repeat or skip: what to do with them, and the rows of a batch that have some. `resolver` decides on these.

use crate::args::{AmbiguousName, NonexistentName};
use crate::time::{Moment, Nanos, TimeShow};
use jiff::tz::TimeZone;

/// What to do with a local time that clocks repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ambiguous {
    /// The order of the rows decides.
    #[default]
    Infer,
    /// It is the instant before the change.
    Earlier,
    /// It is the instant after it.
    Later,
    /// The row is a bad one.
    Refuse,
}

/// What to do with a local time that clocks skip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nonexistent {
    /// The row is a bad one.
    #[default]
    Refuse,
    /// It is moved forward by the length of the gap.
    Shift,
}

/// What the user wants with both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policy {
    /// `--ambiguous`
    pub ambiguous: Ambiguous,
    /// `--nonexistent`
    pub nonexistent: Nonexistent,
}

/// A row whose local time stands for two instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twofold {
    /// Number of the row in its batch.
    pub row: usize,
    /// Before clocks were set back.
    pub earlier: Nanos,
    /// After it.
    pub later: Nanos,
}

impl Twofold {
    /// Why the row is a bad one.
    pub(crate) fn complaint(&self, zone: &TimeZone) -> String {
        let show = TimeShow::new(zone.clone());
        let [earlier, later] = [self.earlier, self.later].map(|instant| show.show(instant));
        format!(
            "the local time came twice, as {earlier} and as {later}, and the order of the rows does not tell which is meant: is a --tag missing? \
             --ambiguous earlier or later decides"
        )
    }
}

/// How many rows had such times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalTally {
    /// Repeated times of which one instant was taken.
    pub repeated: u64,
    /// Of these, such where nothing spoke for either.
    pub guessed: u64,
    /// Repeated times that were refused.
    pub refused: u64,
    /// Skipped times: moved or refused, as the user wants.
    pub skipped: u64,
}

impl LocalTally {
    pub(crate) fn add(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.guessed += other.guessed;
        self.refused += other.refused;
        self.skipped += other.skipped;
    }

    /// Lines for the summary of an import.
    pub(crate) fn lines(&self, policy: Policy) -> Vec<String> {
        let mut lines = Vec::new();
        if self.repeated > 0 {
            let how = match policy.ambiguous {
                Ambiguous::Earlier => "the earlier instant was taken",
                Ambiguous::Later => "the later instant was taken",
                _ => "the order of the rows told which instant is meant",
            };
            lines.push(format!(
                "local times in a repeated hour (clocks set back): {}; {how}",
                self.repeated
            ));
        }
        if self.guessed > 0 {
            lines.push(format!(
                "of these, guessed: {}; they occur once, and the earlier instant was taken (--ambiguous changes that)",
                self.guessed
            ));
        }
        if self.refused > 0 {
            lines.push(format!(
                "rows left out because a repeated local time is ambiguous: {}",
                self.refused
            ));
        }
        if self.skipped > 0 {
            let how = match policy.nonexistent {
                Nonexistent::Shift => "moved forward",
                Nonexistent::Refuse => "rows left out",
            };
            lines.push(format!(
                "local times in a skipped hour (clocks set forward): {}; {how}",
                self.skipped
            ));
        }
        lines
    }
}

/// What a batch has of such rows.
#[derive(Debug, Default)]
pub(crate) struct LocalRows {
    /// Rows that wait for a decision; their time is the earlier instant meanwhile.
    pub twofold: Vec<Twofold>,
    /// Rows that are refused, in their order.
    pub refused: Vec<Twofold>,
    /// Of the rows of the batch.
    pub tally: LocalTally,
}

impl LocalRows {
    pub(crate) fn clear(&mut self) {
        self.twofold.clear();
        self.refused.clear();
        self.tally = LocalTally::default();
    }

    /// The instant of a row's time, for now; none if the row is a bad one.
    pub(crate) fn settle(
        &mut self,
        moment: Moment,
        policy: Policy,
        text: &str,
        zone: &TimeZone,
    ) -> Result<Nanos, String> {
        match moment {
            Moment::At(instant) => Ok(instant),
            Moment::Ambiguous { earlier, later } => match policy.ambiguous {
                Ambiguous::Infer | Ambiguous::Earlier => Ok(earlier),
                Ambiguous::Later => Ok(later),
                Ambiguous::Refuse => {
                    self.tally.refused += 1;
                    let show = TimeShow::new(zone.clone());
                    let [earlier, later] = [earlier, later].map(|instant| show.show(instant));
                    Err(format!(
                        "`{text}` came twice, as {earlier} and as {later} (clocks were set back)"
                    ))
                }
            },
            Moment::Missing { shifted } => {
                self.tally.skipped += 1;
                match policy.nonexistent {
                    Nonexistent::Shift => Ok(shifted),
                    Nonexistent::Refuse => {
                        let zone = zone.iana_name().unwrap_or("the time zone");
                        Err(format!(
                            "`{text}` does not exist in {zone}: clocks were set forward over it (--nonexistent shift moves it forward)"
                        ))
                    }
                }
            }
        }
    }

    /// Notes the time of a row that is a good one.
    pub(crate) fn note(&mut self, row: usize, moment: Moment, policy: Policy) {
        if let Moment::Ambiguous { earlier, later } = moment {
            if policy.ambiguous == Ambiguous::Infer {
                self.twofold.push(Twofold {
                    row,
                    earlier,
                    later,
                });
            } else {
                self.tally.repeated += 1;
            }
        }
    }
}

impl From<AmbiguousName> for Ambiguous {
    fn from(name: AmbiguousName) -> Self {
        match name {
            AmbiguousName::Infer => Self::Infer,
            AmbiguousName::Earlier => Self::Earlier,
            AmbiguousName::Later => Self::Later,
            AmbiguousName::Refuse => Self::Refuse,
        }
    }
}

impl From<NonexistentName> for Nonexistent {
    fn from(name: NonexistentName) -> Self {
        match name {
            NonexistentName::Refuse => Self::Refuse,
            NonexistentName::Shift => Self::Shift,
        }
    }
}
