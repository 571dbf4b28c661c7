use crate::support::Folder;

#[test]
fn check_speaks_json() {
    let folder = Folder::with_plant("check_speaks_json");
    let clean = folder.say("check plant.tdl --json").ok();
    let clean: serde_json::Value = serde_json::from_str(&clean).unwrap();
    assert!(clean["clean"] == true && clean["series"] == 4, "{clean}");
    let sound = std::fs::read(folder.path("plant.tdl")).unwrap();
    let mut places = Vec::new();
    for page in 6..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 200] ^= 1;
        folder.write("damaged.tdl", damaged);
        let ran = folder.say("check damaged.tdl --json");
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["clean"] == true, ran.code == 0, "{report}");
        for finding in report["findings"].as_array().unwrap() {
            places.push(finding["place"].as_str().unwrap().to_owned());
        }
    }
    assert!(
        places
            .iter()
            .any(|place| place == "catalog" || place == "series"),
        "{places:?}"
    );
}

#[test]
fn backups_and_pins_lead_back() {
    let folder = Folder::with_plant("backups_and_pins_lead_back");
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    let monday = rows("plant.tdl");
    folder.say("backup plant.tdl full.tdb --pin monday").ok();
    folder.write(
        "more.csv",
        "time,turbine,wind,power\n2014-06-02T00:00:00Z,A,7.5,100\n",
    );
    folder
        .say("import plant.tdl more.csv --tag turbine --prefix hb. --quiet")
        .ok();
    let out = folder
        .say("backup plant.tdl more.tdb --pin tuesday --since monday")
        .ok();
    assert!(out.contains("what was written since"), "{out}");
    let listed = folder.say("pins plant.tdl -f csv").ok();
    assert!(
        listed.contains("monday,") && listed.contains("tuesday,"),
        "{listed}"
    );
    folder.say("pins plant.tdl --remove monday").ok();
    folder
        .say("pins plant.tdl --remove monday")
        .failed(3, &["no pin monday"]);
    folder.say("restore one.tdl full.tdb").ok();
    folder.say("restore two.tdl full.tdb more.tdb").ok();
    assert_eq!(rows("one.tdl"), monday);
    assert_eq!(rows("two.tdl"), rows("plant.tdl"));
    folder.say("check two.tdl").ok();
    folder
        .say("restore three.tdl more.tdb")
        .failed(5, &["do not follow"]);
    assert!(!folder.path("three.tdl").exists());
    folder
        .say("restore two.tdl full.tdb")
        .failed(2, &["exists already"]);
    folder
        .say("backup plant.tdl full.tdb")
        .failed(2, &["exists already"]);
    folder
        .say("backup plant.tdl x.tdb --since nothing")
        .failed(3, &["no pin `nothing`"]);
    assert!(!folder.path("x.tdb").exists());
}

#[test]
fn a_destroyed_head_is_salvaged() {
    let folder = Folder::with_plant("a_destroyed_head_is_salvaged");
    let rows = |file: &str| folder.say(&format!("scan {file} hb.* -f csv")).ok();
    let mut bytes = std::fs::read(folder.path("plant.tdl")).unwrap();
    bytes[..24_576].fill(0);
    folder.write("broken.tdl", bytes);
    let ran = folder.say("salvage broken.tdl saved.tdl");
    assert!(ran.out.contains("4 series saved"), "{ran:?}");
    ran.failed(4, &["not everything"]);
    assert_eq!(rows("saved.tdl"), rows("plant.tdl"));
    folder.say("check saved.tdl").ok();
    let out = folder.say("salvage plant.tdl whole.tdl --json").ok();
    assert!(out.contains("\"lost\":[]"), "{out}");
    folder
        .say("salvage plant.tdl whole.tdl")
        .failed(2, &["exists already"]);
    folder
        .say("salvage nothing.tdl x.tdl")
        .failed(3, &["no file"]);
}

#[test]
fn pages_and_weights_are_shown() {
    let folder = Folder::with_plant("pages_and_weights_are_shown");
    let out = folder.say("stat plant.tdl --weights -f csv").ok();
    assert!(
        out.contains("blocks of a run,") || out.contains("tail page,"),
        "{out}"
    );
    let kinds: Vec<String> = (6..12)
        .map(|page| folder.say(&format!("page plant.tdl {page}")).ok())
        .collect();
    assert!(
        kinds.iter().any(|out| out.contains("kind KvLeaf")),
        "{kinds:#?}"
    );
    folder
        .say("page plant.tdl 99999999")
        .failed(3, &["no page"]);
}

#[test]
fn a_second_file_goes_where_it_is_told() {
    let folder = Folder::new("a_second_file_goes_where_it_is_told");
    let picture = "x".repeat(100_000);
    let put = "kv put plant.tdl pictures";
    let large = "--large plant.values --large-from 50000";
    folder.say(&format!("{put} one {picture} {large}")).ok();
    folder.say(&format!("{put} two small")).ok();
    let stat = folder.say("stat plant.tdl -f csv").ok();
    assert!(stat.contains("large_bytes"), "{stat}");
    assert!(
        std::fs::metadata(folder.path("plant.values"))
            .unwrap()
            .len()
            > 100_000
    );
    folder.say("backup plant.tdl full.tdb").ok();
    folder.say("restore beside.tdl full.tdb").ok();
    assert!(folder.path("beside.tdl-large").exists());
    folder
        .say("restore there.tdl full.tdb --large there.values")
        .ok();
    assert_eq!(
        folder.say("kv get there.tdl pictures one").ok().trim_end(),
        picture
    );
    folder.say("compact there.tdl").ok();
    folder.say("check there.tdl").ok();
    std::fs::rename(folder.path("there.values"), folder.path("moved.values")).unwrap();
    folder.say("check there.tdl").failed(1, &["there.values"]);
    folder.say("check there.tdl --large moved.values").ok();
    folder
        .say("salvage there.tdl saved.tdl --large moved.values")
        .ok();
    assert_eq!(
        folder.say("kv get saved.tdl pictures one").ok().trim_end(),
        picture
    );
}
