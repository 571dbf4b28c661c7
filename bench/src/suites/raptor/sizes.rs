//! Sets and gets of a million to a hundred million GUIDs: with whole keys, with compact keys, and in databases with
//! several page sizes.

use tidalite::Options as DatabaseOptions;
use tidalite::hash_table::{HashTableOptions, KeyForm};

use super::guids::PAIR_BYTES;
use super::own::{Case, GETS, Own, SETS, get_texts, measure_gets, open, read, set_texts};
use crate::engine::data::Random;
use crate::engine::{Kind, Result};
use crate::meter::Meter;
use crate::os;

const MILLION: u64 = 1_000_000;
/// The numbers of keys in the article.
const SIZES: [u64; 5] = [
    MILLION,
    10 * MILLION,
    20 * MILLION,
    50 * MILLION,
    100 * MILLION,
];

/// `One_Million_Set_Get`, `Ten_Million_Set_Get`, `Twenty_Million_Set_Get` and the larger sizes.
pub(super) fn plain(own: &mut Own<'_>) -> Result<()> {
    all(own, "", &HashTableOptions::new())
}

/// `Ten_Million_Optimized_GUID` and `Twenty_Million_Optimized_GUID`: the index holds hashes of 64 bits.
pub(super) fn compact(own: &mut Own<'_>) -> Result<()> {
    let options = HashTableOptions::new().key_form(KeyForm::Compact);
    all(own, "compact-", &options)
}

fn all(own: &mut Own<'_>, prefix: &'static str, options: &HashTableOptions) -> Result<()> {
    let keys = own.options.keys;
    let mut sizes: Vec<u64> = SIZES.into_iter().filter(|size| *size <= keys).collect();
    if sizes.is_empty() {
        sizes.push(keys);
    }
    for count in sizes {
        let label = match count % MILLION {
            0 => format!("{}m", count / MILLION),
            _ => count.to_string(),
        };
        let case = Case {
            prefix,
            label,
            count,
        };
        let dir = own.dir(count, PAIR_BYTES)?;
        let db = open(dir.path())?;
        let meter = Meter::start(dir.path());
        let latencies = set_texts(&db, options, 0..count)?;
        let mut sample = meter.finish(count, db.metrics().appends, latencies);
        sample.file_bytes = os::disk_used(dir.path())?;
        let label = &case.label;
        own.tell(&format!("{prefix}set-{label}"), SETS, count, sample);
        if read(&db, |table| Ok(table.count()?))? != count {
            return Err(format!("{count} keys were set, and are not counted").into());
        }
        measure_gets(own, &db, dir.path(), &case)?;
    }
    Ok(())
}

/// Page sizes of the database in bytes, with the default first.
const PAGES: [(&str, usize); 6] = [
    ("tidalite-hash", 4096),
    ("pages-of-1024", 1024),
    ("pages-of-8192", 8192),
    ("pages-of-16384", 16_384),
    ("pages-of-32768", 32_768),
    ("pages-of-65536", 65_536),
];

/// Measures several page sizes. The corresponding parameter in the article is the number of items of a page.
pub(super) fn page_sizes(own: &mut Own<'_>) -> Result<()> {
    let count = own.scaled(MILLION);
    for (name, bytes) in PAGES {
        let kind = Kind {
            name,
            ours: true,
            open: |_, _| Err("the sweep opens its databases itself".into()),
        };
        let dir = own.dir(count, PAIR_BYTES)?;
        let path = dir.path().join("raptor.tdl");
        let db = DatabaseOptions::new().page_size(bytes).open(path)?;
        let meter = Meter::start(dir.path());
        let latencies = set_texts(&db, &HashTableOptions::new(), 0..count)?;
        let mut sample = meter.finish(count, db.metrics().appends, latencies);
        sample.file_bytes = os::disk_used(dir.path())?;
        own.contest
            .add("page-size-set", SETS.0, SETS.1, kind, sample);
        let meter = Meter::start(dir.path());
        let latencies = read(&db, |table| {
            get_texts(table, &mut Random::new(4), count, count)
        })?;
        let sample = meter.finish(count, 0, latencies);
        own.contest
            .add("page-size-get", GETS.0, GETS.1, kind, sample);
    }
    super::quoted::add("page-size-set", count, SETS, own.contest);
    super::quoted::add("page-size-get", count, GETS, own.contest);
    Ok(())
}
