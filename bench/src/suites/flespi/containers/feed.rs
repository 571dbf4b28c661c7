//! The messages of the part `containers`: telemetry of devices that send in turn. Each numeric field of a device is a
//! random walk.
//!
//! A message is a JSON object of about 300 bytes with 20 fields: 12 numbers with one to three decimals, 3 integers, 2
//! booleans, 2 texts, and a position, which is an object of three numbers. The plan determines all messages, so every
//! store gets the same ones. [`Known`] keeps all data from which the correct answers are computed.

use std::fmt::Write as _;
use std::ops::Range;

use super::answer::{Answer, HOUR, Hour, Span};
use crate::engine::data::Random;

/// 2024-01-01, in nanoseconds since 1970: a full hour.
const BEGIN: i64 = 1_704_067_200_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// The filter of the part, in both languages. [`Walk::matches`] evaluates the same condition.
pub(super) const FILTER: &str = "engine > 90 && sats >= 12";
pub(super) const FILTER_SQL: &str =
    "json_extract(body, '$.engine') > 90 AND json_extract(body, '$.sats') >= 12";
/// The fields of the projection.
pub(super) const PROJECTED: [&str; 3] = ["speed", "battery", "pos.lat"];

/// A number that changes at random: its name, number of decimals, least and greatest value, and the greatest change
/// between two messages. Values are in units of the last decimal.
struct Number(&'static str, u32, i64, i64, i64);

const SPEED: usize = 0;
const BATTERY: usize = 3;
const ENGINE_TEMP: usize = 4;
/// Number of fields with decimals, which are the first fields.
const DECIMALS: usize = 11;
const RPM: usize = 11;
const SATELLITES: usize = 12;
/// Number of the fields before the position.
const PLAIN: usize = 14;
const LATITUDE: usize = 14;
const LONGITUDE: usize = 15;
const ALTITUDE: usize = 16;

const NUMBERS: [Number; 17] = [
    Number("speed", 1, 0, 1300, 30),
    Number("course", 1, 0, 3599, 50),
    Number("power", 2, 2300, 2900, 5),
    Number("battery", 2, 1100, 1420, 3),
    Number("engine", 1, 200, 1100, 5),
    Number("cabin", 1, -100, 450, 3),
    Number("fuel", 1, 0, 1000, 4),
    Number("humid", 1, 100, 1000, 5),
    Number("air", 1, 9600, 10_500, 3),
    Number("hdop", 1, 5, 60, 1),
    Number("shock", 3, 0, 2000, 200),
    Number("rpm", 0, 600, 6000, 150),
    Number("sats", 0, 3, 24, 1),
    Number("rssi", 0, -113, -51, 3),
    Number("lat", 5, 4_700_000, 5_500_000, 40),
    Number("lon", 5, 600_000, 1_500_000, 40),
    Number("alt", 0, 0, 900, 2),
];

/// The number of messages, the number of devices, and the interval between the messages of a device.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) devices: u64,
    /// Number of messages of each device; a multiple of `together`.
    pub(super) each: u64,
    /// Number of messages that a device sends at once, before the next device sends.
    pub(super) together: u64,
    /// Time between two messages of a device in nanoseconds.
    pub(super) step: i64,
}

impl Plan {
    /// At most ten thousand devices, which send every minute. Each has at least 20 messages.
    pub(super) fn many(messages: u64) -> Self {
        let devices = (messages / 20).clamp(1, 10_000);
        Self {
            devices,
            each: (messages / devices).max(20),
            together: 1,
            step: 60 * SECOND,
        }
    }

    /// The same devices, each of which collects ten messages and sends them together.
    pub(super) fn collected(messages: u64) -> Self {
        let plan = Self::many(messages);
        Self {
            each: plan.each.next_multiple_of(10),
            together: 10,
            ..plan
        }
    }

    /// One device, which sends every second.
    pub(super) fn single(messages: u64) -> Self {
        Self {
            devices: 1,
            each: messages.max(20),
            together: 1,
            step: SECOND,
        }
    }

    pub(super) fn messages(self) -> u64 {
        self.devices * self.each
    }

    /// The device of the message at `position` of the feed, and its number among the messages of this device.
    fn at(self, position: u64) -> (u64, u64) {
        let (turn, in_turn) = (position / self.turn(), position % self.turn());
        let (device, in_packet) = (in_turn / self.together, in_turn % self.together);
        (device, turn * self.together + in_packet)
    }

    /// The inverse of `at`.
    fn position(self, device: u64, nth: u64) -> u64 {
        let (turn, in_packet) = (nth / self.together, nth % self.together);
        turn * self.turn() + device * self.together + in_packet
    }

    /// Number of messages until the first device sends again.
    fn turn(self) -> u64 {
        self.devices * self.together
    }

    /// Time of a message of a device. All devices have different times.
    fn time(self, device: u64, nth: u64) -> i64 {
        BEGIN + nth as i64 * self.step + device as i64
    }

    /// The interval that contains exactly these messages of a device.
    pub(super) fn span(self, device: u64, nth: &Range<u64>) -> Span {
        Span {
            device: device as usize,
            from: self.time(device, nth.start),
            to: self.time(device, nth.end) - 1,
        }
    }
}

/// The state of a device.
#[derive(Clone)]
struct Walk {
    numbers: [i64; NUMBERS.len()],
    odometer: i64,
}

impl Walk {
    fn new(random: &mut Random) -> Self {
        let within = |Number(_, _, least, greatest, _): &Number, random: &mut Random| {
            least + random.below((greatest - least + 1) as u64) as i64
        };
        Self {
            numbers: std::array::from_fn(|i| within(&NUMBERS[i], random)),
            odometer: random.below(1_000_000) as i64,
        }
    }

