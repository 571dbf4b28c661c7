//! Commands for hash tables.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::kv::KvForm;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use tidalite::hash_table::History;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A hash table finds records by keys that need no order, such as GUIDs and file paths. Every change adds
a record, which has a number. A key has one value; with --duplicates it can have several; with
--history its older values are kept. Table options are chosen when the table is created.

Examples:
  tidalite hash set plant.tdl devices pump-7 'hall 3'
  tidalite hash get plant.tdl devices pump-7
  tidalite hash scan plant.tdl devices --from pump --limit 10
  tidalite hash del plant.tdl devices pump-7

  tidalite hash set plant.tdl parts pump-7 seal --duplicates
  tidalite hash get plant.tdl parts pump-7 --all
  tidalite hash set plant.tdl limits speed 80 --history 5
  tidalite hash get plant.tdl limits speed --history
  tidalite hash set plant.tdl visits 17 --add 1 --keys u32 --values i64

  tidalite hash scan old.tdl devices | tidalite hash set plant.tdl devices --pairs
  tidalite hash stat plant.tdl

Keys and values are typed and printed as by `tidalite kv`: text in which \\ and two hex digits stand
for a byte; with --hex both are hex digits; --keys and --values select GUIDs or numbers of one length.
The forms with which a table is created become its types, and later commands use them without these
options. `tidalite kv` drops and renames hash tables.

With --format json `get` and `scan` print an object for each record, with the fields `record`, `key`
and `value`; the record of a removal has `removed` in place of the value.")]
pub(crate) struct HashArgs {
    #[command(subcommand)]
    pub command: HashCommand,
}

/// A hash table of a file.
#[derive(Debug, Args)]
pub(crate) struct HashPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Hash table
    #[arg(value_name = "TABLE")]
    pub table: String,

    /// Keys and values are hex digits
    #[arg(long, conflicts_with_all = ["keys", "values"])]
    pub hex: bool,

    /// Format of keys; if not given, as the table's type of keys
    #[arg(long, value_enum, value_name = "FORM")]
    pub keys: Option<KvForm>,

    /// Format of values; if not given, as the table's type of values
    #[arg(long, value_enum, value_name = "FORM")]
    pub values: Option<KvForm>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HashCommand {
    /// Print the value of a key; of a key with several records, the value of the newest
    Get(HashGetArgs),
    /// Set a key to a value; the table is created if it does not exist
    Set(Box<HashSetArgs>),
    /// Remove a key with all of its records
    Del(HashDelArgs),
    /// Print keys and values in the order of the index
    Scan(HashScanArgs),
    /// List hash tables, or show the records, the index and the options of one
    Stat(HashStatArgs),
    /// Delete the index of a table and build it from the records
    Rebuild(HashRebuildArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HashGetArgs {
    #[command(flatten)]
    pub place: HashPlace,

    /// Key
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "record",
        conflicts_with = "record"
    )]
    pub key: Option<String>,

    /// All records of the key, each with its number
    #[arg(long)]
    pub all: bool,

    /// The versions of the key that the table keeps, the newest first, each with its number
    #[arg(long, conflicts_with = "all")]
    pub history: bool,

    /// The record with this number, with its key, even if it was replaced
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "history"])]
    pub record: Option<u64>,

    /// Write the value's bytes unchanged, without a line end
    #[arg(long, conflicts_with_all = ["values", "format", "all", "history"])]
    pub raw: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

/// How the index of a new table holds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HashIndex {
    /// The whole keys, in order; for keys of up to 1024 bytes
    Whole,
    /// Hashes of 128 bits; for long keys
    Hashed,
    /// Hashes of 64 bits; the smallest index
    Compact,
}

/// Options of a table that is created.
#[derive(Debug, Args)]
pub(crate) struct HashTableArgs {
    /// New table: a key can have several records
    #[arg(long, conflicts_with = "history")]
    pub duplicates: bool,

    /// New table: upper and lower case letters of keys are equal; keys must be text
    #[arg(long)]
    pub fold_case: bool,

    /// New table: number of older versions of a key to keep, or none, or all
    #[arg(long, value_name = "VERSIONS", value_parser = history)]
    pub history: Option<History>,

    /// New table: how the index holds keys
    #[arg(long, value_enum, value_name = "HOW")]
    pub index: Option<HashIndex>,

    /// New table: maximum length of keys in bytes, up to 1024; 255 if not given. For an index of whole keys
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub key_bytes_max: Option<u16>,
}

fn history(text: &str) -> Result<History, String> {
    match (text, text.parse::<u32>()) {
        ("none", _) => Ok(History::None),
        ("all", _) => Ok(History::All),
        (_, Ok(versions)) if (1..u32::MAX).contains(&versions) => Ok(History::Last(versions)),
        _ => Err("give none, all, or a number of versions from 1 on".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct HashSetArgs {
    #[command(flatten)]
    pub place: HashPlace,

    /// Key
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "pairs",
        conflicts_with = "pairs"
    )]
    pub key: Option<String>,

    /// Value; - reads the bytes of standard input unchanged (type a single dash as \2d)
    #[arg(
        allow_negative_numbers = true,
        required_unless_present_any = ["value_file", "add", "subtract", "pairs"],
        conflicts_with_all = ["value_file", "add", "subtract", "pairs"]
    )]
    pub value: Option<String>,

    /// Take the value from this file, byte for byte
    #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["add", "subtract", "pairs"])]
    pub value_file: Option<PathBuf>,

    /// Add this whole number to the value; a key that does not exist counts as 0
    #[arg(long, value_name = "N", conflicts_with_all = ["subtract", "pairs", "new"])]
    pub add: Option<i128>,

    /// Subtract this whole number from the value
    #[arg(long, value_name = "N", conflicts_with_all = ["pairs", "new"])]
    pub subtract: Option<i128>,

    /// Set all pairs from standard input, in one commit: a line for each, with a tab between key and value, as `hash
    /// scan` prints them
    #[arg(long, conflicts_with = "new")]
    pub pairs: bool,

    /// Only if the key does not exist
    #[arg(long)]
    pub new: bool,

    #[command(flatten)]
    pub options: HashTableArgs,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct HashDelArgs {
    #[command(flatten)]
    pub place: HashPlace,

    /// Key
    #[arg(allow_negative_numbers = true)]
    pub key: String,

    /// Remove only the record of the key with this number
    #[arg(long, value_name = "NUMBER")]
    pub record: Option<u64>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct HashScanArgs {
    #[command(flatten)]
    pub place: HashPlace,

    /// Start key, inclusive; for an index of whole keys
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub from: Option<String>,

    /// End key, exclusive; for an index of whole keys
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub to: Option<String>,

    /// Maximum number of records
    #[arg(long, short = 'n', value_name = "RECORDS", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    /// All stored records with their numbers, in the order in which they were written, even those that were replaced
    /// or removed since
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub records: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct HashStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Hash table
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct HashRebuildArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Hash table
    #[arg(value_name = "TABLE")]
    pub table: String,

    /// Keep the index: merge its runs, and free the space of records that are not needed
    #[arg(long)]
    pub compact: bool,

    #[command(flatten)]
    pub durability: DurabilityArg,
}
