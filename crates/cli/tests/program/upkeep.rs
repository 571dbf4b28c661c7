use crate::support::Folder;
use std::collections::BTreeMap;
use tidalite::Options;

#[test]
fn stat_counts() {
    let folder = Folder::with_plant("stat_counts");
    let out = folder.say("stat plant.tdl").ok();
    assert!(
        out.lines()
            .any(|line| line.starts_with("points ") && line.contains(" 479 ")),
        "{out}"
    );
    let json = folder.say("stat plant.tdl --format json").ok();
    assert!(
        json.contains(r#""series":4"#)
            && json.contains(r#""commit_time":"2"#)
            && json.contains(r#""bytes_per_point":"#),
        "{json}"
    );
}

/// Every figure of `stat` equals the library's figure for the same file.
#[test]
fn stat_agrees_with_the_library() {
    let folder = Folder::with_plant("stat_agrees_with_the_library");
    // The file has leaves, rows in the delta, a table, and freed pages.
    let mut csv = String::from("time,level\n");
    for second in 0..40_000 {
        csv += &format!("{},{}\n", 1_401_580_800 + second, second % 977);
    }
    folder.write("more.csv", csv);
    folder.say("import plant.tdl more.csv --quiet").ok();
    folder.say("kv put plant.tdl config hub 80").ok();
    folder.say("kv put plant.tdl config rotor 112").ok();
    let out = folder.say("stat plant.tdl -f csv").ok();
    let (names, values) = out.trim_end().split_once('\n').unwrap();
    let told: BTreeMap<&str, &str> = names.split(',').zip(values.split(',')).collect();
    let number = |name: &str| -> u64 { told[name].parse().unwrap() };
    let path = folder.path("plant.tdl");
    let db = Options::new().read_only(true).open(&path).unwrap();
    let stat = db.stat().unwrap();
    for (name, expected) in [
        ("commit", stat.txn.0),
        ("file_bytes", std::fs::metadata(&path).unwrap().len()),
        ("page_size", 4096),
        ("pages", stat.pages_total),
        ("pages_free", stat.pages_free),
        ("pages_pending", stat.pages_pending),
        ("log_pages", stat.log_pages),
        ("tables", 1),
        ("table_entries", 2),
        ("series", 5),
        ("points", 479 + 40_000),
        ("leaf_points", stat.leaf_rows),
        ("delta_points", stat.delta_rows),
        ("runs", stat.runs),
        ("height_max", stat.series_height_max.into()),
        ("leaf_bytes", stat.leaf_bytes),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
    assert_eq!(told["commit_time"], stat.commit_time.to_string());
    let committed = db.begin_read().unwrap().commit_time();
    assert_eq!(stat.commit_time, committed);
    assert!(stat.leaf_rows >= 39 * 1_024 && stat.leaf_rows + stat.delta_rows == 40_479);
    let used = number("pages_used");
    let whole = used + number("pages_free") + number("pages_pending");
    assert_eq!(whole * 4096, number("file_bytes"));
    // These numbers are printed with six digits.
    for (name, expected) in [
        ("bytes_per_point", stat.bytes_per_row().unwrap()),
        (
            "bytes_per_leaf_point",
            stat.leaf_bytes as f64 / stat.leaf_rows as f64,
        ),
    ] {
        let found: f64 = told[name].parse().unwrap();
        assert!(
            (found / expected - 1.0).abs() < 1e-5,
            "{name}: {found}, not {expected}"
        );
    }
}

#[test]
fn check_is_clean_or_lists_the_damage() {
    let folder = Folder::with_plant("check_is_clean_or_lists_the_damage");
    let out = folder.say("check plant.tdl").ok();
    assert!(out.contains("clean"), "{out}");
    assert_eq!(folder.say("check plant.tdl --quiet").ok(), "");
    // One bit is flipped in each page after the head, one page at a time.
    let sound = std::fs::read(folder.path("plant.tdl")).unwrap();
    let mut found = 0;
    for page in 6..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 100] ^= 1;
        if damaged[page * 4096..(page + 1) * 4096]
            .iter()
            .filter(|byte| **byte != 0)
            .count()
            < 2
        {
            continue;
        }
        folder.write("damaged.tdl", damaged);
        let ran = folder.say("check damaged.tdl");
        if ran.code != 0 {
            ran.failed(4, &["damaged.tdl"]);
            found += 1;
        }
    }
    assert!(found > 0, "no damage was found at all");
}

#[test]
fn compact_keeps_the_content() {
    let folder = Folder::with_plant("compact_keeps_the_content");
    let rows = || folder.say("scan plant.tdl hb.* -f csv").ok();
    let before = rows();
    let cold = folder.say("compact plant.tdl --cold 1d --series hb.*").ok();
    assert!(cold.contains(" leaves cold: "), "{cold}");
    assert_eq!(rows(), before);
    let out = folder.say("compact plant.tdl --step 65536").ok();
    assert!(out.starts_with("plant.tdl compacted to "), "{out}");
    assert!(out.contains(" stay free, "), "{out}");
    assert_eq!(rows(), before);
    folder.say("check plant.tdl").ok();
}

/// A command that succeeds leaves no commit in the redo log: the data file alone is the whole database, and it is as
/// short as possible.
#[test]
fn a_command_that_writes_empties_the_log() {
    for page_size in [512, 4096, 8192] {
        let folder = Folder::new(&format!("empties_the_log_{page_size}"));
        let mut csv = String::from("time,level\n");
        for second in 0..2_000 {
            csv += &format!("{},{}\n", 1_401_580_800 + second, second % 977);
        }
        folder.write("a.csv", csv);
        let import = format!("import a.tdl a.csv --commit-every 40 --page-size {page_size}");
        for command in [
            import.as_str(),
            "kv put a.tdl t key value",
            "remove a.tdl level --to 2014-06-01T00:10:00",
            "compact a.tdl",
        ] {
            folder.say(command).ok();
            let alone = folder.path("alone.tdl");
            std::fs::copy(folder.path("a.tdl"), &alone).unwrap();
            let db = Options::new().open(&alone).unwrap();
            assert_eq!(db.recovery().replayed, 0, "{page_size}: {command}");
            drop(db);
            for file in ["alone.tdl", "alone.tdl-lock"] {
                std::fs::remove_file(folder.path(file)).unwrap();
            }
        }
        let bytes = std::fs::metadata(folder.path("a.tdl")).unwrap().len();
        assert!(bytes < 512 << 10, "{page_size}: {bytes} bytes");
    }
}

#[test]
fn a_copy_is_a_database() {
    let folder = Folder::with_plant("a_copy_is_a_database");
    let out = folder.say("copy plant.tdl backup.tdl").ok();
    assert!(out.starts_with("plant.tdl copied to backup.tdl: "), "{out}");
    folder.say("check backup.tdl").ok();
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    assert_eq!(rows("plant.tdl"), rows("backup.tdl"));
    let left: Vec<_> = std::fs::read_dir(folder.path("."))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().contains(".part")),
        "{left:?}"
    );
    folder
        .say("copy plant.tdl backup.tdl")
        .failed(2, &["exists already"]);
    folder
        .say("copy plant.tdl no/such/x.tdl")
        .failed(3, &["no folder no/such"]);
}

