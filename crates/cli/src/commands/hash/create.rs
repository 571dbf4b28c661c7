//! Options for a new hash table, and comparison with the options of an existing one.

use super::place::Forms;
use crate::args::{HashIndex, HashTableArgs, KvForm};
use crate::exit::{Failure, Outcome};
use tidalite::hash_table::{HashOptions, HashTableOptions, History, KeyForm};
use tidalite::{TableKey, TableValue, WriteTxn};

/// Maximum length in bytes of keys if the user specifies none.
const KEY_BYTES_MAX: u16 = 255;

/// The options for a new table.
pub(super) fn options(args: &HashTableArgs) -> Outcome<HashTableOptions> {
    let options = HashTableOptions::new()
        .duplicates(args.duplicates)
        .fold_case(args.fold_case)
        .history(args.history.unwrap_or(History::None));
    let key = match (args.index.unwrap_or(HashIndex::Whole), args.key_bytes_max) {
        (HashIndex::Whole, most) => KeyForm::Whole {
            bytes_max: most.unwrap_or(KEY_BYTES_MAX),
        },
        (_, Some(_)) => {
            return Err(Failure::usage(
                "--key-bytes-max: hashes have one length, whatever the keys",
            ));
        }
        (HashIndex::Hashed, None) => KeyForm::Hashed,
        (HashIndex::Compact, None) => KeyForm::Compact,
    };
    Ok(options.key_form(key))
}

/// Returns an error if the user has given options that an existing table does not have.
pub(super) fn expect(table: &str, args: &HashTableArgs, stored: &HashOptions) -> Outcome {
    let index = match stored.key {
        KeyForm::Whole { .. } => HashIndex::Whole,
        KeyForm::Hashed => HashIndex::Hashed,
        KeyForm::Compact => HashIndex::Compact,
    };
    let bytes_max = match stored.key {
        KeyForm::Whole { bytes_max } => Some(bytes_max),
        _ => None,
    };
    let other = [
        (args.duplicates && !stored.duplicates, "--duplicates"),
        (args.fold_case && !stored.fold_case, "--fold-case"),
        (
            args.history.is_some_and(|given| given != stored.history),
            "--history",
        ),
        (args.index.is_some_and(|given| given != index), "--index"),
        (
            args.key_bytes_max.is_some() && args.key_bytes_max != bytes_max,
            "--key-bytes-max",
        ),
    ];
    match other.iter().find(|(differs, _)| *differs) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::bad_input(format!(
            "{option}: table {table} exists, and was created with another setting"
        ))
        .hint("tidalite hash stat shows its options; only a new table can have others")),
    }
}

/// Creates a table with the types that correspond to the forms of its keys and values.
pub(super) fn create(
    tx: &mut WriteTxn,
    name: &str,
    forms: Forms,
    options: &HashTableOptions,
) -> tidalite::Result<()> {
    match forms.key {
        KvForm::Text | KvForm::String | KvForm::Hex => {
            with_key::<[u8]>(tx, name, forms.value, options)
        }
        KvForm::Guid => with_key::<[u8; 16]>(tx, name, forms.value, options),
        KvForm::U32 => with_key::<u32>(tx, name, forms.value, options),
        KvForm::U64 => with_key::<u64>(tx, name, forms.value, options),
        KvForm::I32 => with_key::<i32>(tx, name, forms.value, options),
        KvForm::I64 => with_key::<i64>(tx, name, forms.value, options),
    }
}

fn with_key<K: TableKey + ?Sized>(
    tx: &mut WriteTxn,
    name: &str,
    value: KvForm,
    options: &HashTableOptions,
) -> tidalite::Result<()> {
    match value {
        KvForm::Text | KvForm::String | KvForm::Hex => with::<K, [u8]>(tx, name, options),
        KvForm::Guid => with::<K, [u8; 16]>(tx, name, options),
        KvForm::U32 => with::<K, u32>(tx, name, options),
        KvForm::U64 => with::<K, u64>(tx, name, options),
        KvForm::I32 => with::<K, i32>(tx, name, options),
        KvForm::I64 => with::<K, i64>(tx, name, options),
    }
}

fn with<K: TableKey + ?Sized, V: TableValue + ?Sized>(
    tx: &mut WriteTxn,
    name: &str,
    options: &HashTableOptions,
) -> tidalite::Result<()> {
    tx.hash_table_with::<K, V>(name, options).map(drop)
}
