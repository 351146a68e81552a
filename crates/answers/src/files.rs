//! The files that answers are kept in, and how they are read.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tapedeck_rundir::{RunDirError, read_json};
use tapedeck_slo::Capacity;

use crate::{
    ArrivalsAnswer, CampaignAnswer, Ceiling, FaultAnswer, FootprintAnswer, LongCallsAnswer, QualityAnswer,
    RepeatabilityAnswer, Repeats, SingleStreamAnswer, SoakAnswer, TopologyAnswer,
};

/// N* of the ladder on the tape.
pub const CAPACITY: &str = "capacity.json";
/// N* of a ladder whose streams draw from a whole pool of recordings.
pub const CAPACITY_POOL: &str = "capacity-pool.json";

/// An answer that a case leaves as a file of its own.
pub trait AnswerFile: Serialize + DeserializeOwned {
    /// The file's name in the run directory.
    const FILE: &'static str;
}

macro_rules! kept_in {
    ($($answer:ty => $file:literal,)*) => {
        $(impl AnswerFile for $answer { const FILE: &'static str = $file; })*
    };
}

kept_in! {
    SingleStreamAnswer => "tc01.json",
    FootprintAnswer => "tc02.json",
    LongCallsAnswer => "tc03b.json",
    QualityAnswer => "tc04.json",
    SoakAnswer => "tc05.json",
    FaultAnswer => "tc06.json",
    TopologyAnswer => "tc07.json",
    RepeatabilityAnswer => "tc08.json",
    CampaignAnswer => "campaign.json",
    ArrivalsAnswer => "arrivals.json",
    Vec<Ceiling> => "offline.json",
    Vec<Repeats> => "repeats.json",
}

/// The answer of one case; nothing where there is no such file.
///
/// # Errors
/// A file that is there and cannot be read: damaged, or written by a newer version.
pub fn read<T: AnswerFile>(dir: &Path) -> Result<Option<T>, RunDirError> {
    read_json(dir, T::FILE)
}

/// Every answer that the cases left in one run directory.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// N* of the ladder, as the case wrote it down.
    pub capacity: Option<Capacity>,
    /// TC-01.
    pub single_stream: Option<SingleStreamAnswer>,
    /// TC-02.
    pub footprint: Option<FootprintAnswer>,
    /// TC-03b.
    pub long_calls: Option<LongCallsAnswer>,
    /// TC-04.
    pub quality: Option<QualityAnswer>,
    /// TC-05.
    pub soak: Option<SoakAnswer>,
    /// TC-06.
    pub fault: Option<FaultAnswer>,
    /// TC-07.
    pub topology: Option<TopologyAnswer>,
    /// TC-08.
    pub repeatability: Option<RepeatabilityAnswer>,
    /// The books of a campaign.
    pub campaign: Option<CampaignAnswer>,
    /// TC-03 without pace; empty unless the ladder was climbed so.
    pub offline: Option<Vec<Ceiling>>,
}

impl Answers {
    /// Reads them all. What is there and cannot be read is told, and its place stays empty.
    #[must_use]
    pub fn read(dir: &Path) -> (Self, Vec<RunDirError>) {
        let mut unread = Vec::new();
        let answers = Self {
            capacity: kept(read_json(dir, CAPACITY), &mut unread),
            single_stream: kept(read(dir), &mut unread),
            footprint: kept(read(dir), &mut unread),
            long_calls: kept(read(dir), &mut unread),
            quality: kept(read(dir), &mut unread),
            soak: kept(read(dir), &mut unread),
            fault: kept(read(dir), &mut unread),
            topology: kept(read(dir), &mut unread),
            repeatability: kept(read(dir), &mut unread),
            campaign: kept(read(dir), &mut unread),
            offline: kept(read(dir), &mut unread),
        };
        (answers, unread)
    }
}

fn kept<T>(read: Result<Option<T>, RunDirError>, unread: &mut Vec<RunDirError>) -> Option<T> {
    read.unwrap_or_else(|e| {
        unread.push(e);
        None
    })
}
