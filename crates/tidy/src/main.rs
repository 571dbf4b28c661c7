//! Prints the sizes of files, functions and rooms, for the eye; and of each compiled program that is named. The checks are tests.

use tidalite_tidy::{Tree, built, root, sizes};

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() -> std::io::Result<()> {
    let tree = Tree::load(&root())?;
    print!("{}\n{}", sizes::report(&tree), built::report(&tree));
    for program in std::env::args().skip(1) {
        let bytes = std::fs::read(&program)?;
        match built::sections(&bytes) {
            Some((code, constants)) => println!(
                "{program}: {} bytes, of them {code} machine code and {constants} constants",
                bytes.len()
            ),
            None => println!("{program}: {} bytes, not an ELF program", bytes.len()),
        }
    }
    Ok(())
}
