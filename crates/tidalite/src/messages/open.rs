//! Finding and creating tables whose layout has no key and value types.

use crate::tables::open_types::expect_untyped;
use crate::tables::open_write::Found;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::{Error, Result};
use crate::types::table_types::{TableLayout, TableTypes};
use tidalite_kv::Tree;
use tidalite_pager::{Error as FileError, Refusal, WriteTxn as PagesMut};

impl<S: ReadSource> Reading<S> {
    /// The table with this name, if it exists; an error if it has another layout.
    pub(crate) fn find_untyped(
        &self,
        name: &str,
        layout: TableLayout,
    ) -> Result<Option<Found<'_>>> {
        let found = self.find(name)?;
        if let Some(found) = &found {
            expect_untyped(name, found.types.as_deref(), layout)?;
        }
        Ok(found)
    }
}

impl WriteTxn {
    /// Index of the open table with this name, if it exists; an error if it has another layout.
    pub(crate) fn open_untyped(
        &mut self,
        name: &str,
        layout: TableLayout,
    ) -> Result<Option<usize>> {
        let Some(found) = self.find(name)? else {
            return Ok(None);
        };
        expect_untyped(name, found.types.as_deref(), layout)?;
        self.open_table(name, Some(false))
    }

    /// Creates a table of this layout, which must not exist, and fills it with `fill`. Returns its index among the open
    /// tables.
    pub(crate) fn create_untyped(
        &mut self,
        name: &str,
        layout: TableLayout,
        fill: impl FnOnce(&mut Tree, &mut PagesMut) -> tidalite_pager::Result<()>,
    ) -> Result<usize> {
        let types = TableTypes::untyped(layout);
        let index = self.open_with(name, false, Some(types))?;
        self.change_table(index, fill)?;
        Ok(index)
    }
}

/// Creates the error for a table that exists with other options than requested.
#[cold]
pub(crate) fn other_options(
    name: &str,
    stored: &dyn std::fmt::Debug,
    asked: &dyn std::fmt::Debug,
) -> Error {
    let found = format!("table {name} with {stored:?}");
    let expected = format!("{asked:?}; `set_options` changes the options of a table");
    FileError::refused(Refusal::WrongType, found, expected).into()
}
