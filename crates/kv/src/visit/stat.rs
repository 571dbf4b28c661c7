//! Counts the levels of a table, and its pages by type.

use crate::table::tree::{HAS_REFERENCES, Tree};
use crate::visit::walk::{PageVisitor, VisitedPage};
use tidalite_base::Corrupt;
use tidalite_pager::{Extent, PageRead, Result};

/// Number of levels of a table, and number of its pages by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableShape {
    /// Number of levels, leaves included; 0 for a table without pages of its own.
    pub depth: u8,
    /// Number of branch pages.
    pub branch_pages: u64,
    /// Number of leaf pages.
    pub leaf_pages: u64,
    /// Number of pages of large values and of long keys, including values and keys in nested tables.
    pub overflow_pages: u64,
    /// Number of pages of nested tables, and of sets of values that are too large for a row.
    pub nested_pages: u64,
}

impl TableShape {
    /// Total number of pages.
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

impl PageVisitor for Count {
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool> {
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

    fn damaged(&mut self, _: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()> {
        Err(corrupt.into())
    }
}

impl Tree {
    /// Counts the levels and pages of the table.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    ///
    /// # Cost
    /// Each branch is read; each leaf, too, if some rows may refer to other pages.
    pub fn shape<R: PageRead>(&self, r: &R) -> Result<TableShape> {
        let mut count = Count {
            shape: TableShape {
                depth: self.height,
                ..TableShape::default()
            },
            leads_on: self.flags & HAS_REFERENCES != 0,
        };
        self.walk(r, &mut count)?;
        Ok(count.shape)
    }
}
