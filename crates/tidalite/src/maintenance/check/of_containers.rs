//! Checks that the series of containers have the numbers of the messages.

use super::finding::{Finding, Place};
use super::walk::Walk;
use crate::container::compare::{Difference, RENAME, compare};
use crate::container::name::series_of;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use tidalite_kv::Tree;
use tidalite_messages::ContainersReader;

/// Number of containers that are compared with one opened state of the database, which keeps what it has read of the catalog.
const AT_ONCE: usize = 1_000;

/// What mends a series that differs from the messages.
const NEXT: &str =
    "`rebuild_series` or `tidalite container rebuild` makes the series anew from the messages";

impl Walk<'_, '_> {
    /// Compares the messages of a table of containers with the series of the containers. Damage that is known already ends
    /// the comparison.
    pub(super) fn container_series(&mut self, table: &str, tree: &Tree) -> Result<()> {
        self.at(&format!("series of containers {table}"));
        let compared = self.compare_containers(table, tree);
        match compared {
            Err(error) if error.corrupt().is_some() && self.has_findings() => Ok(()),
            compared => {
                self.note(&format!("series of containers {table}"), compared)?;
                Ok(())
            }
        }
    }

    fn compare_containers(&mut self, table: &str, tree: &Tree) -> Result<()> {
        let reader = ContainersReader::open(tree, self.pages)?;
        let names = reader.field_names()?;
        let mut after: Option<String> = None;
        loop {
            let listed = reader.list("", after.as_deref(), AT_ONCE)?;
            let Some(last) = listed.last() else {
                return Ok(());
            };
            let state = ReadTxn::begin(self.pages.pages.clone(), 0)?;
            for container in &listed {
                let series = series_of(table, &container.name)?.to_string();
                let series = state.series(&series)?;
                let bytes = series.as_ref().map_or(0, |series| {
                    let columns = series.info().schema.columns.len();
                    8 * (1 + columns)
                });
                let running = self.pages.running;
                let mut read = |rows| Ok(running.borrow_mut().moved((rows * bytes) as u64)?);
                let mut found = Vec::new();
                compare(
                    (&reader, &names),
                    &container.name,
                    series.as_ref(),
                    &mut read,
                    &mut |difference| found.push(difference),
                )?;
                for Difference {
                    time,
                    column,
                    problem,
                    ..
                } in found
                {
                    let of = format!("container {} of {table}", container.name);
                    let (place, problem) = match &series {
                        Some(series) => (
                            Place::series(series.info(), column, time.map(|time| (time, time))),
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
                    let link = if problem.ends_with(RENAME) {
                        ", then"
                    } else {
                        ";"
                    };
                    self.find(Finding::new(place, format!("{problem}{link} {NEXT}")));
                }
            }
            after = Some(last.name.clone());
        }
    }
}
