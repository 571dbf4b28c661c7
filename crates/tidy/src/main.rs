//! Prints the sizes of files and functions, for the eye. The checks are tests.

use std::path::Path;
use tidalite_tidy::{Tree, sizes};

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    print!("{}", sizes::report(&Tree::load(&root)?));
    Ok(())
}
