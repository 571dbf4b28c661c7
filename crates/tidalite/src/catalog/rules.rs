//! The rules of downsampling of all policies, and the series that they apply to.

use crate::catalog::downsample::Downsample;
use crate::catalog::entries::SeriesInfo;
use crate::catalog::retention::Retention;
use crate::types::error::Result;
use crate::types::pattern::SeriesPattern;

/// The rules of all policies, with the patterns of their sources.
pub(crate) struct Rules(Vec<(SeriesPattern, Downsample)>);

impl Rules {
    pub(crate) fn of_policies(policies: Vec<(String, Retention)>) -> Result<Self> {
        let mut rules = Vec::new();
        for (_, policy) in policies {
            if let Some(rule) = policy.downsample {
                rules.push((SeriesPattern::parse(&policy.pattern)?, rule));
            }
        }
        Ok(Self(rules))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the series has the windows of a rule.
    pub(crate) fn is_target(&self, info: &SeriesInfo) -> bool {
        let name = info.name.as_ref();
        name.is_some_and(|name| self.0.iter().any(|(_, rule)| rule.is_target(name)))
    }

    /// The rules by which the rows of a series are replaced.
    pub(crate) fn of(&self, info: &SeriesInfo) -> Vec<&Downsample> {
        let Some(name) = info.name.as_ref().filter(|_| !self.is_target(info)) else {
            return Vec::new();
        };
        let rules = self.0.iter().filter(|(pattern, rule)| {
            pattern.matches(name) && !rule.columns(&info.schema).is_empty()
        });
        rules.map(|(_, rule)| rule).collect()
    }
}
