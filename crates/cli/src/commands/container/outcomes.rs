//! Counts messages by their outcome.

use crate::exit::{Failure, Outcome};
use crate::output::plural;
use serde_json::{Value, json};
use tidalite::containers::{AppendOutcome, Appended, Rejection};

/// Reasons of rejections: the name in JSON, and the description in words.
const REJECTIONS: [(&str, &str); 4] = [
    (
        "no_container",
        "the container does not exist, and the options of the table do not let messages create it",
    ),
    ("full", "the container is full"),
    (
        "merged_too_large",
        "with the earlier message of its time it would be too large",
    ),
    ("too_many_of_one_time", "too many messages of one time"),
];

/// Numbers of messages by outcome, and of containers and messages that changed as a consequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcomes {
    stored: u64,
    replaced: u64,
    merged: u64,
    ignored: u64,
    repeated: u64,
    not_stored: u64,
    /// Numbers of rejections, in the order of [`REJECTIONS`].
    rejected: [u64; 4],
    created: u64,
    expired: u64,
    rotated: u64,
}

impl Outcomes {
    pub(super) fn add(&mut self, appended: &Appended) {
        for outcome in &appended.outcomes {
            let count = match outcome {
                AppendOutcome::Stored { .. } => &mut self.stored,
                AppendOutcome::Replaced { .. } => &mut self.replaced,
                AppendOutcome::Merged { .. } => &mut self.merged,
                AppendOutcome::Ignored => &mut self.ignored,
                AppendOutcome::Repeated => &mut self.repeated,
                AppendOutcome::NotStored => &mut self.not_stored,
                AppendOutcome::Rejected(reason) => {
                    &mut self.rejected[match reason {
                        Rejection::NoContainer => 0,
                        Rejection::ContainerFull => 1,
                        Rejection::MergedTooLarge => 2,
                        Rejection::TooManyTies => 3,
                    }]
                }
            };
            *count += 1;
        }
        self.created += appended.created.len() as u64;
        self.expired += appended.expired.len() as u64;
        self.rotated += appended.rotated.len() as u64;
    }

    fn rejections(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// Number of messages that were processed.
    pub(super) fn total(&self) -> u64 {
        self.stored
            + self.replaced
            + self.merged
            + self.ignored
            + self.repeated
            + self.not_stored
            + self.rejections()
    }

    /// The numbers as one line of text.
    pub(super) fn text(&self, table: &str) -> String {
        let stored = plural(self.stored, "message", "messages");
        let mut text = format!("{stored} stored in {table}");
        let more = [
            (self.replaced, "replaced"),
            (self.merged, "merged"),
            (self.ignored, "ignored: there is one of its time"),
            (self.repeated, "repeated"),
            (
                self.not_stored,
                "not stored: older than its container keeps messages",
            ),
            (self.rejections(), "rejected"),
        ];
        for (count, told) in more {
            if count > 0 {
                text += &format!(", {count} {told}");
            }
        }
        if self.created > 0 {
            let containers = plural(self.created, "container", "containers");
            text += &format!("; {containers} created");
        }
        let removed = self.expired + self.rotated;
        if removed > 0 {
            let messages = plural(removed, "older message", "older messages");
            text += &format!("; {messages} removed to make room");
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let rejected = REJECTIONS.iter().zip(self.rejected);
        let rejected: serde_json::Map<String, Value> = rejected
            .map(|((name, _), count)| ((*name).to_owned(), count.into()))
            .collect();
        json!({
            "stored": self.stored,
            "replaced": self.replaced,
            "merged": self.merged,
            "ignored": self.ignored,
            "repeated": self.repeated,
            "not_stored": self.not_stored,
            "rejected": rejected,
            "containers_created": self.created,
            "expired": self.expired,
            "rotated": self.rotated,
        })
    }

    /// Returns a failure if messages were rejected.
    pub(super) fn check(&self, table: &str) -> Outcome {
        let rejected = self.rejections();
        if rejected == 0 {
            return Ok(());
        }
        let told = REJECTIONS.iter().zip(self.rejected);
        let told: Vec<&str> = told
            .filter(|(_, count)| *count > 0)
            .map(|((_, told), _)| *told)
            .collect();
        Err(Failure::bad_input(format!(
            "rejected: {rejected} of {}: {}",
            plural(self.total(), "message", "messages"),
            told.join("; ")
        ))
        .hint(format!(
            "`tidalite container options` changes the limits of a container and, with --defaults, of the table {table}"
        )))
    }
}
