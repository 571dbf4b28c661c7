//! The types with which a table is opened, and those recorded with it.
//!
//! | recorded | requested: the same | other types | plain bytes |
//! |---|---|---|---|
//! | types | opened | refused | opened for reading; for writing by `raw_table` |
//! | none, no entries | | opened; for writing they are recorded | opened |
//! | none, entries | | refused; `Table::typed` and `retype_table` do not check | opened |

use crate::tables::codec::{TableKey, TableValue};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::table_types::TableTypes;
use tidalite_base::TypeName;
use tidalite_kv::Tree;

/// The names of requested types.
#[derive(Clone, Copy)]
pub(crate) struct Requested {
    key: TypeName,
    value: TypeName,
}

impl Requested {
    /// The types of a table with one value per key.
    pub(crate) fn of<K: TableKey + ?Sized, V: TableValue + ?Sized>() -> Self {
        let (key, value) = (K::NAME, V::NAME);
        Self { key, value }
    }

    /// The types of a table of sets.
    pub(crate) fn of_sets<K: TableKey + ?Sized, V: TableKey + ?Sized>() -> Self {
        let (key, value) = (K::NAME, V::NAME);
        Self { key, value }
    }

    /// The types to record; `None` for plain bytes.
    pub(crate) fn to_record(self) -> Result<Option<TableTypes>> {
        let bytes = Self::of::<[u8], [u8]>();
        match (self.key, self.value) == (bytes.key, bytes.value) {
            true => Ok(None),
            false => TableTypes::new(&self.key, &self.value).map(Some),
        }
    }

    /// Refuses a table whose entries are of other types.
    pub(crate) fn expect(
        self,
        table: &str,
        recorded: Option<&TableTypes>,
        tree: &Tree,
    ) -> Result<()> {
        let matches = match recorded {
            Some(types) => types.are(&self.key, &self.value),
            None => tree.is_empty() || self.to_record()?.is_none(),
        };
        match matches {
            true => Ok(()),
            false => Err(other_types(table, recorded, self.to_record()?.as_ref())),
        }
    }
}

/// Refuses to write bytes to a typed table.
pub(crate) fn expect_bytes(table: &str, recorded: Option<&TableTypes>) -> Result<()> {
    match recorded {
        None => Ok(()),
        recorded => Err(other_types(table, recorded, None)),
    }
}

#[cold]
fn other_types(
    table: &str,
    recorded: Option<&TableTypes>,
    requested: Option<&TableTypes>,
) -> Error {
    let text = |types: Option<&TableTypes>| {
        types.map_or_else(|| "plain bytes".into(), ToString::to_string)
    };
    Error::from(Cause::TableTypes {
        table: table.to_owned(),
        recorded: text(recorded),
        requested: text(requested),
    })
}
