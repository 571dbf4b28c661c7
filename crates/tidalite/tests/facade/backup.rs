//! Backups, full and incremental, and how they are restored; copies as streams.

use crate::common::{Content, Folder, assert_clean, content_of};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidalite::maintenance::{Restore, Watch};
use tidalite::{Database, Error, ErrorKind, Options, Steps, Tuning};
use tidalite_testkit::rng::Rng;

fn change(db: &Database, rng: &mut Rng, step: u64) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for _ in 0..40 {
        let key = format!("k{:05}", rng.below(3000));
        let len = if rng.one_in(20) { 5000 } else { 30 };
        if rng.one_in(4) {
            table.remove(key.as_bytes()).unwrap();
        } else {
            table.put(key.as_bytes(), &vec![step as u8; len]).unwrap();
        }
    }
    for s in 0..3 {
        let mut series = tx.series(&format!("s{s}")).unwrap();
        for _ in 0..100 {
            let t = rng.below(20_000) as i64;
            series.insert_point(Steps(t), 0, step as f64).unwrap();
        }
    }
    tx.commit().unwrap();
}

fn content(db: &Database) -> Content {
    content_of(&db.begin_read().unwrap()).unwrap()
}

fn restored(folder: &Folder, chain: &[Vec<u8>]) -> Result<Content, Error> {
    let path = folder.file("restored.tdl");
    drop(std::fs::remove_file(&path));
    Restore::from(chain.iter().map(|part| &part[..])).to(&path)?;
    let db = Database::open(&path).unwrap();
    assert_clean(&db);
    assert!(db.pins().unwrap().is_empty());
    let content = content(&db);
    // The restored file is a normal database.
    change(&db, &mut Rng::new(1), 9);
    assert_clean(&db);
    Ok(content)
}

#[test]
fn a_chain_of_increments_restores_every_version() {
    for seed in 0..2 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let folder = Folder::new("backup");
        let options = Options::new()
            .page_size(1024)
            .tuning(Tuning::new().clock_step(Duration::from_millis(5)));
        let db = options.open(folder.file("a.tdl")).unwrap();
        let (mut chain, mut last): (Vec<Vec<u8>>, Option<String>) = (Vec::new(), None);
        for round in 0..6u64 {
            for step in 0..4 {
                change(&db, &mut rng, round * 4 + step);
            }
            let name = format!("round {round}");
            db.pin(&name).unwrap();
            let expected = content(&db);
            // Another thread commits while the backup is written.
            let writer = db.clone();
            let mut more = Rng::new(seed + 100);
            let watch = Watch::new().on_progress(|_| {
                change(&writer, &mut more, 77);
                ControlFlow::Continue(())
            });
            let mut out = Vec::new();
            let info = match &last {
                None => db.backup().of(&name).watch(watch).to_writer(&mut out),
                Some(base) => db
                    .backup()
                    .of(&name)
                    .since(base)
                    .watch(watch)
                    .to_writer(&mut out),
            }
            .unwrap();
            assert_eq!(info.base.is_some(), last.is_some());
            if let Some(base) = last.replace(name.clone()) {
                let mut full = Vec::new();
                db.backup().of(&name).to_writer(&mut full).unwrap();
                assert!(out.len() < full.len(), "an increment is smaller");
                assert!(db.unpin(&base).unwrap());
            }
            chain.push(out);
            assert!(
                restored(&folder, &chain).unwrap() == expected,
                "round {round}"
            );
        }
        assert_clean(&db);
        // Parts of a backup in the wrong order, or missing parts, are refused, and no file is left.
        for wrong in [&[1, 0][..], &[1], &[0, 2], &[0, 1, 1], &[0, 0], &[]] {
            let parts: Vec<Vec<u8>> = wrong.iter().map(|&i| chain[i].clone()).collect();
            let error = restored(&folder, &parts).unwrap_err();
            let typed = matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Damaged);
            assert!(typed, "{wrong:?}: {error}");
            // The error shows the file's identity as digits, not as a list of bytes.
            let told = error.to_string();
            assert!(!told.contains('['), "{told}");
            assert!(!folder.file("restored.tdl").exists());
        }
        // Damaged or truncated parts are refused, too.
        for _ in 0..60 {
            let mut parts = chain[..2].to_vec();
            let part = rng.index(2);
            if rng.one_in(3) {
                let len = rng.index(parts[part].len());
                parts[part].truncate(len);
            } else {
                let at = rng.index(parts[part].len());
                parts[part][at] ^= 1 << rng.below(8);
            }
            let error = restored(&folder, &parts).unwrap_err();
            let typed = matches!(
                error.kind(),
                ErrorKind::InvalidInput
                    | ErrorKind::Damaged
                    | ErrorKind::NotADatabase
                    | ErrorKind::Unsupported
            );
            assert!(typed, "{error:?}");
            assert!(!folder.file("restored.tdl").exists());
        }
    }
}

