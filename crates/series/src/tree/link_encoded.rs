//! Links vectors that another thread has encoded (`leaf/encoded.rs`).

use crate::leaf::encoded::EncodedVectors;
use crate::packer::Packer;
use crate::tree::edit::STANDALONE_ROWS;
use crate::tree::series_tree::SeriesTree;
use tidalite_pager::{PageWrite, Result};

impl EncodedVectors {
    /// Copies the encoder states of a tree, before another thread encodes rows for this tree.
    pub fn begin(&mut self, tree: &SeriesTree) {
        self.states.clone_from(&tree.states);
    }
}

impl SeriesTree {
    /// Like [`link`](Self::link), for rows that another thread has encoded. Returns false, without any effect, if the
    /// rows do not simply follow the existing rows; the caller must then use `link`.
    ///
    /// # Errors
    /// As `link`.
    pub fn link_encoded<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        encoded: &EncodedVectors,
    ) -> Result<bool> {
        let Some(&(first, ..)) = encoded.spans.first() else {
            return Ok(true);
        };
        if !self.is_followed_by(first) {
            return Ok(false);
        }
        assert_eq!(
            encoded.states.len(),
            self.types.len() + 1,
            "the columns of the tree"
        );
        self.states.clone_from(&encoded.states);
        let mut at = 0;
        while at < encoded.spans.len() {
            let before = self.open_bytes();
            let mut leaf = self.open.take().unwrap_or_else(|| packer.take_leaf());
            at += leaf.fill_encoded(&self.types, &mut self.states, encoded, at);
            packer.update_open_bytes(before, leaf.bytes());
            let full = leaf.is_full();
            self.open = Some(leaf);
            if full || at < encoded.spans.len() {
                self.close_leaf(w, packer)?;
            }
        }
        debug_assert_eq!(at, encoded.spans.len(), "every vector once");
        self.assert_invariants();
        Ok(true)
    }

    /// True if rows from time `first` on go to the open leaf, or to a new leaf after all others.
    fn is_followed_by(&self, first: i64) -> bool {
        if !self.ends_before(first) {
            return false;
        }
        match (&self.open, self.pending.last()) {
            (Some(open), _) => open.is_complete(),
            (None, Some(last)) => last.link.count >= STANDALONE_ROWS as u64,
            (None, None) => true,
        }
    }
}
