//! The table of topics that a command refers to.

use crate::args::TopicPlace;
use crate::commands::messages::Place;
use crate::exit::Outcome;
use tidalite::topics::{Topics, TopicsMut};
use tidalite::{ReadTxn, TableLayout, WriteTxn};

impl TopicPlace {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Topics,
        }
    }
}

/// The topics of a snapshot, which must exist.
pub(super) fn topics<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Topics<'s>> {
    let topics = snap.topics(place.table);
    let topics = topics.map_err(|error| place.fail(&error))?;
    topics.ok_or_else(|| place.missing())
}

/// The topics of a transaction; they are created if they do not exist.
pub(super) fn topics_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<TopicsMut<'t>> {
    tx.topics(place.table).map_err(|error| place.fail(&error))
}
