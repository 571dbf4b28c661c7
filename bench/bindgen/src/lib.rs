//! Stands in for `bindgen` in the build of `mdbx-sys`, and writes no bindings.
//!
//! The real one parses `mdbx.h` with libclang, which a machine that compiles C need not have, and costs
//! some forty crates. The benchmark calls twenty functions of libmdbx; `src/engine/mdbx_sys.rs` declares
//! them by hand. What is left for `mdbx-sys` to do is to compile and link the C, as it does for everyone.

use std::io;
use std::path::Path;

/// What the callbacks may choose for a macro.
pub mod callbacks {
    /// The type of a macro that is a number.
    #[derive(Debug)]
    pub enum IntKind {
        /// `int`
        Int,
        /// `unsigned int`
        UInt,
    }

    /// Questions of the generator; nobody asks them here.
    pub trait ParseCallbacks: std::fmt::Debug {
        /// The type of a macro.
        fn int_macro(&self, _name: &str, _value: i64) -> Option<IntKind> {
            None
        }
    }
}

/// How bindings are laid out.
#[derive(Debug)]
pub enum Formatter {
    /// Not at all.
    None,
}

/// Takes all settings and keeps none.
#[derive(Debug, Default)]
#[must_use]
pub struct Builder;

impl Builder {
    /// Ignored.
    pub fn header(self, _: impl Into<String>) -> Self {
        self
    }
    /// Ignored.
    pub fn allowlist_var(self, _: impl AsRef<str>) -> Self {
        self
    }
    /// Ignored.
    pub fn allowlist_type(self, _: impl AsRef<str>) -> Self {
        self
    }
    /// Ignored.
    pub fn allowlist_function(self, _: impl AsRef<str>) -> Self {
        self
    }
    /// Ignored.
    pub fn size_t_is_usize(self, _: bool) -> Self {
        self
    }
    /// Ignored.
    pub fn ctypes_prefix(self, _: impl Into<String>) -> Self {
        self
    }
    /// Ignored.
    pub fn parse_callbacks(self, _: Box<dyn callbacks::ParseCallbacks>) -> Self {
        self
    }
    /// Ignored.
    pub fn layout_tests(self, _: bool) -> Self {
        self
    }
    /// Ignored.
    pub fn prepend_enum_name(self, _: bool) -> Self {
        self
    }
    /// Ignored.
    pub fn generate_comments(self, _: bool) -> Self {
        self
    }
    /// Ignored.
    pub fn disable_header_comment(self) -> Self {
        self
    }
    /// Ignored.
    pub fn formatter(self, _: Formatter) -> Self {
        self
    }
    /// No bindings.
    ///
    /// # Errors
    /// Never.
    pub fn generate(self) -> io::Result<Bindings> {
        Ok(Bindings)
    }
}

/// No bindings.
#[derive(Debug)]
pub struct Bindings;

impl Bindings {
    /// Writes an empty file.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn write_to_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, "")
    }
}
