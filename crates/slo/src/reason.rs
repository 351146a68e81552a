//! Why a tier has its verdict, and what a reader should know besides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapedeck_l10n::{Localize, LocalizedText, localized, reason};
use tapedeck_record::{CrashCause, Outcome};

use crate::limits::TtftBasis;
use crate::live::Abort;
use crate::report::{Estimate, FinalBasis};

/// One reason of a verdict, or one remark beside it. In files it is an object of its `kind`, its figures and its English
/// `text`, see [`reason!`].
///
/// English texts hold no comma: they stand in the notes of `ladder.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum Reason {
    /// The client's health is not judged under a paused clock.
    ClientNotJudged,
    /// The load generator woke too late.
    ClientLate {
        /// Scheduling lateness p99, milliseconds.
        late_ms: f64,
        /// Its limit, milliseconds.
        limit_ms: f64,
    },
    /// Nothing shows that audio was sent in time.
    ClientLatenessUnknown,
    /// The load generator used too much of this machine.
    ClientBusy {
        /// Its share of all cores, 0..1.
        share: f64,
        /// The limit, 0..1.
        limit: f64,
    },
    /// The load generator's CPU was not measured.
    ClientCpuUnknown,
    /// An instance preempted requests.
    Preempted {
        /// The instance.
        instance: String,
        /// Preempted requests.
        requests: f64,
    },
    /// An instance should tell its preemptions and does not.
    PreemptionsUnknown {
        /// The instance.
        instance: String,
    },
    /// A KV pool filled up.
    KvPoolFull {
        /// The instance.
        instance: String,
        /// Use p95, 0..1.
        share: f64,
        /// The hard limit, 0..1.
        limit: f64,
    },
    /// Most pages of an instance could not be read.
    KvPoolGaps {
        /// The instance.
        instance: String,
        /// Pages that could not be read.
        gaps: u64,
        /// All pages.
        pages: u64,
    },
    /// An instance should tell its KV pool and does not.
    KvPoolUnknown {
        /// The instance.
        instance: String,
    },
    /// No engine tells its KV pool or its preemptions.
    HardLimitNotApplicable,
    /// Streams errored.
    StreamsErrored {
        /// Streams with an errored call.
        streams: u32,
        /// All streams.
        of: u32,
        /// Errored calls by outcome.
        outcomes: BTreeMap<Outcome, u64>,
    },
    /// A latency is beyond its limit.
    LatencyBeyond {
        /// Which.
        figure: Latency,
        /// Its p95.
        p95: Estimate,
        /// The limit, in the unit of the figure.
        limit: f64,
        /// Whether only the estimate is, and not the whole interval.
        by_estimate: bool,
    },
    /// A latency is within its limit by its estimate alone.
    LatencyWithinByEstimate {
        /// Which.
        figure: Latency,
        /// Its p95.
        p95: Estimate,
        /// The limit, in the unit of the figure.
        limit: f64,
    },
    /// A limit that means nothing for the dialect.
    LatencyNotApplicable {
        /// Which.
        figure: Latency,
    },
    /// No call has the figure.
    LatencyUnknown {
        /// Which.
        figure: Latency,
    },
    /// First text is to count from the server's window, and the window is not known.
    WindowUnknown,
    /// Calls without a first text.
    FirstTextsMissing {
        /// Calls.
        calls: u64,
        /// What first text counts from.
        basis: TtftBasis,
    },
    /// A live rule ended the tier.
    Aborted {
        /// The rule.
        abort: Abort,
    },
    /// The tier ended early.
    CutShort {
        /// Why.
        why: CutShort,
    },
    /// Counted calls are missing.
    CallsMissing {
        /// Counted calls there were.
        counted: u64,
        /// Counted calls there should have been.
        expected: u64,
    },
    /// No call was counted.
    NoCalls,
    /// Counted calls were cut off.
    CallsCutOff {
        /// Calls.
        calls: u64,
    },
    /// There are counted calls, and none takes part in the verdict.
    NothingProven,
    /// Too short for the tests of stationarity.
    TooShort {
        /// Length of a block, seconds.
        block_s: f64,
    },
    /// A series kept rising.
    KeptRising {
        /// Which: `ttft`, `rtf`, `final` or `open_sessions`.
        series: String,
        /// Fitted rise, in the unit of the series.
        rise: f64,
        /// Blocks behind it.
        blocks: u32,
        /// p-value after correction.
        p_adjusted: f64,
    },
    /// Lag grows with the age of a call.
    LagGrows {
        /// Milliseconds per minute.
        ms_per_min: f64,
        /// What that adds up to over the longest call, seconds.
        rise_s: f64,
        /// The longest call, seconds.
        longest_s: f64,
    },
    /// A cache answered instead of the engine.
    CacheHits {
        /// Which cache.
        cache: Cache,
        /// The instance.
        instance: String,
        /// Hits / look-ups, 0..1.
        share: f64,
        /// The limit, 0..1.
        limit: f64,
    },
    /// An instance should tell its prefix cache and does not.
    PrefixCacheUnknown {
        /// The instance.
        instance: String,
    },
    /// Instances that should tell their multimodal cache and do not.
    MultimodalCacheUnknown {
        /// The instances.
        instances: Vec<String>,
    },
    /// An instance restarted.
    Restarted {
        /// The instance.
        instance: String,
        /// How often.
        times: u32,
    },
    /// Pages of an instance could not be read.
    PagesMissing {
        /// The instance.
        instance: String,
        /// Pages.
        pages: u64,
    },
    /// Calls that ended in a way that is no error and yet not well.
    CallsEnded {
        /// Calls.
        calls: u64,
        /// How: `tail_lost`, `empty_final` or `client_late`.
        outcome: Outcome,
    },
    /// Error rates are worse than the single-stream baseline.
    QualityAlarm {
        /// Character error rate, 0..1.
        cer: Option<f64>,
        /// Word error rate, 0..1.
        wer: Option<f64>,
    },
    /// Calls outside the counted window errored.
    ErrorsOutside {
        /// Calls.
        calls: u64,
    },
    /// The server broke the rules of its dialect.
    Violations {
        /// How often.
        times: u64,
    },
    /// The instances did not drain.
    NotDrained,
    /// The servers saw another number of sessions than was delivered.
    OpenSessions {
        /// Streams that carried their whole load.
        streams: u32,
        /// Median of the open sessions of all servers.
        sessions: f64,
    },
    /// Only one stream.
    OneStream,
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(Reason);

