//! The arguments of the programs: `--name number`.

/// What follows the program's name on the command line.
#[derive(Debug, Default)]
pub struct Arguments(pub Vec<String>);

impl Arguments {
    /// The text after `--name`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// Whether `--name` is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }

    /// The number after `--name`, digits may be grouped by `_`.
    ///
    /// # Errors
    /// A name without a number behind it.
    pub fn number(&self, name: &str, otherwise: u64) -> Result<u64, String> {
        if !self.has(name) {
            return Ok(otherwise);
        }
        let text = self
            .text(name)
            .ok_or_else(|| format!("{name} needs a number"))?;
        text.replace('_', "")
            .parse()
            .map_err(|error| format!("{name} {text}: {error}"))
    }
}

/// One line to standard output, whole or not at all. Whoever listens being gone ends the program.
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let written = out.write_all(format!("{line}\n").as_bytes());
    if written.and_then(|()| out.flush()).is_err() {
        std::process::exit(3);
    }
}

/// This program, to be run again. Not its path: that may have been replaced by a newer build meanwhile.
#[must_use]
pub fn own_program() -> std::process::Command {
    std::process::Command::new("/proc/self/exe")
}

/// A folder for the files of a program, in memory where the system has such a place: what is looked for is not in the medium.
///
/// # Errors
/// The system's.
pub fn folder(name: &str) -> std::io::Result<std::path::PathBuf> {
    let memory = std::path::Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = parent.join(format!("tidalite-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
