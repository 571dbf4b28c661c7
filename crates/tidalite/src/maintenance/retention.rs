//! Setting and listing the retention policies.

use crate::catalog::retention::{Retention, policies};
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;

impl WriteTxn {
    /// Stores a retention policy under a name, replacing the policy that has this name.
    /// [`Database::maintain`](crate::Database::maintain) applies it. Storing a policy may take a page or two of the
    /// reserve, so that it works on a full disk.
    ///
    /// # Errors
    /// `InvalidName` for an invalid name, pattern or bound; errors of the file.
    pub fn set_retention(&mut self, name: &str, policy: &Retention) -> Result<()> {
        policy.check(name)?;
        // Storing a policy may use the reserve, because a policy serves to free space.
        self.free_space();
        self.changing(|txn| {
            let policies = &mut txn.roots.policies;
            policies.insert(&mut txn.pages, name.as_bytes(), &policy.encode())?;
            Ok(())
        })
    }

    /// Removes the policy with this name; returns false if it does not exist.
    ///
    /// # Errors
    /// Errors of reading and writing the file.
    pub fn remove_retention(&mut self, name: &str) -> Result<bool> {
        self.changing(|txn| Ok(txn.roots.policies.remove(&mut txn.pages, name.as_bytes())?))
    }
}

impl<S: ReadSource> Reading<S> {
    /// The policies with their names, ordered by name.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn retentions(&self) -> Result<Vec<(String, Retention)>> {
        policies(&self.cache.roots.policies, &self.pages)
    }
}
