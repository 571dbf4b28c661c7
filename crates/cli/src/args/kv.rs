//! Commands for tables.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormat, ReportFormatArg};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite kv put plant.tdl config hub_height 80
  tidalite kv get plant.tdl config hub_height
  tidalite kv scan plant.tdl config --from h --limit 10
  tidalite kv scan plant.tdl readings --keys u32 --values i64 --value-from 100
  tidalite kv put plant.tdl topics --in plant --in tank-4 level 3.5
  tidalite kv stat plant.tdl
  tidalite kv clear plant.tdl topics --in plant
  tidalite kv drop plant.tdl topics

  tidalite kv put plant.tdl pictures tank-4 --file tank-4.png
  tidalite kv get plant.tdl pictures tank-4 --raw > tank-4.png
  date | tidalite kv put plant.tdl config written -

  tidalite kv create plant.tdl tags --multi
  tidalite kv put plant.tdl tags pump-7 red
  tidalite kv put plant.tdl readings 17 80 --multi --keys u32 --values i64

  tidalite kv create plant.tdl sessions --buffered
  tidalite load plant.tdl sessions.txt --text --table sessions
  tidalite kv compact plant.tdl sessions

Keys and values are text in which \\ and two hex digits stand for a byte, and \\\\ for a backslash.
Printed keys and values can be typed: printable characters are unchanged; every other byte, the
backslash and a leading dash (except of a number) are printed as \\ and two hex digits. With --hex
both are hex digits; --keys and --values select numbers of one length, which sort as numbers. In a
table of sets (--multi) each key has a sorted set of values; values of equal length are packed.
A buffered table (--buffered) collects writes in sorted runs, which are merged into its rows later:
it loads keys in random order faster, has one value per key, and has no nested tables.

Hash tables, topics, queues, buckets of objects and containers are tables, too: `stat`, `drop` and
`rename` work on all of them, and on containers also change their series. The other commands name the
command for such a table.

With --format json `get` and `scan` print an object for each pair, with the fields `key` and `value`:
numbers with --keys u32 and the like, otherwise the printed text. A nested table has the field `pairs`
in place of the value.")]
pub(crate) struct KvArgs {
    #[command(subcommand)]
    pub command: KvCommand,
}

/// Format of keys or values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KvForm {
    /// Text, with escapes
    #[default]
    Text,
    /// Hex digits
    Hex,
    /// GUIDs of 16 bytes
    Guid,
    /// Whole numbers in 4 bytes
    U32,
    /// Whole numbers in 8 bytes
    U64,
    /// Whole numbers in 4 bytes, negative ones too
    I32,
    /// Whole numbers in 8 bytes, negative ones too
    I64,
    /// Keys of the type `String`, whose encoding is not the text alone; this form follows from the type of a table
    #[value(skip)]
    String,
}

