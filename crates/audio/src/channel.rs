//! Which channel of a stereo recording is the call: always somebody's explicit choice.

use std::borrow::Cow;
use std::fmt;

use crate::decode::Recording;
use crate::error::AudioError;
use crate::info::Warning;

/// What to take of a stereo recording. Mono recordings are taken whole whatever the choice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// The first channel; often the agent.
    Left,
    /// The second channel; often the customer.
    Right,
    /// The average of both.
    Mix,
}

impl Channel {
    /// The word used in manifests, e.g. `left`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Mix => "mix",
        }
    }

    /// The choice that a word stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Left, Self::Right, Self::Mix].into_iter().find(|c| c.name() == name)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One channel of a recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Taken<'a> {
    /// Its samples, full scale 1.0.
    pub samples: Cow<'a, [f32]>,
    /// Which channel it is; empty when the recording is mono.
    pub channel: Option<Channel>,
    /// What is odd about the choice.
    pub warning: Option<Warning>,
}

impl Recording {
    /// Takes the chosen channel.
    ///
    /// # Errors
    /// [`AudioError::ChannelNotChosen`] when the recording is stereo and `choice` is empty.
    pub fn take(&self, choice: Option<Channel>) -> Result<Taken<'_>, AudioError> {
        let (left, right) = match self.channels.as_slice() {
            [mono] => return Ok(Taken { samples: Cow::Borrowed(mono), channel: None, warning: None }),
            [left, right] => (left, right),
            more => {
                return Err(AudioError::Channels { channels: u16::try_from(more.len()).unwrap_or(u16::MAX) });
            }
        };
        let channel = choice.ok_or(AudioError::ChannelNotChosen)?;
        let (samples, warning) = match channel {
            Channel::Left => (Cow::Borrowed(left.as_slice()), None),
            Channel::Right => (Cow::Borrowed(right.as_slice()), None),
            Channel::Mix => {
                let mixed: Vec<f32> = left.iter().zip(right).map(|(l, r)| f32::midpoint(*l, *r)).collect();
                let cancelled = power(&mixed) < 0.01 * power(left).min(power(right));
                (Cow::Owned(mixed), cancelled.then_some(Warning::OppositePhase))
            }
        };
        Ok(Taken { samples, channel: Some(channel), warning })
    }
}

fn power(samples: &[f32]) -> f64 {
    samples.iter().map(|&s| f64::from(s) * f64::from(s)).sum()
}