/// A backup needs no pin, and it includes commits that are not durable yet.
#[test]
fn the_newest_version_is_backed_up_without_a_pin() {
    let folder = Folder::new("backup-newest");
    let db = Database::open(folder.file("a.tdl")).unwrap();
    change(&db, &mut Rng::new(3), 1);
    let mut tx = db.begin_write().unwrap();
    tx.table("t")
        .unwrap()
        .put(b"not durable yet", b"x")
        .unwrap();
    tx.commit_with(tidalite::Durability::None).unwrap();
    let mut out = Vec::new();
    db.backup().to_writer(&mut out).unwrap();
    assert!(restored(&folder, &[out]).unwrap() == content(&db));
    let mut out = Vec::new();
    let missing = db.backup().of("no such pin").to_writer(&mut out);
    assert!(matches!(missing, Err(ref error) if error.kind() == ErrorKind::NotFound));
}

#[test]
fn copies_as_streams_are_databases() {
    let folder = Folder::new("copy-streams");
    let db = Options::new()
        .page_size(512)
        .open(folder.file("a.tdl"))
        .unwrap();
    let mut rng = Rng::new(5);
    for step in 0..6 {
        change(&db, &mut rng, step);
    }
    db.pin("then").unwrap();
    let then = content(&db);
    for step in 0..6 {
        change(&db, &mut rng, step);
    }
    let now = content(&db);
    let open = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.file(name), bytes).unwrap();
        Database::open(folder.file(name)).unwrap()
    };
    let mut image = Vec::new();
    let watch = Watch::new().on_progress(|_| {
        change(&db, &mut Rng::new(6), 50);
        ControlFlow::Continue(())
    });
    let bytes = db.image().watch(watch).to_writer(&mut image).unwrap();
    assert_eq!(bytes, image.len() as u64);
    let copy = open("image.tdl", &image);
    assert!(content(&copy) == now);
    assert!(content_of(&copy.begin_read_at("then").unwrap()).unwrap() == then);
    assert_clean(&copy);
    let now = content(&db);
    let mut compact = Vec::new();
    let began = Instant::now();
    let watch = Watch::new().bytes_per_second(4 << 20);
    let bytes = db.copy().watch(watch).to_writer(&mut compact).unwrap();
    let least = Duration::from_secs_f64(bytes as f64 / f64::from(4 << 20) * 0.8);
    assert!(
        began.elapsed() >= least,
        "{:?} for {bytes}",
        began.elapsed()
    );
    let copy = open("compact.tdl", &compact);
    assert!(content(&copy) == now);
    assert_clean(&copy);
}

/// A stream that commits a transaction at each write.
struct Committing<'a> {
    db: &'a Database,
    commits: u64,
    bytes: Vec<u8>,
}

impl Write for Committing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.commits < 5 {
            change(self.db, &mut Rng::new(9), 60 + self.commits);
            self.commits += 1;
        }
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An image written at a limited rate takes the time that the rate implies. Others commit meanwhile, and the image
/// equals the file as it was at the beginning.
#[test]
fn an_image_is_held_back_while_others_commit() {
    const RATE: u64 = 2 << 20;
    let folder = Folder::new("image-held-back");
    let db = Database::open(folder.file("a.tdl")).unwrap();
    let mut rng = Rng::new(8);
    (0..4).for_each(|step| change(&db, &mut rng, step));
    let before = content(&db);
    let mut image = Committing {
        db: &db,
        commits: 0,
        bytes: Vec::new(),
    };
    let began = Instant::now();
    let watch = Watch::new().bytes_per_second(RATE);
    let bytes = db.image().watch(watch).to_writer(&mut image).unwrap();
    let least = Duration::from_secs_f64(bytes as f64 / RATE as f64 * 0.8);
    assert!(began.elapsed() >= least, "{bytes} in {:?}", began.elapsed());
    assert!(image.commits > 1 && content(&db) != before);
    std::fs::write(folder.file("image.tdl"), &image.bytes).unwrap();
    let copy = Database::open(folder.file("image.tdl")).unwrap();
    assert!(content(&copy) == before);
    assert_clean(&copy);
}

/// A stream that looks for the temporary file of the copy at each write.
struct Looking<'a> {
    folder: &'a Path,
    /// Path and mode of each open file without a name that was found.
    seen: Vec<(PathBuf, u32)>,
    bytes: Vec<u8>,
}

