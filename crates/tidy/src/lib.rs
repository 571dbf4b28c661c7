//! Structure checks, run as a test: compare the documents with the code that they describe.
//!
//! ```text
//! tree       Tree: the project's files by path; Finding: a problem reported by a check
//! source     a Rust file split into code, comments, identifiers, functions
//! arrows     dependencies between crates match ARCHITECTURE.md; every crate uses the shared lints
//! documents  paths and items that a document names exist
//! excerpts   the Rust code in README.md occurs in an example that is compiled
//! imports    the import graph between the files of a crate
//! layers     imports inside a crate point down, without cycles, as ARCHITECTURE.md lists the layers
//! limits     docs/limits.md shows every shared bound with its value
//! licences   the licences of dependencies are compatible with ours
//! fence      `unsafe` stays in the files that ARCHITECTURE.md names, with a reason at each block
//! leftovers  no unfinished code, machine paths or registry hosts
//! parity     docs/parity: every call and test that a row names exists
//! watched    tests that open a database do so under the write-protocol monitor
//! sizes      long files and functions, for human review
//! words      habits of language, counted in the comments
//! built      lines by crate, and the size of compiled programs
//! ```
//!
//! Each check is a function from a [`Tree`] to findings, so that it can also run on a small invented tree that breaks
//! its rule. `tests/repository.rs` runs all checks on the project.

pub mod arrows;
pub mod built;
pub mod documents;
pub mod excerpts;
pub mod fence;
pub mod imports;
pub mod layers;
pub mod leftovers;
pub mod licences;
pub mod limits;
pub mod parity;
pub mod sizes;
pub mod source;
mod tree;
pub mod watched;
pub mod words;

pub use tree::{Finding, Tree, root};
