//! The topics of the suite and their payloads. Both are computed from the number of a topic.
//!
//! | names | topics | parts |
//! |---|---|---|
//! | [`Telemetry`] | `dev/<device>/telemetry/<parameter>`, 50 parameters a device | `topics`, `window` |
//! | [`Sites`] | `<region>/<site>/<device>/<0 to 9>`, and `<region>/<site>/x` | `load`, `layouts` |
//!
//! A payload consists of the round in which the topic was written and the number of the topic, 8 bytes each. So every
//! message that is read shows to which topic it belongs and how old it is.

use std::fmt::Write as _;

use crate::engine::Result;

/// A payload.
pub(super) type Payload = [u8; 16];

/// Number of parameters of a device. One message of the device contains all of them, each with a topic of its own.
pub(super) const PARAMETERS: u64 = 50;
/// Number of numbered topics of a device in [`Sites`].
const NUMBERED: u64 = 10;
const REGIONS: u64 = 10;

/// The payload of topic `n` in a round.
pub(super) fn payload(round: u64, n: u64) -> Payload {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&round.to_le_bytes());
    payload[8..].copy_from_slice(&n.to_le_bytes());
    payload
}

/// The round and the number of the topic in a payload.
pub(super) fn parsed(payload: &[u8]) -> Result<(u64, u64)> {
    let parts: Option<(&[u8; 8], &[u8; 8])> = payload
        .split_first_chunk()
        .and_then(|(round, n)| Some((round, n.try_into().ok()?)));
    match parts {
        Some((round, n)) => Ok((u64::from_le_bytes(*round), u64::from_le_bytes(*n))),
        None => Err(format!("a payload of {} bytes", payload.len()).into()),
    }
}

/// Topics of devices that send all their parameters in one message.
#[derive(Clone, Copy)]
pub(super) struct Telemetry {
    pub(super) devices: u64,
}

impl Telemetry {
    /// Creates approximately this number of topics.
    pub(super) fn of(topics: u64) -> Self {
        Self {
            devices: (topics / PARAMETERS).max(2),
        }
    }

    pub(super) fn topics(self) -> u64 {
        self.devices * PARAMETERS
    }

    /// All topics, by their numbers.
    pub(super) fn all(self) -> Vec<String> {
        (0..self.topics()).map(Self::name).collect()
    }

    fn name(n: u64) -> String {
        let device = n / PARAMETERS;
        format!("dev/{device}/telemetry/{}", Self::parameter(n % PARAMETERS))
    }

    /// Name of a parameter.
    pub(super) fn parameter(n: u64) -> String {
        match n {
            0 => "speed".to_owned(),
            n => format!("parameter-{n:02}"),
        }
    }
}

/// Topics of four levels below regions and sites, and one topic of three levels for each site.
#[derive(Clone, Copy)]
pub(super) struct Sites {
    sites: u64,
    devices: u64,
}

/// A filter, and the number of topics that it matches.
pub(super) struct Question {
    /// Suffix for the name of the case; it has no wildcard characters.
    pub(super) case: &'static str,
    pub(super) filter: &'static str,
    pub(super) matches: u64,
}

impl Sites {
    /// Creates approximately this number of topics, at least 210.
    pub(super) fn of(topics: u64) -> Self {
        let sites = if topics < 1_000_000 { 10 } else { 100 };
        Self {
            sites,
            devices: (topics / (REGIONS * sites * NUMBERED)).max(1),
        }
    }

    /// Number of devices of all sites.
    fn all_devices(self) -> u64 {
        REGIONS * self.sites * self.devices
    }

    pub(super) fn topics(self) -> u64 {
        self.all_devices() * NUMBERED + REGIONS * self.sites
    }

    /// Writes the name of topic `n` to `name`.
    pub(super) fn name(self, n: u64, name: &mut String) {
        name.clear();
        let numbered = self.all_devices() * NUMBERED;
        // Writing to a `String` cannot fail, so the result is ignored.
        let _ = match n.checked_sub(numbered) {
            Some(site) => {
                self.site(site, name);
                write!(name, "/x")
            }
            None => {
                let device = n / NUMBERED;
                self.site(device / self.devices, name);
                write!(name, "/{}/{}", device % self.devices, n % NUMBERED)
            }
        };
    }

    /// Writes the names of a region and a site: `a/a`, `a/b`, ... `a/z`, `a/ba`, ...
    fn site(self, n: u64, name: &mut String) {
        const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
        let letter = |n: u64| char::from(LETTERS[(n % 26) as usize]);
        let (region, site) = (n / self.sites, n % self.sites);
        name.push(letter(region));
        name.push('/');
        if site >= 26 {
            name.push(letter(site / 26));
        }
        name.push(letter(site));
    }

    /// Numbers of all topics in the order in which they are written: device by device, with the devices in a scattered
    /// order.
    pub(super) fn scattered(self) -> impl Iterator<Item = u64> {
        // With steps of a prime length that does not divide the number of devices, each device is visited once.
        const STEP: u64 = 15_485_863;
        let devices = self.all_devices();
        let numbered = (0..devices).flat_map(move |i| {
            let device = i * STEP % devices;
            device * NUMBERED..(device + 1) * NUMBERED
        });
        numbered.chain(devices * NUMBERED..self.topics())
    }

    /// The questions of the suite.
    pub(super) fn questions(self) -> [Question; 4] {
        let of = |case, filter, matches| Question {
            case,
            filter,
            matches,
        };
        [
            of("a-b-plus-4", "a/b/+/4", self.devices),
            of("a-all", "a/#", self.sites * (self.devices * NUMBERED + 1)),
            of("plus-plus-x", "+/+/x", REGIONS * self.sites),
            of("all", "#", self.topics()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_questions_have_their_matches() {
        for topics in [1, 5000, 1_000_000] {
            let sites = Sites::of(topics);
            let mut name = String::new();
            let names: BTreeSet<String> = sites
                .scattered()
                .map(|n| {
                    sites.name(n, &mut name);
                    name.clone()
                })
                .collect();
            assert_eq!(names.len() as u64, sites.topics());
            for question in sites.questions() {
                let filter = tidalite::topics::Filter::parse(question.filter).unwrap();
                let found = names.iter().filter(|name| filter.matches(name)).count();
                assert_eq!(found as u64, question.matches, "{}", question.filter);
            }
        }
        let all = Telemetry::of(5000).all();
        assert_eq!(all.len(), 5000);
        assert_eq!(all[50], "dev/1/telemetry/speed");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 5000);
    }

    #[test]
    fn payloads_tell_their_topic() {
        assert_eq!(parsed(&payload(7, 9)).unwrap(), (7, 9));
        assert!(parsed(b"short").is_err());
        assert!(parsed(&[0; 17]).is_err());
    }
}
