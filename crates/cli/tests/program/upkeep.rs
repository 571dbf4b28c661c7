use crate::support::Folder;

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
