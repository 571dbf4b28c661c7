//! The options and the state of an opened hash table, and the locations of its parts.

use crate::hash::options::HashOptions;
use crate::hash::state::State;
use crate::parts::{Part, part};
use crate::runs::filter::Filters;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// An opened hash table. Readers of the same version of the table share it.
#[derive(Debug)]
pub struct Opened {
    pub(crate) options: HashOptions,
    pub(crate) state: State,
    pub(crate) root: Tree,
    /// The parts that have pages of their own; a small part is stored in a row of the root.
    pub(crate) records: Option<Tree>,
    pub(crate) main: Option<Tree>,
    pub(crate) runs: Option<Tree>,
    pub(crate) sets: Option<Tree>,
    pub(crate) filters: Filters,
}

impl Opened {
    pub(crate) fn new<R: PageRead>(
        root: &Tree,
        r: &R,
        options: HashOptions,
        state: State,
    ) -> Result<Self> {
        let tree = |kind| part(root, r, kind).map(|part| part.tree().copied());
        Ok(Self {
            options,
            state,
            root: *root,
            records: tree(Part::Records)?,
            main: tree(Part::Main)?,
            runs: tree(Part::Runs)?,
            sets: tree(Part::Sets)?,
            filters: Filters::default(),
        })
    }
}
