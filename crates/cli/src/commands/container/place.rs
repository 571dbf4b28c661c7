//! The table and the container that a command refers to, and ranges of times.

use crate::args::{ContainerNamed, ContainerPlace, MessageFilterArg, MessageRangeArgs};
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use crate::time::read_any;
use tidalite::containers::{
    CONTAINER_NAME_BYTES_MAX, CONTAINER_TAG, ContainerInfo, Containers, ContainersMut,
};
use tidalite::{ErrorKind, ReadTxn, SeriesName, TableLayout, Timestamp, WriteTxn};

impl ContainerPlace {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Containers,
        }
    }
}

impl ContainerNamed {
    pub(super) fn place(&self) -> Place<'_> {
        self.place.place()
    }
}

/// The containers of a snapshot, which must exist.
pub(super) fn containers<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Containers<'s>> {
    let containers = snap.containers(place.table);
    let containers = containers.map_err(|error| place.fail(&error))?;
    containers.ok_or_else(|| place.missing())
}

/// The containers of a transaction; the table is created if it does not exist.
pub(super) fn containers_mut<'t>(
    place: &Place<'_>,
    tx: &'t mut WriteTxn,
) -> Outcome<ContainersMut<'t>> {
    tx.containers(place.table)
        .map_err(|error| place.fail(&error))
}

/// A container, if it exists.
pub(super) fn find(
    place: &Place<'_>,
    containers: &Containers<'_>,
    name: &str,
) -> Outcome<Option<ContainerInfo>> {
    let found = containers.container(name);
    found.map_err(|error| place.fail(&error))
}

/// A container, which must exist.
pub(super) fn expect(
    place: &Place<'_>,
    containers: &Containers<'_>,
    name: &str,
) -> Outcome<ContainerInfo> {
    find(place, containers, name)?.ok_or_else(|| {
        Failure::not_found(format!("{} has no container {name}", place.table)).hint(format!(
            "`tidalite container ls {} --table {}` lists them",
            place.path.display(),
            place.table
        ))
    })
}

/// A container in the state of a transaction. It must exist.
pub(super) fn expect_in(
    place: &Place<'_>,
    containers: &ContainersMut<'_>,
    name: &str,
) -> Outcome<ContainerInfo> {
    let view = containers.view().map_err(|error| place.fail(&error))?;
    expect(place, &view, name)
}

/// The reason why a container of a table cannot have this name; `None` if it can.
pub(super) fn name_problem(table: &str, name: &str) -> Option<String> {
    let bytes = name.len();
    if name.is_empty() || name.contains('\0') {
        return Some(format!("{name:?} cannot be the name of a container"));
    }
    if bytes > CONTAINER_NAME_BYTES_MAX {
        return Some(format!(
            "the name of a container with {bytes} bytes; up to {CONTAINER_NAME_BYTES_MAX} are possible"
        ));
    }
    let tags = [(CONTAINER_TAG.to_owned(), name.to_owned())];
    let series = SeriesName::new(table, tags);
    series.err().map(|error| error.to_string())
}

/// Returns an error for a name that a container of the table cannot have.
pub(super) fn check_name(place: &Place<'_>, name: &str) -> Outcome {
    match name_problem(place.table, name) {
        Some(problem) => Err(Failure::bad_input(problem)
            .hint("choose a name of 1 to 512 bytes, shorter if the name of the table is long")),
        None => Ok(()),
    }
}

/// Converts an error of a call with a filter to a failure.
pub(super) fn filter_failure(
    place: &Place<'_>,
    filter: &MessageFilterArg,
    error: &tidalite::Error,
) -> Failure {
    let is_of_filter = error.kind() == ErrorKind::InvalidInput
        && error.found_and_expected().is_some()
        && filter.filter.is_some();
    match is_of_filter {
        true => Failure::bad_input(format!("--filter: {error}"))
            .hint("`tidalite container filter-test` evaluates an expression on a message"),
        false => place.fail(error),
    }
}

impl MessageRangeArgs {
    /// The first and the last time of the range, both inclusive.
    pub(super) fn span(&self) -> Outcome<(Timestamp, Timestamp)> {
        let read = |option: &str, text: &Option<String>| match text {
            Some(text) => read_any(text, &self.zone.tz).map(Some).map_err(|problem| {
                Failure::usage(format!("{option}: {problem}"))
                    .hint("for example: --from 2014-06-01 --to '2014-06-02 12:00'")
            }),
            None => Ok(None),
        };
        let (from, to) = (read("--from", &self.from)?, read("--to", &self.to)?);
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            return Err(Failure::usage("--from is not before --to"));
        }
        let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
        if from.is_some_and(|from| from > last) || to.is_some_and(|to| to <= first) {
            return Err(Failure::usage(
                "the range is beyond the times that can be stored: 1677 to 2262",
            ));
        }
        let within = |time: i128| i64::try_from(time.clamp(first, last)).unwrap_or(i64::MAX);
        let from = from.map_or(i64::MIN, within);
        let to = to.map_or(i64::MAX, |to| within(to - 1));
        Ok((Timestamp(from), Timestamp(to)))
    }
}