impl Write for Looking<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for entry in std::fs::read_dir(self.folder)? {
            let name = entry?.file_name();
            assert!(name == "a.tdl" || name == "a.tdl-lock", "{name:?}");
        }
        let own = format!("tidalite-copy-{}", std::process::id());
        for entry in std::fs::read_dir(std::env::temp_dir())? {
            let name = entry?.file_name();
            assert!(!name.to_string_lossy().starts_with(&own), "{name:?}");
        }
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let entry = entry?.path();
            // Another test may have closed the file since the folder was listed.
            let Ok(to) = std::fs::read_link(&entry) else {
                continue;
            };
            if to.to_string_lossy().ends_with(" (deleted)")
                && let (Some(folder), Ok(metadata)) = (to.parent(), std::fs::metadata(&entry))
            {
                self.seen.push((folder.to_owned(), metadata.mode() & 0o777));
            }
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The temporary file of a streamed copy has no name, so it cannot be guessed, read or replaced, and nothing remains of
/// it if the process is killed.
#[test]
fn a_copy_as_a_stream_is_made_in_a_file_without_a_name() {
    let folder = Folder::new("copy-unnamed");
    let elsewhere = Folder::new("copy-elsewhere");
    let db = Database::open(folder.file("a.tdl")).unwrap();
    change(&db, &mut Rng::new(7), 0);
    let now = content(&db);
    for (in_folder, expected) in [(None, &folder.0), (Some(&elsewhere.0), &elsewhere.0)] {
        let mut out = Looking {
            folder: &folder.0,
            seen: Vec::new(),
            bytes: Vec::new(),
        };
        let copied = match in_folder {
            Some(other) => db.copy().temporary_in(other).to_writer(&mut out),
            None => db.copy().to_writer(&mut out),
        };
        assert_eq!(copied.unwrap(), out.bytes.len() as u64);
        let expected = std::fs::canonicalize(expected).unwrap();
        assert!(out.seen.contains(&(expected, 0o600)), "{:?}", out.seen);
        let copy = elsewhere.file("copy.tdl");
        std::fs::write(&copy, &out.bytes).unwrap();
        let copy = Database::open(copy).unwrap();
        assert!(content(&copy) == now);
        assert_clean(&copy);
    }
    let missing = folder.file("missing");
    let refused = db.copy().temporary_in(&missing).to_writer(&mut Vec::new());
    assert!(
        matches!(&refused, Err(error) if error.path() == Some(&missing) && error.io_error().is_some()),
        "{refused:?}"
    );
}

/// Offset and length of each part of a backup, including the end mark, after the backup's head. Lengths do not count a
/// part's own head.
fn parts_of(backup: &[u8]) -> Vec<(usize, usize)> {
    const HEAD: usize = 16 + 4 + 4 + 16 + 8 * 4 + 4096 + 8;
    let word = |at: usize| u64::from_le_bytes(backup[at..at + 8].try_into().unwrap());
    let (mut at, mut parts) = (HEAD, Vec::new());
    while at < backup.len() {
        let len = word(at + 8) as usize;
        parts.push((at, len));
        at += 24 + len;
    }
    assert_eq!(at, backup.len());
    parts
}

#[test]
fn damage_of_a_backup_is_named_with_its_place_in_it() {
    let folder = Folder::new("backup-places");
    let options = Options::new().page_size(1024);
    let db = options.open(folder.file("a.tdl")).unwrap();
    let mut rng = Rng::new(8);
    for step in 0..60 {
        change(&db, &mut rng, step);
    }
    db.pin("base").unwrap();
    let (mut full, mut more) = (Vec::new(), Vec::new());
    db.backup().of("base").to_writer(&mut full).unwrap();
    change(&db, &mut rng, 99);
    db.backup().since("base").to_writer(&mut more).unwrap();
    let path = folder.file("restored.tdl");
    let damage = |chain: &[&[u8]]| {
        let refused = Restore::from(chain.iter().copied()).to(&path);
        assert!(!path.exists());
        match refused {
            Err(error) => error.corrupt().unwrap().clone(),
            other => panic!("{other:?}"),
        }
    };
    let parts = parts_of(&full);
    assert!(parts.len() > 1);
    let places: Vec<usize> = (0..400).map(|_| rng.index(full.len())).collect();
    for place in places.into_iter().chain(0..90) {
        let mut spoilt = full.clone();
        spoilt[place] ^= 1 << (place % 8);
        let told = damage(&[&spoilt]);
        let part = parts.iter().rev().find(|(begin, _)| *begin <= place);
        let sum_of_head = parts[0].0 - 8;
        match part {
            None if place < 16 => assert_eq!(told.at, 0),
            None => assert_eq!(told.at, sum_of_head as u64, "byte {place}: {told}"),
            // Damage in the head of a part is reported in the head or in the bytes that it describes.
            Some((begin, len)) => {
                let own = *begin as u64..=(*begin + 24 + *len) as u64;
                assert!(own.contains(&told.at), "byte {place}: {told}");
                if place >= begin + 24 {
                    assert_eq!(told.at, *begin as u64 + 24, "byte {place}: {told}");
                }
            }
        }
        assert_eq!(told.what, "backup");
        assert!(!told.found.is_empty() && !told.expected.is_empty());
        // A truncated backup is reported at the end of its bytes; a truncated increment is reported in that increment.
        let told = damage(&[&full[..place]]);
        assert_eq!((told.at, &told.found[..]), (place as u64, "its end"));
        let place = place % more.len();
        let told = damage(&[&full, &more[..place]]);
        assert_eq!((told.at, &told.what[..]), (place as u64, "increment 1"));
    }
}
