//! Moves pages of the delta away from the end of the file, in steps, so that the file can be shortened.
//!
//! The tail page with the record, each extent of a run and each directory are units, in this order. A step handles
//! units from its position on, so every unit moves at most once in a pass, even if its new address is beyond the
//! boundary as well. Runs that are added or removed between two steps change the numbers of the units: some units
//! then wait for the next pass.

use crate::delta::Delta;
use crate::run::directory;
use tidalite_kv::Relocation;
use tidalite_pager::{PageWrite, Result};

/// Position at which the next step of [`Delta::relocate`] continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaPosition {
    /// Number of the next unit (an extent or a directory), counted from 1; 0 is the tail page.
    unit: usize,
    /// Key at which moving continues in the next unit, if the unit is a directory.
    key: Vec<u8>,
}

impl Delta {
    /// Moves pages at and beyond the boundary, as many as the step allows: the tail page, the record, and the extents
    /// and directories of runs. Returns the position at which the next step must continue, or `None` when the pass is
    /// complete.
    ///
    /// # Errors
    /// `DiskFull`, `Io`, `Corrupt`; the transaction must then be rolled back.
    pub fn relocate<W: PageWrite>(
        &mut self,
        w: &mut W,
        step: &mut Relocation,
        from: &DeltaPosition,
    ) -> Result<Option<DeltaPosition>> {
        let stop_at = |unit| DeltaPosition {
            unit,
            key: Vec::new(),
        };
        if from.unit == 0 {
            if self.tail.addr >= step.boundary {
                self.tail = w.shadow(&self.tail)?;
                self.tail = w.seal_page(&self.tail)?;
                step.moved(1);
            }
            self.changed |= self.record_ptr.addr >= step.boundary;
        }
        let mut unit = 0;
        for tier in &mut self.record.tiers {
            for run in tier.runs_and_output_mut() {
                let mut extents = Vec::new();
                directory::each_extent(&run.directory, w, |extent, _| {
                    extents.push(extent);
                    Ok(())
                })?;
                for extent in extents {
                    unit += 1;
                    if unit < from.unit {
                        continue;
                    }
                    let end = extent.addr + extent.pages * w.page_size() as u64;
                    if end <= step.boundary {
                        continue;
                    }
                    if step.is_over() {
                        return Ok(Some(stop_at(unit)));
                    }
                    directory::move_extent(&mut run.directory, w, &extent)?;
                    step.moved(extent.pages);
                    self.changed = true;
                }
                unit += 1;
                if unit < from.unit {
                    continue;
                }
                if step.is_over() {
                    return Ok(Some(stop_at(unit)));
                }
                let key = match unit == from.unit {
                    true => &from.key[..],
                    false => &[],
                };
                let root = run.directory.root();
                let stop = run.directory.relocate(w, step, key)?;
                self.changed |= run.directory.root() != root;
                if let Some(key) = stop {
                    return Ok(Some(DeltaPosition { unit, key }));
                }
            }
        }
        Ok(None)
    }
}
