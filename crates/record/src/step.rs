//! Which step of a run: what was played there, and how the step is called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A test case, as far as it plays steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Case {
    /// One stream.
    #[serde(rename = "tc01")]
    SingleStream,
    /// What streams cost.
    #[serde(rename = "tc02")]
    Footprint,
    /// The ladder.
    #[serde(rename = "tc03")]
    Ladder,
    /// Long calls.
    #[serde(rename = "tc03b")]
    LongCalls,
    /// Words under load.
    #[serde(rename = "tc04")]
    Quality,
    /// Hours of load.
    #[serde(rename = "tc05")]
    Soak,
    /// Fault injection.
    #[serde(rename = "tc06")]
    Fault,
    /// The same card cut in other ways.
    #[serde(rename = "tc07")]
    Topology,
    /// A tier of the ladder again.
    #[serde(rename = "tc08")]
    Repeatability,
    /// Open-loop arrivals.
    #[serde(rename = "arrivals")]
    Arrivals,
    /// A case that this version does not know.
    #[serde(rename = "other")]
    Other,
}

impl Case {
    const NAMED: [(Self, &str); 8] = [
        (Self::SingleStream, "tc01"),
        (Self::Footprint, "tc02"),
        (Self::LongCalls, "tc03b"),
        (Self::Quality, "tc04"),
        (Self::Soak, "tc05"),
        (Self::Fault, "tc06"),
        (Self::Topology, "tc07"),
        (Self::Repeatability, "tc08"),
    ];
}

/// What the streams of a step play.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// The case's tape.
    #[default]
    Tape,
    /// Calls drawn from a whole pool of recordings.
    Pool,
}

/// How fast calls are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceKind {
    /// As they are spoken.
    #[default]
    Real,
    /// As fast as the server takes them.
    Off,
}

/// Which step of a run. Its name in files is what [`Display`](fmt::Display) gives; two steps of one run never share it.
///
/// ```
/// use tapedeck_record::step::{Case, StepId};
///
/// let again = StepId { loops: Some(8), repetition: 2, ..StepId::new(Case::Ladder, 48) };
/// assert_eq!(again.to_string(), "N048-x8-r2");
/// assert_eq!(StepId::parse("N048-x8-r2"), again);
/// assert!(again.supersedes(&StepId { repetition: 2, ..StepId::new(Case::Ladder, 48) }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId {
    /// The case that played it.
    pub case: Case,
    /// Concurrent streams; of open-loop arrivals what was expected of them.
    pub streams: u32,
    /// What tells it from other steps of its case, beside the streams: the topology's name, the fault with the share of
    /// N* in percent (`kill-100`), the rate of arrivals; of a case that is not known its whole name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the streams play.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content: ContentKind,
    /// How fast calls are sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: PaceKind,
    /// Loops of the tape, where the step was played again with more of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<u32>,
    /// Which of the repetitions that were asked for, from 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub repetition: u32,
    /// Which of the runs in a merged ladder it comes from, from 1, among those that played it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub merged: u32,
    /// Whether it refines the ladder rather than climbs it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub refinement: bool,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_one(n: &u32) -> bool {
    *n == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl StepId {
    /// The plain step of a case at so many streams.
    #[must_use]
    pub const fn new(case: Case, streams: u32) -> Self {
        Self {
            case,
            streams,
            label: None,
            content: ContentKind::Tape,
            pace: PaceKind::Real,
            loops: None,
            repetition: 1,
            merged: 1,
            refinement: false,
        }
    }

    /// The same with what tells it from other steps of its case.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// What a step of this name is: for journals of schema 1, which hold names only. Where the name does not tell the
    /// streams they are 0; a name of another origin is a step of [`Case::Other`].
    #[must_use]
    pub fn parse(name: &str) -> Self {
        Self::parse_known(name)
            .filter(|id| id.to_string() == name)
            .unwrap_or_else(|| Self::new(Case::Other, 0).with_label(name))
    }

    fn parse_known(name: &str) -> Option<Self> {
        if let Some(rate) = name.strip_prefix('A') {
            return Some(Self::new(Case::Arrivals, 0).with_label(rate));
        }
        if let Some((case, rest)) = name.split_once('-')
            && let Some((case, _)) = Case::NAMED.into_iter().find(|(_, word)| *word == case)
        {
            return match (case, rest.rsplit_once("-N")) {
                (Case::Soak, _) => Some(Self::new(case, 0)),
                (Case::Fault, _) => Some(Self::new(case, 0).with_label(rest)),
                (Case::Topology, Some((topology, n))) => {
                    Some(Self::new(case, n.parse().ok()?).with_label(topology))
                }
                _ => Some(Self::new(case, rest.strip_prefix('N')?.parse().ok()?)),
            };
        }
        let mut id = Self::new(Case::Ladder, 0);
        let mut rest = name;
        if let Some(after) = rest.strip_prefix("offline-") {
            (id.pace, rest) = (PaceKind::Off, after);
        }
        if let Some(after) = rest.strip_prefix("pool-") {
            (id.content, rest) = (ContentKind::Pool, after);
        }
        let mut parts = rest.strip_prefix('N')?.split('-');
        id.streams = parts.next()?.parse().ok()?;
        for part in parts {
            match (part.strip_prefix('x'), part.strip_prefix('r')) {
                (Some(loops), _) => id.loops = Some(loops.parse().ok()?),
                (_, Some(nth)) => id.repetition = nth.parse().ok()?,
                _ => id.merged = part.parse().ok()?,
            }
        }
        Some(id)
    }

    /// Whether it is a tier of the ladder that is climbed on the tape, at the pace of speech: the one that N* follows
    /// from.
    #[must_use]
    pub fn is_tier(&self) -> bool {
        self.case == Case::Ladder && self.content == ContentKind::Tape && self.pace == PaceKind::Real
    }

    /// Whether it is the same step again with more loops, so that it stands in the place of `other`.
    #[must_use]
    pub fn supersedes(&self, other: &Self) -> bool {
        let alike = |id: &Self| Self { loops: None, ..id.clone() };
        self.case == Case::Ladder && self.loops > other.loops && alike(self) == alike(other)
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label.as_deref().unwrap_or_default();
        let streams = self.streams;
        let case = Case::NAMED.into_iter().find(|(case, _)| *case == self.case).map_or("", |(_, word)| word);
        match self.case {
            Case::Other => return f.write_str(label),
            Case::Arrivals => return write!(f, "A{label}"),
            Case::Soak => return write!(f, "{case}-soak"),
            Case::Fault => return write!(f, "{case}-{label}"),
            Case::Topology => return write!(f, "{case}-{label}-N{streams:03}"),
            Case::Ladder => {}
            _ => return write!(f, "{case}-N{streams:03}"),
        }
        if self.pace == PaceKind::Off {
            f.write_str("offline-")?;
        }
        if self.content == ContentKind::Pool {
            f.write_str("pool-")?;
        }
        write!(f, "N{streams:03}")?;
        if let Some(loops) = self.loops {
            write!(f, "-x{loops}")?;
        }
        if self.repetition > 1 {
            write!(f, "-r{}", self.repetition)?;
        }
        if self.merged > 1 {
            write!(f, "-{}", self.merged)?;
        }
        Ok(())
    }
}

