//! Who plays what at a load point.

use std::time::Duration;

use tapedeck_load::{Assignment, Item};
use tapedeck_record::Trace;
use tapedeck_stats::rng::Draws;
use tapedeck_tape::TapeCall;

use crate::error::CaseError;
use crate::loaded_tape::Role;
use crate::world::World;

/// One stream in so many plays the labelled tape where tapes are mixed: the first of each eight.
const LABELLED_EVERY: u32 = 8;
/// Streams of randomness that belong to the content; others belong to bootstraps.
const DRAWS: u64 = 1 << 32;

/// Who plays what at a load point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// Every stream plays this tape; stream k begins at call k mod C.
    Tape(Role),
    /// Every stream plays these calls of a tape, by their indices, in this order.
    Calls(Role, Vec<usize>),
    /// The first of each eight streams plays the labelled tape, the others Tape-A.
    Labelled,
    /// Each stream draws calls of its own from the pool, with this much audio in all; the run's seed decides which.
    Pool(Duration),
}

impl Default for Workload {
    fn default() -> Self {
        Self::Tape(Role::A)
    }
}

impl Workload {
    /// What the stream plays.
    #[must_use]
    pub const fn role(&self, stream: u32) -> Role {
        match self {
            Self::Tape(role) | Self::Calls(role, _) => *role,
            Self::Labelled if stream.is_multiple_of(LABELLED_EVERY) => Role::Labelled,
            Self::Labelled => Role::A,
            Self::Pool(_) => Role::Pool,
        }
    }

    /// How the tape is called in tables and reports.
    ///
    /// # Errors
    /// [`CaseError::NoTape`] where the world does not hold it.
    pub fn name(&self, world: &World) -> Result<String, CaseError> {
        match self {
            Self::Labelled => {
                let labelled = world.loaded_tape(Role::Labelled)?;
                Ok(format!("{}+{}", labelled.name(), world.loaded_tape(Role::A)?.name()))
            }
            other => Ok(world.loaded_tape(other.role(0))?.name().to_string()),
        }
    }

    /// Name of the tape whose words are compared with their references.
    ///
    /// # Errors
    /// [`CaseError::NoTape`] where the world does not hold it.
    pub fn scored_tape(&self, world: &World) -> Result<String, CaseError> {
        Ok(world.loaded_tape(self.role(0))?.name().to_string())
    }

    /// The same for the load generator.
    ///
    /// # Errors
    /// [`CaseError::NoTape`] where the world does not hold a tape that is played.
    pub fn assignment(&self, world: &World, streams: u32) -> Result<Assignment, CaseError> {
        Ok(match self {
            Self::Tape(role) => Assignment::All(world.loaded_tape(*role)?.prepared),
            Self::Calls(role, calls) => {
                let part = Item::new(world.loaded_tape(*role)?.prepared, 0).in_order(calls.clone());
                Assignment::Each(vec![part])
            }
            Self::Labelled => {
                let (labelled, rest) = (world.loaded_tape(Role::Labelled)?, world.loaded_tape(Role::A)?);
                let part = |k: u32| {
                    let (loaded_tape, nth) = match self.role(k) {
                        Role::Labelled => (&labelled, k / LABELLED_EVERY),
                        _ => (&rest, k),
                    };
                    let first = usize::try_from(nth).unwrap_or(0);
                    Item::new(loaded_tape.prepared.clone(), first).of_tape(loaded_tape.name())
                };
                Assignment::Each((0..streams).map(part).collect())
            }
            Self::Pool(audio) => {
                let loaded_tape = world.loaded_tape(Role::Pool)?;
                let lengths: Vec<Duration> = loaded_tape.prepared.calls().iter().map(|c| c.audio()).collect();
                let part = |k: u32| {
                    let mut draws = Draws::new(world.config.run.seed, DRAWS + u64::from(k));
                    Item::new(loaded_tape.prepared.clone(), 0).in_order(draw(&lengths, *audio, &mut draws))
                };
                Assignment::Each((0..streams).map(part).collect())
            }
        })
    }

    /// The call that a trace is of.
    #[must_use]
    pub fn call<'a>(&self, world: &'a World, trace: &Trace) -> Option<&'a TapeCall> {
        let index = usize::try_from(trace.call).ok()?;
        world.tape_of(self.role(trace.stream))?.calls.get(index)
    }

    /// Whether the words of this stream's calls are compared with their references: where tapes are mixed, only those
    /// of the labelled one, so that every point compares the same calls.
    #[must_use]
    pub fn scores_words(&self, stream: u32) -> bool {
        !matches!(self, Self::Labelled) || self.role(stream) == Role::Labelled
    }
}

/// Calls drawn until their audio reaches `audio`: each at most once before all have been drawn.
fn draw(lengths: &[Duration], audio: Duration, draws: &mut Draws) -> Vec<usize> {
    let mut all: Vec<usize> = (0..lengths.len()).collect();
    let mut drawn = Vec::new();
    let mut sum = Duration::ZERO;
    let total: Duration = lengths.iter().sum();
    while sum < audio && !total.is_zero() {
        draws.shuffle(&mut all);
        for &call in &all {
            if sum >= audio {
                break;
            }
            sum += lengths.get(call).copied().unwrap_or_default();
            drawn.push(call);
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn every_call_is_drawn_once_before_any_is_drawn_again() {
        let lengths = [30 * S, 60 * S, 20 * S, 10 * S];
        let drawn = draw(&lengths, 180 * S, &mut Draws::new(1, 2));
        let mut first: Vec<usize> = drawn.iter().take(4).copied().collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3]);
        let sum: Duration = drawn.iter().map(|&c| lengths[c]).sum();
        assert!(sum >= 180 * S && sum < 240 * S, "{sum:?}");
        assert_eq!(drawn, draw(&lengths, 180 * S, &mut Draws::new(1, 2)));
        assert_ne!(drawn, draw(&lengths, 180 * S, &mut Draws::new(1, 3)));
    }

    #[test]
    fn an_empty_pool_draws_nothing() {
        assert!(draw(&[], 10 * S, &mut Draws::new(1, 2)).is_empty());
        assert!(draw(&[Duration::ZERO], 10 * S, &mut Draws::new(1, 2)).is_empty());
    }

    #[test]
    fn one_stream_in_eight_is_labelled() {
        let labelled = |n: u32| (0..n).filter(|&k| Workload::Labelled.role(k) == Role::Labelled).count();
        assert_eq!([1, 8, 9, 24, 90].map(labelled), [1, 1, 2, 3, 12]);
        assert!(Workload::Labelled.scores_words(8) && !Workload::Labelled.scores_words(9));
        assert!(Workload::Tape(Role::A).scores_words(9));
    }
}