#[test]
fn completions_and_manual_pages() {
    let folder = Folder::new("completions_and_manual_pages");
    for (shell, part) in [
        ("bash", "_tidalite()"),
        ("zsh", "#compdef tidalite"),
        ("fish", "complete -c tidalite"),
    ] {
        let script = folder.say(&format!("completions {shell}")).ok();
        assert!(script.contains(part), "{shell}");
    }
    assert!(folder.say("man").ok().contains(".TH tidalite 1"));
    folder.say("man --dir pages").ok();
    for page in ["tidalite.1", "tidalite-import.1", "tidalite-window.1"] {
        assert!(folder.path("pages").join(page).exists(), "{page}");
    }
}

#[test]
fn help_teaches() {
    let folder = Folder::new("help_teaches");
    let help = folder.say("--help").ok();
    for word in ["Examples:", "Exit codes:", "quickstart", "SERIES"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(folder.say("import --help").ok().contains("one transaction"));
    assert!(
        folder
            .say("help window")
            .ok()
            .contains("aligned to midnight")
    );
    assert!(folder.say("--version").ok().starts_with("tidalite 0."));
    let nothing = folder.run::<&str>(&[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.err.contains("Usage:"));
    folder.say("impotr a b").failed(2, &["import"]);
}

/// An image equals the file page by page, including the parts that a packed copy omits, whether it is written to a file
/// or a pipe.
#[test]
fn an_image_is_the_file_as_it_is() {
    let folder = Folder::with_plant("an_image_is_the_file_as_it_is");
    folder.say("pins plant.tdl --add monday").ok();
    folder.say("remove plant.tdl hb.power").ok();
    let out = folder.say("copy plant.tdl image.tdl --image").ok();
    assert!(out.starts_with("plant.tdl copied to image.tdl: "), "{out}");
    folder.say("copy plant.tdl packed.tdl").ok();
    let piped = folder
        .command(&["copy", "plant.tdl", "-", "--image"])
        .output()
        .unwrap();
    folder.write("piped.tdl", piped.stdout);
    let rows = |file: &str| folder.say(&format!("export {file}")).ok();
    for file in ["image.tdl", "piped.tdl"] {
        folder.say(&format!("check {file}")).ok();
        assert_eq!(rows(file), rows("plant.tdl"));
        let pinned = |file: &str| folder.say(&format!("export {file} --pin monday")).ok();
        assert_eq!(pinned(file), pinned("plant.tdl"));
        let commit = |file: &str| {
            let out = folder.say(&format!("stat {file} -f json")).ok();
            out.split(',').next().unwrap().to_owned()
        };
        assert_eq!(commit(file), commit("plant.tdl"));
    }
    assert_eq!(rows("packed.tdl"), rows("plant.tdl"));
    folder
        .say("export packed.tdl --pin monday")
        .failed(3, &["no pin `monday`"]);
    folder
        .say("copy plant.tdl image.tdl --image")
        .failed(2, &["exists already"]);
    assert!(!folder.path("image.tdl.part").exists());
}

#[test]
fn the_head_is_shown_be_it_damaged() {
    let folder = Folder::with_plant("the_head_is_shown_be_it_damaged");
    let head = || folder.say("stat plant.tdl --head -f csv").ok();
    let whole = head();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(
        lines[0],
        "place,at,commit,time,pages,log_at,log_bytes,problem"
    );
    let places: Vec<&str> = lines[1..]
        .iter()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "superblock 1",
            "superblock 2",
            "record 1",
            "record 2",
            "record 3",
            "record 4"
        ]
    );
    let look = tidalite::monitor::inspect(folder.path("plant.tdl")).unwrap();
    let newest = look.txns()[0].0;
    let stands = format!(",{newest},20");
    assert!(lines.iter().any(|line| line.contains(&stands)), "{whole}");
    assert!(lines[1..].iter().all(|line| line.ends_with(',')), "{whole}");
    // The test damages one copy of a meta record and one copy of the superblock.
    let mut bytes = std::fs::read(folder.path("plant.tdl")).unwrap();
    bytes[20] ^= 1;
    bytes[usize::try_from(look.records[1].at).unwrap() + 20] ^= 1;
    folder.write("plant.tdl", bytes);
    let damaged = head();
    for (number, (before, now)) in whole.lines().zip(damaged.lines()).enumerate() {
        let spoilt = number == 1 || number == 4;
        assert_eq!(before != now, spoilt, "{before} {now}");
        assert_eq!(now.ends_with(','), !spoilt && number > 0, "{now}");
    }
    folder.write("other", "no database at all");
    folder.say("stat other --head").failed(5, &["other"]);
}

