//! Moving pages of the delta out of the end of the file, in steps.
//!
//! The tail with the record, each extent of a run and each directory are units, in this order. A step handles units from
//! its position on, so every unit moves at most once in a pass, even if its new place is behind the boundary as well.
//! Runs that come or go between two steps shift the units: some then wait for the next pass.

use crate::delta::Delta;
use crate::run::directory;
use tidalite_kv::Relocation;
use tidalite_pager::{PageWrite, Result};

/// Position between two steps of [`Delta::relocate`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaPosition {
    /// Number of the unit that is next, from 1 on; 0 before the tail.
    unit: usize,
    /// The key at which the directory that is next continues.
    key: Vec<u8>,
}

impl Delta {
    /// Moves pages at and beyond the boundary, as far as the step allows: tail, record, and the extents and directories
    /// of runs. Returns the position of the next step; `None` when everything is done.
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
            let output = tier
                .compaction
                .as_mut()
                .and_then(|compaction| compaction.output.as_mut());
            for run in tier.runs.iter_mut().chain(output) {
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
