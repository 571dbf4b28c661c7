//! Makes the series of containers match the messages that a salvage has found.

use crate::container::compare::compare_table;
use crate::container::name::series_of;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use crate::types::name::{CONTAINER_TAG, SeriesName};

/// The tag of a series that is kept although no message has its rows.
const KEPT_TAG: &str = "salvaged";

/// A container whose series differs from its messages.
struct Differing {
    container: String,
    /// Whether the series has something that no message has.
    is_wrong: bool,
}

impl WriteTxn {
    /// Creates the series of containers again if they differ from the messages. If a series has rows or numbers that no
    /// message has, the old series is kept under another name, because the messages may have been lost. Passes a text
    /// to `problem` for each such series.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads all messages of the table and the rows of the series.
    pub(crate) fn mend_container_series(
        &mut self,
        table: &str,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        for differing in self.differing_containers(table)? {
            let container = &differing.container;
            let series = series_of(table, container)?;
            if differing.is_wrong {
                let kept = self.keep_aside(&series, (table, container))?;
                problem(format!(
                    "container {container}: its series has rows or numbers that no message has, and is kept as {kept}"
                ));
            }
            if let Some(mut containers) = self.containers_if_exists(table)? {
                containers.rebuild_series_of(container)?;
            }
        }
        Ok(())
    }

    fn differing_containers(&mut self, table: &str) -> Result<Vec<Differing>> {
        let mut differing: Vec<Differing> = Vec::new();
        let state = self.reader()?;
        let Some(containers) = state.containers(table)? else {
            return Ok(differing);
        };
        compare_table(
            (&containers.reader, table),
            &mut || self.reader(),
            &mut |_| Ok(()),
            &mut |container, _, difference| match differing.last_mut() {
                Some(last) if last.container == container => last.is_wrong |= difference.is_wrong,
                _ => differing.push(Differing {
                    container: container.to_owned(),
                    is_wrong: difference.is_wrong,
                }),
            },
        )?;
        Ok(differing)
    }

    /// Renames a series to a name that is not in use; returns the name.
    fn keep_aside(
        &mut self,
        series: &SeriesName,
        (table, container): (&str, &str),
    ) -> Result<String> {
        let mut number = 1;
        loop {
            let tags = [(CONTAINER_TAG, container), (KEPT_TAG, &number.to_string())]
                .map(|(key, value)| (key.to_owned(), value.to_owned()));
            let name = match SeriesName::new(table, tags) {
                Ok(name) if self.check_name_fits(&name).is_ok() => name.to_string(),
                // A shorter name, for a container whose name leaves too little space for a second tag.
                _ => format!("{KEPT_TAG}-{number}"),
            };
            match self.rename_any(series, &name) {
                Err(error) if error.kind() == ErrorKind::InvalidName => number += 1,
                renamed => return renamed.map(|()| name),
            }
        }
    }
}
