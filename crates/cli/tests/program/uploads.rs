//! Uploads of objects in several commands, and links to objects.

use crate::support::Folder;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i % 251) as u8).collect()
}

/// The bytes of an object.
fn object(folder: &Folder, name: &str) -> Vec<u8> {
    let words = ["object", "get", "a.tdl", name];
    let output = folder.command(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn an_upload_arrives_in_pieces() {
    let folder = Folder::new("upload");
    let all = bytes(3_000_000);
    folder.write("first", &all[..1_700_000]);
    folder.write("second", &all[1_700_000..]);
    let said = folder
        .say("object upload begin a.tdl video --type video/mp4 --meta a=1")
        .ok();
    assert_eq!(said, "upload 0 of video begun\n");
    let append = |words: &str| folder.say(&format!("object upload append a.tdl {words}"));
    assert_eq!(append("0 first").ok(), "upload 0 has 1700000 bytes now\n");
    append("0 second --offset 5").failed(5, &["has 1700000 bytes", "offset 1700000"]);
    let listed = folder.say("object upload list a.tdl").ok();
    assert!(listed.starts_with("0\tvideo\t1.62 MiB\tuntil "), "{listed}");
    let json = folder.say("object upload list a.tdl -f json").ok();
    let upload = &lines(&json)[0];
    assert_eq!(
        (&upload["bytes"], &upload["type"]),
        (&1_700_000.into(), &"video/mp4".into())
    );
    append("0 second --offset 1700000").ok();
    let complete = |words: &str| folder.say(&format!("object upload complete a.tdl {words}"));
    complete("0 --size 5").failed(5, &["has 3000000 bytes"]);
    complete(&format!("0 --hash {}", "0".repeat(64))).failed(5, &["has the hash"]);
    complete("0 --if-exists").failed(5, &["video does not exist"]);
    let said = complete("0 --size 3000000 --if-missing").ok();
    assert!(said.starts_with("video stored in objects"), "{said}");
    assert!(object(&folder, "video") == all);
    let info = folder.say("object info a.tdl video").ok();
    assert!(
        info.contains("Type: video/mp4") && info.contains("Metadata: a=1"),
        "{info}"
    );
    for command in [
        "append a.tdl 0 first",
        "complete a.tdl 0",
        "abort a.tdl 0",
        "extend a.tdl 0",
    ] {
        folder
            .say(&format!("object upload {command}"))
            .failed(3, &["no upload 0", "upload list a.tdl"]);
    }
    assert_eq!(folder.say("object upload list a.tdl").ok(), "");
    folder.say("check a.tdl").ok();
}

#[test]
fn numbered_parts_arrive_in_any_order() {
    let folder = Folder::new("upload-parts");
    folder.say("object create a.tdl --chunk-bytes 1048576").ok();
    let all = bytes((2 << 20) + 5);
    folder.write("0", &all[..1 << 20]);
    folder.write("1", &all[1 << 20..2 << 20]);
    folder.write("2", &all[2 << 20..]);
    let json = folder
        .say("object upload begin a.tdl x --parts 1 -f json")
        .ok();
    assert_eq!(lines(&json)[0]["part_bytes"], 1 << 20);
    let part = |words: &str| folder.say(&format!("object upload part a.tdl 0 {words}"));
    assert_eq!(part("2 2").ok(), "part 2 of upload 0 stored: 5 B\n");
    part("0 0").ok();
    folder
        .say("object upload complete a.tdl 0")
        .failed(5, &["part 1 of upload 0 is missing"]);
    folder
        .say("object upload append a.tdl 0 0")
        .failed(5, &["numbered parts", "upload part"]);
    folder.write("long", bytes((1 << 20) + 1));
    part("1 long").failed(5, &["1048577"]);
    part("1 1").ok();
    let listed = folder.say("object upload list a.tdl --parts 0").ok();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    folder.say("object upload complete a.tdl 0").ok();
    assert!(object(&folder, "x") == all);
    folder.say("object upload begin a.tdl y").ok();
    folder
        .say("object upload part a.tdl 1 0 0")
        .failed(5, &["no numbered parts"]);
    assert_eq!(
        folder
            .say("object upload extend a.tdl 1 --lifetime 9d")
            .ok(),
        "upload 1 extended\n"
    );
    assert_eq!(
        folder.say("object upload abort a.tdl 1").ok(),
        "upload 1 removed\n"
    );
    folder
        .say("object upload begin a.tdl z --parts 5000")
        .failed(2, &["--parts"]);
    folder
        .say("object upload begin a.tdl z --lifetime 1ms")
        .ok();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let said = folder.say("object maintain a.tdl").ok();
    assert!(said.contains("1 upload and"), "{said}");
    folder.say("check a.tdl").ok();
}

#[test]
fn an_interrupted_put_is_resumed() {
    let folder = Folder::new("upload-resume");
    let all = bytes((20 << 20) + 3);
    folder.write("whole", &all);
    // The state after an interruption: an upload with the first part of the file.
    folder.write("begin", &all[..5_000_000]);
    folder.say("object upload begin a.tdl big --type t").ok();
    folder.say("object upload append a.tdl 0 begin").ok();
    folder
        .say("object put a.tdl big whole --resume")
        .failed(5, &["other attributes", "upload abort a.tdl 0"]);
    let ran = folder.say("object put a.tdl big whole --resume --type t");
    assert!(
        ran.err.contains("upload 0 goes on after 5000000 bytes"),
        "{}",
        ran.err
    );
    assert!(ran.ok().starts_with("big stored in objects"));
    assert!(object(&folder, "big") == all);
    assert_eq!(folder.say("object upload list a.tdl").ok(), "");
    // Without an interruption it is stored from the beginning on.
    let said = folder.say("object put a.tdl big begin --resume").ok();
    assert!(said.starts_with("big replaced in objects"), "{said}");
    assert!(object(&folder, "big") == all[..5_000_000]);
    // A file that has changed, or is shorter, is noticed.
    folder.say("object upload begin a.tdl two").ok();
    folder.write("other", bytes(4_000_001).split_off(1));
    let id = lines(&folder.say("object upload list a.tdl -f json").ok())[0]["id"].clone();
    folder
        .say(&format!("object upload append a.tdl {id} other"))
        .ok();
    folder.write("short", &all[..10]);
    for file in ["whole", "short"] {
        folder
            .say(&format!("object put a.tdl two {file} --resume"))
            .failed(
                5,
                &["the file is another than the one of upload", "upload abort"],
            );
    }
    folder
        .say("object get a.tdl two")
        .failed(3, &["no object two"]);
    folder
        .run_with(&["object", "put", "a.tdl", "x", "-", "--resume"], b"1")
        .failed(2, &["only a file"]);
    folder
        .say("object put a.tdl big whole --resume --if-missing")
        .failed(5, &["big exists"]);
    folder.say("check a.tdl").ok();
}

#[test]
fn links_are_created_listed_and_revoked() {
    let folder = Folder::new("links");
    folder.run_with(&["object", "put", "a.tdl", "x"], b"1").ok();
    let link = folder.say("object link create a.tdl x").ok();
    let link = link.trim();
    assert_eq!(link.len(), 32, "{link}");
    let json = folder
        .say("object link create a.tdl x --expires 1d -f json")
        .ok();
    let other = &lines(&json)[0];
    assert_ne!(other["link"], link);
    assert!(other["expires"].is_string(), "{json}");
    let listed = folder.say("object link list a.tdl").ok();
    assert!(
        listed.contains(&format!("{link}\tx\t0 reads\t0 B\tnever expires\n")),
        "{listed}"
    );
    assert_eq!(
        lines(&folder.say("object link list a.tdl -f json").ok()).len(),
        2
    );
    let said = folder.say(&format!("object link revoke a.tdl {link}")).ok();
    assert_eq!(said, format!("link {link} removed\n"));
    folder
        .say(&format!("object link revoke a.tdl {link}"))
        .failed(3, &["no link"]);
    folder
        .say("object link revoke a.tdl 12")
        .failed(2, &["32 hex digits"]);
    folder
        .say("object link create a.tdl none")
        .failed(3, &["no object none"]);
    folder.say("check a.tdl").ok();
}
