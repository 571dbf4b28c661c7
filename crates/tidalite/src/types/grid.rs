//! Windows of equal width.

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::instant::Steps;
use crate::types::schema::Unit;
use crate::types::time::Timestamp;

/// Windows of equal width, aligned to the clock: window k begins at `origin + k width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Width of a window in nanoseconds.
    pub width: i64,
    /// The start of one window.
    pub origin: Timestamp,
}

impl Grid {
    /// Windows of `width` nanoseconds, one of which begins at 1970-01-01.
    #[must_use]
    pub fn nanos(width: i64) -> Self {
        Self {
            width,
            origin: Timestamp(0),
        }
    }

    /// Windows of this many seconds.
    #[must_use]
    pub fn seconds(n: i64) -> Self {
        Self::nanos(n.saturating_mul(1_000_000_000))
    }

    /// Windows of this many minutes.
    #[must_use]
    pub fn minutes(n: i64) -> Self {
        Self::seconds(n.saturating_mul(60))
    }

    /// Windows of this many hours.
    #[must_use]
    pub fn hours(n: i64) -> Self {
        Self::minutes(n.saturating_mul(60))
    }

    /// Windows of this many days of 24 hours.
    #[must_use]
    pub fn days(n: i64) -> Self {
        Self::hours(n.saturating_mul(24))
    }

    /// Width and origin in steps of `unit`.
    pub(crate) fn in_unit(&self, unit: Unit) -> Result<(i64, i64)> {
        let step = unit.nanos();
        if self.width < 1 || self.width % step != 0 || self.origin.0 % step != 0 {
            let problem = format!(
                "windows of {} ns from {} are no whole steps of {step} ns, in which the series counts",
                self.width, self.origin
            );
            return Err(Error::from(Cause::Schema { problem }));
        }
        Ok((
            self.width / step,
            self.origin.0 / step + unit.steps_to_1970(),
        ))
    }

    /// The number of the window that holds `nanos`.
    pub(crate) fn index(&self, nanos: i64) -> i128 {
        (i128::from(nanos) - i128::from(self.origin.0)).div_euclid(self.width.into())
    }

    /// The start of window `index`, clamped to the range of `Timestamp`.
    pub(crate) fn start(&self, index: i128) -> Timestamp {
        let start = i128::from(self.origin.0) + index * i128::from(self.width);
        Timestamp(start.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }
}

/// Windows for a query of one series: a [`Grid`], or windows of the series' own unit: `Steps(width)`, one of which
/// begins at step 0, or `(Steps(width), Steps(origin))`. Window k contains the steps from `origin + k width` up to, not
/// including, `origin + (k + 1) width`.
pub trait IntoGrid {
    /// Width and origin in steps of `unit`.
    ///
    /// # Errors
    /// `Schema` if the width or the origin of a `Grid` is not a multiple of the unit.
    fn steps_in(self, unit: Unit) -> Result<(i64, i64)>;
}

impl IntoGrid for Grid {
    fn steps_in(self, unit: Unit) -> Result<(i64, i64)> {
        self.in_unit(unit)
    }
}

impl IntoGrid for &Grid {
    fn steps_in(self, unit: Unit) -> Result<(i64, i64)> {
        self.in_unit(unit)
    }
}

impl IntoGrid for Steps {
    fn steps_in(self, _: Unit) -> Result<(i64, i64)> {
        Ok((self.0, 0))
    }
}

impl IntoGrid for (Steps, Steps) {
    fn steps_in(self, _: Unit) -> Result<(i64, i64)> {
        Ok((self.0.0, self.1.0))
    }
}