/// A table of a file.
#[derive(Debug, Args)]
pub(crate) struct KvPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Table
    #[arg(value_name = "TABLE")]
    pub table: String,

    /// Keys and values are hex digits
    #[arg(long, conflicts_with_all = ["keys", "values"])]
    pub hex: bool,

    /// Format of keys
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_default_value = true,
        value_name = "FORM"
    )]
    pub keys: KvForm,

    /// Format of values
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_default_value = true,
        value_name = "FORM"
    )]
    pub values: KvForm,

    /// Use the table nested under this key; repeat to go one level deeper
    #[arg(long = "in", value_name = "KEY", allow_negative_numbers = true)]
    pub path: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvCommand {
    /// Print the value of a key; in a table of sets, all of its values
    Get {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// Write the value's bytes unchanged, without a line end
        #[arg(long, conflicts_with_all = ["values", "format"])]
        raw: bool,
        #[command(flatten)]
        format: ReportFormatArg,
    },
    /// Store a pair; the table is created if it does not exist
    Put {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// Value; - reads the bytes of standard input unchanged (type a single dash as \2d)
        #[arg(
            allow_negative_numbers = true,
            required_unless_present = "value_file",
            conflicts_with = "value_file"
        )]
        value: Option<String>,
        /// Take the value from this file, byte for byte
        #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
        value_file: Option<PathBuf>,
        /// Only if the key does not exist; in a table of sets, only if the pair does not exist
        #[arg(long)]
        new: bool,
        /// If the table does not exist, create a table of sets
        #[arg(long, conflicts_with = "path")]
        multi: bool,
        /// If the table does not exist, create a buffered table
        #[arg(long, conflicts_with_all = ["path", "multi"])]
        buffered: bool,
        #[command(flatten)]
        created: CreatedArg,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Remove a key
    Del {
        #[command(flatten)]
        place: KvPlace,
        /// Key
        #[arg(allow_negative_numbers = true)]
        key: String,
        /// Only if this is its value; in a table of sets, remove only this value
        #[arg(allow_negative_numbers = true)]
        value: Option<String>,
        /// Remove all values of a key that has several
        #[arg(long, conflicts_with = "value")]
        all: bool,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Print pairs in order
    Scan {
        #[command(flatten)]
        place: KvPlace,
        /// Start key, inclusive
        #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
        from: Option<String>,
        /// End key, exclusive
        #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
        to: Option<String>,
        /// Maximum number of pairs
        #[arg(long, short = 'n', value_name = "PAIRS", default_value_t = u64::MAX, hide_default_value = true)]
        limit: u64,
        /// In descending order
        #[arg(long)]
        reverse: bool,
        /// Only pairs with this value
        #[arg(long, value_name = "VALUE", allow_negative_numbers = true, conflicts_with_all = ["value_from", "value_to"])]
        value: Option<String>,
        /// Only pairs whose value is not less than this
        #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
        value_from: Option<String>,
        /// Only pairs whose value is less than this
        #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
        value_to: Option<String>,
        #[command(flatten)]
        format: ReportFormatArg,
    },
    /// Create an empty table, unless it exists
    Create {
        #[command(flatten)]
        file: FileArg,
        /// Table
        table: String,
        /// A table of sets: each key has a sorted set of values
        #[arg(long)]
        multi: bool,
        /// A buffered table: for keys that arrive in random order in large transactions
        #[arg(long, conflicts_with = "multi")]
        buffered: bool,
        #[command(flatten)]
        created: CreatedArg,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Remove all pairs of a table, but keep the table
    Clear {
        #[command(flatten)]
        place: KvPlace,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Remove a table with all of its contents
    Drop {
        #[command(flatten)]
        file: FileArg,
        /// Table
        table: String,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Rename a table
    Rename {
        #[command(flatten)]
        file: FileArg,
        /// Table
        table: String,
        /// New name, which no other table may have
        name: String,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// Merge the runs of a buffered table into its rows, which makes reads faster
    Compact {
        #[command(flatten)]
        file: FileArg,
        /// Buffered table
        table: String,
        #[command(flatten)]
        durability: DurabilityArg,
    },
    /// List tables with their sizes, or show how they are stored in the file
    Stat(KvStatArgs),
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without a table and options it prints one line per table, otherwise the requested information in
the format of `mdb_stat` and `mdbx_stat`. It reads the branches of the tables, the leaves of tables
with long values or nested tables, and the runs of buffered tables. Hash tables, topics, queues,
buckets and containers are listed with their kind and the number of their records, messages or objects.

Examples:
  tidalite kv stat plant.tdl
  tidalite kv stat plant.tdl topics --in plant
  tidalite kv stat plant.tdl --env --free --readers --all
  tidalite kv stat plant.tdl --format json")]
pub(crate) struct KvStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Table: its levels, and its pages by content
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,

    /// Use the table nested under this key; repeat to go one level deeper
    #[arg(
        long = "in",
        value_name = "KEY",
        allow_negative_numbers = true,
        requires = "table"
    )]
    pub path: Vec<String>,

    /// The keys of --in are hex digits
    #[arg(long, conflicts_with = "keys", requires = "path")]
    pub hex: bool,

    /// Format of the keys of --in
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_default_value = true,
        value_name = "FORM"
    )]
    pub keys: KvForm,

    /// Levels and pages of all tables
    #[arg(long, short = 'a', conflicts_with = "table")]
    pub all: bool,

    /// The file: pages, newest commit, readers
    #[arg(long, short = 'e')]
    pub env: bool,

    /// Free pages, and pages that wait for readers
    #[arg(long, short = 'f')]
    pub free: bool,

    /// Readers of the database
    #[arg(long, short = 'r')]
    pub readers: bool,

    /// Format of the output; JSON has one object for each table
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: ReportFormat,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints each table as a section: a header (VERSION=3, format, database, type), then keys and values
on lines of their own, as a space and hex digits, or as text with --print. `mdb_load` reads one
table at a time, see the example. A nested table is printed between the lines { and } in place of a
value. A hash table, topics, a queue, a bucket of objects and containers are printed as the rows and
nested tables in which they are stored, with type=hashtable, topics, queue, bucket or containers in the
header. mdb_load can read neither. A buffered table has type=buffered in its header, which mdb_load
refuses; with --as it is printed as a table of pairs. Series are not printed, but `load` makes those of
containers from their messages; `tidalite export` prints other series.

Tables from LMDB or libmdbx with integerkey, reversekey, integerdup or reversedup are stored here
with their bytes reversed, which preserves their order. These flags are not stored, and neither is
dupfixed. Without --as the dump contains the reversed bytes; --as restores the bytes and adds the
flag to the header.

Examples:
  tidalite dump plant.tdl > plant.dump
  tidalite dump plant.tdl config --print
  tidalite dump plant.tdl rows --as integerkey | mdb_load -n rows.mdb")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Table; all if not given
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,

    /// Print printable characters unchanged, other bytes as \ and two hex digits
    #[arg(long, short = 'p')]
    pub print: bool,

    /// Flags of the table in LMDB or libmdbx: keys and values are converted to the order of these flags, which the
    /// header then lists
    #[arg(
        long = "as",
        value_enum,
        value_name = "FLAG",
        value_delimiter = ',',
        requires = "table"
    )]
    pub flags: Vec<ForeignFlag>,
}

