//! What fault injection answers (TC-06).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, StaticText, localized, reason};
use tapedeck_record::{ExitCode, Outcome, Schema};
use tapedeck_slo::Recovery;

use crate::n_star::NStar;

/// What fault injection answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultAnswer {
    /// Version of the file.
    #[serde(default = "Schema::first")]
    pub schema: Schema,
    /// N*, and where it comes from.
    pub n_star: NStar,
    /// One after the other.
    pub incidents: Vec<Incident>,
    /// What is wrong; nothing is a pass.
    pub complaints: Vec<FaultReason>,
    /// What could not be told, and why.
    pub unknown: Vec<FaultReason>,
    /// Where everything is written down.
    pub run: PathBuf,
    /// Whether the engines were the built-in ones.
    pub simulated: bool,
    /// Whether the user stopped it before its end.
    pub interrupted: bool,
}

impl FaultAnswer {
    /// The exit code: 0 the limit was met, 1 it was not, 4 nothing shows whether it was.
    #[must_use]
    pub const fn exit_code(&self) -> ExitCode {
        if self.interrupted {
            ExitCode::Interrupted
        } else if !self.complaints.is_empty() {
            ExitCode::No
        } else if !self.unknown.is_empty() {
            ExitCode::Undecidable
        } else {
            ExitCode::Ok
        }
    }
}

/// What is done to an instance, or to the balancer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The process is killed, later started.
    #[default]
    Kill,
    /// The process is stopped where it is (SIGSTOP), later goes on.
    Freeze,
    /// The balancer is stopped and started at once.
    BalancerRestart,
}

impl Fault {
    /// Its word in file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::BalancerRestart => "balancer",
        }
    }

    /// What was done, as the begin of a sentence.
    #[must_use]
    pub const fn done(self) -> StaticText {
        match self {
            Self::Kill => StaticText::new("killed", "杀死"),
            Self::Freeze => StaticText::new("froze", "冻结"),
            Self::BalancerRestart => StaticText::new("restarted", "重启"),
        }
    }
}

/// When what was done, seconds on the run's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What was done.
    pub fault: Fault,
    /// To which instance (or the balancer).
    pub instance: String,
    /// When the fault command was given.
    pub fault_s: f64,
    /// When the command was given that ends it; empty where none could be given.
    pub start_s: Option<f64>,
    /// When the instance was well again.
    pub well_s: Option<f64>,
    /// When watching ended.
    pub until_s: f64,
}

/// Calls and what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toll {
    /// Calls.
    pub calls: u64,
    /// Those that errored, by outcome.
    pub errors: BTreeMap<Outcome, u64>,
}

impl Toll {
    /// Errored calls.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// What the stream that is pinned to one instance lived through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// The instance.
    pub instance: String,
    /// Its calls before the fault.
    pub before: Toll,
    /// Its calls from the fault on.
    pub after: Toll,
    /// p95 of the lag before the fault, seconds.
    pub lag_before_p95_s: Option<f64>,
    /// p95 of the lag from the fault until it was ended, seconds; empty where nothing was owed or answered.
    pub lag_during_p95_s: Option<f64>,
    /// When, after the fault, a call on it went well again, seconds from the fault.
    pub served_again_s: Option<f64>,
}

/// What a fault did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Streams that were played in all.
    pub streams: u32,
    /// Those of them that went through the balancer; the others are pinned, one to each instance.
    pub streams_balanced: u32,
    /// That load / N*.
    pub share: f64,
    /// When what was done.
    pub timeline: Timeline,
    /// Calls that were open on the instance when the fault came.
    pub in_flight: Toll,
    /// Calls that were open elsewhere.
    pub in_flight_elsewhere: Toll,
    /// Calls that began between the fault and the instance's return.
    pub new_calls: Toll,
    /// Seconds from the fault to the begin of the last new call that was lost (or still went to the instance); 0 where
    /// none was lost; empty where calls were lost right up to the return, so that nobody can say.
    pub ejected_s: Option<f64>,
    /// Calls that began after the return.
    pub calls_after_return: Toll,
    /// Seconds from the start command to the begin of the first call that the instance served through the balancer.
    pub rejoined_s: Option<f64>,
    /// Lag in steps from the fault on, and when it was good again.
    pub recovery: Recovery,
    /// The same, as if watching had ended when the fault was ended: what the survivors managed by themselves.
    pub alone: Recovery,
    /// Seconds from the fault until lag was within its limit for good, as far as was watched, with its return; empty where
    /// it was not.
    pub back_s: Option<f64>,
    /// The same until the fault was ended.
    pub alone_back_s: Option<f64>,
    /// Whether that was soon enough; empty where nothing shows it.
    pub alone_in_time: Option<bool>,
    /// Whether a client that wants every call to come through has to try again.
    pub retries_needed: bool,
    /// One stream straight to each instance.
    pub pinned: Vec<Pinned>,
}

impl Incident {
    /// Whether the survivors kept up soon enough without the instance; empty where nothing shows it.
    #[must_use]
    pub const fn recovered(&self) -> Option<bool> {
        self.alone_in_time
    }

