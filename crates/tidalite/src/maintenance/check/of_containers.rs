//! Checks that the series of containers have the numbers of the messages.

use super::finding::{Finding, Place};
use super::walk::Walk;
use crate::container::compare::{Difference, compare_table};
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use tidalite_kv::Tree;
use tidalite_messages::ContainersReader;

/// The next step for a series that differs from the messages.
const NEXT: &str =
    "`rebuild_series` or `tidalite container rebuild` makes the series anew from the messages";

impl Walk<'_, '_> {
    /// Compares the messages of a table of containers with the series of the containers. Damage that is known already
    /// ends the comparison.
    pub(super) fn container_series(&mut self, table: &str, tree: &Tree) -> Result<()> {
        self.at(&format!("series of containers {table}"));
        let compared = self.compare_containers(table, tree);
        match compared {
            Err(error) if error.corrupt().is_some() && !self.findings.is_empty() => Ok(()),
            compared => {
                self.note(&format!("series of containers {table}"), compared)?;
                Ok(())
            }
        }
    }

    fn compare_containers(&mut self, table: &str, tree: &Tree) -> Result<()> {
        let (pages, running) = (self.pages, self.pages.running);
        let reader = ContainersReader::open(tree, pages)?;
        compare_table(
            (&reader, table),
            &mut || ReadTxn::begin(pages.pages.clone(), 0),
            &mut |bytes| Ok(running.borrow_mut().moved(bytes)?),
            &mut |container, series, difference| {
                let Difference {
                    time,
                    column,
                    problem,
                    ..
                } = difference;
                let of = format!("container {container} of {table}");
                let (place, problem) = match series {
                    Some(series) => (
                        Place::series(series, column, time.map(|time| (time, time))),
                        format!("{of}: {problem}"),
                    ),
                    None => (
                        Place::Table {
                            name: table.to_owned(),
                            from: Vec::new(),
                            to: None,
                        },
                        format!("{of}: the series {problem}"),
                    ),
                };
                self.find(Finding::new(place, format!("{problem}; {NEXT}")));
            },
        )
    }
}