/// The steps that N* follows from: whole tiers of the ladder on the tape, in their order. Every repetition of a tier
/// counts; of a tier that was played again with more loops because only its estimate decided, the last one does.
/// `id` gives a step's id, or nothing for one that was cut short.
pub fn ladder_tiers<T>(steps: &[T], id: impl Fn(&T) -> Option<&StepId>) -> Vec<&T> {
    let tiers: Vec<(&T, &StepId)> =
        steps.iter().filter_map(|step| Some((step, id(step).filter(|id| id.is_tier())?))).collect();
    let superseded = |one: &StepId| tiers.iter().any(|(_, other)| other.supersedes(one));
    tiers.iter().filter(|(_, id)| !superseded(id)).map(|(step, _)| *step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_as_it_was_made() {
        let ladder = |n| StepId::new(Case::Ladder, n);
        for (name, id) in [
            ("N048", ladder(48)),
            ("N1200", ladder(1200)),
            ("N048-r2", StepId { repetition: 2, ..ladder(48) }),
            ("N048-x2", StepId { loops: Some(2), ..ladder(48) }),
            ("N048-x8-r3", StepId { loops: Some(8), repetition: 3, ..ladder(48) }),
            ("N048-2", StepId { merged: 2, ..ladder(48) }),
            ("N048-x4-2", StepId { loops: Some(4), merged: 2, ..ladder(48) }),
            ("pool-N024", StepId { content: ContentKind::Pool, ..ladder(24) }),
            ("offline-N006", StepId { pace: PaceKind::Off, ..ladder(6) }),
            ("tc01-N001", StepId::new(Case::SingleStream, 1)),
            ("tc02-N000", StepId::new(Case::Footprint, 0)),
            ("tc03b-N030", StepId::new(Case::LongCalls, 30)),
            ("tc04-N048", StepId::new(Case::Quality, 48)),
            ("tc05-soak", StepId::new(Case::Soak, 0)),
            ("tc06-kill-100", StepId::new(Case::Fault, 0).with_label("kill-100")),
            ("tc07-1x0.92-N048", StepId::new(Case::Topology, 48).with_label("1x0.92")),
            ("tc07-a-N2-N048", StepId::new(Case::Topology, 48).with_label("a-N2")),
            ("tc08-N024", StepId::new(Case::Repeatability, 24)),
            ("A00120.000", StepId::new(Case::Arrivals, 0).with_label("00120.000")),
            ("A-replay", StepId::new(Case::Arrivals, 0).with_label("-replay")),
        ] {
            assert_eq!(StepId::parse(name), id, "{name}");
            assert_eq!(id.to_string(), name);
            let json = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<StepId>(&json).unwrap(), id, "{json}");
        }
        for foreign in ["", "N", "N48", "Nx", "N048-", "N048-q2", "tc04-", "tc09-N003", "N048-x2-x4"] {
            let id = StepId::parse(foreign);
            assert_eq!((id.case, id.to_string().as_str()), (Case::Other, foreign));
        }
    }

    #[test]
    fn of_a_tier_that_was_played_again_the_last_one_counts_and_every_repetition_does() {
        let names = [
            "tc01-N001",
            "N024",
            "N048",
            "N048-x2",
            "N048-x4",
            "N048-r2",
            "N048-x2-r2",
            "pool-N048",
            "offline-N048",
            "tc08-N024",
            "N024-2",
        ];
        let ids = names.map(StepId::parse);
        let tiers: Vec<String> =
            ladder_tiers(&ids, |id| Some(id)).into_iter().map(StepId::to_string).collect();
        assert_eq!(tiers, ["N024", "N048-x4", "N048-x2-r2", "N024-2"]);
        // A step that was cut short takes nobody's place.
        let whole = ladder_tiers(&ids, |id| Some(id).filter(|id| id.loops != Some(4)));
        assert_eq!(whole[1].to_string(), "N048-x2");
    }
}
