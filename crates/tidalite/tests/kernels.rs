//! The query tests run once for each code level, that is, for each set of vector instructions (`.ci/run`); this test
//! checks that the requested level is used.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;
use tidalite_codec::{LEVEL_VARIABLE, level_name};

/// The names of the code levels, from the simplest one up.
const LEVELS: [&str; 4] = ["portable", "neon", "avx2", "avx512"];

fn place(name: &str) -> usize {
    LEVELS.iter().position(|level| *level == name).unwrap()
}

#[test]
fn the_requested_kernel_runs() {
    if let Ok(asked) = std::env::var(LEVEL_VARIABLE) {
        // The level never exceeds what the processor supports; a higher request selects the highest supported level.
        assert!(place(level_name()) <= place(&asked));
        println!("runs {}", level_name());
        return;
    }
    for asked in ["portable", level_name()] {
        let name = "kernels::the_requested_kernel_runs";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(LEVEL_VARIABLE, asked)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{said}");
        assert!(said.contains(&format!("runs {asked}")), "{said}");
    }
}
