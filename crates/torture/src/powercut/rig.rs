//! Sets up the test: ext4 on a loop device on the FUSE disk, in a mount namespace of its own; or the raw loop device,
//! with the lock file on another disk, which loses nothing.

use super::device::{Device, NAME};
use fuser::BackgroundSession;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable that is set in the process that runs inside its own mount namespace.
const INSIDE: &str = "TIDALITE_OWN_MOUNTS";

/// Options with which a file system is created and mounted.
#[derive(Clone, Copy, Debug)]
pub struct Flavour {
    /// Name of this set of options, for messages.
    pub name: &'static str,
    /// True if this file system is known to be lost at some power cuts.
    pub may_be_lost: bool,
    make: &'static [&'static str],
    /// Mount options; `None` stands for no file system: the database is on the device itself.
    mount: Option<&'static str>,
}

/// The file systems under test; file systems known to be lost come last.
pub const FLAVOURS: [Flavour; 5] = [
    Flavour {
        name: "ext4 ordered",
        may_be_lost: false,
        make: &["-b", "4096"],
        mount: Some("data=ordered"),
    },
    Flavour {
        name: "ext4 writeback",
        may_be_lost: false,
        make: &["-b", "4096"],
        mount: Some("data=writeback"),
    },
    Flavour {
        name: "ext4 1 KiB blocks",
        may_be_lost: false,
        make: &["-b", "1024"],
        mount: Some("data=ordered,commit=1"),
    },
    Flavour {
        name: "raw device",
        may_be_lost: false,
        make: &[],
        mount: None,
    },
    // Used only on request, because the replay of ext4's fast commits may assign blocks of a file to the file system's
    // own trees (see docs/proofs.md).
    Flavour {
        name: "ext4 fast_commit",
        may_be_lost: true,
        make: &["-b", "4096", "-O", "fast_commit"],
        mount: Some("data=ordered"),
    },
];

/// Runs a system command; the command's error output becomes the error.
///
/// # Errors
/// If the command cannot be run or fails; contains its error output.
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

/// Runs this program again in a mount namespace of its own, so that no mount remains however the program ends. Returns
/// `Ok(None)` in that new process, and the exit code of the new process in this one.
///
/// # Errors
/// If this system does not allow mount namespaces.
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

/// The simulated disk, and the place where it is mounted.
pub struct Rig {
    /// The simulated disk.
    pub device: Device,
    directory: PathBuf,
    flavour: Flavour,
    mounted: bool,
    /// Path and descriptor of the raw loop device, which is used without a file system; the device disappears when its
    /// last descriptor is closed.
    raw: Option<(PathBuf, fs::File)>,
    server: Option<BackgroundSession>,
}

impl Rig {
    /// Creates a disk of `bytes` bytes with a new file system.
    ///
    /// # Errors
    /// If this system does not allow it.
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
            raw: None,
            server: Some(server),
        })
    }

    /// Starts again with an empty disk and a new file system.
    ///
    /// # Errors
    /// Returns an error of the system.
    pub fn format(&mut self, bytes: u64, flavour: Flavour) -> Result<(), String> {
        self.unmount()?;
        self.flavour = flavour;
        let _ = fs::remove_file(self.directory.join("lock"));
        self.device.format(image(&self.directory, bytes, flavour)?);
        Ok(())
    }

    /// Path of the database file while the disk is mounted.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        match &self.raw {
            Some((device, _)) => device.clone(),
            None => self.root().join("db.tdl"),
        }
    }

    /// Path of the lock file of the database.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        match &self.raw {
            Some(_) => self.directory.join("lock"),
            None => self.root().join("db.tdl-lock"),
        }
    }

    /// True if the database is on the raw loop device, without a file system.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.flavour.mount.is_none()
    }

    fn root(&self) -> PathBuf {
        self.directory.join("fs")
    }

    /// Mounts the file system, which then replays its journal.
    ///
    /// # Errors
    /// Returns an error of the system.
    pub fn mount(&mut self) -> Result<(), String> {
        let disk = self.directory.join("fuse").join(NAME);
        let Some(options) = self.flavour.mount else {
            self.raw = Some(attach(&disk)?);
            return Ok(());
        };
        run(Command::new("mount")
            .args(["-t", "ext4", "-o"])
            .arg(format!("loop,noatime,{options}"))
            .arg(disk)
            .arg(self.root()))?;
        self.mounted = true;
        Ok(())
    }

    /// Unmounts the file system and releases the loop device.
    ///
    /// # Errors
    /// Returns an error of the system.
    pub fn unmount(&mut self) -> Result<(), String> {
        self.raw = None;
        if std::mem::take(&mut self.mounted) {
            run(Command::new("umount").arg(self.root()))?;
        }
        Ok(())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Unmounting may hang after a failure; the power is cut first, and the end of the namespace removes the
        // remaining mounts.
        self.device.cut_now();
        let _ = self.unmount();
        if let Some(server) = self.server.take() {
            let _ = server.umount_and_join();
        }
        let _ = fs::remove_file(self.directory.join("lock"));
        let _ = fs::remove_dir(self.directory.join("fuse"));
        let _ = fs::remove_dir(self.directory.join("fs"));
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Creates a loop device and opens it. The device is marked as detached, so that it is released when its descriptor is
/// closed.
fn attach(disk: &Path) -> Result<(PathBuf, fs::File), String> {
    let made = Command::new("losetup")
        .args(["--find", "--show"])
        .arg(disk)
        .output()
        .map_err(|error| format!("losetup: {error}"))?;
    let said = String::from_utf8_lossy(&made.stdout);
    if !made.status.success() {
        return Err(format!("losetup: {}", made.status));
    }
    let device = PathBuf::from(said.trim());
    let kept = fs::File::open(&device).map_err(|error| error.to_string());
    run(Command::new("losetup").arg("--detach").arg(&device))?;
    Ok((device, kept?))
}

fn image(directory: &Path, bytes: u64, flavour: Flavour) -> Result<Vec<u8>, String> {
    if flavour.mount.is_none() {
        return Ok(vec![0; bytes as usize]);
    }
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
