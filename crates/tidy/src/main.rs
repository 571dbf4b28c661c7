//! Prints sizes of files, functions and crates, habits of language in comments, and the sizes of the compiled programs
//! given as arguments. With `layers CRATE LAYER...` the program prints the import cycles of a crate and every import
//! from a layer to a layer named later. The checks themselves run as tests.

use tidalite_tidy::{Tree, built, layers, root, sizes, words};

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() -> std::io::Result<()> {
    let tree = Tree::load(&root())?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, krate, order @ ..] = &args[..]
        && word == "layers"
    {
        print!("{}", layers::report(&tree, krate, order));
        return Ok(());
    }
    print!(
        "{}\n{}\n{}",
        sizes::report(&tree),
        built::report(&tree),
        words::report(&tree)
    );
    for program in args {
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
