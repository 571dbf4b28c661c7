//! Local times that clocks repeat or skip: the policy for them, and the affected rows of a batch. `resolver.rs` decides
//! which instants are meant.

use crate::args::{AmbiguousName, NonexistentName};
use crate::time::{Moment, Nanos, TimeShow};
use jiff::tz::TimeZone;

/// The policy for a local time that clocks repeat, so that it stands for two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ambiguous {
    /// Infer the instant from the order of the rows.
    #[default]
    Infer,
    /// Take the instant before the clocks are set back.
    Earlier,
    /// Take the instant after the clocks are set back.
    Later,
    /// Reject the row.
    Refuse,
}

/// The policy for a local time that clocks skip, so that it stands for no instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nonexistent {
    /// Reject the row.
    #[default]
    Refuse,
    /// Move the time forward by the length of the gap.
    Shift,
}

/// The user's policy for local times that clocks repeat, and for local times that clocks skip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policy {
    /// The option `--ambiguous`.
    pub ambiguous: Ambiguous,
    /// The option `--nonexistent`.
    pub nonexistent: Nonexistent,
}

/// A row whose local time stands for two instants, because clocks were set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twofold {
    /// Number of the row in its batch.
    pub row: usize,
    /// The instant before the clocks are set back.
    pub earlier: Nanos,
    /// The instant after the clocks are set back.
    pub later: Nanos,
}

impl Twofold {
    /// The error text for the row if it is rejected.
    pub(crate) fn complaint(&self, zone: &TimeZone) -> String {
        let show = TimeShow::new(zone.clone());
        let [earlier, later] = [self.earlier, self.later].map(|instant| show.show(instant));
        format!(
            "the local time came twice, as {earlier} and as {later}, and the order of the rows does not tell which is meant: is a --tag missing? \
             --ambiguous earlier or later decides"
        )
    }
}

/// Counts of rows whose local times clocks repeat or skip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalTally {
    /// Number of repeated times for which one of the two instants was taken.
    pub repeated: u64,
    /// Number of those repeated times for which nothing showed which instant is meant.
    pub guessed: u64,
    /// Number of repeated times whose rows were rejected.
    pub refused: u64,
    /// Number of skipped times, which were moved or rejected according to the policy.
    pub skipped: u64,
}

impl LocalTally {
    pub(crate) fn add(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.guessed += other.guessed;
        self.refused += other.refused;
        self.skipped += other.skipped;
    }

    /// The lines about local times in the summary of an import.
    pub(crate) fn lines(&self, policy: Policy) -> Vec<String> {
        let mut lines = Vec::new();
        if self.repeated > 0 {
            let how = match policy.ambiguous {
                Ambiguous::Earlier => "the earlier instant was taken",
                Ambiguous::Later => "the later instant was taken",
                _ => "the order of the rows decided",
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
                "rows skipped because a repeated local time is ambiguous: {}",
                self.refused
            ));
        }
        if self.skipped > 0 {
            let how = match policy.nonexistent {
                Nonexistent::Shift => "moved forward",
                Nonexistent::Refuse => "rows skipped",
            };
            lines.push(format!(
                "local times in a skipped hour (clocks set forward): {}; {how}",
                self.skipped
            ));
        }
        lines
    }
}

/// The rows of a batch whose local times clocks repeat or skip.
#[derive(Debug, Default)]
pub(crate) struct LocalRows {
    /// Rows for which an instant must still be chosen; until then their time is the earlier instant.
    pub twofold: Vec<Twofold>,
    /// Rows that were rejected, in ascending order of their numbers.
    pub refused: Vec<Twofold>,
    /// Counts of the rows of this batch.
    pub tally: LocalTally,
}

impl LocalRows {
    pub(crate) fn clear(&mut self) {
        self.twofold.clear();
        self.refused.clear();
        self.tally = LocalTally::default();
    }

    /// The instant that a row gets for the time being, or an error if the row is rejected.
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
                        "`{text}` occurs twice, as {earlier} and as {later} (clocks were set back)"
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
                            "`{text}` does not exist in {zone}: clocks were set forward (--nonexistent shift moves it forward)"
                        ))
                    }
                }
            }
        }
    }

    /// Records a row that is stored, if its local time is repeated or was skipped.
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
