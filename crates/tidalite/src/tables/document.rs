//! Values of tables that serde encodes as CBOR (RFC 8949): a struct becomes a map with the names of its fields.

use crate::tables::codec::{EncodeError, TableValue};
use crate::tables::lent::Lent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use tidalite_base::TypeName;

/// A type of values of a [`Table`](crate::Table) that is stored through serde, as CBOR. Needs the feature `serde`.
///
/// The file contains the names of the fields. A field that is added later and has `#[serde(default)]` may therefore be
/// missing in older values, and a field that is no longer in the type is skipped. Other programs and languages can read
/// the values with any library for CBOR.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use serde::{Deserialize, Serialize};
/// use tidalite::table::Document;
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// struct Turbine {
///     site: String,
///     rated_kw: f64,
///     #[serde(default)]
///     tags: Vec<String>,
/// }
///
/// impl Document for Turbine {
///     const NAME: &'static str = "wind::Turbine";
/// }
///
/// let mut tx = db.begin_write()?;
/// let mut turbines = tx.typed_table::<str, Turbine>("turbines")?;
/// let first = Turbine { site: "hb".into(), rated_kw: 2050.0, tags: vec![] };
/// turbines.put("T1", &first)?;
/// assert_eq!(turbines.get("T1")?, Some(first));
/// # Ok::<(), tidalite::Error>(())
/// ```
///
/// A value that serde refuses to encode is an error of kind [`InvalidInput`](crate::ErrorKind::InvalidInput). Stored
/// bytes that do not decode, for example because a field is missing, are an error of kind
/// [`WrongType`](crate::ErrorKind::WrongType). Both errors contain the text from serde.
///
/// # Cost
/// Names of fields take space in every value. [`compare_and_set`](crate::TableMut::compare_and_set) compares encoded
/// values: a `HashMap` has several encodings, a `BTreeMap` has one.
pub trait Document: Serialize + DeserializeOwned + 'static {
    /// The name of the type, which is stored with the table, as in `cbor<wind::Turbine>`. Choose a name that no other
    /// program uses for another type.
    const NAME: &'static str;
}

impl<T: Document> TableValue for T {
    const NAME: TypeName = TypeName {
        name: "cbor",
        length: None,
        parts: &[TypeName::new(<T as Document>::NAME)],
    };
    type Borrowed = Self;
    type Owned = Self;
    type Lent<'a> = Self;

    fn value_code(value: &Self) -> Result<Cow<'_, [u8]>, EncodeError> {
        Ok(Cow::Owned(cbor4ii::serde::to_vec(Vec::new(), value)?))
    }

    fn decode_value(bytes: &[u8]) -> Option<Self> {
        decode(bytes).ok()
    }

    fn lend_value(bytes: Lent<'_>) -> Result<Self, Lent<'_>> {
        decode(&bytes).map_err(|_| bytes)
    }

    fn decode_problem(bytes: &[u8]) -> Option<String> {
        decode::<Self>(bytes).err()
    }
}

/// Decodes a value from CBOR; returns a message if bytes are left over or the value does not decode.
fn decode<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<T, String> {
    let value = cbor4ii::serde::from_reader(&mut bytes).map_err(|error| match error {
        cbor4ii::serde::DecodeError::Custom(problem) => problem.into_string(),
        other => other.to_string(),
    })?;
    match bytes.len() {
        0 => Ok(value),
        more => Err(format!("{more} bytes behind the value")),
    }
}
