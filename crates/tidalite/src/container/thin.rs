//! Thinning of containers: replaces older messages by fewer ones.

use crate::container::append::ContainersMut;
use crate::container::read::Containers;
use crate::types::error::Result;
use tidalite_messages::{Thinned, Thinning};

/// Number of containers with thinning rules that are listed at a time.
const LISTED: usize = 1_000;

/// Result of thinning a table of containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinnedContainers {
    /// Number of messages that were read.
    pub examined: u64,
    /// Number of messages that were removed.
    pub removed: u64,
    /// Number of messages that now stand for several others.
    pub changed: u64,
    /// Whether there are more messages that are old enough.
    pub more: bool,
}

impl Containers<'_> {
    /// The thinning rules of a container; `None` if it has none.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn thinning(&self, container: &str) -> Result<Option<Thinning>> {
        Ok(self.reader.thinning(container)?)
    }
}

impl ContainersMut<'_> {
    /// Sets the thinning rules of a container, or removes them. New rules begin at the oldest message.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use std::time::Duration;
    /// use tidalite::Timestamp;
    /// use tidalite::containers::{Append, Document, Thinning, ThinningFigure, ThinningRule};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut devices = tx.containers("devices")?;
    /// for minute in 0..120 {
    ///     let document = Document::from_json(&format!(r#"{{"level": {minute}, "state": "on"}}"#))?;
    ///     devices.append(&Append::new("pump", Timestamp::from_secs(60 * minute)?, &document))?;
    /// }
    /// // Of messages that are older than three days, the mean of ten minutes; after ten days, of an hour.
    /// let rule = |days: u64, minutes: u64| ThinningRule {
    ///     age: Duration::from_secs(86_400 * days),
    ///     step: Duration::from_secs(60 * minutes),
    /// };
    /// let thinning = Thinning {
    ///     rules: vec![rule(3, 10), rule(10, 60)],
    ///     others: ThinningFigure::Last,
    ///     fields: vec![("level".to_owned(), ThinningFigure::Mean)],
    /// };
    /// devices.set_thinning("pump", Some(&thinning))?;
    /// let done = devices.thin(1_000)?;
    /// assert_eq!((done.more, done.removed), (false, 118));
    /// let first = devices.view()?.get("pump", Timestamp::from_secs(0)?)?;
    /// assert_eq!(first[0].to_json()?, r#"{"level":29.5,"state":"on"}"#);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `InvalidInput` for rules that cannot be used. A damaged page, a
    /// full disk.
    pub fn set_thinning(&mut self, container: &str, thinning: Option<&Thinning>) -> Result<()> {
        self.change_only(|containers, _| containers.set_thinning(container, thinning.cloned()))
    }

    /// Thins all containers that have rules, as far as the rules permit; reads about `examined_max` messages. The rows
    /// of the series are changed as well. Other transactions see the old messages until this one commits.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// A descent for each rule of each container with rules, then reads the messages that have become old enough.
    pub fn thin(&mut self, examined_max: u64) -> Result<ThinnedContainers> {
        let mut all = ThinnedContainers::default();
        let mut after = None;
        loop {
            let listed = self.view()?.reader.thinned_containers(after, LISTED)?;
            let Some((last, _)) = listed.last() else {
                return Ok(all);
            };
            after = Some(*last);
            for (_, container) in &listed {
                let left = examined_max.saturating_sub(all.examined);
                if left == 0 {
                    all.more = true;
                    return Ok(all);
                }
                let done = self.thin_container(container, left)?;
                all.examined += done.examined;
                all.removed += done.removed;
                all.changed += done.changed;
                all.more |= done.more;
            }
        }
    }

    fn thin_container(&mut self, container: &str, examined_max: u64) -> Result<Thinned> {
        self.txn.free_space();
        self.change(
            |containers, now| containers.thin(now, container, examined_max),
            |containers, done| {
                for span in &done.spans {
                    containers.remake(container, *span)?;
                }
                Ok(done)
            },
        )
    }
}
