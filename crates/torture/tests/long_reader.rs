//! A long-lived reader makes the file retain two versions and little more. (Full size: `tidalite-torture long-reader`.)

use tidalite_torture::long_reader::long_reader;

#[test]
fn a_long_lived_reader_retains_only_its_snapshot() {
    let path =
        std::env::temp_dir().join(format!("tidalite-long-reader-{}.tdl", std::process::id()));
    drop(std::fs::remove_file(&path));
    let held = long_reader(&path, 30_000, 100, 60_000, 60, 1);
    drop(std::fs::remove_file(&path));
    let mut lock = path.into_os_string();
    lock.push("-lock");
    drop(std::fs::remove_file(lock));
    let held = held.expect("overwritten");
    println!("{held:?}: {:.3}", held.ratio());
    assert!(held.ratio() <= 1.15, "{:.3}", held.ratio());
    assert!(held.after_pages <= held.version_pages * 3 / 2, "{held:?}");
}