/// A latency that is held against a limit, with what it counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Latency {
    /// First text, seconds.
    FirstText {
        /// What it counts from.
        basis: TtftBasis,
    },
    /// Real-time factor, without unit.
    RealTimeFactor,
    /// Final, seconds.
    Final {
        /// What it counts from.
        basis: FinalBasis,
    },
}

impl Latency {
    /// What stands behind a value.
    const fn unit(self) -> &'static str {
        match self {
            Self::RealTimeFactor => "",
            Self::FirstText { .. } | Self::Final { .. } => " s",
        }
    }

    /// What stands between its Chinese name and a word: nothing behind a bracket.
    const fn gap(self) -> &'static str {
        match self {
            Self::RealTimeFactor => " ",
            Self::FirstText { .. } | Self::Final { .. } => "",
        }
    }

    /// The name of its p95.
    fn p95(self) -> LocalizedText {
        match self {
            Self::FirstText { basis } => {
                let basis = basis.name();
                localized!("first-text p95 (basis {basis})", "首字延迟 p95（基准 {basis}）")
            }
            Self::RealTimeFactor => localized!("real-time factor p95", "实时率 RTF p95"),
            Self::Final { basis: FinalBasis::Audio } => {
                localized!("final p95 (from the end of the audio)", "终稿延迟 p95（从音频结束起算）")
            }
            Self::Final { basis: FinalBasis::Speech } => {
                localized!("final p95 (from the end of speech)", "终稿延迟 p95（从说话结束起算）")
            }
        }
    }
}

/// A cache of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// The prefix cache.
    Prefix,
    /// The multimodal cache.
    Multimodal,
}

impl Localize for Cache {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Prefix => localized!("prefix cache", "前缀缓存"),
            Self::Multimodal => localized!("multimodal cache", "多模态缓存"),
        }
    }
}

