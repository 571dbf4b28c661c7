//! Parses command-line arguments of the form `--name number`.

/// The command-line arguments after the program name.
#[derive(Debug, Default)]
pub struct Arguments(pub Vec<String>);

impl Arguments {
    /// The argument that follows `--name`; `None` if `--name` is absent.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// True if `--name` is among the arguments.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }

    /// The number that follows `--name`, or `otherwise` if `--name` is absent. Digits may be grouped with `_`.
    ///
    /// # Errors
    /// If `--name` is not followed by a number.
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

/// Writes one whole line to standard output. Exits the process if the output is closed.
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let written = out.write_all(format!("{line}\n").as_bytes());
    if written.and_then(|()| out.flush()).is_err() {
        std::process::exit(3);
    }
}

/// A command that runs this program again. It uses `/proc/self/exe`, because a newer build may have replaced the file
/// at the program's path.
#[must_use]
pub fn own_program() -> std::process::Command {
    std::process::Command::new("/proc/self/exe")
}

/// Creates a folder for the files of a program, in memory if the system has `/dev/shm`, because these tests do not test
/// the medium.
///
/// # Errors
/// An I/O error.
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
