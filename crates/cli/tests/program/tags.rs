//! Finding series by tags, listing tags, and changing them.

use crate::support::Folder;

#[test]
fn series_are_found_by_name_and_tags() {
    let folder = Folder::with_plant("series_are_found_by_name_and_tags");
    let found = folder.run(&[
        "find",
        "plant.tdl",
        r#"hb.power{turbine=~"[AB]"}"#,
        "-f",
        "csv",
    ]);
    assert_eq!(
        found.ok(),
        "series\n\"hb.power{turbine=\"\"A\"\"}\"\n\"hb.power{turbine=\"\"B\"\"}\"\n"
    );
    let count = folder.say("find plant.tdl hb.power --count -f csv").ok();
    assert_eq!(count, "series\n2\n");
    let none = folder.say("find plant.tdl none --count -f csv").ok();
    assert_eq!(none, "series\n0\n");
    assert_eq!(
        folder
            .say("find plant.tdl -n 1 -f csv")
            .ok()
            .lines()
            .count(),
        2
    );
    folder
        .say("find plant.tdl none")
        .failed(3, &["no series in plant.tdl matches `none`"]);
}

#[test]
fn tags_are_listed_with_counts() {
    let folder = Folder::with_plant("tags_are_listed_with_counts");
    assert_eq!(
        folder.say("tags plant.tdl -f csv").ok(),
        "tag,series,values\nturbine,4,2\n"
    );
    assert_eq!(
        folder.say("tags plant.tdl turbine -f csv").ok(),
        "value,series\nA,2\nB,2\n"
    );
    assert_eq!(
        folder.say("tags plant.tdl turbine --prefix B -f csv").ok(),
        "value,series\nB,2\n"
    );
    let metrics = folder.say("tags plant.tdl --metrics -n 1 -f csv").ok();
    assert_eq!(metrics, "metric,series\nhb.power,2\n");
    folder
        .say("tags plant.tdl none")
        .failed(3, &["no series in plant.tdl has the tag `none`"]);
    folder
        .say("tags plant.tdl turbine --metrics")
        .failed(2, &["cannot be used with"]);
}

#[test]
fn tags_are_changed_for_all_selected_series_or_none() {
    let folder = Folder::with_plant("tags_are_changed_for_all_selected_series_or_none");
    let change = |line: &str| folder.say(&format!("tags plant.tdl {line}"));
    assert_eq!(
        change("--set site=north --series hb.power").ok(),
        "2 series renamed\n"
    );
    assert_eq!(change("--rename turbine=unit").ok(), "4 series renamed\n");
    assert_eq!(change("site -f csv").ok(), "value,series\nnorth,2\n");
    change("--drop unit").failed(2, &["another series has it"]);
    assert_eq!(change("unit -f csv").ok(), "value,series\nA,2\nB,2\n");
    assert_eq!(change("--drop site").ok(), "2 series renamed\n");
    assert_eq!(change("--drop site").ok(), "0 series renamed\n");
    change("--drop site --series hb.power{sight=\"x\"}")
        .failed(3, &["no series has the tag `sight`", "nothing was changed"]);
    change("--series hb.power").failed(2, &["--set"]);
    change("unit --drop unit").failed(2, &["cannot be used with"]);
    folder.say("check plant.tdl").ok();
}

#[test]
fn tag_keys_of_no_series_are_noted() {
    let folder = Folder::with_plant("tag_keys_of_no_series_are_noted");
    let note = "no series has the tag `turbin`";
    for line in [
        "scan plant.tdl hb.power{turbin!=\"A\"} -n 1",
        "retention plant.tdl --set old --keep 9999d --series hb.power{turbin!=\"A\"}",
        "compact plant.tdl --series hb.power{turbin!=\"A\"}",
    ] {
        let ran = folder.say(line);
        assert!(ran.err.contains(note), "{line}: {}", ran.err);
        ran.ok();
    }
}