/// A flag for the order of keys or values in a table of LMDB or libmdbx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForeignFlag {
    /// Keys are native integers of 4 or 8 bytes
    #[value(name = "integerkey")]
    IntegerKey,
    /// Keys are compared from the last byte to the first
    #[value(name = "reversekey")]
    ReverseKey,
    /// Values of a key are native integers of 4 or 8 bytes
    #[value(name = "integerdup")]
    IntegerDup,
    /// Values of a key are compared from the last byte to the first
    #[value(name = "reversedup")]
    ReverseDup,
    /// Values of a key have one length
    #[value(name = "dupfixed")]
    DupFixed,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Tables are created as the header states; with dupsort as tables of sets. The bytes of integer keys
and of keys in reversed order are reversed, which preserves their order; a note reports this, and
the option --as of dump restores them. Table names are UTF-8; a table with another name needs
--table. Older versions of mdb_dump -p do not escape backslashes: dump without -p. Commits every 32
MiB. A hash table, topics, a queue, a bucket and containers are one commit each, are checked, and must
be new; containers get their series. A table of pairs that exists keeps its kind: pairs are also stored
in a buffered table (`kv create --buffered`).

With --text there is no header: lines alternate between key and value, as for `mdb_load -T`, with \\
and two hex digits for a byte that is not a printable character, and \\\\ for a backslash. The pairs
are stored in the table --table, or main, which may be a table of sets.

Examples:
  mdb_dump -a old/ | tidalite load plant.tdl
  tidalite load plant.tdl plant.dump
  printf 'a\\n1\\nb\\n2\\n' | tidalite load plant.tdl --text --table config")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Output of a dump; standard input if not given, or if -
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,

    /// Store everything in this table, whatever the header says
    #[arg(long, short = 't', value_name = "TABLE")]
    pub table: Option<String>,

    /// The input is plain lines: key, value, key, value
    #[arg(long, short = 'T')]
    pub text: bool,

    /// Keep the values of existing keys
    #[arg(long, short = 'N')]
    pub no_overwrite: bool,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}
