//! Named pins, which keep versions readable; and the version that was current at a given time.

use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use tidalite_base::TxnId;
use tidalite_time::Timestamp;

pub use tidalite_pager::Pin;

impl WriteTxn {
    /// Pins the version that this transaction commits: it stays readable under this name, in any process and after any
    /// restart, until it is unpinned. Pages that only the pin uses stay allocated meanwhile. If a pin of that name
    /// exists, it moves to this version. The commit is durable, whatever durability is requested.
    ///
    /// # Errors
    /// A limit of docs/limits.md is exceeded: the bytes of the name, or the number of pins in a file.
    pub fn pin(&mut self, name: &str) -> Result<()> {
        self.check_usable()?;
        Ok(self.pages.pin(name)?)
    }

    /// Removes a pin; returns false if no pin has this name. The commit is then durable, whatever durability is
    /// requested: a removed pin must not reappear after a power cut, when its pages have been overwritten.
    ///
    /// # Errors
    /// If the transaction is broken.
    pub fn unpin(&mut self, name: &str) -> Result<bool> {
        self.check_usable()?;
        Ok(self.pages.unpin(name)?)
    }
}

impl Database {
    /// Pins the current version, with a small durable commit of its own; returns the pinned version.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("tidalite-doc-pin-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// # let db = tidalite::Database::open(dir.join("plant.tdl"))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"hub_height", b"80")?;
    /// tx.commit()?;
    /// db.pin("before the rebuild")?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"hub_height", b"95")?;
    /// tx.commit()?;
    ///
    /// let then = db.begin_read_at("before the rebuild")?;
    /// let config = then.table("config")?.ok_or("no such table")?;
    /// assert_eq!(config.get(b"hub_height")?, Some(b"80".to_vec()));
    /// # drop(config); drop(then); drop(db); std::fs::remove_dir_all(dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`WriteTxn::pin`] and a commit.
    pub fn pin(&self, name: &str) -> Result<TxnId> {
        let mut tx = self.begin_write()?;
        tx.pin(name)?;
        Ok(tx.commit()?.txn)
    }

    /// Removes a pin, with a durable commit of its own; returns false if no pin has this name.
    ///
    /// # Errors
    /// As for a commit.
    pub fn unpin(&self, name: &str) -> Result<bool> {
        let mut tx = self.begin_write()?;
        let there = tx.unpin(name)?;
        if there {
            tx.commit()?;
        }
        Ok(there)
    }

    /// Lists all pins, the oldest first.
    ///
    /// # Errors
    /// Damage in the table of pins.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        Ok(self.pager.pins()?)
    }

    /// A snapshot of a pinned version. It stays readable even if the pin is removed meanwhile.
    ///
    /// # Errors
    /// `NotFound` if no pin has this name; damage in the pinned data.
    pub fn begin_read_at(&self, pin: &str) -> Result<ReadTxn> {
        match self.pager.begin_read_at(pin)? {
            Some(snapshot) => ReadTxn::begin(snapshot, self.shared.scan_threads),
            None => Err(Error::from(Cause::NoSuchPin {
                name: pin.to_owned(),
            })),
        }
    }

    /// Returns the newest commit known to have been made at or before `time`, with the time of that commit, by the wall
    /// clocks of the committing processes. Known are the newest commit, all pins, and otherwise about one commit per
    /// minute, fewer for old times.
    ///
    /// # Errors
    /// Damage in the stored commit times.
    pub fn txn_at(&self, time: Timestamp) -> Result<Option<(TxnId, Timestamp)>> {
        let found = self.pager.txn_at(time.0)?;
        Ok(found.map(|(txn, time)| (txn, Timestamp(time))))
    }
}
