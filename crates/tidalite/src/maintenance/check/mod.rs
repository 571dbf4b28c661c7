//! Check of a whole database: every page must be reached exactly once, every structure must be sound, and the free
//! space must match the pages in use. The check reads a snapshot, concurrently with readers and writers, and names the
//! data that each damage affects.

mod finding;
mod of_containers;
mod of_hash;
mod of_series;
mod of_tags;
mod report;
mod waiting;
mod walk;

pub use finding::{Finding, HitSeries, Place};
pub use report::CheckReport;
pub(crate) use waiting::Waiting;

use crate::catalog::roots::Roots;
use crate::database::handle::Database;
use crate::maintenance::watch::{Running, Watch, Watched, is_cancelled};
use crate::types::error::Result;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tidalite_pager::{Check, Error as StoreError, PageRead};
use walk::Walk;

impl Database {
    /// Checks everything that the newest commit reaches: every page and block is read and verified, order, counts and
    /// statistics are recomputed, and every page must be either reached exactly once or free. Readers and writers
    /// continue meanwhile, and the check does not wait for an open write transaction: it then checks the newest commit
    /// visible to all processes (without commits of `Durability::None`). The check does wait for commits that are being
    /// synced.
    ///
    /// # Errors
    /// Data that cannot be read at all is an error; damage is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_with(Watch::new())
    }

    /// Checks like [`check`](Self::check), with a watch, which receives the progress, may stop the check (the report is
    /// then marked as cancelled), and limits the bytes read per second.
    ///
    /// # Errors
    /// As for `check`.
    pub fn check_with(&self, watch: Watch<'_>) -> Result<CheckReport> {
        let mut check = self.pager.begin_check()?;
        let snapshot = check.snapshot().clone();
        let page_size = snapshot.page_size() as u64;
        let running = RefCell::new(Running::new(watch, check.pages_expected() * page_size));
        let mut report = CheckReport::default();
        let pages = Watched {
            pages: &snapshot,
            running: &running,
        };
        let walked = match Roots::decode(snapshot.app()) {
            Ok(roots) => Walk::new(&mut check, &pages, &roots, None).all(&mut report),
            Err(error) => {
                report.findings.push(Finding::new(Place::File, error));
                Ok(())
            }
        };
        let walked = walked.and_then(|()| self.check_pins(&mut check, &running, &mut report));
        report.cancelled = is_cancelled(&walked);
        if !report.cancelled {
            walked?;
        }
        drop(snapshot);
        let done = if report.cancelled {
            check.abandon()
        } else {
            check.finish()
        };
        for problem in done.problems {
            report.findings.push(Finding::new(Place::File, problem));
        }
        report.problems = report.findings.iter().map(ToString::to_string).collect();
        report.problems_healable = done.problems_healable;
        report.lost_commits = self.pager.recovery().lost;
        report.notes = done.notes;
        report.pages_total = done.pages_total;
        report.pages_used = done
            .pages_total
            .saturating_sub(done.pages_free + done.pages_pending);
        report.pages_free = done.pages_free;
        report.pages_pending = done.pages_pending;
        Ok(report)
    }

    /// Checks every pinned version as well: each must be readable, and none of the pages of a pin may be free.
    fn check_pins(
        &self,
        check: &mut Check,
        running: &RefCell<Running<'_>>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let pins = match check.snapshot().pins() {
            Ok(pins) => pins,
            Err(StoreError::Corrupt(corrupt)) => {
                report.findings.push(Finding::new(Place::File, corrupt));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        for pin in pins {
            let begun = self.pager.begin_read_at(&pin.name);
            let snapshot = match begun {
                // If the pin has another version now or is gone, it was changed during the check; that is not a
                // problem.
                Ok(found) => found.filter(|found| found.txn() == pin.txn),
                Err(StoreError::Corrupt(corrupt)) => {
                    let mut finding = Finding::new(Place::File, corrupt);
                    finding.version = Some(pin.name.clone());
                    report.findings.push(finding);
                    None
                }
                Err(error) => return Err(error.into()),
            };
            let Some(snapshot) = snapshot else {
                continue;
            };
            let pages = Watched {
                pages: &snapshot,
                running,
            };
            check.begin_version(&format!("the pinned version {}", pin.name));
            let mut counts = CheckReport::default();
            let walked = match Roots::decode(snapshot.app()) {
                Ok(roots) => Walk::new(check, &pages, &roots, Some(&pin.name)).all(&mut counts),
                Err(error) => {
                    counts.findings.push(Finding::new(Place::File, error));
                    Ok(())
                }
            };
            check.end_version();
            report.findings.append(&mut counts.findings);
            report.pins += 1;
            walked?;
        }
        Ok(())
    }
}

/// Maps each structure of the newest version to the ranges of pages that it uses, each as first page and number of
/// pages.
pub(crate) fn walk_of(db: &Database) -> Result<BTreeMap<String, Vec<(u64, u64)>>> {
    let mut check = db.pager.begin_check()?;
    check.keep_ranges();
    let snapshot = check.snapshot().clone();
    let running = RefCell::new(Running::new(Watch::new(), 0));
    let pages = Watched {
        pages: &snapshot,
        running: &running,
    };
    let roots = Roots::decode(snapshot.app())?;
    Walk::new(&mut check, &pages, &roots, None).all(&mut CheckReport::default())?;
    Ok(check.into_ranges())
}