    /// What happened, in plain sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<LocalizedText> {
        let Timeline { fault, instance, start_s, well_s, fault_s, .. } = &self.timeline;
        let (streams, share) = (self.streams, self.share);
        let mut said = vec![
            localized!(
                "{} {instance} at {streams} streams ({share:.2} N*)",
                "{streams} 路（{share:.2} N*）时{} {instance}"; fault.done()
            ),
            localized!("{} in flight on it broke{}", "其上进行中的通话{}中断{}"; of(&self.in_flight), listed(&self.in_flight)),
        ];
        if self.in_flight_elsewhere.broken() > 0 {
            let elsewhere = &self.in_flight_elsewhere;
            said.push(localized!(
                "{} in flight elsewhere broke as well{}",
                "别处进行中的通话也有{}中断{}"; of(elsewhere), listed(elsewhere)
            ));
        }
        said.push(match self.ejected_s {
            Some(s) if s <= 0.0 => localized!("the balancer lost no new call", "负载均衡没有丢失新通话"),
            Some(s) => localized!(
                "the balancer lost its last new call {s:.1} s after the fault",
                "负载均衡在故障后 {s:.1} s 丢失最后一通新通话"
            ),
            None => localized!(
                "the balancer lost new calls for as long as the fault lasted",
                "整个故障期间负载均衡都在丢失新通话"
            ),
        });
        let Toll { calls, .. } = self.new_calls;
        let failed = self.new_calls.broken();
        said.push(localized!(
            "{failed} of {calls} new calls failed{}",
            "{calls} 通新通话中有 {failed} 通失败{}"; listed(&self.new_calls)
        ));
        let alone = StaticText::new("without it", "缺少它时");
        said.push(overload(&self.alone, self.alone_back_s, alone));
        if start_s.is_some() {
            let returned = StaticText::new("with its return", "它恢复后");
            said.push(overload(&self.recovery, self.back_s, returned));
        }
        said.push(match (start_s, well_s, self.rejoined_s) {
            (None, ..) => localized!("it was not brought back", "没有让它恢复"),
            (Some(_), None, _) => {
                localized!("it was told to come back and did not become well", "已令其恢复，但没有恢复正常")
            }
            (Some(start), Some(well), Some(rejoined)) => {
                let (after, well) = (start - fault_s, well - start);
                localized!(
                    "told to come back {after:.0} s after the fault, it was well {well:.1} s later and served its first call {rejoined:.1} s later",
                    "故障后 {after:.0} s 令其恢复，{well:.1} s 后正常，{rejoined:.1} s 后接到第一通"
                )
            }
            (Some(_), Some(_), None) => localized!(
                "it came back well, but the balancer gave it no call",
                "它已恢复正常，但负载均衡没有给它通话"
            ),
        });
        said.push(if self.retries_needed {
            localized!("clients have to retry: calls were lost", "客户端必须重试：有通话丢失")
        } else {
            localized!("no client had to retry", "没有客户端需要重试")
        });
        said
    }
}

/// Whether anything shows how far answers lagged.
#[must_use]
pub fn known(recovery: &Recovery) -> bool {
    recovery.steps.iter().any(|s| s.lag_p95_s.is_some())
}

fn of(toll: &Toll) -> LocalizedText {
    let (broken, calls) = (toll.broken(), toll.calls);
    localized!("{broken} of {calls} calls", "（共 {calls} 通）有 {broken} 通")
}

fn listed(toll: &Toll) -> LocalizedText {
    let errors: Vec<String> = toll.errors.iter().map(|(o, n)| format!("{n} {}", o.name())).collect();
    match errors.is_empty() {
        true => LocalizedText::default(),
        false => localized!(" ({})", "（{}）", errors.join(", ")),
    }
}

fn overload(recovery: &Recovery, back_s: Option<f64>, when: StaticText) -> LocalizedText {
    match (recovery.overloaded, back_s) {
        (false, Some(_)) => localized!("{}, lag stayed within its limit", "{}，欠账延迟未超上限"; when),
        (true, Some(s)) => localized!(
            "{}, lag was back within its limit {s:.0} s after the fault",
            "{}，欠账延迟在故障后 {s:.0} s 回到上限以内"; when
        ),
        (_, None) if !known(recovery) => {
            localized!("{}, nothing shows how far answers lagged", "{}，看不出应答落后多少"; when)
        }
        (_, None) => {
            localized!("{}, lag did not come back within its limit", "{}，欠账延迟没有回到上限以内"; when)
        }
    }
}

/// What is wrong after a fault, or could not be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum FaultReason {
    /// The other instances did not keep up soon enough.
    NotInTime {
        /// Streams that were played.
        streams: u32,
    },
    /// Nothing shows how soon they did.
    InTimeUnknown {
        /// Streams that were played.
        streams: u32,
    },
    /// Lag did not come back.
    LagStayed {
        /// Streams that were played.
        streams: u32,
    },
    /// New calls were lost all the time.
    NewCallsLost {
        /// Streams that were played.
        streams: u32,
    },
    /// The instance served no call after its return.
    NotServing {
        /// Streams that were played.
        streams: u32,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(FaultReason);

impl Localize for FaultReason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::NotInTime { streams } => localized!(
                "at {streams} streams the others did not keep up soon enough",
                "{streams} 路时其余实例没有及时跟上"
            ),
            Self::InTimeUnknown { streams } => localized!(
                "at {streams} streams nothing shows how soon the others kept up",
                "{streams} 路时看不出其余实例多久跟上"
            ),
            Self::LagStayed { streams } => localized!(
                "at {streams} streams lag did not come back even when the instance did",
                "{streams} 路时实例恢复后欠账延迟仍未回落"
            ),
            Self::NewCallsLost { streams } => localized!(
                "at {streams} streams new calls were lost for as long as the fault lasted",
                "{streams} 路时整个故障期间都有新通话丢失"
            ),
            Self::NotServing { streams } => localized!(
                "at {streams} streams the instance served no call after its return",
                "{streams} 路时实例恢复后没有再接通话"
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
