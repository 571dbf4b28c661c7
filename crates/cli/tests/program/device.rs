//! Databases at unusual places: with a lock file of another name, and on a block device.

use crate::support::Folder;
use std::process::Command;

#[test]
fn the_lock_file_option_places_the_lock_file() {
    let folder = Folder::new("the_lock_file_option_places_the_lock_file");
    folder
        .say("kv put a.tdl config speed 7 --lock-path here.lock --durability lazy")
        .ok();
    assert!(folder.path("here.lock").exists() && !folder.path("a.tdl-lock").exists());
    let found = folder.say("kv get a.tdl config speed --lock-path here.lock");
    assert_eq!(found.ok(), "7\n");
    for how in ["durable", "one-flush"] {
        folder
            .say(&format!("kv put a.tdl config how {how} --durability {how}"))
            .ok();
        let found = folder.say("kv get a.tdl config how").ok();
        assert_eq!(found, format!("{how}\n"));
    }
    folder
        .say("kv put a.tdl config how none --durability none")
        .failed(2, &["one-flush"]);
}

#[test]
fn a_device_holds_a_database() {
    let folder = Folder::new("a_device_holds_a_database");
    folder.write("disk", vec![0; 8 << 20]);
    let losetup = ["losetup", "/usr/sbin/losetup"]
        .into_iter()
        .find_map(|program| {
            let made = Command::new(program)
                .args(["--find", "--show"])
                .arg(folder.path("disk"))
                .output();
            let made = made.ok().filter(|made| made.status.success())?;
            let device = String::from_utf8(made.stdout).unwrap();
            Some((program, device.trim().to_owned()))
        });
    let Some((program, device)) = losetup else {
        eprintln!("skipped: no loop device to be had");
        return;
    };
    let refused = folder.say(&format!("kv put {device} config speed 7"));
    let stored = folder.say(&format!("kv put {device} config speed 7 --lock-path lock"));
    let found = folder.say(&format!("kv get {device} config speed --lock-path lock"));
    let checked = folder.say(&format!("check {device} --lock-path lock"));
    let copied = folder.say(&format!("copy {device} copy.tdl --lock-path lock"));
    let saved = folder.say(&format!("salvage {device} saved.tdl"));
    let detached = Command::new(program).arg("--detach").arg(&device).status();
    assert!(detached.unwrap().success());
    refused.failed(1, &["lock file", "--lock-path"]);
    stored.ok();
    assert_eq!(found.ok(), "7\n");
    checked.ok();
    copied.ok();
    saved.ok();
    assert_eq!(folder.say("kv get saved.tdl config speed").ok(), "7\n");
    assert_eq!(folder.say("kv get copy.tdl config speed").ok(), "7\n");
}