#[test]
fn pages_have_the_requested_size() {
    let folder = Folder::new("pages_have_the_requested_size");
    folder.write("a.csv", "time,v\n2014-06-01,1\n");
    folder.say("import a.tdl a.csv --page-size 16384").ok();
    let size = || {
        folder
            .say("stat a.tdl -f json")
            .ok()
            .contains("\"page_size\":16384")
    };
    assert!(size());
    // The page size of an existing file does not change.
    folder.say("import a.tdl a.csv --page-size 4096").ok();
    assert!(size());
    // Every command that creates a file accepts this option.
    folder.write("pairs", "k\nv\n");
    for line in [
        "kv put c.tdl t k v --page-size 8192",
        "kv create c.tdl t --page-size 8192",
        "load c.tdl pairs --text --page-size 8192",
    ] {
        let _ = std::fs::remove_file(folder.path("c.tdl"));
        folder.say(line).ok();
        let stat = folder.say("stat c.tdl -f json").ok();
        assert!(stat.contains("\"page_size\":8192"), "{line}: {stat}");
    }
    for wrong in ["0", "1000", "524288", "256", "x"] {
        let ran = folder.say(&format!("import b.tdl a.csv --page-size {wrong}"));
        ran.failed(2, &["power of two from 512 to 262144"]);
    }
}
