//! ext4 on a loop device on the disk behind FUSE, in a mount namespace of its own.

use super::device::{Device, NAME};
use fuser::BackgroundSession;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set in the process that runs inside its own mount namespace.
const INSIDE: &str = "TIDALITE_OWN_MOUNTS";

/// How the file system is made and mounted.
#[derive(Clone, Copy, Debug)]
pub struct Flavour {
    /// For the eye.
    pub name: &'static str,
    /// Whether the file system is known to be lost itself at some power cuts.
    pub may_be_lost: bool,
    make: &'static [&'static str],
    mount: &'static str,
}

/// The file systems that are cut; those that may lose themselves stand last.
pub const FLAVOURS: [Flavour; 4] = [
    Flavour {
        name: "ext4 ordered",
        may_be_lost: false,
        make: &["-b", "4096"],
        mount: "data=ordered",
    },
    Flavour {
        name: "ext4 writeback",
        may_be_lost: false,
        make: &["-b", "4096"],
        mount: "data=writeback",
    },
    Flavour {
        name: "ext4 1 KiB blocks",
        may_be_lost: false,
        make: &["-b", "1024"],
        mount: "data=ordered,commit=1",
    },
    // Only by name: its replay gives blocks of a file to its own trees (see docs/proofs.md).
    Flavour {
        name: "ext4 fast_commit",
        may_be_lost: true,
        make: &["-b", "4096", "-O", "fast_commit"],
        mount: "data=ordered",
    },
];

/// Runs a command of the system and gives its error output as an error.
///
/// # Errors
/// That it cannot be run, or what it said.
pub fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}: {}", output.status, said.trim()))
}

/// Runs this program again in a mount namespace of its own, so that nothing stays mounted however it ends. `Ok(None)` when this
/// is that process already; else its exit code.
///
/// # Errors
/// That it cannot be done here.
pub fn in_own_namespace(arguments: &[String]) -> Result<Option<i32>, String> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(None);
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    run(Command::new("unshare").args(["--mount", "--propagation", "private", "true"]))?;
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(own)
        .args(arguments)
        .env(INSIDE, "1")
        .status()
        .map_err(|error| format!("unshare: {error}"))?;
    Ok(Some(status.code().unwrap_or(1)))
}

/// The disk, and where it is mounted.
pub struct Rig {
    /// The disk.
    pub device: Device,
    directory: PathBuf,
    flavour: Flavour,
    mounted: bool,
    server: Option<BackgroundSession>,
}

impl Rig {
    /// A disk of `bytes`, with a new file system.
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub fn new(bytes: u64, flavour: Flavour) -> Result<Self, String> {
        let directory =
            std::env::temp_dir().join(format!("tidalite-powercut-{}", std::process::id()));
        let io = |error: std::io::Error| error.to_string();
        fs::create_dir_all(directory.join("fuse")).map_err(io)?;
        fs::create_dir_all(directory.join("fs")).map_err(io)?;
        let device = Device::new(image(&directory, bytes, flavour)?);
        let server = device
            .serve(&directory.join("fuse"))
            .map_err(|error| format!("fuse: {error}"))?;
        Ok(Self {
            device,
            directory,
            flavour,
            mounted: false,
            server: Some(server),
        })
    }

    /// Begins anew with an empty file system.
    ///
    /// # Errors
    /// The system's.
    pub fn format(&mut self, bytes: u64, flavour: Flavour) -> Result<(), String> {
        self.unmount()?;
        self.flavour = flavour;
        self.device.format(image(&self.directory, bytes, flavour)?);
        Ok(())
    }

    /// Where the file system is mounted.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.directory.join("fs")
    }

    /// Mounts: the file system replays its journal.
    ///
    /// # Errors
    /// The system's.
    pub fn mount(&mut self) -> Result<(), String> {
        let disk = self.directory.join("fuse").join(NAME);
        run(Command::new("mount")
            .args(["-t", "ext4", "-o"])
            .arg(format!("loop,noatime,{}", self.flavour.mount))
            .arg(disk)
            .arg(self.root()))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts, and the loop device is gone with it.
    ///
    /// # Errors
    /// The system's.
    pub fn unmount(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.mounted) {
            run(Command::new("umount").arg(self.root()))?;
        }
        Ok(())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A rig that failed may be stuck; the namespace takes what is left with it.
        self.device.cut_now();
        let _ = self.unmount();
        if let Some(server) = self.server.take() {
            let _ = server.umount_and_join();
        }
        let _ = fs::remove_dir(self.directory.join("fuse"));
        let _ = fs::remove_dir(self.directory.join("fs"));
        let _ = fs::remove_dir(&self.directory);
    }
}

fn image(directory: &Path, bytes: u64, flavour: Flavour) -> Result<Vec<u8>, String> {
    let path = directory.join("image");
    let io = |error: std::io::Error| error.to_string();
    fs::File::create(&path)
        .and_then(|file| file.set_len(bytes))
        .map_err(io)?;
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-E", "nodiscard,lazy_itable_init=0"])
        .args(flavour.make)
        .arg(&path))?;
    let image = fs::read(&path).map_err(io)?;
    fs::remove_file(&path).map_err(io)?;
    Ok(image)
}
