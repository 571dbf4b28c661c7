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
        json.contains(r#""series":4"#) && json.contains(r#""bytes_per_point":"#),
        "{json}"
    );
}

/// Every figure beside what the library says of the same file.
#[test]
fn stat_agrees_with_the_library() {
    let folder = Folder::with_plant("stat_agrees_with_the_library");
    // Leaves as well as rows that wait, a table, and pages that were set free.
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
        ("tables", 1),
        ("table_entries", 2),
        ("series", 5),
        ("points", 479 + 40_000),
        ("leaf_points", stat.leaf_rows),
        ("front_points", stat.front_rows),
        ("runs", stat.runs),
        ("height_max", stat.series_height_max.into()),
        ("leaf_bytes", stat.leaf_bytes),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
    assert!(stat.leaf_rows >= 39 * 1_024 && stat.leaf_rows + stat.front_rows == 40_479);
    let used = number("pages_used");
    let whole = used + number("pages_free") + number("pages_pending");
    assert_eq!(whole * 4096, number("file_bytes"));
    // Shown with six digits.
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
fn check_is_clean_or_says_what_is_not() {
    let folder = Folder::with_plant("check_is_clean_or_says_what_is_not");
    let out = folder.say("check plant.tdl").ok();
    assert!(out.contains("clean"), "{out}");
    assert_eq!(folder.say("check plant.tdl --quiet").ok(), "");
    // One bit in each of the pages behind the head.
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
fn compact_keeps_what_is_there() {
    let folder = Folder::with_plant("compact_keeps_what_is_there");
    let rows = || folder.say("scan plant.tdl hb.* -f csv").ok();
    let before = rows();
    let cold = folder.say("compact plant.tdl --cold 1d --series hb.*").ok();
    assert!(cold.contains(" leaves cold: "), "{cold}");
    assert_eq!(rows(), before);
    let out = folder.say("compact plant.tdl --step 65536").ok();
    assert!(out.starts_with("plant.tdl compacted to "), "{out}");
    assert_eq!(rows(), before);
    folder.say("check plant.tdl").ok();
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
