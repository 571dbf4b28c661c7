//! The `tidalite` program.
fn main() {}
