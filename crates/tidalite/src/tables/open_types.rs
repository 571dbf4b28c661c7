//! Compares the types with which a table is opened with those stored in the catalog ("recorded").
//!
//! | recorded | requested: the same | other types | plain bytes |
//! |---|---|---|---|
//! | types | opened | refused | opened for reading; for writing by `raw_table` |
//! | none, no entries | | opened; for writing they are recorded | opened |
//! | none, entries | | refused; `Table::typed` and `retype_table` do not check | opened |

use crate::tables::codec::{TableKey, TableValue};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::table_types::{TableLayout, TableTypes};
use tidalite_base::TypeName;
use tidalite_kv::Tree;

/// Names of the key and value types with which a table is opened.
#[derive(Clone, Copy)]
pub(crate) struct Requested {
    key: TypeName,
    value: TypeName,
}

impl Requested {
    /// The type names for a table with one value per key.
    pub(crate) fn of<K: TableKey + ?Sized, V: TableValue + ?Sized>() -> Self {
        let (key, value) = (K::NAME, V::NAME);
        Self { key, value }
    }

    /// The type names for a table of sets.
    pub(crate) fn of_sets<K: TableKey + ?Sized, V: TableKey + ?Sized>() -> Self {
        let (key, value) = (K::NAME, V::NAME);
        Self { key, value }
    }

    /// The type names to store in the catalog; `None` for plain bytes.
    pub(crate) fn to_record(self) -> Result<Option<TableTypes>> {
        let bytes = Self::of::<[u8], [u8]>();
        match (self.key, self.value) == (bytes.key, bytes.value) {
            true => Ok(None),
            false => TableTypes::new(&self.key, &self.value).map(Some),
        }
    }

    /// Returns an error if the table was stored with other types, or has entries without types.
    pub(crate) fn expect(
        self,
        table: &str,
        recorded: Option<&TableTypes>,
        tree: &Tree,
    ) -> Result<()> {
        expect_rows(table, recorded)?;
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

/// Returns an error if the table has another layout than rows.
pub(crate) fn expect_rows(table: &str, recorded: Option<&TableTypes>) -> Result<()> {
    let (is, open_with) = match recorded.map(TableTypes::layout) {
        Some(TableLayout::Hash) => ("is a hash table", "hash_table"),
        Some(TableLayout::Buffered) => ("is a buffered table", "buffered_table"),
        Some(TableLayout::Topics) => ("has topics", "topics"),
        Some(TableLayout::Queue) => ("is a queue", "queue"),
        Some(TableLayout::Bucket) => ("is a bucket of objects", "bucket"),
        Some(TableLayout::Containers) => ("has containers", "containers"),
        Some(TableLayout::Relation) => ("is a relation", "relation"),
        Some(TableLayout::Rows) | None => return Ok(()),
    };
    Err(Error::from(Cause::TableKind {
        table: table.to_owned(),
        is,
        open_with,
    }))
}

/// The types to store with a table whose layout is not plain rows.
pub(crate) fn types_of<K: TableKey + ?Sized, V: TableValue + ?Sized>(
    layout: TableLayout,
) -> Result<TableTypes> {
    Ok(TableTypes::new(&K::NAME, &V::NAME)?.with_layout(layout))
}

/// Returns an error unless the table has this layout, which has no types.
pub(crate) fn expect_untyped(
    table: &str,
    recorded: Option<&TableTypes>,
    layout: TableLayout,
) -> Result<()> {
    match recorded {
        Some(types) if types.layout() == layout => Ok(()),
        types => {
            expect_rows(table, types)?;
            Err(not_rows(table))
        }
    }
}

/// Returns an error unless the table has this layout and these types. Plain bytes fit any types if `any_as_bytes`.
pub(crate) fn expect_layout<K: TableKey + ?Sized, V: TableValue + ?Sized>(
    table: &str,
    recorded: Option<&TableTypes>,
    layout: TableLayout,
    any_as_bytes: bool,
) -> Result<()> {
    let requested = types_of::<K, V>(layout)?;
    match recorded {
        Some(types) if types.layout() == layout => {
            let is_bytes = any_as_bytes && requested == types_of::<[u8], [u8]>(layout)?;
            match *types == requested || is_bytes {
                true => Ok(()),
                false => Err(other_types(table, Some(types), Some(&requested))),
            }
        }
        types => {
            expect_rows(table, types)?;
            Err(not_rows(table))
        }
    }
}

#[cold]
fn not_rows(table: &str) -> Error {
    Error::from(Cause::TableKind {
        table: table.to_owned(),
        is: "is a table of rows",
        open_with: "table or set_table",
    })
}

/// Returns an error if types are stored with the table: it must not be opened to write plain bytes.
pub(crate) fn expect_bytes(table: &str, recorded: Option<&TableTypes>) -> Result<()> {
    expect_rows(table, recorded)?;
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