    fn go_on(&mut self, random: &mut Random) {
        for (value, Number(_, _, least, greatest, step)) in self.numbers.iter_mut().zip(&NUMBERS) {
            let change = random.below(2 * *step as u64 + 1) as i64 - step;
            *value = (*value + change).clamp(*least, *greatest);
        }
        self.odometer += self.numbers[SPEED] / 60;
    }

    fn matches(&self) -> bool {
        self.numbers[ENGINE_TEMP] > 900 && self.numbers[SATELLITES] >= 12
    }

    fn json(&self, device: u64) -> String {
        let mut text = String::with_capacity(400);
        let number = |text: &mut String, i: usize| {
            let Number(name, decimals, ..) = NUMBERS[i];
            let value = decimal(self.numbers[i], decimals);
            // Writing to a `String` cannot fail, so the result is ignored here and below.
            let _ = write!(text, r#""{name}":{value:.*},"#, decimals as usize);
        };
        text.push('{');
        for i in 0..DECIMALS {
            number(&mut text, i);
        }
        let _ = write!(text, r#""km":{:.1},"#, decimal(self.odometer, 1));
        for i in DECIMALS..PLAIN {
            number(&mut text, i);
        }
        let is_moving = self.numbers[SPEED] > 20;
        let has_ignition = is_moving || self.numbers[RPM] > 800;
        let state = match (is_moving, has_ignition) {
            (true, _) => "driving",
            (false, true) => "idle",
            (false, false) => "parked",
        };
        let cell = (device * 31 + self.numbers[LONGITUDE].unsigned_abs() / 100) % 65_536;
        let _ = write!(
            text,
            r#""key":{has_ignition},"moving":{is_moving},"state":"{state}","cell":"262-01-{cell:04x}","pos":{{"#
        );
        for i in [LATITUDE, LONGITUDE, ALTITUDE] {
            number(&mut text, i);
        }
        // Removes the comma after the last number of the position.
        text.pop();
        text.push_str("}}");
        text
    }
}

fn decimal(value: i64, decimals: u32) -> f64 {
    value as f64 / 10f64.powi(decimals as i32)
}

/// A message that is not stored yet.
pub(super) struct Telemetry {
    pub(super) device: usize,
    pub(super) time: i64,
    pub(super) text: String,
    /// Two of the numbers in the text.
    pub(super) speed: f64,
    pub(super) battery: f64,
}

/// Generates all messages in the order in which they are stored: the first message or messages of each device, then
/// the next ones, and so on.
pub(super) struct Feed {
    plan: Plan,
    walks: Vec<Walk>,
    random: Random,
    next: u64,
    known: Known,
}

impl Feed {
    pub(super) fn new(plan: Plan) -> Self {
        let mut random = Random::new(61);
        let walks = (0..plan.devices).map(|_| Walk::new(&mut random));
        Self {
            walks: walks.collect(),
            random,
            plan,
            next: 0,
            known: Known::new(plan),
        }
    }

    /// The data about all messages; call it after the last message.
    pub(super) fn known(self) -> Known {
        self.known
    }
}

impl Iterator for Feed {
    type Item = Telemetry;

    fn next(&mut self) -> Option<Telemetry> {
        if self.next == self.plan.messages() {
            return None;
        }
        let (device, nth) = self.plan.at(self.next);
        self.next += 1;
        let walk = &mut self.walks[device as usize];
        walk.go_on(&mut self.random);
        let time = self.plan.time(device, nth);
        self.known.take(walk, time);
        Some(Telemetry {
            device: device as usize,
            time,
            text: walk.json(device),
            speed: decimal(walk.numbers[SPEED], 1),
            battery: decimal(walk.numbers[BATTERY], 2),
        })
    }
}

/// Data from which the correct answers are computed.
pub(super) struct Known {
    plan: Plan,
    /// The speed of each message in tenths.
    speeds: Vec<i16>,
    /// Answers over all messages.
    pub(super) documents: Answer,
    pub(super) projected: Answer,
    pub(super) filtered: Answer,
}

impl Known {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            speeds: Vec::with_capacity(plan.messages() as usize),
            documents: Answer::default(),
            projected: Answer::default(),
            filtered: Answer::default(),
        }
    }

    fn take(&mut self, walk: &Walk, time: i64) {
        let speed = walk.numbers[SPEED];
        self.speeds.push(speed as i16);
        self.documents.add(time, speed);
        let projected = speed + walk.numbers[BATTERY] + walk.numbers[LATITUDE];
        self.projected.add(time, projected);
        if walk.matches() {
            self.filtered.add(time, speed);
        }
    }

    fn speed(&self, device: u64, nth: u64) -> i64 {
        i64::from(self.speeds[self.plan.position(device, nth) as usize])
    }

    /// The correct answer for these messages of a device, read as whole documents.
    pub(super) fn of(&self, device: u64, nth: Range<u64>) -> Answer {
        let mut answer = Answer::default();
        for nth in nth {
            answer.add(self.plan.time(device, nth), self.speed(device, nth));
        }
        answer
    }

    /// The correct hourly figures for all messages of a device.
    pub(super) fn hours(&self, device: u64) -> Vec<Hour> {
        let mut hours: Vec<Hour> = Vec::new();
        for nth in 0..self.plan.each {
            let (time, speed) = (self.plan.time(device, nth), self.speed(device, nth));
            let start = time.div_euclid(HOUR) * HOUR;
            match hours.last_mut().filter(|hour| hour.start == start) {
                Some(hour) => {
                    hour.count += 1;
                    hour.sum += speed;
                    hour.max = hour.max.max(speed);
                }
                None => hours.push(Hour {
                    start,
                    count: 1,
                    sum: speed,
                    max: speed,
                }),
            }
        }
        hours
    }
}
