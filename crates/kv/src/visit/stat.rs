//! The shape of a table: levels, and pages by what they hold.

use crate::table::tree::{LEADS_ON, Tree};
use crate::visit::walk::{PageAt, Walk};
use tidalite_base::Corrupt;
use tidalite_pager::{Extent, PageRead, Result};

/// Levels of a table and its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableShape {
    /// Levels, leaves included; 0 without a page of its own.
    pub depth: u8,
    /// Pages that lead to others.
    pub branch_pages: u64,
    /// Pages that hold rows.
    pub leaf_pages: u64,
    /// Pages of long values and of long keys, those of nested tables included.
    pub overflow_pages: u64,
    /// Pages of nested tables, or of the sets of multi-values that are too large for a row.
    pub nested_pages: u64,
}

impl TableShape {
    /// All pages together.
    #[must_use]
    pub fn pages(&self) -> u64 {
        [self.leaf_pages, self.overflow_pages, self.nested_pages]
            .into_iter()
            .fold(self.branch_pages, u64::saturating_add)
    }
}

struct Count {
    shape: TableShape,
    leads_on: bool,
}

impl Walk for Count {
    fn enter(&mut self, page: &PageAt<'_>) -> Result<bool> {
        let shape = &mut self.shape;
        let (counter, enter) = match (page.path, page.level) {
            ([], 0) => (&mut shape.leaf_pages, self.leads_on),
            ([], _) => (&mut shape.branch_pages, true),
            _ => (&mut shape.nested_pages, true),
        };
        *counter += 1;
        Ok(enter)
    }

    fn large_value(&mut self, _: &[Vec<u8>], extent: &Extent) -> Result<()> {
        self.long_key(extent)
    }

    fn long_key(&mut self, extent: &Extent) -> Result<()> {
        self.shape.overflow_pages = self.shape.overflow_pages.saturating_add(extent.pages);
        Ok(())
    }

    fn damaged(&mut self, _: &PageAt<'_>, corrupt: Corrupt) -> Result<()> {
        Err(corrupt.into())
    }
}

impl Tree {
    /// How the table lies in pages.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// Each branch is read; the leaves, too, where some rows may lead to other pages.
    pub fn shape<R: PageRead>(&self, r: &R) -> Result<TableShape> {
        let mut count = Count {
            shape: TableShape {
                depth: self.height,
                ..TableShape::default()
            },
            leads_on: self.flags & LEADS_ON != 0,
        };
        self.walk(r, &mut count)?;
        Ok(count.shape)
    }
}
