//! Structure checks, run as a test: what the documents say about the code is compared with the code.
//!
//! ```text
//! tree       Tree: the project's files by path; Finding: what a check reports
//! source     a Rust file taken apart: code, comments, identifiers, functions
//! arrows     dependencies between rooms are those of ARCHITECTURE.md; every room takes the shared lints
//! documents  paths and items that a document names exist
//! excerpts   the Rust that README.md shows stands in an example that is compiled
//! imports    which file of a crate imports from which
//! layers     imports inside a crate point down, without cycles, as ARCHITECTURE.md lists the layers
//! limits     docs/limits.md shows every shared bound with its value
//! licences   the dependencies' licences allow what ours promises
//! fence      `unsafe` stays in the files that ARCHITECTURE.md names, with a reason at each block
//! leftovers  nothing unfinished, no machine's paths, no registry hosts
//! parity     docs/parity: every call and test that a row names exists
//! watched    tests that open a database do so under the write-protocol monitor
//! sizes      long files and functions, for the eye
//! words      habits of language, counted in the comments
//! built      lines by room, and the size of what is compiled
//! ```
//!
//! Each check is a function from a [`Tree`] to findings, so that each is also run on a small made-up
//! tree that breaks its rule. `tests/repository.rs` runs them on the project.

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
