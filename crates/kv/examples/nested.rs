//! Measures a million tables of three entries each that are nested in one table: bytes per table, and tables opened per
//! second. Then compares two forms of storing topics of four levels, `a/b/c/d`: as nested tables, and as keys of one
//! table; searches all topics that match `a/b/+/d`. Run: `cargo run --release -p tidalite-kv --example nested
//! [tables]`.

#![expect(clippy::print_stdout, reason = "it prints its results")]

use std::time::Instant;
use tidalite_kv::{MissingTable, Result, TableReader, TableWriter, Tree};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

const PAGE_BYTES: u64 = 4096;
const OPENS: u64 = 200_000;

fn main() -> Result<()> {
    let tables: u64 = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(1_000_000);
    let mut pages = ScratchPages::new(PAGE_BYTES as usize);
    let mut work = TableWriter::of(Tree::new(1));
    let begin = Instant::now();
    for table in 0..tables {
        let path = [table.to_be_bytes().to_vec()];
        work.at(
            &mut pages,
            &path,
            MissingTable::CreateToFill,
            &mut |w, below| {
                for (key, value) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
                    below.insert(w, key, &[value; 8])?;
                }
                Ok(())
            },
        )?;
    }
    let made = begin.elapsed();
    let tree = work.tree().copied().unwrap_or(Tree::new(1));
    let bytes = pages.live_pages() * PAGE_BYTES;
    println!("{tables} tables of three entries, 11 bytes of keys and values each:");
    println!("{} bytes a table", bytes / tables);
    println!("{} ns to make one", made.as_nanos() as u64 / tables);

    let mut rng = Rng::new(1);
    let top = TableReader::of(tree);
    let begin = Instant::now();
    for _ in 0..OPENS {
        let key = rng.below(tables).to_be_bytes();
        let found = match top.nested(&pages, &key)? {
            Some(table) => table.get(&pages, b"b")?.map_or(0, |value| value.len()),
            None => 0,
        };
        assert_eq!(found, 8);
    }
    let opened = begin.elapsed();
    println!(
        "{:.2} million opens and gets a second",
        OPENS as f64 / opened.as_secs_f64() / 1e6
    );
    topics()
}

/// Number of distinct names on each of the four levels of a topic.
const LEVELS: [u64; 4] = [100, 10, 20, 10];
const LOOKUPS: u64 = 20_000;

fn level(number: u64) -> Vec<u8> {
    format!("{number}").into_bytes()
}

fn topics() -> Result<()> {
    let mut pages = ScratchPages::new(PAGE_BYTES as usize);
    let (mut nested, mut flat) = (TableWriter::of(Tree::new(1)), Tree::new(2));
    for number in 0..LEVELS.iter().product() {
        let mut rest = number;
        let names = LEVELS.map(|count| {
            let name = level(rest % count);
            rest /= count;
            name
        });
        nested.at(
            &mut pages,
            &names[..3],
            MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, &names[3], &number.to_be_bytes()),
        )?;
        flat.insert(&mut pages, &names.join(&b'/'), &number.to_be_bytes())?;
    }
    let top = TableReader::of(nested.tree().copied().unwrap_or(Tree::new(1)));
    println!("{} topics, {} matches each:", flat.len(), LEVELS[2]);
    let mut rng = Rng::new(2);
    let mut ask = || [LEVELS[0], LEVELS[1], LEVELS[3]].map(|count| level(rng.below(count)));

    let begin = Instant::now();
    let mut matches = 0;
    for _ in 0..LOOKUPS {
        let [a, b, d] = ask();
        let Some(table) = top.nested(&pages, &a)? else {
            continue;
        };
        let Some(table) = table.nested(&pages, &b)? else {
            continue;
        };
        let mut cursor = table.cursor(&pages)?;
        while cursor.next()? {
            matches += u64::from(cursor.nested()?.get(&pages, &d)?.is_some());
        }
    }
    told("tables in tables", begin, matches);

    let begin = Instant::now();
    let mut matches = 0;
    for _ in 0..LOOKUPS {
        let [a, b, d] = ask();
        let prefix = [&a[..], b"/", &b, b"/"].concat();
        let mut cursor = flat.cursor(&pages);
        let mut there = cursor.seek_ge(&prefix)?;
        while there && cursor.key().starts_with(&prefix) {
            let rest = &cursor.key()[prefix.len()..];
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
            let mut key = [&prefix[..], name, b"/", &d].concat();
            matches += u64::from(cursor.seek(&key)?);
            // Continues after all keys that begin with this name: the byte `0` sorts directly after `/`.
            key.truncate(key.len() - d.len() - 1);
            key.push(b'0');
            there = cursor.seek_ge(&key)?;
        }
    }
    told("skipping over keys", begin, matches);
    Ok(())
}

fn told(how: &str, begin: Instant, matches: u64) {
    assert_eq!(matches, LOOKUPS * LEVELS[2]);
    let seconds = begin.elapsed().as_secs_f64();
    let rate = |count: u64| (count as f64 / seconds) as u64;
    println!(
        "{how}: {} lookups of a/b/+/d a second, {} matches a second",
        rate(LOOKUPS),
        rate(matches)
    );
}