/// Why a tier ended before its last counted call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", remote = "Self")]
#[non_exhaustive]
pub enum CutShort {
    /// The user stopped it.
    Interrupted,
    /// A live rule ended it.
    Aborted {
        /// The rule.
        abort: Abort,
    },
    /// An instance went down.
    InstanceDown {
        /// The instance.
        instance: String,
        /// What its health check says.
        why: String,
        /// What its log says, where it tells.
        cause: Option<CrashCause>,
    },
    /// A GPU was hotter than `slo.live.gpu_pause_c`.
    TooHot {
        /// The GPU.
        gpu: String,
        /// Its temperature, degrees Celsius.
        celsius: f64,
    },
    /// A sentence of an earlier version, or of a kind that is not known.
    #[serde(skip)]
    Recorded(String),
}

reason!(CutShort);

impl CutShort {
    /// Whether what was measured is a part only, and no answer; a tier that a live rule ended stands.
    #[must_use]
    pub const fn is_partial(&self) -> bool {
        !matches!(self, Self::Aborted { .. })
    }
}

impl Localize for CutShort {
    fn text(&self) -> LocalizedText {
        match self {
            Self::Interrupted => localized!("interrupted", "被中断"),
            Self::TooHot { gpu, celsius } => {
                localized!("GPU {gpu} is at {celsius} C", "GPU {gpu} 温度达 {celsius} °C")
            }
            Self::Aborted { abort } => abort.text(),
            Self::InstanceDown { instance, why, cause: None } => {
                localized!("{instance}: {why}", "{instance}：{why}")
            }
            Self::InstanceDown { instance, why, cause: Some(cause) } => {
                let cause = cause.text();
                localized!("{instance}: {why}; {}", "{instance}：{why}；{}"; cause)
            }
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}

/// An interval with n; a bound that the sample cannot give is said to be missing.
fn interval(e: &Estimate, unit: &str) -> LocalizedText {
    let bound = |b: Option<f64>, none: &str| b.map_or_else(|| none.to_owned(), |v| format!("{v:.3}{unit}"));
    LocalizedText {
        en: format!(
            "interval {} to {} from {} calls",
            bound(e.low, "no bound"),
            bound(e.high, "no bound"),
            e.n
        ),
        zh: format!("区间 {} 至 {}，{} 通", bound(e.low, "无界"), bound(e.high, "无界"), e.n),
    }
}

impl Localize for Reason {
    fn text(&self) -> LocalizedText {
        match self {
            Self::ClientNotJudged => {
                localized!("client health is not judged in a rehearsal", "演练中不判定压测端自身的健康状况")
            }
            Self::ClientLate { late_ms, limit_ms } => localized!(
                "our own sender woke {late_ms:.1} ms late at p99 and only {limit_ms:.1} ms are allowed; use a machine with less to do",
                "压测端发送唤醒延迟 p99 为 {late_ms:.1} ms，上限 {limit_ms:.1} ms；请换一台更空闲的机器"
            ),
            Self::ClientLatenessUnknown => localized!(
                "our own wake lateness was not measured so nothing shows that audio was sent in time",
                "没有测到压测端的唤醒延迟，无法证明音频是按时发出的"
            ),
            Self::ClientBusy { share, limit } => localized!(
                "the load generator used {:.0} % of this machine's cores and {:.0} % is the limit",
                "压测端占用了本机 {:.0} % 的核，上限 {:.0} %",
                share * 100.0,
                limit * 100.0
            ),
            Self::ClientCpuUnknown => {
                localized!("the load generator's CPU use was not measured", "没有测到压测端的 CPU 占用")
            }
            Self::Preempted { instance, requests } => localized!(
                "{instance} preempted {requests:.0} requests",
                "{instance} 抢占了 {requests:.0} 个请求"
            ),
            Self::PreemptionsUnknown { instance } => localized!(
                "the preemption counter of {instance} could not be read",
                "读不到 {instance} 的抢占计数"
            ),
            Self::KvPoolFull { instance, share, limit } => localized!(
                "the KV pool of {instance} was {:.1} % full at p95 and {:.0} % is the red line",
                "{instance} 的 KV 池 p95 占用 {:.1} %，红线 {:.0} %",
                share * 100.0,
                limit * 100.0
            ),
            Self::KvPoolGaps { instance, gaps, pages } => localized!(
                "{gaps} of {pages} pages of {instance} could not be read so its KV pool is unknown",
                "{instance} 的 {pages} 次指标采样中有 {gaps} 次失败，KV 池占用未知"
            ),
            Self::KvPoolUnknown { instance } => {
                localized!("the KV pool of {instance} could not be read", "读不到 {instance} 的 KV 池占用")
            }
            Self::HardLimitNotApplicable => localized!(
                "the preemption red line is not applicable: these engines tell nothing about it",
                "抢占红线不适用：这些引擎不提供相关指标"
            ),
            Self::StreamsErrored { streams, of, outcomes } => {
                let kinds: Vec<LocalizedText> = outcomes
                    .iter()
                    .map(|(o, n)| LocalizedText::same(format!("{n} x {}", o.name())))
                    .collect();
                let kinds = LocalizedText::join(&kinds, " and ", "、");
                localized!("{streams} of {of} streams errored: {}", "{of} 路中有 {streams} 路出错：{}"; kinds)
            }
            Self::LatencyBeyond { figure, p95, limit, by_estimate } => {
                let (name, gap, unit, value) = (figure.p95(), figure.gap(), figure.unit(), p95.value);
                let interval = interval(p95, unit);
                if *by_estimate {
                    localized!(
                        "{} is {value:.3}{unit} and {limit}{unit} is the limit; by the estimate alone ({})",
                        "{}{gap}为 {value:.3}{unit}，上限 {limit}{unit}；仅凭点估计（{}）"; name, interval
                    )
                } else {
                    localized!(
                        "{} is {value:.3}{unit} and {limit}{unit} is the limit ({})",
                        "{}{gap}为 {value:.3}{unit}，上限 {limit}{unit}（{}）"; name, interval
                    )
                }
            }
            Self::LatencyWithinByEstimate { figure, p95, limit } => {
                let (name, gap, unit, value) = (figure.p95(), figure.gap(), figure.unit(), p95.value);
                localized!(
                    "{} is {value:.3}{unit} and within {limit}{unit} by the estimate alone ({})",
                    "{}{gap}为 {value:.3}{unit}，未超 {limit}{unit}，但仅凭点估计（{}）";
                    name, interval(p95, unit)
                )
            }
            Self::LatencyNotApplicable { figure } => localized!(
                "the limit on {} is not applicable: the dialect does not show which audio a message answers",
                "{} 的上限不适用：该协议看不出一条消息对应哪段音频"; figure.p95()
            ),
            Self::LatencyUnknown { figure: Latency::FirstText { basis } } => {
                let basis = basis.name();
                localized!(
                    "no call has a first text on basis {basis}",
                    "没有一通电话有以 {basis} 为基准的首字"
                )
            }
            Self::LatencyUnknown { figure: Latency::RealTimeFactor } => {
                localized!("no call has a real-time factor", "没有一通电话有实时率")
            }
            Self::LatencyUnknown { figure: Latency::Final { .. } } => {
                localized!("no call has a final", "没有一通电话有终稿")
            }
            Self::WindowUnknown => localized!(
                "first-text latency on basis window is unknown: set server.window_ms or another slo.ttft_basis",
                "以 window 为基准的首字延迟未知：请设置 server.window_ms 或改用别的 slo.ttft_basis"
            ),
            Self::FirstTextsMissing { calls, basis } => {
                let basis = basis.name();
                localized!(
                    "{calls} calls have no first text on basis {basis}",
                    "{calls} 通没有以 {basis} 为基准的首字"
                )
            }
            Self::Aborted { abort } => {
                localized!("the tier was given up: {}", "本档被提前放弃：{}"; abort.text())
            }
            Self::CutShort { why } => {
                localized!("the tier was cut short: {}", "本档提前结束：{}"; why.text())
            }
            Self::CallsMissing { counted, expected } => localized!(
                "only {counted} of {expected} counted calls were recorded",
                "应计入 {expected} 通，只记录到 {counted} 通"
            ),
            Self::NoCalls => localized!("no call was counted", "没有计入任何一通"),
            Self::CallsCutOff { calls } => localized!(
                "{calls} counted calls were cut off before their final",
                "{calls} 通计入的电话在终稿前被切断"
            ),
            Self::NothingProven => localized!("no counted call proves anything", "计入的电话什么也证明不了"),
            Self::TooShort { block_s } => localized!(
                "too short to tell whether it kept getting worse: that takes four blocks of {block_s:.0} s",
                "时间太短，无法判断是否持续变差：至少需要四段 {block_s:.0} s"
            ),
            Self::KeptRising { series, rise, blocks, p_adjusted } => localized!(
                "{series} kept rising while the tier ran: by {rise:.3} over {blocks} blocks (p = {p_adjusted:.4} after correction)",
                "{series} 在本档运行期间持续上升：{blocks} 段内上升 {rise:.3}（校正后 p = {p_adjusted:.4}）"
            ),
            Self::LagGrows { ms_per_min, rise_s, longest_s } => localized!(
                "lag grows by {ms_per_min:.0} ms per minute of a call's age which adds up to {rise_s:.1} s over the longest call of {longest_s:.0} s",
                "欠账延迟随通话时长每分钟增长 {ms_per_min:.0} ms，最长 {longest_s:.0} s 的电话累计 {rise_s:.1} s"
            ),
            Self::CacheHits { cache, instance, share, limit } => {
                let (share, limit) = (share * 100.0, limit * 100.0);
                localized!(
                    "the {} of {instance} answered {share:.1} % of its look-ups and {limit:.1} % is the limit; turn it off or set load.unique_per_session",
                    "{instance} 的{}命中率 {share:.1} %，上限 {limit:.1} %；请关闭它或设置 load.unique_per_session";
                    cache.text()
                )
            }
            Self::PrefixCacheUnknown { instance } => localized!(
                "the prefix cache of {instance} made no look-ups that could be read and its page does not say that it is off",
                "读不到 {instance} 前缀缓存的查询数，其指标页也没有说明它已关闭"
            ),
            Self::MultimodalCacheUnknown { instances } => localized!(
                "the multimodal cache's hit rate of {} is unknown",
                "{} 的多模态缓存命中率未知";
                LocalizedText { en: instances.join(" and "), zh: instances.join("、") }
            ),
            Self::Restarted { instance, times } => localized!(
                "{instance} restarted {times} times: its counters were bridged",
                "{instance} 重启了 {times} 次：计数已接续"
            ),
            Self::PagesMissing { instance, pages } => localized!(
                "{pages} pages of {instance} could not be read",
                "{instance} 有 {pages} 次指标采样失败"
            ),
            Self::CallsEnded { calls, outcome: Outcome::TailLost } => localized!(
                "{calls} calls lost their last words: a segment was never made final",
                "{calls} 通丢了结尾：有一段始终没有定稿"
            ),
            Self::CallsEnded { calls, outcome: Outcome::EmptyFinal } => {
                localized!("{calls} calls ended without a word", "{calls} 通结束时没有任何文字")
            }
            Self::CallsEnded { calls, outcome: Outcome::ClientLate } => localized!(
                "{calls} calls were left out because our own sender was late",
                "{calls} 通因压测端自身发送迟到而未计入"
            ),
            Self::CallsEnded { calls, outcome } => {
                let outcome = outcome.name();
                localized!("{calls} calls ended {outcome}", "{calls} 通以 {outcome} 结束")
            }
            Self::QualityAlarm { cer, wer } => {
                let rate = |rate: &Option<f64>| match rate {
                    Some(rate) => LocalizedText::same(format!("{:.1} %", rate * 100.0)),
                    None => localized!("unknown", "未知"),
                };
                localized!(
                    "quality alarm: CER {} and WER {} against the single-stream baseline",
                    "质量告警：相对单路基线，CER {}，WER {}"; rate(cer), rate(wer)
                )
            }
            Self::ErrorsOutside { calls } => {
                localized!(
                    "{calls} calls outside the counted window errored",
                    "计入窗口之外有 {calls} 通出错"
                )
            }
            Self::Violations { times } => {
                localized!(
                    "the server broke its dialect's rules {times} times",
                    "服务端违反协议约定 {times} 次"
                )
            }
            Self::NotDrained => {
                localized!("the instances did not come to rest after the tier", "本档结束后实例没有排空")
            }
            Self::OpenSessions { streams, sessions } => localized!(
                "{streams} streams were delivered and the servers saw {sessions:.0} open sessions",
                "压测端送达 {streams} 路，服务端看到 {sessions:.0} 个会话"
            ),
            Self::OneStream => localized!(
                "one stream only: intervals come from order statistics alone",
                "只有一路：区间仅来自次序统计量"
            ),
            Self::Recorded(sentence) => LocalizedText::same(sentence),
        }
    }
}
